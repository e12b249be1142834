"""What is printed follows the terminal that it goes to: colour and width there, neither in a pipe, and no commands."""

from pathlib import Path

import pytest

from tests.end_to_end.support import ECHO, Terminal, command, graph, hostler

LONG = "a-name-that-is-too-long-for-a-narrow-terminal"


def on_terminal(*arguments: str, columns: int) -> str:
    with Terminal(*arguments, columns=columns) as terminal:
        assert terminal.wait() == 0
        return terminal.screen


@pytest.mark.parametrize(("words", "columns"), [(("runs",), 90), (("show", "-"), 60)])
def test_a_terminal_gets_colour_and_lines_that_fit_it_a_pipe_gets_all(
    words: tuple[str, ...], columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostler("run", graph(tmp_path, command("say", "true", claims={"cpu": 1, "ffmpeg": 1, "local-io": 1}), name=LONG))
    piped = hostler(*words)
    assert "\x1b" not in piped
    assert LONG in piped
    screen = on_terminal(*words, columns=columns)
    assert "\x1b[32mcompleted" in screen
    monkeypatch.setenv("NO_COLOR", "1")
    plain = on_terminal(*words, columns=columns)
    assert "\x1b" not in plain
    table = [line for line in plain.splitlines() if line.startswith(("run_", "RUN", "say", "NODE")) and "@" not in line]
    assert len(table) == 2
    assert all(len(line) <= columns for line in table)


def test_what_a_process_wrote_cannot_command_the_terminal(tmp_path: Path) -> None:
    hostler("run", graph(tmp_path, command("evil", "printf", r"\033]0;owned\007one\r\ntwo")))
    with Terminal("logs", "-", "evil") as terminal:
        assert terminal.wait() == 0
    assert terminal.screen.splitlines() == [r"\x1b]0;owned\x07one", "two"]


def test_no_color_is_kept_to_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    with Terminal("run", graph(tmp_path, ECHO)) as terminal:
        assert terminal.wait() == 0
    assert "\x1b[3" not in terminal.screen.replace("\x1b[3J", "")
