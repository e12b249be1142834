"""The promised surface: every command with every option, and help whose examples can be typed."""

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostler.__main__ import main
from hostler.command_line import below, options_of, parsed, parser_of
from hostler.commands import COMMANDS
from hostler.commands.exec import read_plain

ROOT = Path(__file__).parent.parent.parent.parent

SURFACE = {
    "run": "WORKFLOW -i KEY=VALUE --input FILE --jobs 2 --key KEY --detach --json",
    "plan": "WORKFLOW -i KEY=VALUE --input FILE --format mermaid --json",
    "submit": "WORKFLOW -i KEY=VALUE --input FILE --key KEY --json",
    "resume": "RUN --jobs 2 --accept-incompatible --json",
    "watch": "RUN --json",
    "cancel": "RUN --node N --reason T --json",
    "approve": "RUN NODE --plan HASH --attempt 1 --receipt ID --deny --reason T --json",
    "receipt create": "RUN NODE --for agent:night --plan HASH --to retry --expires 8h --id ID --reason T --json",
    "receipt list": "RUN --json",
    "receipt revoke": "RUN ID --reason T --json",
    "retry": "RUN NODE --anew --receipt ID --reason T --json",
    "correct": "RUN NODE --input FILE --reason T --json",
    "recover": "RUN NODE --reason T --json",
    "replay": "RUN NODE --receipt ID --reason T --json",
    "settle": "RUN NODE --completed FILE --spent cost=1 --reason T --json | RUN NODE --failed | RUN NODE --retry",
    "work next": "--worker NAME --run RUN --lease 30s --json",
    "work beat": "KEY --lease 30s --json",
    "work submit": "KEY --result FILE --json",
    "work give-back": "KEY --reason T --json",
    "budget": "RUN NODE --add cost=5 --reason T --json",
    "runs": "--status failed --limit 3 --before RUN --json",
    "show": "RUN --json",
    "why": "RUN NODE --json",
    "events": "RUN --follow --json",
    "logs": "RUN NODE --attempt 1 --stream stderr --follow --json",
    "timeline": "RUN -o FILE --json | RUN --output FILE",
    "ui": "--port 8080 --no-browser --json",
    "verify": "RUN FILE --all --no-files --json",
    "export": "RUN FILE --json",
    "import": "FILE --json",
    "gc": "--older-than 30d --keep 3 --most-gigabytes 50 --dry-run --json",
    "serve": "--jobs 2 --wait --hopeless-is-0 --own-errors",
    "service install": "--manager systemd --json",
    "service uninstall": "--manager launchd --json",
    "service status": "--manager supervisord --json",
    "exec": "--claim ffmpeg=1 --claim cpu=2 --wait 30s --priority 1 --name T --tty -- CMD ARG",
    "machine show": "--json",
    "machine set": "RES=2 OTHER=1 --json",
    "machine revoke": "17 --json",
    "top": "--once --json",
    "doctor": "--json",
    "schema": "COMMAND --json",
    "completion": "zsh",
}
"""Command, with its action → all that may be typed after it, in as many lines as it takes."""

OURS = {"-h", "--help", "--debug"}


def parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command and every action of one, with its parser."""
    for name in COMMANDS:
        parser = below(parser_of(name))[name]
        yield name, parser
        yield from ((f"{name} {action}", each) for action, each in below(parser).items())


PARSERS = dict(parsers())
LEAVES = {name: parser for name, parser in PARSERS.items() if not below(parser)}


def test_these_are_the_commands_and_there_are_no_other() -> None:
    assert {*SURFACE} == {*LEAVES}


@pytest.mark.parametrize("name", SURFACE)
def test_a_command_takes_all_that_is_promised_and_nothing_that_is_not(name: str) -> None:
    promised: set[str] = set()
    given: set[str] = set()
    for line in SURFACE[name].split(" | "):
        words = line.split()
        given |= vars(parsed(parser_of(name.partition(" ")[0]), [*name.split(), *words])).keys()
        promised |= {word for word in words[: words.index("--") if "--" in words else None] if word.startswith("-")}
    assert {*options_of(LEAVES[name])} - OURS == promised
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "hostler" / "commands").glob("*.py"))
    for dest in given - {"command", "action", "debug", "version"}:
        assert re.search(rf"\bargs\.{dest}\b", source), f"{dest} does nothing"


@pytest.mark.parametrize("name", PARSERS)
def test_help_has_examples_and_each_can_be_typed(name: str) -> None:
    examples = re.findall(r"^(?:example: |  )(hostler .*)$", PARSERS[name].epilog or "", re.MULTILINE)
    assert examples
    for example in examples:
        words = shlex.split(example, comments=True)[1:]
        assert " ".join(words).startswith(name)
        if words[0] == "exec":
            assert read_plain(words[1:]) is not None
        args = parsed(parser_of(words[0]), words)
        assert args.command == words[0]
        workflow = getattr(args, "workflow", "").partition(":")[0]
        assert not workflow or (ROOT / workflow).is_file(), workflow


TAKES_RUN = [name for name, text in SURFACE.items() if "RUN" in text.split()]
NEEDED = {
    "timeline": "-o run.svg",
    "correct": "--input FILE",
    "receipt create": "--for agent:night",
    "settle": "--failed",
    "work next": "--worker ann",
}


@pytest.mark.parametrize("name", TAKES_RUN)
def test_wherever_a_run_is_taken_the_newest_and_a_prefix_are(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Here none is there: of `-` that is said; of a beginning that no run has it."""
    monkeypatch.chdir(tmp_path)
    Path("FILE").write_text("{}", encoding="utf-8")
    words = SURFACE[name].split()
    option = words[words.index("RUN") - 1] if words[0] != "RUN" else ""
    after = ["one"] * (sum(not action.option_strings for action in LEAVES[name]._actions) - 1)
    needed = NEEDED.get(name, "").split()
    for typed, said in (("-", "there is no run yet; start one with"), ("run_01m8", "there is no run run_01m8;")):
        run = [f"{option}={typed}"] if option.startswith("--") else [typed, *after]
        assert main([*name.split(), *run, *needed]) == 4
        assert capsys.readouterr().err.startswith(f"hostler: error[not-found]: {said}")
