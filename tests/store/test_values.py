"""Values: what is taken, how it is written, what its digest is."""

import json
import math
import struct
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from hostres.errors import Code, HostlerError
from store.amounts import Budget
from store.contracts import Failure, NodeRecord
from store.lifecycle import Status
from store.plans import GraphPlan, NodePlan, OperationExecutor, PlannedNode
from store.policy import FailureCode, Policy
from store.records import document, encode
from store.terms import Terms
from store.values import MAX_DEPTH, Domain, _render, canonical, check, digest, digest_bytes, parse_json, path_text

LARGEST = 2**53 - 1


def writable(value: float) -> bool:
    """Say whether RFC 8785 writes *value* as something other than an integer that no reader takes."""
    return not value.is_integer() or abs(value) <= LARGEST or abs(value) >= 1e21


bits = st.integers(0, 2**64 - 1).map(lambda number: struct.unpack(">d", number.to_bytes(8, "big"))[0])
floats = (st.floats(allow_nan=False, allow_infinity=False) | bits.filter(math.isfinite)).filter(writable)
leaves = st.none() | st.booleans() | st.integers(-LARGEST, LARGEST) | floats | st.text()
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4))


def refused(document: object, *parts: str) -> None:
    with pytest.raises(HostlerError) as caught:
        canonical(document)
    assert caught.value.code is Code.INVALID_DATA
    for part in parts:
        assert part in caught.value.what


@given(values)
@example({"\ue000": 1, "\U00010000": 2, "a": 600.0})
@example([1e-7, 1e-5, 0.0001, 1e21, 1e15, 123456789012345.6, 5e-324, -0.0, 333333333.33333329, 1e23])
@example('\x00\x1f\x7f\u2028\\"/\b\f\n\r\té€\U0001f600')
def test_canonical_bytes_are_those_of_the_rfc8785_package(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@given(values)
def test_whatever_is_written_can_be_read_back_as_the_same_value(value: object) -> None:
    assert parse_json(canonical(value)) == value
    assert canonical(parse_json(canonical(value))) == canonical(value)


@given(values)
def test_a_document_that_python_writes_parses_to_the_value_it_had(value: object) -> None:
    assert parse_json(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"loudness": float("-inf")}, "$.loudness: -inf is not a finite number"),
        ([1, [2, float("nan")]], "$[1][1]: nan"),
        ({"a": [0, 0, 2**53]}, "$.a[2]: an integer beyond"),
        ({"a": -(2**53)}, "$.a: an integer beyond"),
        ({"a": 2.0**53}, "$.a: a number written as an integer beyond"),
        ({"a": -5e20}, "$.a: a number written as an integer beyond"),
        ({"odd key": {"x": b"bytes"}}, '$["odd key"].x: a bytes'),
        ({"a": {1: 2}}, "$.a[1]: a key of type int"),
        ({"a": "\ud800"}, "$.a: a string with a lone surrogate"),
        ({"\udfff": 1}, '$["\\udfff"]: a string with a lone surrogate'),
        ({"a": (1, 2)}, "$.a: a tuple"),
        (object(), "$: a object"),
    ],
)
def test_what_is_no_json_value_is_refused_with_its_path(value: object, path: str) -> None:
    """V3, field case 67: also the loudness of silence."""
    refused(value, path)
    with pytest.raises(HostlerError) as caught:
        check(value)
    assert path in caught.value.what


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ('{"a": {"b": [1, {"c": 1, "d": 2, "c": 3}]}}', "$.a.b[1].c: a duplicate key"),
        ('{"a": [1, NaN]}', "$.a[1]: NaN"),
        ('{"a": -Infinity}', "$.a: -Infinity"),
        ('{"a": 1e400}', "$.a: inf is not a finite number"),
        ('{"a": 9007199254740992}', "$.a: an integer beyond"),
        ('{"a": ' + "9" * 5000 + "}", "$.a: an integer beyond"),
        ('["\\ud83d"]', "$[0]: a string with a lone surrogate"),
        ('{"a": 1} x', "Extra data at line 1 column 10"),
        ('{"a": }', "Expecting value at line 1 column 7"),
        ("", "Expecting value at line 1 column 1"),
        (b'{"a": "\xff"}', "not UTF-8 at byte 7"),
        (b"\xef\xbb\xbf{}", "BOM"),
        ("[" * 100_000, "nested too deeply"),
        ("[" * 2_000 + "]" * 2_000, "nested too deeply"),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "nested too deeply"),
    ],
)
def test_a_document_that_is_not_strict_json_is_refused_with_the_place(document: str | bytes, path: str) -> None:
    """V3, field case 67."""
    with pytest.raises(HostlerError) as caught:
        parse_json(document)
    assert caught.value.code is Code.INVALID_DATA
    assert path in caught.value.what
    assert "\n" not in str(caught.value)


