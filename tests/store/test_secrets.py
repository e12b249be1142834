"""Masking: what is secret goes, what only looks long stays."""

import pytest

from store.secrets import MASK, holds_secret, mask, secrets_of

# put together here, so that no scanner takes this file for a leak
TOKENS = [
    "sk-" + "ant-" + "api03-AbCdEfGhIjKlMnOp",
    "sk-" + "proj-" + "AbCdEfGhIjKlMnOp",
    "sk-" + "A1b2" * 8,
    "sk_" + "live_" + "A1b2C3d4E5f6G7h8",
    "gh" + "p_" + "A1b2" * 9,
    "github" + "_pat_" + "A1b2" * 8,
    "gl" + "pat-" + "A1b2" * 5,
    "xo" + "xb-" + "123456789012-abcdef",
    "AK" + "IA" + "ABCDEFGH12345678",
    "AI" + "za" + "A1b2c" * 7,
    "h" + "f_" + "A1b2c" * 7,
    "np" + "m_" + "A1b2" * 9,
    "pyp" + "i-" + "A1b2" * 12,
    "eyJ" + "hbGciOiJI" + ".eyJ" + "zdWIiOiIx" + ".c2lnbmF0dXJl",
    "Bearer " + "A1b2" * 6,
    "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
]


@pytest.mark.parametrize("token", TOKENS)
def test_a_known_shape_is_masked_wherever_it_stands(token):
    """The text around it stays."""
    assert mask(f"before {token} after") == f"before {MASK} after"
    assert holds_secret({"a": [1, {"b": f"x {token}"}]})
    assert holds_secret({token: 1})


def test_a_private_key_that_is_cut_off_is_masked_to_the_end():
    """Its rest would else be shown."""
    assert mask("x -----BEGIN " + "PRIVATE KEY-----\nMIIEvQ") == f"x {MASK}"


def test_a_password_in_an_address_is_masked():
    """User and password go, the host stays."""
    assert mask("see https://ann:pa55word@example.org/x") == f"see https://{MASK}@example.org/x"


def test_values_that_are_known_to_be_secret_are_masked_the_longer_one_first():
    """A part that is a secret itself must not leave the rest of the whole."""
    assert mask("a correct-horse-battery b", ["correct-horse", "correct-horse-battery"]) == f"a {MASK} b"
    assert mask("abc", ["abc"]) == "abc"


@pytest.mark.parametrize(
    "text",
    [
        "0123456789abcdef" * 4,
        "run_01jzzzzzzzzzzzzzzzzzzzzzzz:node:1",
        "the token ring, a secret garden, password: unknown",
        "https://example.org:8080/path@2x",
        "sk-learn and task-runner-of-the-year",
    ],
)
def test_what_only_looks_long_is_left(text):
    """Digests, ids and words are no secrets."""
    assert mask(text) == text


def test_the_environment_says_by_its_names_what_is_secret():
    """A short value is none: masking it would eat ordinary words."""
    environ = {"OPENAI_API_KEY": "abcdefgh1", "DB_PASSWORD": "hunter22", "KEYBOARD": "qwertyuiop", "MY_TOKEN": "x"}
    assert secrets_of(environ) == ("abcdefgh1", "hunter22")
