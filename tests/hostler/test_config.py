"""Configuration: places, capacities, and no key that is silently ignored."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from hostler.config import Config
from hostler.retention_settings import RetentionSettings
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


def test_a_state_folder_is_never_where_a_program_happens_to_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As in a container whose user has neither HOME nor an entry in passwd: runs were kept in ./~ and lost from sight."""
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    environ = {"HOSTLER_CONFIG": str(tmp_path / "none")}
    assert Config.load(environ).home == tmp_path / ".local" / "state" / "hostler"
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("os.geteuid", lambda: 4_000_000)
    environ["HOSTLER_MACHINE_DIR"] = str(tmp_path)
    assert "no home folder; set HOSTLER_MACHINE_DIR and HOSTLER_HOME" in refusal(environ, Code.UNAVAILABLE)
    assert "and HOSTLER_CONFIG" in refusal({"HOSTLER_MACHINE_DIR": str(tmp_path)}, Code.UNAVAILABLE)


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
        said = (
            f"config.toml line 2: limits.nodes = {bad} is not right; write a whole number from 1 to 1,000,000 (nodes)"
        )
        assert said in refusal(write(f"[limits]\nnodes = {bad}\n"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[machine.capacitty]\nx = 1\n", "line 1: there is no key machine.capacitty; did you mean machine.capacity?"),
        ("[machin.capacity]\nx = 1\n", "line 1: there is no key machin; did you mean machine?"),
        ("[limits]\n\nnode = 1\n", "line 3: there is no key limits.node; did you mean limits.nodes?"),
        ("zzz = 1\n", "line 1: there is no key zzz; take it out; here may stand "),
        ("[machine]\nffmpeg = 3\n", "line 2: there is no key machine.ffmpeg; did you mean machine.capacity.ffmpeg?"),
        ("grace_seconds = 3\n", "there is no key grace_seconds; did you mean service.grace_seconds?"),
        ("[service]\ngrace-seconds = 3\n", "line 2: there is no key service.grace-seconds; did you mean service.gr"),
        ("[machine]\npatience = { factr = 3 }\n", "no key machine.patience.factr; did you mean machine.patience.fac"),
        ("[machine.patience]\n\nfactr = 3\n", "line 3: there is no key machine.patience.factr"),
        ("[retention]\nolder-than = '3d'\n", "there is no key retention.older-than; did you mean retention.older_"),
        ("limits = 3\n", "line 1: limits is not a table; write [limits] and its keys below: nodes"),
        ("x = 1\n\nx = 2\n", "config.toml line 3 column 6 is not TOML: cannot overwrite a value; correct it there"),
        ("[[", "config.toml line 1 column 3 is not TOML: "),
        ("# one\nx = 'open\n", "config.toml line 2 column 10 is not TOML: "),
        ("# one\n\nx = [1,", "config.toml line 3 column 8 is not TOML: "),
        ("# one\nx = 1\nd = 2026-13-45\n", "config.toml line 3"),
        ("[machine]\nx = " + "[" * 9000, "is nested too deeply; write it flatter"),
    ],
)
def test_what_nobody_knows_is_refused_with_the_file_and_the_nearest_key(write: Write, text: str, says: str) -> None:
    environ = write(text)
    line = refusal(environ)
    assert says in line
    assert environ["HOSTLER_CONFIG"] in line


