"""Configuration: places, capacities, and no key that is silently ignored."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from hostler.config import Config
from hostres.errors import Code, HostlerError
from store.policy import Effect, PreparationKind
from store.rules import DEFAULT_RULES, Rule, Verdict

Write = Callable[[str], dict[str, str]]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(text: str) -> dict[str, str]:
        path = tmp_path / "config.toml"
        path.write_text(text, encoding="utf-8")
        path.chmod(0o644)
        return {"HOSTLER_CONFIG": str(path), "HOSTLER_HOME": str(tmp_path / "home")}

    return written


def refusal(environ: dict[str, str], code: Code = Code.INVALID_DATA) -> str:
    with pytest.raises(HostlerError) as caught:
        Config.load(environ)
    assert caught.value.code is code
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_missing_file_is_an_empty_one_also_where_it_is_named(tmp_path: Path) -> None:
    config = Config.load({"HOSTLER_CONFIG": str(tmp_path / "none.toml"), "HOSTLER_MACHINE_DIR": str(tmp_path / "m")})
    assert (config.exists, dict(config.capacity), config.max_nodes) == (False, {}, 4096)
    assert config.config_path == tmp_path / "none.toml"
    assert config.machine_folder == tmp_path / "m"


def test_the_environment_of_the_process_is_read_by_default(tmp_path: Path) -> None:
    config = Config.load()
    assert config.home == tmp_path / "home"
    assert config.machine_folder == tmp_path / "machine"
    assert config.config_path == tmp_path / "config.toml"


def test_without_an_override_the_home_is_the_users_state_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert Config.load({"HOSTLER_CONFIG": str(tmp_path / "none")}).home == tmp_path / "state" / "hostler"


def test_a_relative_home_is_made_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    environ = {"HOSTLER_HOME": "here/home", "HOSTLER_CONFIG": str(tmp_path / "none")}
    assert Config.load(environ).home == tmp_path / "here" / "home"


def test_capacities_are_only_those_that_the_file_names(write: Write) -> None:
    config = Config.load(write("[machine.capacity]\nffmpeg = 4\nx = 1\n"))
    assert config.exists
    assert dict(config.capacity) == {"ffmpeg": 4, "x": 1}


def test_the_number_of_nodes_can_be_raised(write: Write) -> None:
    assert Config.load(write("[limits]\nnodes = 10000\n")).max_nodes == 10_000
    for bad in ("0", "true", '"many"', "1.5", "10000000"):
        assert "is no number of nodes; give a number from 1 to" in refusal(write(f"[limits]\nnodes = {bad}\n"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[machine.capacitty]\nx = 1\n", "there is no key machine.capacitty; take it out; the nearest known one is"),
        ("[machin.capacity]\nx = 1\n", "there is no key machin; take it out; the nearest known one is machine"),
        ("[limits]\nnode = 1\n", "there is no key limits.node; take it out; the nearest known one is limits.nodes"),
        ("zzz = 1\n", "there is no key zzz"),
        ("machine = 3\n", "machine is not a section; write [machine]"),
        ("a = 1\na = 2\n", "is not TOML"),
        ("[[", "is not TOML"),
    ],
)
def test_what_nobody_knows_is_refused_with_the_file_and_the_nearest_key(write: Write, text: str, says: str) -> None:
    environ = write(text)
    line = refusal(environ)
    assert says in line
    assert environ["HOSTLER_CONFIG"] in line


def test_a_capacity_that_is_no_number_of_units_is_refused(write: Write) -> None:
    for bad in ("-1", "1.5", '"two"', "true"):
        assert "ffmpeg" in refusal(write(f"[machine.capacity]\nffmpeg = {bad}\n"), Code.INVALID_PROFILE)


def test_a_file_that_others_can_write_is_refused_with_the_mend(write: Write, tmp_path: Path) -> None:
    environ = write("")
    (tmp_path / "config.toml").chmod(0o646)
    assert "chmod go-w" in refusal(environ, Code.UNSAFE_STATE)


def test_the_file_may_be_a_link_that_everybody_can_read(write: Write, tmp_path: Path) -> None:
    environ = write("[machine.capacity]\nx = 1\n")
    link = tmp_path / "link.toml"
    link.symlink_to(tmp_path / "config.toml")
    assert dict(Config.load({**environ, "HOSTLER_CONFIG": str(link)}).capacity) == {"x": 1}


RULE = '[[authority.rule]]\nid = "x"\nverdict = "ask"\n'


def test_rules_come_before_the_default_ones_and_each_field_narrows_them(write: Write) -> None:
    text = (
        '[authority]\nconfirm = "terminal"\n'
        '[[authority.rule]]\nid = "dear"\nverdict = "deny"\nprincipal = "agent"\naction = "effect"\n'
        'effect = "paid-cloud"\npreparation = ["camera", "microphone"]\noperation = "media.*"\n'
        'resource = "file:/films/*"\ncost = 2.5\n' + RULE
    )
    config = Config.load(write(text))
    assert config.on_terminal
    dear, x, *defaults = config.rules
    assert tuple(defaults) == DEFAULT_RULES
    assert dear == Rule(
        id="dear",
        verdict=Verdict.DENY,
        principal_kind="agent",
        action="effect",
        effect=Effect.PAID_CLOUD,
        preparation=frozenset({PreparationKind.CAMERA, PreparationKind.MICROPHONE}),
        operation="media.*",
        resource="file:/films/*",
        cost=Decimal("2.5"),
    )
    assert x == Rule(id="x", verdict=Verdict.ASK)
    assert Config.load(write("")).rules == DEFAULT_RULES
    assert not Config.load(write("")).on_terminal


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (RULE + "effekt = 1\n", "authority.rule[0].effekt: Extra inputs are not permitted"),
        (RULE.replace("ask", "perhaps"), "authority.rule[0].verdict: Input should be 'allow', 'ask' or 'deny'"),
        ('[[authority.rule]]\nverdict = "ask"\n', "authority.rule[0].id: Field required"),
        (RULE + 'principal = "root"\n', "authority.rule[0].principal: Input should be 'human', 'agent' or 'service'"),
        (RULE + "cost = -1\n", "authority.rule[0].cost: "),
        (RULE + RULE, "authority.rule[1]: there is a rule x before it; give each rule its own id"),
        (RULE.replace('"x"', '"default.y"'), "default.y is the name of a rule of Hostler's own; give it another id"),
        (RULE.replace('"x"', '"gate"'), "gate is the name of a rule of Hostler's own"),
        ('[authority]\nconfirm = "never"\n', "authority.confirm: Input should be 'plan' or 'terminal'"),
        ("[authority]\nconfrm = 1\n", "there is no key authority.confrm; take it out; the nearest known one is"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused_with_its_place(write: Write, text: str, says: str) -> None:
    assert says in refusal(write(text))