def test_the_deepest_value_that_is_taken_can_be_stored_inside_a_record() -> None:
    value: object = 1
    for _ in range(MAX_DEPTH):
        value = [value]
    check(value)
    record = {"a": {"b": [value]}}
    assert json.loads(canonical(record)) == record


def test_equal_values_of_different_kinds_have_different_digests() -> None:
    """V1."""
    value = {"a": 1}
    digests = {digest(domain, value) for domain in Domain}
    assert len(digests) == len(Domain)
    assert digest(Domain.INPUT, value) == digest_bytes(Domain.INPUT, b'{"a":1}')


def test_the_order_of_keys_and_the_way_a_number_was_written_do_not_change_a_digest() -> None:
    one, other = parse_json('{"a": 1.0, "b": 600.0}'), parse_json('{"b": 600, "a": 1}')
    assert digest(Domain.INPUT, one) == digest(Domain.INPUT, other)


@given(st.binary(max_size=60))
def test_no_bytes_make_the_parser_fail_in_any_other_way(data: bytes) -> None:
    with suppress(HostlerError):
        parse_json(data)


key_text = st.from_regex(r"\A[a-z0-9][a-z0-9._-]{0,9}(/[a-z0-9]{1,3})?\Z")


@given(
    key_text,
    st.sampled_from(Status),
    st.integers(0, LARGEST),
    st.none() | st.builds(Failure, code=st.sampled_from(FailureCode), message=st.text(max_size=50)),
)
def test_the_short_cut_for_node_records_gives_the_canonical_bytes(
    key: str, status: Status, attempt: int, failure: Failure | None
) -> None:
    record = NodeRecord(key=key, status=status, attempt=attempt, failure=failure)
    assert encode(record) == canonical(document(record)) == rfc8785.dumps(record.model_dump(mode="json"))


policies = st.builds(
    Policy,
    claims=st.dictionaries(st.sampled_from(["cpu", "gpu", "slot"]), st.integers(1, 9)),
    publishes=st.lists(st.text(min_size=1, max_size=5), max_size=2).map(tuple),
    max_seconds=st.floats(0.001, 1e6),
)


@given(values, values, policies, st.none() | st.just(Terms(parent="a", budget=Budget(tokens=1))))
@example({"\ue000": 1, "\U00010000": 600.0}, [1e21], Policy(), None)
def test_plans_put_together_from_their_parts_have_the_canonical_bytes(
    one: Any, other: Any, policy: Policy, terms: Terms | None
) -> None:
    """Also where a part of them is not written by orjson as RFC 8785 wants it."""
    operation = OperationExecutor(operation="a.b", version=1)
    nodes = tuple(
        PlannedNode(key=key, executor=operation, input=value, dependencies=before, policy=policy, terms=terms)
        for key, value, before in (("b", one, ()), ("a", other, ("b",)))
    )
    exact = NodePlan(
        run_id="run_" + "0" * 26,
        node="a",
        executor=operation,
        input=one,
        input_sha256="0" * 64,
        dependencies={"b": "1" * 64, "a/1": "2" * 64},
        policy=policy,
        keys=("file:/é",),
        descriptors=other,
        max_seconds=2.5,
    )
    for model in (*nodes, exact, GraphPlan(workflow="w", version=1, inputs={"i": one}, nodes=nodes, outputs=other)):
        assert encode(model) == canonical(document(model))


