"""`hostler` itself: which command, and how errors leave."""

import errno
import gc
import importlib
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

import hostler
from hostler import __main__ as program
from hostler.command_line import parsed, parser_of
from hostler.commands import COMMANDS, module_of, runs
from hostler.completing.vocabulary import read_vocabulary
from hostres.errors import EXIT_CODES, Code, HostlerError
from tests.hostler.views.support import PLAN
from tests.store.support import Setting, record_of


class Fails(types.ModuleType):
    """A command that raises."""

    def __init__(self, error: BaseException) -> None:
        super().__init__("fails")
        self.error = error

    def add(self, subparsers: object) -> None:
        subparsers.add_parser("show")  # type: ignore[attr-defined]

    def run(self, args: object) -> int:
        raise self.error


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException, *arguments: str) -> int:
    monkeypatch.setitem(sys.modules, "hostler.commands.show", Fails(error))
    return program.main([*arguments, "show"])


@pytest.mark.parametrize("code", Code)
def test_a_refusal_is_one_line_and_its_codes_exit(
    code: Code, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert failing(monkeypatch, HostlerError(code, "it is\nbroken\x1b", "mend it")) == EXIT_CODES[code]
    assert capsys.readouterr().err == f"hostler: error[{code}]: it is broken ; mend it\n"


def test_a_program_of_its_own_lets_no_collection_look_at_what_it_imported() -> None:
    script = (
        "import gc, sys, types\n"
        "command = types.ModuleType('command')\n"
        "command.add = lambda subparsers: subparsers.add_parser('show')\n"
        "command.run = lambda args: print(gc.isenabled(), gc.get_freeze_count() > len(gc.get_objects()))\n"
        "sys.modules['hostler.commands.show'], sys.argv[1:] = command, ['show']\n"
        "from hostler.__main__ import main; main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "True True\n"


def test_who_calls_it_from_a_program_keeps_the_collector_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen = gc.get_freeze_count()
    assert failing(monkeypatch, HostlerError(Code.CONFLICT, "no", "wait")) == 5
    assert (gc.isenabled(), gc.get_freeze_count()) == (True, frozen)


def test_a_bug_is_one_line_that_says_how_to_see_more(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert failing(monkeypatch, ZeroDivisionError("one\ntwo")) == 70
    error = capsys.readouterr().err
    assert error.startswith("hostler: error[internal]: ZeroDivisionError: one two; ")
    assert "--debug" in error
    assert error.count("\n") == 1


def test_memory_that_is_not_there_is_no_bug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert failing(monkeypatch, MemoryError()) == 69
    assert "error[unavailable]: no memory is left; end something, or raise the limit" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("number", "todo"),
    [(errno.EAGAIN, "ulimit -u"), (errno.EFBIG, "ulimit -f"), (errno.EIO, "mend that")],
)
def test_a_refusal_of_the_system_that_nobody_foresaw_is_told_with_its_mend(
    number: int, todo: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if number == errno.EIO:
        monkeypatch.setattr("hostler.troubles._forget_stdout", lambda: None)
    assert failing(monkeypatch, OSError(number, os.strerror(number), "/film")) == 69
    assert todo in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (f"exec --claim ffmpeg={10**25} -- true", f"ffmpeg={10**25} is more than the machine's 2; claim at most 2"),
        (
            "exec --wait 99999999999h -- true",
            "--wait 99999999999h is longer than a day; write at most 24h, or leave it out",
        ),
        (f"machine set gpu={10**25}", f"gpu={10**25} is not a capacity; write RES=UNITS, as in ffmpeg=2, of at most"),
    ],
)
def test_a_number_that_is_too_large_is_told_as_that(words: str, says: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert program.main(words.split()) == 2
    assert says in capfd.readouterr().err


def test_a_path_commands_no_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOSTLER_MACHINE_DIR", str(tmp_path / "red\x1b[31m\n"))
    assert program.main(["machine", "show"]) == 0
    shown = capsys.readouterr().out
    assert f"machine folder {tmp_path}/red\\x1b[31m\\x0a\n" in shown


def test_with_debug_there_is_a_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert failing(monkeypatch, HostlerError(Code.CONFLICT, "no", "wait"), "--debug") == 5
    assert "Traceback" in capsys.readouterr().err
    assert failing(monkeypatch, ZeroDivisionError("by zero"), "--debug") == 70
    error = capsys.readouterr().err
    assert "Traceback" in error
    assert error.splitlines()[-1].startswith("hostler: error[internal]: ZeroDivisionError: by zero; ")


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("show - --debug", True),
        ("receipt --debug list -", True),
        ("--debug exec -- no-such-program", False),
        ("exec --claim nothing=1 -- true --debug", False),
        ("exec --claim nothing=1 --debug -- true", True),
        ("--debug exec --claim nothing=1 -- true", True),
        ("show -", False),
    ],
)
def test_debug_counts_wherever_it_stands_but_not_among_the_words_of_another_command(
    words: str, shown: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    assert program.main(words.split()) in {2, 4, 127}
    error = capfd.readouterr().err
    assert ("Traceback" in error) is shown
    assert error.splitlines()[-1].startswith("hostler: error[")


def test_these_are_the_options_of_exec_that_take_the_next_word() -> None:
    options = read_vocabulary()["below"]["exec"]["options"]
    assert {*program.VALUED} == {name for name, told in options.items() if "takes" in told}


def test_ctrl_c_is_130_and_silent(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert failing(monkeypatch, KeyboardInterrupt()) == 130
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "arguments",
    [[], ["nonsense"], ["show"], ["show", "-", "--nonsense"], ["run", "x.py", "--jobs", "0"], ["--nonsense"]],
)
def test_wrong_use_is_one_line_and_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        program.main(arguments)
    assert left.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("hostler: error[usage]: ")
    assert "--help" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        program.main([command, "--help"])
    assert left.value.code == 0
    help_text = capsys.readouterr().out
    assert "example" in help_text
    assert f"hostler {command}" in help_text


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in {"completion", "exec", "serve"}])
def test_every_command_that_prints_data_has_json(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    action = {"machine": ["show"], "work": ["next"], "receipt": ["list"], "service": ["status"]}.get(command, [])
    with pytest.raises(SystemExit):
        program.main([command, *action, "--help"])
    assert "--json" in capsys.readouterr().out


def test_the_list_of_commands_is_that_of_the_modules(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        program.main(["--help"])
    listed = capsys.readouterr().out
    for name, summary in COMMANDS.items():
        assert name in listed
        module = importlib.import_module(module_of(name))
        assert callable(module.run)
        assert summary.split()[0] in listed


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["--version"]) == 0
    assert capsys.readouterr().out == f"hostler {hostler.__version__}\n"
    with pytest.raises(SystemExit) as left:
        program.main(["--debug", "--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out == f"hostler {hostler.__version__}\n"


def test_a_reader_that_goes_away_is_no_error() -> None:
    """A pipe closed before the first byte: no traceback, no complaint at exit."""
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "hostler", "runs"], stdout=write, stderr=subprocess.PIPE, timeout=60, check=False
        )
    finally:
        os.close(write)
    assert done.returncode == 141
    assert done.stderr == b""


def test_the_version_needs_next_to_nothing() -> None:
    """`hostler --version` takes little longer than a bare Python: it imports three modules of ours and no other."""
    script = (
        "import sys\nbefore = set(sys.modules)\n"
        "from hostler.__main__ import main\nmain(['--version'])\n"
        "print(*sorted(set(sys.modules) - before - {'__future__'}))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1].split() == [
        "gc", "hostler", "hostler.__main__", "hostler.standard_streams"
    ]  # fmt: skip


@pytest.mark.parametrize("arguments", [["--version"], ["exec", "--help"], ["top", "--help"]])
def test_light_commands_import_nothing_heavy(arguments: list[str]) -> None:
    """`hostler exec` starts fast: no pydantic, pykka, sqlite3, orjson, rich or yaml."""
    script = (
        "import sys\n"
        "from hostler.__main__ import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "print('HEAVY', *sorted({'pydantic', 'pykka', 'sqlite3', 'orjson', 'rich', 'yaml'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines()[-1] == "HEAVY"


def test_a_list_of_runs_imports_no_parser_and_nothing_that_reads_records(tmp_path: Path) -> None:
    """`hostler runs` starts as `hostler exec` does; each of these takes as long as all the rest of it."""
    setting = Setting(Path(os.environ["HOSTLER_HOME"]))
    setting.store.create(record_of(PLAN), PLAN, bundle=None)
    setting.close()
    heavy = (
        "argparse dataclasses fasteners inspect orjson platformdirs psutil pydantic pykka rich shutil subprocess yaml"
    )
    script = (
        "import sys\nfrom hostler.__main__ import main\nmain(['runs'])\n"
        f"print('HEAVY', *sorted(set('{heavy}'.split()) & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert "podcast" in done.stdout
    assert done.stdout.splitlines()[-1] == "HEAVY"


@pytest.mark.parametrize(
    "words",
    ["", "--json", "--limit 3", "--status failed", "--limit 3 --json --status planned", "--limit 2 --limit 3"],
)
def test_runs_reads_its_arguments_as_the_parser_does(words: str) -> None:
    plain = runs.read_plain(words.split())
    assert plain is not None
    args = vars(parsed(parser_of("runs"), ["runs", *words.split()]))
    assert {name: args[name] for name in vars(plain)} == vars(plain)


@pytest.mark.parametrize(
    "words", ["--limit 0", "--limit x", "--status", "--status x", "--jsn", "x", "--help", "--limit"]
)
def test_what_is_rare_or_wrong_is_left_to_the_parser(words: str) -> None:
    assert runs.read_plain(words.split()) is None
