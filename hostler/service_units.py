"""What a supervisor is given to keep the background service: units for systemd, launchd and supervisord. Pure text."""

import plistlib
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Final

from store.lazy_dataclass import dataclass

MARK: Final = "Written by `hostler service install`"
"""By this a file is known as ours."""
LABEL: Final = "hostler.serve"
SPARE_S: Final = 15
"""For so much longer than the service's own grace does its supervisor wait before it kills."""
WATCHDOG_S: Final = 60
HOPELESS: Final = (2, 73)
"""Exit codes of the service after which starting it again cannot help: a wrong configuration; a state folder that is
unsafe or of a newer version. A person has to act first."""
_BREAKS_SUPERVISORD: Final = ('"', "\\", " ;", " #")
"""It has no way to quote these: the first two end or change a value, the others begin a comment."""
PASSED_ON: Final = ("HOSTLER_FFMPEG", "HOSTLER_FFPROBE", "HOSTLER_MACHINE_DIR", "PATH")
"""What of the environment of `service install` the service gets: supervisors give it next to nothing."""


class ServiceManager(StrEnum):
    """Who keeps the service."""

    SYSTEMD = "systemd"
    LAUNCHD = "launchd"
    SUPERVISORD = "supervisord"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceCommand:
    """What is to be kept.

    Attributes:
        argv: The program, absolute, and its arguments.
        environ: Variables that it gets.
        log: Where its standard error goes if its supervisor keeps none.
        grace_s: How long it may take to drain, whole seconds.
        log_megabytes: At that size the log is begun anew, where its supervisor can be told.
        log_files: So many older ones are kept then.

    """

    argv: tuple[str, ...]
    environ: Mapping[str, str]
    log: Path
    grace_s: int
    log_megabytes: float = 10.0
    log_files: int = 3


def unit_path(manager: ServiceManager, *, home: Path, config: Path) -> Path:
    """Return where the unit belongs.

    Args:
        manager: Who reads it.
        home: Of the user.
        config: Where programs of the user keep their configuration.

    """
    match manager:
        case ServiceManager.SYSTEMD:
            return config / "systemd" / "user" / "hostler.service"
        case ServiceManager.LAUNCHD:
            return home / "Library" / "LaunchAgents" / f"{LABEL}.plist"
        case ServiceManager.SUPERVISORD:
            return config / "hostler" / "supervisord.conf"


def unit_text(manager: ServiceManager, command: ServiceCommand) -> str:
    """Return the unit."""
    return _WRITERS[manager](command)


def next_steps(manager: ServiceManager, path: Path) -> tuple[str, ...]:
    """Return what to type for the unit to be in force.

    Args:
        manager: Who reads it.
        path: Where it was written.

    """
    match manager:
        case ServiceManager.SYSTEMD:
            return (
                "systemctl --user daemon-reload",
                "systemctl --user enable --now hostler.service",
                "loginctl enable-linger    # to keep it while you are not logged in",
            )
        case ServiceManager.LAUNCHD:
            return (f"launchctl bootstrap gui/$(id -u) {path}",)
        case ServiceManager.SUPERVISORD:
            return (
                f"add to supervisord.conf:  [include] files = {path}",
                "supervisorctl reread && supervisorctl update",
            )


def last_steps(manager: ServiceManager, path: Path) -> tuple[str, ...]:
    """Return what to type before the unit is taken away."""
    match manager:
        case ServiceManager.SYSTEMD:
            return ("systemctl --user disable --now hostler.service",)
        case ServiceManager.LAUNCHD:
            return (f"launchctl bootout gui/$(id -u) {path}",)
        case ServiceManager.SUPERVISORD:
            return ("supervisorctl stop hostler",)


def _systemd(command: ServiceCommand) -> str:
    environ = "".join(f"Environment={_systemd_value(f'{k}={v}')}\n" for k, v in sorted(command.environ.items()))
    return f"""# {MARK}; it may be changed, and is taken away by `hostler service uninstall`.
[Unit]
Description=Hostler, the workflow host of this user
Documentation=man:systemd.service(5)
StartLimitIntervalSec=0

[Service]
Type=notify
ExecStart={" ".join(_systemd_word(word) for word in command.argv)}
ExecReload=kill -HUP $MAINPID
{environ}NotifyAccess=main
WatchdogSec={WATCHDOG_S}
TimeoutStartSec=infinity
TimeoutStopSec={command.grace_s + SPARE_S}
KillMode=mixed
Restart=on-failure
RestartSec=5
RestartPreventExitStatus={" ".join(map(str, HOPELESS))}
OOMPolicy=continue

[Install]
WantedBy=default.target
"""


def _systemd_value(word: str) -> str:
    """Quote a word as systemd.syntax(7) reads it, with specifiers taken literally."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _systemd_word(word: str) -> str:
    """Quote a word of a command line, where variables stand for their values too."""
    return _systemd_value(word).replace("$", "$$")


def _launchd(command: ServiceCommand) -> str:
    return plistlib.dumps(
        {
            "Label": LABEL,
            "ProgramArguments": [*command.argv, "--hopeless-is-0", "--own-errors"],
            "EnvironmentVariables": dict(command.environ),
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ExitTimeOut": command.grace_s + SPARE_S,
            "ProcessType": "Standard",
            "StandardOutPath": "/dev/null",
            "StandardErrorPath": str(command.log),
            "HostlerNote": MARK,
        }
    ).decode()


def unfit(manager: ServiceManager, command: ServiceCommand) -> str | None:
    """Return a word that a unit for *manager* cannot hold, None if all can be."""
    if manager is not ServiceManager.SUPERVISORD:
        return None
    words = (*command.argv, *command.environ.values(), str(command.log))
    return next((word for word in words if any(each in word for each in _BREAKS_SUPERVISORD)), None)


def _supervisord(command: ServiceCommand) -> str:
    environ = ",".join(f'{name}="{_supervisord_value(value)}"' for name, value in sorted(command.environ.items()))
    return f"""; {MARK}; it may be changed, and is taken away by `hostler service uninstall`.
[program:hostler]
command={" ".join(_supervisord_word(word) for word in command.argv)}
environment={environ}
autostart=true
autorestart=unexpected
exitcodes=0,{",".join(map(str, HOPELESS))}
startsecs=1
stopsignal=TERM
stopwaitsecs={command.grace_s + SPARE_S}
redirect_stderr=true
stdout_logfile={str(command.log).replace("%", "%%")}
stdout_logfile_maxbytes={int(command.log_megabytes * 1_000_000)}
stdout_logfile_backups={command.log_files}
"""


def _supervisord_word(word: str) -> str:
    return f'"{_supervisord_value(word)}"'


def _supervisord_value(value: str) -> str:
    return value.replace("%", "%%")


_WRITERS: Final[Mapping[ServiceManager, Callable[[ServiceCommand], str]]] = MappingProxyType(
    {
        ServiceManager.SYSTEMD: _systemd,
        ServiceManager.LAUNCHD: _launchd,
        ServiceManager.SUPERVISORD: _supervisord,
    }
)
