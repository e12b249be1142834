"""A workflow function: its inputs, with types and defaults, and how a fault in it is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hostler.authoring import Build, NodeHandle, workflow
from tests.hostler.authored import Order, build_of, decorating, extract, refusal


def test_workflow_inputs_come_from_the_signature_with_types_and_defaults() -> None:
    seen: dict[str, Any] = {}

    def author(
        build: Build, source: str, target: Path, times: int = 2, *, order: Order = Order.UP, tags: tuple[str, ...] = ()
    ) -> Any:
        seen.update(source=source, target=target, times=times, order=order, tags=tags)
        return build.call(extract, key="a", input={"path": source})

    plan = build_of(author, source=Path("talk.mp4"), target="out", tags=["x"]).plan
    assert seen == {
        "source": "talk.mp4",
        "target": Path("out"),
        "times": 2,
        "order": Order.UP,
        "tags": ("x",),
    }
    assert plan.inputs == {"source": "talk.mp4", "target": "out", "times": 2, "order": "up", "tags": ["x"]}
    found = workflow("demo")(author)
    assert {name: each.text for name, each in found.inputs.items()} == {
        "source": True, "target": True, "times": False, "order": True, "tags": False,
    }  # fmt: skip


def test_inputs_of_the_wrong_kind_or_name_are_refused() -> None:
    def author(build: Build, source: str, times: int = 2) -> Any:
        return build.call(extract, key="a", input={"path": source})

    assert "input times of workflow demo: it is not a whole number" in refusal(author, source="a", times="x")
    assert "has no input sauce; it takes: source, times" in refusal(author, sauce="a", source="b")
    assert "needs the input source" in refusal(author)
    assert "is a object, which JSON cannot hold" in refusal(author, source=object())
    assert "holds an object with the key $ref" in refusal(
        lambda build, x=None: None, x={"a": [{"$ref": {"node": "a", "path": []}}]}
    )


def test_a_workflow_function_that_cannot_be_called_by_name_is_refused() -> None:
    make = workflow("demo")
    assert "parameter *rest cannot be an input" in decorating(make, lambda build, *rest: None)
    assert "parameter **rest cannot be an input" in decorating(make, lambda build, **rest: None)
    assert "it has no parameter for the build" in decorating(make, lambda: None)

    def odd(build: Build, call: Callable[[int], int]) -> None: ...

    assert "parameter call is of a type that cannot be an input" in decorating(make, odd)


def test_a_workflow_stays_callable_inside_another() -> None:
    @workflow("inner")
    def inner(build: Build, key: str) -> NodeHandle:
        return build.call(extract, key=key, input={"path": "a"})["path"]

    def outer(build: Build) -> Any:
        return {"one": inner(build, "one"), "two": inner(build, key="two")}

    assert [node.key for node in build_of(outer).plan.nodes] == ["one", "two"]


def test_an_exception_in_a_workflow_function_is_one_line_with_its_place() -> None:
    def author(build: Build) -> Any:
        return dict[str, int]()["missing"]  # the line that is named

    line = refusal(author)
    number = Path(__file__).read_text(encoding="utf-8").split("# the line that is named\n")[0].count("\n") + 1
    assert f"{__file__} line {number}: KeyError: 'missing'" in line
