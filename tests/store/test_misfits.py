"""What does not fit a model is told in words of our own."""

from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from store.fields import Name
from store.misfits import misfit


class Size(StrEnum):
    SMALL = "small"
    LARGE = "large"


class Inner(BaseModel):
    at: float


class Film(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    path: str = "a"
    width: int = Field(default=2, ge=2, le=16384)
    speed: float = Field(default=1.0, gt=0, lt=10)
    whole: bool = True
    size: Size = Field(default=Size.SMALL, strict=False)
    kind: Literal["film", "talk"] = "film"
    words: list[str] = Field(default=["a"], min_length=1, max_length=2)
    names: dict[str, int] = {}
    inner: Inner = Inner(at=0.0)
    name: Name = "a"
    even: Annotated[int, Field(multiple_of=2)] = 2

    @field_validator("path")
    @classmethod
    def be_relative(cls, path: str) -> str:
        if path.startswith("/"):
            raise ValueError("it begins with a slash")
        return path


def said(given: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        Film.model_validate(given)
    (problem,) = caught.value.errors()
    return misfit(".".join(map(str, problem["loc"])), problem)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([], "it is not an object"),
        ({"widht": 3}, "widht is no field that there is"),
        ({"path": 3}, "path is not text"),
        ({"path": "/a"}, "path: it begins with a slash"),
        ({"name": "\udcff"}, "name is not UTF-8"),
        ({"width": "3"}, "width is not a whole number"),
        ({"width": 1}, "width is less than 2"),
        ({"width": 20000}, "width is more than 16,384"),
        ({"speed": 0.0}, "speed is not more than 0"),
        ({"speed": 10.0}, "speed is not less than 10"),
        ({"speed": "fast"}, "speed is not a number"),
        ({"whole": "yes"}, "whole is neither true nor false"),
        ({"size": "smal"}, "size is not 'small' or 'large' (did you mean small?)"),
        ({"size": "huge"}, "size is not 'small' or 'large'"),
        ({"kind": "flim"}, "kind is not 'film' or 'talk' (did you mean film?)"),
        ({"words": "a"}, "words is not a list"),
        ({"words": []}, "words is empty"),
        ({"words": ["a", "b", "c"]}, "words has more than 2 entries"),
        ({"names": []}, "names is not an object"),
        ({"inner": {}}, "inner.at is missing"),
        ({"name": "A b"}, "name is not a name: lower-case words joined by . - or _"),
        ({"name": "a" * 256}, "name has more than 255 characters"),
        ({"even": 3}, "even is no multiple of 2"),
    ],
)
def test_a_misfit_is_told_in_words_that_people_use(given: Any, says: str) -> None:
    assert said(given) == says


def test_what_is_seldom_met_is_told_in_the_words_of_its_type() -> None:
    """A validator of a type that has no words here, such as a date."""
    assert misfit("at", {"type": "date_parsing", "loc": ("at",), "msg": "no date", "input": "x"}) == "at: no date"
