"""Types random command lines into `hostler`: whatever it is, there is an answer of one line and a known exit code.

Words are those of the command line itself, names of what there is, and nonsense. Every line is played in this process,
in a folder of its own, without a terminal. What starts programs or waits for ever is left out: `exec`, `serve` and `ui`
are only read.
"""

import argparse
import contextlib
import io
import itertools
import os
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from hostler.__main__ import main
from hostler.command_line import parsed, parser_of
from hostler.commands import COMMANDS, posting
from hostler.commands.exec import read_plain
from hostler.completing.vocabulary import read_vocabulary
from hostres.errors import EXIT_CODES, Code

ONLY_READ: Final = ("exec", "serve", "ui")
GRAPH: Final = """
[workflow]
id = "fuzzed"
version = 1

[inputs]
name = { type = "string", default = "x" }

[[nodes]]
key = "say"
executor = { command = { argv = ["true"] } }

[[nodes]]
key = "ask/ok"
after = ["say"]
executor = { gate = "publication" }
"""
ONE_LINE: Final = re.compile(r"hostler: error\[([a-z-]+)\]: [^\n]+; [^\n]+\n")
KNOWN: Final = frozenset(EXIT_CODES.values()) | {0, 1, 2, 3, 130}
NONSENSE: Final = (
    "", "-", "--", "---", "--=", "-x", "=", "a=b", "=1", "cpu=", "cpu=0", "cpu=99999999999", "0", "-1", "1e9", "nan",
    "\n", "\x1b[2J", "é", "\udcff", "💥", "'", "$(x)", "%s", "%(prog)s", "{}", "[]", "null", "x" * 5000, "..", "/",
    "/dev/null", "~nobody-is-called-so/x", "fuzzed.toml", "fuzzed.toml:x", "broken.py", "folder", "folder/x.py",
    "a.b:c", "say", "ask/ok", "ask", "run_", "run_0", "run_zzzzzzzzzzzzzzzzzzzzzzzzzz", "input.json", "name=y", "name",
    "other=1", "1s", "30d", "0s", "9" * 30 + "w", "9" * 5000, "1", "2", "agent:x", "human:x", "cost=1", "cost=x",
    "retries=1", "3f2a…",
)  # fmt: skip


def lines(random_words: random.Random) -> Iterator[list[str]]:
    """Yield command lines without end."""
    vocabulary = read_vocabulary()
    while True:
        name = random_words.choice(NONSENSE if random_words.random() < 0.1 else [*COMMANDS, "complete"])
        yield ["--debug"] * (random_words.random() < 0.05) + [name, *_words(vocabulary, name, random_words)]


def _words(vocabulary: Mapping[str, Any], name: str, random_words: random.Random) -> list[str]:
    command = vocabulary["below"].get(name, vocabulary)
    words: list[str] = []
    if "below" in command and random_words.random() < 0.9:
        action = random_words.choice([*command["below"]])
        command = command["below"][action]
        words.append(action)
    places = [slot["takes"] for slot in command["arguments"]]
    words += [_word(takes, random_words) for takes in places if random_words.random() < 0.85]
    for _ in range(random_words.choice((0, 0, 1, 1, 2, 4))):
        option = random_words.choice(NONSENSE if random_words.random() < 0.1 else [*command["options"]])
        words.append(option)
        takes = command["options"].get(option, {}).get("takes")
        if takes and random_words.random() < 0.9:
            words.append(_word(takes, random_words))
    if random_words.random() < 0.2:
        random_words.shuffle(words)
    return words


def _word(takes: Any, random_words: random.Random) -> str:
    likely = {
        "run": ["-", "-", "-", "run_"], "run-or-file": ["-", "out.tar"], "node": ["say", "ask/ok"],
        "file": ["fuzzed.toml", "fuzzed.toml", "input.json", "out.tar"], "resource": ["cpu=1", "ffmpeg=2"],
    }  # fmt: skip
    words = takes if isinstance(takes, list) else likely.get(takes, [])
    return str(random_words.choice(NONSENSE if not words or random_words.random() < 0.2 else words))


def fault(line: Sequence[str]) -> str | None:
    """Play a line; say what is wrong with the answer, None if nothing is."""
    out, err = _Stream(), _Stream()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = _play([*line])
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else int(left.code is not None)
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is the fault that is looked for
            return f"{type(error).__name__}: {error}"
    told = err.text()
    answers = ONE_LINE.findall(told)
    if code not in KNOWN:
        return f"exit code {code}"
    if Code.INTERNAL in answers or ("Traceback" in told and "--debug" not in line):
        return told[-2000:]
    if "Traceback" in out.text():
        return "a traceback in the output"
    if code not in {0, 1, 3, 130} and not answers and "--json" not in line:
        return f"exit code {code} without an error: {told!r}"
    return None


def _play(line: list[str]) -> int:
    named = next((word for word in line if word != "--debug"), "")
    if named not in ONLY_READ:
        return main(line)
    if named == "exec" and line[:1] == ["exec"]:
        read_plain(line[1:])
    parsed(parser_of(named), line)
    return 0


class _Stream(io.TextIOWrapper):
    """A standard stream that is no terminal, with the bytes that were written to it."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", errors="surrogateescape", write_through=True)

    def text(self) -> str:
        """Return what was written."""
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue().decode("utf-8", "replace")


@contextlib.contextmanager
def place(folder: Path) -> Iterator[None]:
    """Make a folder in which all that lines can name is, and work there."""
    for variable in ("HOME", "HOSTLER_HOME", "HOSTLER_MACHINE_DIR", "XDG_CONFIG_HOME", "HOSTLER_CONFIG"):
        os.environ[variable] = str(folder / variable.lower())
    (folder / "fuzzed.toml").write_text(GRAPH, encoding="utf-8")
    (folder / "broken.py").write_text("1 / 0\n", encoding="utf-8")
    (folder / "input.json").write_text('{"name": "y"}', encoding="utf-8")
    (folder / "folder").mkdir()
    before = Path.cwd()
    os.chdir(folder)
    posting.ANSWER_S = 0.0  # type: ignore[misc]  # nobody answers here
    try:
        yield
    finally:
        os.chdir(before)


def played(seed: int, seconds: float, most: int) -> Iterator[tuple[list[str], str | None]]:
    """Play lines; yield each, and what is wrong with its answer.

    Args:
        seed: Of the lines.
        seconds: At most so long.
        most: At most so many lines.

    """
    until = time.monotonic() + seconds
    for line in itertools.islice(lines(random.Random(seed)), most):
        if time.monotonic() > until:
            return
        yield line, fault(line)


def run() -> int:
    """Play lines for a while, print the wrong answers, and say how many there were."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--lines", type=int, default=1_000_000)
    args = parser.parse_args()
    with contextlib.suppress(OSError):
        os.setsid()  # away from the terminal: nothing is to be asked there
    tally: Counter[str] = Counter()
    with (
        tempfile.TemporaryDirectory() as folder,
        Path(os.devnull).open(encoding="utf-8") as nothing,
        place(Path(folder)),
    ):
        sys.stdin = nothing
        for line, found in played(args.seed, args.seconds, args.lines):
            tally["lines"] += 1
            if found is not None:
                tally["wrong"] += 1
                sys.stdout.write(f"{line!r}\n  {found}\n")
    said = f"seed {args.seed}, {tally['lines']} lines, {tally['wrong']} wrong answers"
    sys.stdout.write(f"scripts/fuzz-commands: {said}\n")
    return min(tally["wrong"], 1)


if __name__ == "__main__":
    sys.exit(run())