def test_a_file_that_is_no_utf_8_is_named_with_line_and_column(write: Write, tmp_path: Path) -> None:
    environ = write("")
    (tmp_path / "config.toml").write_bytes(b"# one\nx = '\xff'\n")
    assert "config.toml line 2 column 6 is not TOML: not UTF-8; save the file as UTF-8" in refusal(environ)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "[service]\ngrace_seconds = -1\n",
            "grace_seconds = -1 is not right; write a number from 0 to 3,600 (seconds)",
        ),
        ("[service]\nlog_files = 1.5\n", "log_files = 1.5 is not right; write a whole number from 0 to 100 (files)"),
        (
            '[service]\nlog_megabytes = "a\\nb"\n',
            'log_megabytes = "a\\u000Ab" is not right; write a number from 0.1 to',
        ),
        ("[service]\nlog_megabytes = nan\n", "log_megabytes = nan is not right"),
        ("[retention]\nkeep = true\n", "retention.keep = true is not right; write a whole number from 0 to"),
        ('[retention]\nolder_than = "30"\n', 'older_than = "30" is not right; write an age of at most a hundred years'),
        ('[retention]\nolder_than = "99999d"\n', "write an age of at most a hundred years, as 90s, 5m, 12h, 30d or 8w"),
    ],
)
def test_a_value_that_is_not_right_is_named_with_its_line_and_what_is(write: Write, text: str, says: str) -> None:
    said = refusal(write(text))
    assert says in said
    assert "config.toml line 2: " in said


def test_a_very_long_value_is_cut(write: Write) -> None:
    assert len(refusal(write("[service]\nlog_files = " + "[1, " * 400 + "]" * 400))) < 400


def test_how_long_runs_are_kept_can_be_set(write: Write) -> None:
    assert Config.load(write("")).retention == RetentionSettings(older_than_s=30 * 86_400, keep=0)
    found = Config.load(write('[retention]\nolder_than = "8w"\nkeep = 3\n')).retention
    assert found == RetentionSettings(older_than_s=8 * 7 * 86_400, keep=3)


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
        (
            RULE + "effekt = 1\n",
            "line 4: there is no key authority.rule[0].effekt; did you mean authority.rule[0].effect?",
        ),
        (
            RULE + RULE.replace("x", "y") + "\nverdikt = 1\n",
            "line 8: there is no key authority.rule[1].verdikt; did you",
        ),
        (
            RULE.replace("ask", "perhaps"),
            'line 3: authority.rule[0].verdict = "perhaps" is not right; write "allow", "ask"',
        ),
        ('[[authority.rule]]\nverdict = "ask"\n', "line 1: authority.rule[0] has no id; give it one: "),
        ('[[authority.rule]]\nid = "z"\n', "line 1: authority.rule[0] has no verdict; give it one: "),
        (RULE + 'principal = "root"\n', 'principal = "root" is not right; write "human", "agent" or "service"'),
        (
            RULE + 'preparation = ["camera", "nose"]\n',
            'preparation = ["camera", "nose"] is not right; write an array [',
        ),
        (RULE + "cost = -1\n", "line 4: authority.rule[0].cost = -1 is not right; write a number of at least 0"),
        (RULE + RULE, "line 5: authority.rule[1].id: there is a rule x before it; give each rule its own id"),
        (RULE.replace('"x"', '"default.y"'), "default.y is the name of a rule of Hostler's own; give it another id"),
        (RULE.replace('"x"', '"gate"'), "gate is the name of a rule of Hostler's own"),
        (
            '[authority]\nconfirm = "never"\n',
            'line 2: authority.confirm = "never" is not right; write "plan" or "terminal"',
        ),
        ("[authority]\nconfrm = 1\n", "line 2: there is no key authority.confrm; did you mean authority.confirm?"),
        ('[authority]\nrule = "x"\n', "authority.rule is not an array of tables; write [[authority.rule]]"),
        (
            '[authority]\nrule = [\n  { id = "a", verdict = "ask" },\n  { id = "b", verdict = "ask", effekt = 1 },\n]\n',
            "line 4: ",
        ),
        (
            RULE + 'action = "cancel"\n',
            'line 3: authority.rule[0].verdict: nobody can be asked for the action cancel; write "deny", which it would',
        ),
        (RULE + 'action = "work"\nprincipal = "agent"\n', "nobody can be asked for the action work"),
        (
            RULE + 'action = "retry"\nprincipal = "human"\n',
            "nobody can be asked for the action retry by people",
        ),
        ("\n" + RULE * 1001, "line 3002: there are 1,001 rules, more than 1,000"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused_with_its_place(write: Write, text: str, says: str) -> None:
    assert says in refusal(write(text))
