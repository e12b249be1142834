"""Every setting that is in force, with where it comes from."""

import os
from pathlib import Path

import pytest

from hostler.config import Config
from hostler.configuration_keys import KEYS
from hostler.diagnosis.examination import examine
from hostler.diagnosis.in_force import Setting, settings_in_force
from hostres.capacities import set_capacities
from hostres.coordinator import Coordinator
from hostres.patience import Patience
from hostres.settings import MachineSettings
from store.rules import DEFAULT_RULES

FILE = """\
[machine]
nice = 3
patience = { factor = 2 }

[machine.capacity]
ffmpeg = 3
gpu = 1

[machine.claims]
ffmpeg = { cpu = "all" }

[service]
grace_seconds = 5

[[authority.rule]]
id = "films"
verdict = "deny"
resource = "file:/films/*"

[[authority.rule]]
id = "money"
verdict = "ask"
effect = "paid-cloud"
cost = 3
"""


def found(text: str = "") -> dict[str, Setting]:
    """Return what is in force with that file."""
    if text:
        Path(os.environ["HOSTLER_CONFIG"]).write_text(text)
    return {one.key: one for one in settings_in_force(Config.load(), os.environ)}


def test_what_the_file_says_has_its_line() -> None:
    """Also in tables within tables, and of each authority rule what it says."""
    settings = found(FILE)
    lines = {key: (one.line, one.value) for key, one in settings.items() if one.source == "file"}
    assert lines == {
        "machine.nice": (2, "3"),
        "machine.patience": (3, "{ factor = 2 }"),
        "machine.capacity.ffmpeg": (6, "3"),
        "machine.capacity.gpu": (7, "1"),
        "machine.claims.ffmpeg.cpu": (10, '"all"'),
        "service.grace_seconds": (13, "5"),
        "authority.rule[0]": (15, "deny resource file:/films/* (films)"),
        "authority.rule[1]": (20, "ask effect paid-cloud, cost 3 (money)"),
    }


def test_what_it_does_not_say_has_its_default() -> None:
    """Every key of the documentation is there, but those that only somebody's own names make."""
    settings = found()
    for key in KEYS:
        if "*" not in key.path and "[]" not in key.path and not key.path.startswith("machine.patience."):
            assert (settings[key.path].value, settings[key.path].source) == (key.default or "none", "default"), key.path
    assert settings["machine.capacity.whisper"] == Setting(key="machine.capacity.whisper", value="1", source="default")
    rules = [one for one in settings_in_force(Config.load(), os.environ) if one.key == "authority.rule"]
    assert len(rules) == len(DEFAULT_RULES)


def test_places_say_which_variable_names_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And the other variables that count are told."""
    monkeypatch.setenv("HOSTLER_PRINCIPAL", "agent:x")
    monkeypatch.delenv("HOSTLER_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    settings = found()
    assert settings["HOSTLER_HOME"] == Setting(key="HOSTLER_HOME", value=str(tmp_path / "home"), source="environment")
    assert settings["HOSTLER_CONFIG"].source == "default"
    assert settings["HOSTLER_CONFIG"].value == str(tmp_path / "hostler" / "config.toml")
    assert settings["HOSTLER_PRINCIPAL"].value == "agent:x"
    assert "HOSTLER_SECRETS" not in settings


def test_what_others_have_set_on_the_machine_is_not_taken_for_the_file_s_or_a_default() -> None:
    """Capacities, patience and memory are agreed on by all programs, whatever this file leaves out."""
    folder = Path(os.environ["HOSTLER_MACHINE_DIR"])
    others = MachineSettings(patience=Patience(factor=9), real_memory=True)
    with Coordinator(folder, settings=others) as coordinator:
        coordinator.lease({"cpu": 1}).release()
        settings = found()
    assert settings["machine.patience"].source == "machine"
    assert "factor = 9" in settings["machine.patience"].value
    assert (settings["machine.memory"].value, settings["machine.memory"].source) == ('"available"', "machine")
    path = Path(os.environ["HOSTLER_CONFIG"])
    set_capacities(folder, os.environ, {"ffmpeg": 5})
    assert found()["machine.capacity.ffmpeg"].source == "file"
    path.write_text("")
    assert found()["machine.capacity.ffmpeg"] == Setting(key="machine.capacity.ffmpeg", value="5", source="machine")


def test_an_unsafe_machine_folder_hides_only_what_is_agreed_on_there() -> None:
    """The file is as good as before, and whoever looks at the machine tells of the folder."""
    folder = Path(os.environ["HOSTLER_MACHINE_DIR"])
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    examination = examine(os.environ)
    assert examination.exit_code == 73
    assert [one.name for one in examination.findings if one.exit_code] == ["machine"]
    keys = {one.key for one in examination.settings}
    assert "service.grace_seconds" in keys
    assert "machine.capacity.cpu" not in keys
