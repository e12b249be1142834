"""A few operations, and how a workflow that calls them is compiled or refused."""

from __future__ import annotations

import enum
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from hostler.authoring import operation, workflow
from hostler.compiler import Compiled, compile_workflow
from hostres.errors import Code, HostlerError
from store.policy import Policy

if TYPE_CHECKING:
    from actors.context import Context


class Source(BaseModel):
    path: str
    width: int = 640


class Part(BaseModel):
    name: str
    at: float = 0.0


class Audio(BaseModel):
    path: str
    seconds: float
    parts: list[Part] = []
    note: str | None = None


@operation("demo.extract", version=2, policy=Policy(effect="local-read", claims={"ffmpeg": 1}))
def extract(ctx: Context, input: Source) -> Audio:
    return Audio(path=input.path + ".wav", seconds=2.0)


@operation("demo.use")
def use(ctx: Any, input: Audio) -> Source:
    return Source(path=input.path)


def build_of(author: Callable[..., Any], **inputs: Any) -> Compiled:
    return compile_workflow(workflow("demo")(author), inputs, folder=Path("/somewhere"))


def refusal(author: Callable[..., Any], *, code: Code = Code.INVALID_DATA, **inputs: Any) -> str:
    with pytest.raises(HostlerError) as caught:
        build_of(author, **inputs)
    assert caught.value.code is code
    line = str(caught.value)
    assert "\n" not in line
    assert not line.endswith(".")
    return line


def decorating(decorate: Callable[..., Any], function: Callable[..., Any]) -> str:
    with pytest.raises(HostlerError) as caught:
        decorate(function)
    assert caught.value.code is Code.INVALID_DATA
    return str(caught.value)


class Order(enum.StrEnum):
    UP = "up"
    DOWN = "down"
