"""Secrets are taken out of what is kept, in whatever pieces they come; all else comes through as it was."""

import random
import time
from pathlib import Path

import pytest

from hostres.logs import BoundedLog
from hostres.masking import MARKED, MASKED, Mask, MaskedLog

TOKENS = [
    "ghp_" + "a1B2" * 9,
    "github_pat_" + "a1B2_" * 6,
    "glpat-" + "a1B2-" * 5,
    "sk-proj-" + "a1B2" * 10,
    "sk_live_" + "a1B2" * 5,
    "xoxb-123456789012-abcdef",
    "AKIA" + "ABCD1234" * 2,
    "AIza" + "a1B2c3D" * 5,
    "hf_" + "aBcDe" * 7,
    "npm_" + "a1B2" * 9,
    "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----",
]


@pytest.mark.parametrize("token", TOKENS, ids=lambda token: token[:8])
def test_tokens_of_known_shapes_are_found_wherever_they_stand(token: str) -> None:
    mask = Mask()
    for before, after in (("", ""), ("Authorization: Bearer ", "\n"), ('{"key":"', '"}'), ("x=", "&y")):
        assert mask.text(before + token + after) == f"{before}[secret]{after}"
        assert mask.finds((before + token + after).encode())


@pytest.mark.parametrize(
    "text", ["task-management-of-a-large-project", "sk-short", "AKIAlower", "eyJ.eyJ.x", "ghp_", "größer als ein Wort"]
)
def test_what_only_looks_a_little_like_one_is_left(text: str) -> None:
    assert Mask().text(text) == text


def test_marked_values_are_found_and_short_ones_are_left() -> None:
    mask = Mask.of({MARKED: "PASS, SHORT,GONE", "PASS": "tür zu!", "SHORT": "abc"}, ["line one\nline two"])
    assert mask.text("it is tür zu! abc, line one and line two") == "it is [secret] abc, [secret] and [secret]"
    assert Mask.of({}).text("tür zu!") == "tür zu!"


class Kept:
    def __init__(self) -> None:
        self.data = b""

    def write(self, piece: bytes) -> None:
        self.data += piece

    def close(self) -> None:
        """Nothing to close."""


def test_a_stream_in_any_pieces_is_masked_as_a_whole_and_nothing_else_is_lost() -> None:
    value = "correct horse battery"
    mask = Mask([value])
    for seed in range(300):
        chance = random.Random(seed)
        words = [*TOKENS, value, "plain", "gh", "sk-", "correct", "\n", " ", "eyJ", "-----", "AKI", "x" * 50]
        text = " ".join(chance.choice(words) for _ in range(12)).encode()
        kept = Kept()
        log = MaskedLog(kept, mask)
        place = 0
        while place < len(text):
            step = chance.randrange(1, 20)
            log.write(text[place : place + step])
            place += step
        log.close()
        log.close()
        assert kept.data == mask.data(text), seed


def test_what_cannot_be_a_secret_is_kept_at_once(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = MaskedLog(BoundedLog(path), Mask(["correct horse"]))
    log.write(b"it has begun!")
    assert path.read_bytes() == b"it has begun!"
    log.write(b"\nthe corr")
    assert path.read_bytes() == b"it has begun!\nthe "
    log.write(b"ect horse is\n")
    log.close()
    assert path.read_bytes() == b"it has begun!\nthe " + MASKED + b" is\n"


def test_long_words_cost_no_more_than_short_ones() -> None:
    """Two lines of 8 KB of base64 kept the host for a third of a second, and what prints such lines ran out of its time."""
    mask, words = Mask(["hunter22"]), b"y" * 8_000 + b"\n"
    before = time.thread_time()
    for _ in range(10):
        assert mask.held(words * 2) == 0
    assert time.thread_time() - before < 0.1  # it takes 0.001 s; with a pattern it took 3.5
