"""An agent's answer, read from bytes: a result, or why it is none."""

import json
from decimal import Decimal

import pytest

from store.agent_results import EXCERPT_BYTES, AgentResult, AgentStatus, Malformed, read_result, usage_in
from store.secrets import MASK

TOKEN = "gh" + "p_" + "A1b2" * 9
LIMIT = 4096


def read(value, *, limit=LIMIT, secrets=()):
    return read_result(value if isinstance(value, bytes) else json.dumps(value).encode(), limit=limit, secrets=secrets)


def malformed(value, **given) -> Malformed:
    result = read(value, **given)
    assert isinstance(result, Malformed), result
    return result


def test_a_whole_result_is_read():
    """Every field of the contract."""
    result = read(
        {
            "status": "success",
            "summary": "done",
            "evidence": [{"id": "abc", "type": "commit"}],
            "usage": {"tokens": 12, "cost": 0.1},
            "output": {"path": "x"},
        }
    )
    assert isinstance(result, AgentResult)
    assert (result.status, result.summary, result.output) == (AgentStatus.SUCCESS, "done", {"path": "x"})
    assert result.usage is not None
    assert (result.usage.tokens, result.usage.cost) == (12, Decimal("0.1"))


def test_an_over_precise_cost_is_rounded_up_and_the_result_kept():
    """Good work is not thrown away for a fraction of a millionth."""
    result = read({"status": "success", "usage": {"cost": 0.12345678901}})
    assert isinstance(result, AgentResult)
    assert result.usage is not None
    assert result.usage.cost == Decimal("0.123456790")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"", "it is empty"),
        (b"Done! All tests pass.", "it is no JSON"),
        (b'{"status": "success"} {"status": "failed"}', "it is no JSON"),
        (b'{"status": "success", "status": "failed"}', "it is no JSON"),
        (b"\xff\xfe", "it is no JSON"),
        ({"status": "great"}, "it is no result: status"),
        ({"summary": "x"}, "it is no result: status"),
        ({"status": "success", "extra": 1}, "it is no result: extra"),
        ([1], "it is no result"),
        ({"status": "success", "usage": {"tokens": -1}}, "it is no result: usage.tokens"),
        ({"status": "success", "summary": TOKEN}, "it holds secret material"),
    ],
)
def test_anything_else_is_malformed_and_says_why(value, why):
    """G24: not JSON, another shape, secret material."""
    assert malformed(value).why.startswith(why)


def test_an_answer_over_its_size_is_malformed_and_what_it_spent_is_still_read():
    """G24: over size; the usage is in it all the same."""
    result = malformed({"status": "success", "summary": "x" * 500, "usage": {"tokens": 7}}, limit=100)
    assert "100 are allowed" in result.why
    assert result.usage is not None
    assert result.usage.tokens == 7


@pytest.mark.parametrize("text", [f"x {TOKEN} y", "x" * (EXCERPT_BYTES - 10) + " " + TOKEN, json.dumps({"a": TOKEN})])
def test_the_excerpt_is_masked_before_it_is_cut(text):
    """G24: a token across the cut must not leave its beginning."""
    result = malformed(text.encode())
    assert TOKEN[:12] not in result.excerpt
    assert len(result.excerpt.encode()) <= EXCERPT_BYTES


def test_an_escape_hides_no_secret():
    """G24: what JSON unfolds to counts, in the check and in the excerpt."""
    hidden = '{"status": "success", "summary": "' + "".join(f"\\u{ord(char):04x}" for char in TOKEN) + '"}'
    result = malformed(hidden.encode())
    assert result.why == "it holds secret material"
    assert "\\u0067" not in result.excerpt
    assert MASK in result.excerpt


def test_a_value_of_the_environment_counts_as_secret():
    """G24: an agent that prints the key it was given."""
    result = malformed({"status": "success", "summary": "used correct-horse"}, secrets=["correct-horse"])
    assert "correct-horse" not in result.excerpt


@pytest.mark.parametrize(
    ("data", "tokens"),
    [
        (b'thinking\n{"status": "success", "usage": {"tokens": 5}}\n', 5),
        (b'{"usage": {"tokens": 5, "seconds": 3, "cost": "x"}}', 5),
        (b'{"usage": "much"}', None),
        (b"no", None),
    ],
)
def test_what_was_spent_is_looked_for_whatever_else_is_wrong(data, tokens):
    """G24: in all of it or in its last line, each amount by itself."""
    usage = usage_in(data)
    assert (usage.tokens if usage else None) == tokens
