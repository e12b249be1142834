"""Inputs from a command line: verbatim for texts, JSON for the rest, and a list for whoever mistypes a name."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, JsonValue

from hostler.authoring import Build, workflow
from hostler.inputs import read_inputs
from hostres.errors import Code, HostlerError


@workflow("demo")
def demo(
    build: Build,
    source: str,
    path: Path = Path(),
    maybe: str | None = None,
    short: Annotated[str, Field(max_length=3)] = "",
    word: Literal["a", "b"] = "a",
    count: int = 1,
    either: int | str = 1,
    tags: list[str] | None = None,
    plain="x",
) -> None: ...


def read(*pairs: str, file: Path | None = None, folder: Path | None = None) -> dict[str, JsonValue]:
    return read_inputs(demo, pairs, file, folder=folder)


def refusal(*pairs: str, file: Path | None = None) -> str:
    with pytest.raises(HostlerError) as caught:
        read(*pairs, file=file)
    assert caught.value.code is Code.INVALID_DATA
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", ["path", "maybe", "short", "word", "plain", "source"])
def test_a_text_is_taken_verbatim(name: str) -> None:
    for text in ("3", "true", '"quoted"', "a=b", "", " x "):
        assert read("source=s", f"{name}={text}")[name] == text


def test_everything_else_is_json() -> None:
    assert read("source=s", "count=3", 'either="3"', 'tags=["a", "b"]') == {
        "source": "s", "count": 3, "either": "3", "tags": ["a", "b"],
    }  # fmt: skip
    assert "input count: not JSON" in refusal("source=s", "count=three")
    assert "its type is integer, so write JSON" in refusal("source=s", "count=three")
    assert "input either: not JSON" in refusal("source=s", "either=three")
    assert "a duplicate key" in refusal("source=s", 'tags={"a": 1, "a": 2}')


def test_unknown_and_missing_names_come_with_the_list() -> None:
    assert "workflow demo has no input sauce; it takes: source, path, maybe" in refusal("sauce=x", "source=y")
    assert "workflow demo needs the input source; give it with -i NAME=VALUE; it takes: source, path" in refusal()
    assert "input 'source' is not KEY=VALUE" in refusal("source")
    assert "input '=x' is not KEY=VALUE" in refusal("=x")


def test_a_file_gives_an_object_and_pairs_win_over_it(tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text(json.dumps({"source": "from file", "count": 2}), encoding="utf-8")
    assert read(file=tmp_path / "in.json") == {"source": "from file", "count": 2}
    assert read("count=5", file=Path("in.json"), folder=tmp_path) == {"source": "from file", "count": 5}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[1]", "is not an object of inputs"),
        ('{"source": 1, "source": 2}', "$.source: a duplicate key"),
        ('{"source": NaN}', "$.source: NaN is not a finite number"),
        ("{", "not JSON"),
        ('{"sauce": 1, "source": ""}', "has no input sauce"),
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path: Path, text: str, says: Any) -> None:
    (tmp_path / "in.json").write_text(text, encoding="utf-8")
    assert says in refusal(file=tmp_path / "in.json")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert f"input file {tmp_path}/none.json cannot be read: No such file" in refusal(file=tmp_path / "none.json")