def test_a_plan_that_cannot_be_written_is_refused_with_the_path_from_its_top() -> None:
    node = PlannedNode(
        key="a", executor=OperationExecutor(operation="a.b", version=1), input={"x": [1]}, policy=Policy()
    )
    odd = node.but({"input": {"x": [2**53]}})
    for model, path in (
        (odd, "$.input.x[0]"),
        (GraphPlan(workflow="w", version=1, inputs={}, nodes=(node,)).but({"nodes": (node, odd)}), "$.nodes[1].input"),
    ):
        with pytest.raises(HostlerError) as caught:
            encode(model)
        assert path in caught.value.what


@given(values)
def test_the_fast_way_and_the_slow_way_write_the_same_bytes(value: Any) -> None:
    """What is scanned as plain goes through orjson; what is not, through our own writer of numbers and keys."""
    assert canonical(value) == b"".join(_render(value))


odd_leaves = st.sampled_from(
    [float("nan"), float("inf"), 2**53, -(2**60), 2.0**53, "\ud800", b"x", (1,), {1}, object()]
)


@given(values, odd_leaves, st.data())
def test_what_is_unfit_is_refused_wherever_it_lies_with_its_exact_path(value: Any, odd: Any, data: Any) -> None:
    """Values on the way stay whole; the path names the odd one alone."""
    steps: list[str | int] = []
    inner = value
    while isinstance(inner, list | dict) and inner and data.draw(st.booleans()):
        step = data.draw(st.sampled_from(sorted(inner) if isinstance(inner, dict) else range(len(inner))))
        steps.append(step)
        inner = inner[step]
    changed: Any = odd
    for depth in reversed(range(len(steps))):
        holder = value
        for step in steps[:depth]:
            holder = holder[step]
        changed = {**holder, steps[depth]: changed} if isinstance(holder, dict) else [
            changed if index == steps[depth] else item for index, item in enumerate(holder)
        ]  # fmt: skip
    for refuse in (canonical, check):
        with pytest.raises(HostlerError) as caught:
            refuse(changed)
        assert caught.value.code is Code.INVALID_DATA
        assert caught.value.what.startswith(f"{path_text(*steps)}: ")


def test_no_domain_can_be_taken_for_another() -> None:
    """The digest is of domain, NUL, bytes: no domain holds a NUL, so no two of them begin alike for any bytes."""
    assert len({domain.value for domain in Domain}) == len(Domain)
    assert not any("\0" in domain or not domain.isascii() for domain in Domain)


@given(values, st.sampled_from(Domain), st.sampled_from(Domain))
def test_one_value_has_a_digest_of_its_own_in_each_domain(value: Any, one: Domain, other: Domain) -> None:
    assert (digest(one, value) == digest(other, value)) is (one is other)


def test_names_of_an_enum_are_taken_as_keys_and_as_values() -> None:
    """orjson by itself refuses a key that is not exactly a string."""
    assert canonical({Status.READY: Status.READY}) == b'{"ready":"ready"}'


def test_a_path_through_very_long_keys_is_cut() -> None:
    """An error is one line that a person can read."""
    for unfit in ({"k" * 100_000: float("nan")}, {"a b" * 1000: b""}):
        with pytest.raises(HostlerError) as caught:
            canonical(unfit)
        assert len(caught.value.what) < 300
        assert "…" in caught.value.what


def test_canonical_bytes_that_are_kept_take_no_more_memory_than_they_are() -> None:
    """A run of 10,000 nodes keeps tens of thousands of them until they are written; orjson gives each 4 KiB."""
    tracemalloc.start()
    try:
        kept = [canonical({"number": number}) for number in range(1000)]
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(map(len, kept)) < held < 300_000
