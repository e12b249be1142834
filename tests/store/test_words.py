"""The words of a program: only the plan says what is a secret, whatever a value looks like."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from hostres.errors import HostlerError
from store.plans import AgentExecutor, CommandExecutor, OperationExecutor
from store.references import references, resolve
from store.words import secrets_of_plan, words_of
from tests.deceptive import DECEPTIVE

REF: JsonValue = {"$ref": {"node": "a", "path": []}}


def words(planned: Any, output: JsonValue, executor: Any = None) -> Any:
    return words_of(executor or CommandExecutor(), planned, resolve(planned, {"a": output}))


def words_or_none(planned: Any, output: JsonValue, executor: Any = None) -> Any:
    try:
        return words(planned, output, executor)
    except HostlerError:
        return None


@given(DECEPTIVE)
@settings(deadline=None)
def test_no_value_of_a_node_is_a_secret_or_a_reference(value: JsonValue) -> None:
    """It is data: a word where it is a text or a number, and refused otherwise; nothing in it is followed."""
    for planned in ({"argv": ["x"], "env": {"A": REF}}, {"argv": ["x", REF]}, {"argv": ["x"], "stdin": REF}):
        assert resolve({"value": REF}, {"a": value}) == {"value": value}
        made = words_or_none(planned, value)
        if made is None:
            assert not isinstance(value, str) or "\0" in value
        else:
            assert dict(made.secrets) == {}
            assert str(value) in (*made.argv, *made.env.values(), made.stdin)


@given(DECEPTIVE, st.sampled_from([CommandExecutor(), AgentExecutor()]))
@settings(deadline=None)
def test_no_value_in_the_place_of_a_whole_input_names_a_secret(value: JsonValue, executor: Any) -> None:
    """A correction may take all of an input, or all of its env, from a node."""
    templates: tuple[JsonValue, ...] = (REF, {"argv": ["x"], "env": REF})
    for planned in templates:
        assert secrets_of_plan(executor, planned) == {}
        made = words_or_none(planned, value, executor)
        assert made is None or dict(made.secrets) == {}


def test_a_secret_counts_where_the_plan_names_it() -> None:
    planned: JsonValue = {"argv": ["x"], "env": {"KEY": {"$secret": "OPENAI_KEY"}, "A": REF}}
    made = words(planned, "text")
    assert made.secrets == {"KEY": "OPENAI_KEY"}
    assert made.env == {"A": "text"}
    assert secrets_of_plan(OperationExecutor(operation="test.f", version=1), planned) == {}


@pytest.mark.parametrize("value", [{"a": 1}, [1], 5, None, True])
def test_what_a_program_reads_is_a_text(value: JsonValue) -> None:
    """A reference to anything else gave it nothing to read, silently."""
    with pytest.raises(HostlerError, match=r"stdin is .+, not text; refer to a field that holds text"):
        words({"argv": ["x"], "stdin": REF}, value)
    assert words({"argv": ["x"], "stdin": None}, value).stdin is None


@pytest.mark.parametrize("value", [{"a": 1}, 5, None])
def test_what_an_agent_is_to_do_is_a_text(value: JsonValue) -> None:
    with pytest.raises(HostlerError, match=r"objective is .+, not text"):
        words({"argv": None, "objective": REF}, value, AgentExecutor(external=True))


@pytest.mark.parametrize(
    ("value", "told"), [({"$secret": "HOME"}, "an object"), ([1], "a list"), (True, "true or false"), (None, "null")]
)
def test_what_can_be_no_word_is_named_with_its_place(value: JsonValue, told: str) -> None:
    with pytest.raises(HostlerError) as caught:
        words({"argv": ["x"], "env": {"TITLE": REF}}, value)
    assert caught.value.what == f"env.TITLE is {told}, not text or a number"
    assert references({"TITLE": REF})
