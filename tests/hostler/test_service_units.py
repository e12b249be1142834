"""Units say what was meant, whatever the paths are called."""

import configparser
import plistlib
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from hostler.config import Config
from hostler.service_installation import install, place_of, uninstall
from hostler.service_units import HOPELESS, MARK, ServiceCommand, ServiceManager, unit_text
from hostres.errors import EXIT_CODES, Code, HostlerError

ODD = '/opt/my "own" $HOME 100% \\ größe/python'
COMMAND = ServiceCommand(
    argv=(ODD, "-m", "hostler", "serve"), environ={"HOSTLER_HOME": ODD}, log=Path("/var/log/100%"), grace_s=21
)


def test_systemd_is_given_words_that_it_takes_literally() -> None:
    """Quotes, backslashes, specifiers and variables are escaped (systemd.syntax(7), systemd.unit(5))."""
    lines = unit_text(ServiceManager.SYSTEMD, COMMAND).splitlines()
    word = '"/opt/my \\"own\\" $$HOME 100%% \\\\ größe/python"'
    assert f'ExecStart={word} "-m" "hostler" "serve"' in lines
    assert "TimeoutStopSec=36" in lines
    assert {"Type=notify", "KillMode=mixed", "Restart=on-failure"} <= set(lines)


def test_launchd_is_given_the_very_words() -> None:
    """A property list has no syntax of its own inside strings."""
    unit = plistlib.loads(unit_text(ServiceManager.LAUNCHD, COMMAND).encode())
    assert unit["ProgramArguments"] == [*COMMAND.argv, "--hopeless-is-0", "--own-errors"]
    assert unit["EnvironmentVariables"] == COMMAND.environ
    assert unit["ExitTimeOut"] == 36


def test_supervisord_is_given_words_that_it_takes_literally() -> None:
    """It expands %, then splits as a shell does."""
    argv = ("/opt/it's my $HOME 100% größe/python", "-m", "hostler", "serve")
    command = replace(COMMAND, argv=argv)
    parser = configparser.RawConfigParser(inline_comment_prefixes=(";", "#"), strict=False)
    parser.read_string(unit_text(ServiceManager.SUPERVISORD, command))
    section = dict(parser["program:hostler"])
    assert shlex.split(section["command"] % {}) == list(argv)
    assert section["stopwaitsecs"] == "36"


def test_no_unit_starts_again_what_cannot_be_helped_by_that() -> None:
    """Field case 77: launchd knows no other code than 0, so the service ends with that."""
    systemd = unit_text(ServiceManager.SYSTEMD, COMMAND).splitlines()
    assert {"RestartPreventExitStatus=2 73", "StartLimitIntervalSec=0"} <= set(systemd)
    assert "exitcodes=0,2,73" in unit_text(ServiceManager.SUPERVISORD, COMMAND).splitlines()
    assert plistlib.loads(unit_text(ServiceManager.LAUNCHD, COMMAND).encode())["KeepAlive"] == {"SuccessfulExit": False}
    assert tuple(sorted({EXIT_CODES[Code.INVALID_DATA], EXIT_CODES[Code.NEWER_SCHEMA]})) == HOPELESS


def test_no_unit_lets_a_log_grow_without_end() -> None:
    """Field case 82: journald bounds its own; the others by the configuration."""
    command = replace(COMMAND, log_megabytes=2.5, log_files=1)
    lines = unit_text(ServiceManager.SUPERVISORD, command).splitlines()
    assert {"stdout_logfile_maxbytes=2500000", "stdout_logfile_backups=1"} <= set(lines)
    unit = plistlib.loads(unit_text(ServiceManager.LAUNCHD, command).encode())
    assert (unit["StandardOutPath"], unit["StandardErrorPath"]) == ("/dev/null", str(COMMAND.log))
    assert "--own-errors" in unit["ProgramArguments"], "the service bounds it itself"


def test_a_program_killed_for_its_memory_does_not_stop_the_service() -> None:
    """Field case 44: systemd would end the whole unit."""
    assert "OOMPolicy=continue" in unit_text(ServiceManager.SYSTEMD, COMMAND).splitlines()


@pytest.mark.parametrize("manager", ServiceManager)
def test_a_unit_is_written_renewed_and_taken_away(manager: ServiceManager, tmp_path: Path) -> None:
    """Installing twice is installing once."""
    environ = {"HOME": str(tmp_path), "PATH": "/bin:/usr/bin"}
    config = Config.load()
    path, text = install(manager, config, environ)
    assert path.read_text() == text
    assert MARK in text
    assert str(config.home) in text
    assert install(manager, config, environ) == (path, text)
    assert uninstall(manager, environ) == path
    assert not path.exists()
    assert uninstall(manager, environ) is None


@pytest.mark.parametrize("odd", ["a ;b", "a #b", 'a"b', "a\\b"])
def test_a_place_that_supervisord_cannot_be_told_is_refused(
    odd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would cut it short, or take another one."""
    monkeypatch.setenv("HOSTLER_HOME", str(tmp_path / odd))
    environ = {"HOME": str(tmp_path)}
    with pytest.raises(HostlerError) as refused:
        install(ServiceManager.SUPERVISORD, Config.load(), environ)
    assert refused.value.code is Code.INVALID_DATA
    assert not place_of(ServiceManager.SUPERVISORD, environ).exists()
    path, _ = install(ServiceManager.LAUNCHD, Config.load(), environ)
    assert plistlib.loads(path.read_bytes())["EnvironmentVariables"]["HOSTLER_HOME"] == str(tmp_path / odd)


def test_systemd_takes_a_dollar_of_a_variable_as_it_is() -> None:
    """Only command lines know variables (systemd.exec(5), Environment=)."""
    lines = unit_text(ServiceManager.SYSTEMD, COMMAND).splitlines()
    assert 'Environment="HOSTLER_HOME=/opt/my \\"own\\" $HOME 100%% \\\\ größe/python"' in lines


@pytest.mark.parametrize("manager", ServiceManager)
def test_a_unit_of_somebody_else_is_left_alone(manager: ServiceManager, tmp_path: Path) -> None:
    """It is neither replaced nor removed."""
    environ = {"HOME": str(tmp_path)}
    path = place_of(manager, environ)
    path.parent.mkdir(parents=True)
    path.write_text("[Service]\nExecStart=/bin/true\n")
    for act in (lambda: install(manager, Config.load(), environ), lambda: uninstall(manager, environ)):
        with pytest.raises(HostlerError) as refused:
            act()
        assert refused.value.code is Code.CONFLICT
    assert "/bin/true" in path.read_text()


def test_a_variable_that_no_unit_can_hold_is_refused(tmp_path: Path) -> None:
    """A line break in it would begin a line of its own."""
    with pytest.raises(HostlerError) as refused:
        install(ServiceManager.SYSTEMD, Config.load(), {"HOME": str(tmp_path), "PATH": "/bin\nExecStart=/bin/evil"})
    assert refused.value.code is Code.INVALID_DATA
