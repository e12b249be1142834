"""What can be known of a node's input before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from hostler.authoring import Build, operation
from tests.hostler.authored import build_of, extract, refusal, use


class Free(BaseModel):
    model_config = ConfigDict(extra="allow")


@operation("demo.free")
def free(ctx: Any, input: Free) -> Free:
    return input


def call_use(input: Any) -> Callable[..., Any]:
    def author(build: Build) -> Any:
        audio = build.call(extract, key="audio", input={"path": "a"})
        build.command(["true"], key="cmd", outputs={"log": "log.txt"})
        build.call(free, key="free")
        return build.call(use, key="use", input=input(audio) if callable(input) else input)

    return author


@pytest.mark.parametrize(
    ("input", "says"),
    [
        ({"path": "a"}, "input.seconds is missing"),
        ({"path": "a", "seconds": 1, "sound": 2}, "input.sound is no field of it"),
        (
            {"path": "a", "secnds": 1},
            "input.secnds is no field of it; did you mean input.seconds? the input is a Audio",
        ),
        ({"path": "a", "seconds": "long"}, "input.seconds is not a number"),
        ({"path": "a", "seconds": 1, "parts": [{"name": "x", "when": 1}]}, "input.parts[0].when is no field of it"),
        (None, "input.path is missing"),
        ([1], "input is not an object"),
        (lambda audio: {"path": audio["path"]}, "input.seconds is missing"),
        (lambda audio: {"path": audio["path"], "seconds": 1, "sound": 2}, "input.sound is no field of it"),
        (lambda audio: {"path": audio["path"], "seconds": "long"}, "input.seconds is not a number"),
        (
            lambda audio: {"path": audio["file"], "seconds": 1},
            "audio.file leads nowhere in the output of node audio: it has no field file, only path, seconds, parts, note",
        ),
        (
            lambda audio: {"path": audio["parts"]["name"], "seconds": 1},
            "audio.parts.name leads nowhere in the output of node audio: it is array and has no field name",
        ),
        (
            lambda audio: {"path": audio["path"][0], "seconds": 1},
            "it is string and has no element 0",
        ),
        (
            lambda audio: {"path": audio, "seconds": 1},
            "input.path takes a text, number or truth value, but audio is an object",
        ),
        (
            lambda audio: {"path": "a", "seconds": 1, "parts": audio["path"]},
            "input.parts takes a list, but audio.path is a text, number or truth value",
        ),
        (
            {"path": {"$ref": {"node": "cmd", "path": ["outputs", "lag", "path"]}}, "seconds": 1},
            "cmd.outputs.lag.path leads nowhere in the output of node cmd: it has no field lag, only log",
        ),
        (
            {"path": {"$ref": {"node": "nope", "path": []}}, "seconds": 1},
            "it refers to node nope, which does not exist",
        ),
        ({"path": {"$ref": {"node": "audio", "path": []}, "x": 1}, "seconds": 1}, "not a reference"),
        ({"path": {"$ref": "audio"}, "seconds": 1}, "not a reference"),
    ],
)
def test_an_input_that_cannot_fit_is_refused_before_anything_runs(input: Any, says: str) -> None:
    """V2: also a reference that leads nowhere."""
    line = refusal(call_use(input))
    assert "node use: " in line
    assert says in line


@pytest.mark.parametrize(
    "input",
    [
        lambda audio: audio,
        lambda audio: {"path": audio["path"], "seconds": audio["parts"][3]["at"], "parts": audio["parts"]},
        lambda audio: {"path": "a", "seconds": {"$ref": {"node": "cmd", "path": ["exit_code"]}}},
        lambda audio: {"path": {"$ref": {"node": "cmd", "path": ["outputs", "log", "path"]}}, "seconds": 1},
        lambda audio: {"path": "a", "seconds": {"$ref": {"node": "free", "path": ["any", 3, "thing"]}}},
        lambda audio: {"path": "a", "seconds": 1, "note": audio["note"]},
    ],
)
def test_an_input_that_may_fit_is_let_through(input: Any) -> None:
    assert build_of(call_use(input)).plan.nodes[-1].key == "use"


def test_who_gives_a_field_by_another_name_than_its_alias_is_told_the_alias() -> None:
    """The name that was refused was the only one in the list of those that are taken."""

    class Named(BaseModel):
        file: str = Field(alias="file-name")
        width: int = Field(0, validation_alias="px")

    @operation("demo.aliased")
    def aliased(ctx: Any, input: Named) -> Free:
        raise AssertionError

    said = refusal(lambda build: build.call(aliased, key="a", input={"file": "a"}))
    assert "input.file is no field of it" in said
    assert said.endswith("the input is a Named: file-name, px (optional)")


def test_aliases_extra_fields_and_validators_of_a_model_are_respected() -> None:
    class Named(BaseModel):
        model_config = ConfigDict(populate_by_name=True)
        file: str = Field(alias="file-name")

    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")
        x: int

    class Rewriting(BaseModel):
        x: int

        @model_validator(mode="before")
        @classmethod
        def unpack(cls, given: Any) -> Any:
            return {"x": given["inner"]["x"]}

    class Picky(BaseModel):
        x: int
        y: int = 0

        @field_validator("x")
        @classmethod
        def even(cls, value: int) -> int:
            if value % 2:
                raise ValueError("odd numbers are not for me")
            return value

        @model_validator(mode="after")
        def ordered(self) -> Picky:
            if self.y <= self.x:
                raise ValueError("y must be larger")
            return self

    @operation("demo.named")
    def named(ctx: Any, input: Named) -> Picky:
        raise AssertionError

    @operation("demo.open")
    def opened(ctx: Any, input: Open) -> Picky:
        raise AssertionError

    @operation("demo.rewriting")
    def rewriting(ctx: Any, input: Rewriting) -> Picky:
        raise AssertionError

    @operation("demo.picky")
    def picky(ctx: Any, input: Picky) -> Picky:
        raise AssertionError

    def fits(build: Build) -> Any:
        one = build.call(picky, key="one", input={"x": 2, "y": 3})
        build.call(named, key="two", input={"file-name": "a"})
        build.call(named, key="three", input={"file": "a"})
        build.call(opened, key="four", input={"x": one["x"], "z": 1})
        build.call(rewriting, key="five", input={"inner": {"x": 1}})
        build.call(rewriting, key="six", input={"inner": one})
        build.call(picky, key="seven", input={"x": 4, "y": one["y"]})

    assert len(build_of(fits).plan.nodes) == 7
    assert "input.x: odd numbers are not for me" in refusal(
        lambda build: build.call(picky, key="a", input={"x": 1, "y": 3})
    )
    assert "y must be larger" in refusal(lambda build: build.call(picky, key="a", input={"x": 4, "y": 3}))
    assert "node a: input: KeyError: 'inner'" in refusal(lambda build: build.call(rewriting, key="a", input={"x": 1}))


def test_outputs_may_refer_only_to_what_there_is() -> None:
    def dangling(build: Build) -> Any:
        build.call(extract, key="audio", input={"path": "a"})
        return {"x": {"$ref": {"node": "video", "path": []}}}

    def wrong(build: Build) -> Any:
        return {"x": build.call(extract, key="audio", input={"path": "a"})["wave"]}

    assert "outputs of workflow demo: they refer to node video, which does not exist" in refusal(dangling)
    assert "outputs of workflow demo: audio.wave leads nowhere" in refusal(wrong)
