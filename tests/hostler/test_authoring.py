"""The decorators of operations and compute functions: what they take, what they refuse and how they say so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from actors.operations import Compute, Operation
from hostler.authoring import COMPUTE_POLICY, compute, operation, workflow
from hostler.compiler import compile_workflow
from hostres.errors import HostlerError
from store.policy import Effect, Policy, PreparationKind, Resume
from tests.hostler.authored import Audio, Source, decorating, extract, refusal


def test_an_operation_reads_its_types_from_postponed_annotations_and_stays_callable() -> None:
    """`ctx` is annotated with a name that exists for type checkers alone, and nothing minds."""
    assert isinstance(extract, Operation)
    assert (extract.kind, extract.version) == ("demo.extract", 2)
    assert (extract.input_type, extract.output_type) == (Source, Audio)
    assert extract(None, Source(path="a")) == Audio(path="a.wav", seconds=2.0)  # type: ignore[arg-type]


def test_an_operation_may_use_models_of_the_function_it_is_defined_in() -> None:
    class Local(BaseModel):
        x: int

    @operation("demo.local")
    def local(ctx: Any, input: Local) -> Local:
        return input

    assert local.input_type is Local


def test_an_operation_without_the_right_annotations_is_refused_by_name() -> None:
    def nothing(ctx, input):
        return input

    def half(ctx: Any, input: Source):
        return input

    def plain(ctx: Any, input: dict[str, int]) -> Audio:
        raise AssertionError

    def unknown(ctx: Any, input: Missing) -> Audio:  # type: ignore[name-defined]  # noqa: F821
        raise AssertionError

    def single(input: Source) -> Audio:
        raise AssertionError

    async def later(ctx: Any, input: Source) -> Audio:
        raise AssertionError

    make = operation("demo.bad")
    assert "operation demo.bad (nothing): parameter input has no annotation" in decorating(make, nothing)
    assert "(half): the return value has no annotation" in decorating(make, half)
    assert "(plain): the annotation of parameter input is dict[str, int], not a pydantic model" in decorating(
        make, plain
    )
    assert "(unknown): the annotation of parameter input cannot be read: NameError" in decorating(make, unknown)
    assert "(single): it takes 1 parameters instead of two" in decorating(make, single)
    assert "(later): async functions" in decorating(make, later)


@pytest.mark.parametrize("kind", ["", "Media.probe", "media..probe", "media probe", "media.probe\n", 3])
def test_a_kind_that_no_plan_could_name_is_refused(kind: Any) -> None:
    with pytest.raises(HostlerError, match="kind must be lower-case words"):
        operation(kind)


@pytest.mark.parametrize("version", [0, -1, True, "1", 2**53])
def test_a_version_is_a_whole_number_from_one(version: Any) -> None:
    with pytest.raises(HostlerError, match="is not a whole number from 1"):
        operation("demo.x", version=version)
    with pytest.raises(HostlerError, match="is not a whole number from 1"):
        workflow("demo", version=version)


def test_the_derived_words_of_the_policy_cannot_be_authored() -> None:
    for policy in (Policy(effect="trusted-code"), Policy(resume="explicit-code-replay")):
        with pytest.raises(HostlerError, match="derived, for compute functions only"):
            operation("demo.x", policy=policy)
    assert "derived" in refusal(lambda build: build.command(["true"], key="a", effect="trusted-code"))


def test_what_an_operation_publishes_is_a_field_of_its_input() -> None:
    def fits(ctx: Any, input: Source) -> Source:
        return input

    assert operation("demo.x", policy=Policy(publishes=("path",)))(fits).policy.publishes == ("path",)
    assert "it publishes target, but in its input it has no field target, only path, width" in decorating(
        operation("demo.x", policy=Policy(publishes=("target",))), fits
    )


def test_compute_takes_its_name_from_the_function_and_its_policy_from_nobody() -> None:
    @compute
    def add_one(input: int) -> int:
        return input + 1

    @compute("sum.up")
    def total(input: Source) -> Audio:
        return Audio(path=input.path, seconds=0)

    assert isinstance(add_one, Compute)
    assert (add_one.name, add_one.input_type, add_one(2)) == ("add_one", None, 3)
    assert (total.name, total.input_type, total.output_type) == ("sum.up", Source, Audio)
    assert total.policy is COMPUTE_POLICY
    assert (COMPUTE_POLICY.effect, COMPUTE_POLICY.resume) == (Effect.TRUSTED_CODE, Resume.EXPLICIT_CODE_REPLAY)
    assert (dict(COMPUTE_POLICY.claims), COMPUTE_POLICY.max_seconds) == ({"cpu": 1}, 300)
    assert COMPUTE_POLICY.max_input_bytes == COMPUTE_POLICY.max_output_bytes == 2 * 1024 * 1024


def test_a_compute_function_that_cannot_be_called_with_one_value_is_refused() -> None:
    assert "takes 2 parameters instead of one" in decorating(compute("two"), lambda ctx, value: value)

    def Shout(input: Any) -> Any:  # noqa: N802
        return input

    assert "compute Shout: its name must be lower-case" in decorating(compute(), Shout)


class TestPorts:
    """What an operation may bring besides its function."""

    def test_ports_with_the_wrong_parameters_are_refused_by_name(self) -> None:
        for port, wanted in (("prepare", 2), ("plan", 3), ("reconcile", 3), ("probe", 2)):
            ports: dict[str, Any] = {port: lambda ctx: None}
            with pytest.raises(HostlerError, match=f"{port} .* takes 1 parameters instead of {wanted}"):
                operation("a.b", policy=Policy(resume=Resume.VERIFIED_RECEIPT), **ports)

    def test_a_reconciler_that_would_never_run_is_refused(self) -> None:
        with pytest.raises(HostlerError, match="reconcile would never run"):
            operation("a.b", reconcile=lambda ctx, given, previous: None)

    def test_a_probe_that_would_never_be_asked_is_refused(self) -> None:
        with pytest.raises(HostlerError, match="its probe would never be asked"):
            operation("a.b", probe=lambda ctx, given: True)

    def test_preparation_without_a_planner_is_refused(self) -> None:
        with pytest.raises(HostlerError, match="but it has none"):
            operation("a.b", policy=Policy(preparation=(PreparationKind.CAMERA,)))

    def test_a_priority_out_of_range_is_refused_with_the_node(self) -> None:
        @workflow("w")
        def flow(build):
            build.command(["true"], key="a", priority=11)

        with pytest.raises(HostlerError, match="node a: priority 11"):
            compile_workflow(flow, {}, folder=Path("/films"))
