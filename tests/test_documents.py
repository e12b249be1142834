"""What the README and the pages in docs/ say is so: their data means something, their lists are complete."""

import json
import os
import re
import tomllib
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, get_args

import pytest
import yaml

from actors.context import Context
from hostler.__main__ import main
from hostler.building import GATES
from hostler.commands import COMMANDS
from hostler.compiler import compile_workflow
from hostler.config import Config
from hostler.configuration_keys import KEYS, key_row
from hostler.graph_files import Agent, Command, Graph, Heading, Node
from hostler.host import Host
from hostler.hosted_run import Run
from hostler.loading import load
from hostler.operations.probing import Media
from hostler.registry import Registry
from hostres.claims import default_capacity
from hostres.coordinator import Coordinator
from hostres.machine_keys import RESOURCES
from store.policy import MIB, Effect, Policy, Resume, Retry
from tests.docs.blocks import PAGES, Block, blocks_of

ROOT: Final = Path(__file__).parent.parent
PARSERS: Final[dict[str, Any]] = {"toml": tomllib.loads, "yaml": yaml.safe_load, "json": json.loads}


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


BLOCKS: Final = [block for page in PAGES for block in blocks_of(page)]


def those(*languages: str) -> Any:
    return pytest.mark.parametrize(
        "block", [block for block in BLOCKS if block.language in languages and not block.title], ids=str
    )


@those("toml", "yaml", "json")
def test_data_parses_and_a_workflow_in_it_compiles(block: Block, tmp_path: Path) -> None:
    value = PARSERS[block.language](block.code)
    if "workflow" in value:
        (tmp_path / f"graph.{block.language}").write_text(block.code, encoding="utf-8")
        workflow = load(f"graph.{block.language}", folder=tmp_path)
        assert compile_workflow(workflow, {}, folder=tmp_path).plan.nodes
    else:
        assert block.page in {
            "docs/configuration.md",
            "docs/governance.md",
            "docs/how-to/wrap-a-command.md",
            "docs/service.md",
        }
        Path(os.environ["HOSTLER_CONFIG"]).write_text(block.code, encoding="utf-8")
        assert Config.load().exists


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_and_headings_that_exist(page: str) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", text_of(page)):
        file, _, heading = target.partition("#")
        if file.startswith("https:"):
            continue
        path = (ROOT / page).parent / file if file else ROOT / page
        assert path.is_file(), target
        assert not heading or heading in anchors_of(path), target


def anchors_of(path: Path) -> set[str]:
    """The names of the headings of a page, as GitHub and the site give them."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\s-]", "", title).strip().lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_files_that_are_named_exist(page: str) -> None:
    text = text_of(page)
    for command in re.findall(r"(?:`|\$ )hostler ([a-z]+)", text):
        assert command in COMMANDS, command
    for path in re.findall(r"\b((?:actors|docs|examples|hostler|hostres|scripts|store|tests)/[\w./-]*\w)", text):
        if not path.startswith("hostler/admission") and "/hostler" not in path:
            assert (ROOT / path).exists() or path.startswith("hostler/config"), path


def rows(page: str) -> dict[str, str]:
    """The rows of all tables of a page: the first cell → the row."""
    found = re.findall(r"^\| (.+?) \| (.*) \|$", text_of(page), re.MULTILINE)
    return {name: rest for first, rest in found for name in re.findall(r"`([^`]+)`", first)}


def test_graph_files_name_every_word_of_the_format() -> None:
    text = text_of("docs/graph-files.md")
    for name in (*GATES, *default_capacity(), *values(Effect), *values(Resume)):
        assert f"`{name}`" in text, name
    for model in (Graph, Heading, Node, Command, Agent):
        for name in model.model_fields:
            assert re.search(rf"\b{name}\b", text), name


def values(words: type[StrEnum]) -> list[str]:
    return [word.value for word in words]


def test_python_names_every_field_of_a_policy_with_its_default() -> None:
    table = rows("docs/python.md")
    for name, field in Policy.model_fields.items():
        default = field.get_default(call_default_factory=True)
        shown = table[name].split(" | ")[0].replace(",", "").strip("`").strip('"')
        if name.endswith("bytes"):
            assert shown == f"{default // MIB} MiB"
        elif name == "retry":
            assert eval(shown, {"Retry": Retry}) == default
        else:
            assert shown == (str(default.value) if isinstance(default, StrEnum) else f"{default!r}".removesuffix(".0"))


def test_python_names_everything_that_people_call() -> None:
    text = text_of("docs/python.md")
    for owner in (Context, Host, Run):
        for name in vars(owner):
            if not name.startswith("_") and (owner, name) not in UNTOLD:
                assert re.search(rf"`{name}\b|\b{name}\(", text), f"{owner.__name__}.{name}"


UNTOLD: Final = {
    (Context, "evidence_file"),
    (Context, "input_file"),
    (Context, "kept"),
    (Host, "commits"),
    (Host, "create"),
    (Host, "start"),
    (Host, "operate"),
    (Host, "answer"),
    (Run, "completed"),
    (Run, "left"),
    (Run, "lost"),
}
"""What only the command line, the service and command nodes need."""


def test_media_names_every_input_of_the_built_in_operations_with_its_default() -> None:
    lines = text_of("docs/media.md").split("## Inputs")[1].split("\n\nOutputs:")[0].splitlines()
    told: dict[str, dict[str, str]] = {}
    operation = ""
    for line in lines:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 4 or cells[0] in {"operation", "---"}:
            continue
        operation = cells[0].strip("`") or operation
        told.setdefault(operation, {}).update(dict.fromkeys(re.findall(r"`(\w+)`", cells[1]), cells[2].strip("`")))
    every = Registry(installed=list).every()
    assert {f"{each.kind}@{each.version}" for each in every} == {*told}
    for each in every:
        fields = each.input_type.model_fields
        shown = told[f"{each.kind}@{each.version}"]
        assert {*shown} == {*fields}, each.kind
        for name, field in fields.items():
            if field.default not in (None, "") and not field.is_required():
                assert shown[name] == str(field.default).replace("False", "false"), name
            assert field.is_required() is (shown[name] == ""), name


def test_media_names_every_output_of_the_built_in_operations() -> None:
    outputs = text_of("docs/media.md").split("\n\nOutputs:")[1].split("\n\n")[0]
    models = [each.output_type for each in Registry(installed=list).every()]
    for field in Media.model_fields.values():
        models += [model for model in get_args(field.annotation) if hasattr(model, "model_fields")]
    for model in models:
        for name in model.model_fields:
            assert re.search(rf"\b{name}\b", outputs), name


def test_configuration_has_a_row_for_each_key_and_none_for_what_is_no_key() -> None:
    """Kind, default and meaning are those of the table that checks the file."""
    text = text_of("docs/configuration.md").split("## Every key")[1].split("\n## ")[0]
    shown = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    assert shown == [list(row) for row in map(key_row, KEYS)]


def test_configuration_shows_each_key_in_its_example() -> None:
    """A reader who copies the whole file, comment marks taken away, has set every key there is."""
    example = next(block.code for block in BLOCKS if block.page == "docs/configuration.md" and block.language == "toml")
    every = tomllib.loads(re.sub(r"^# (?=[a-z_]+ = )", "", example, flags=re.MULTILINE))
    for key in KEYS:
        found = [every]
        for step in key.steps:
            found = [inner for each in found for inner in stepped(each, step)]
        assert found or key.path.startswith(("machine.patience.", "authority.rule[].")), key.path


def stepped(value: Any, step: str) -> list[Any]:
    if step == "[]":
        return list(value)
    return list(value.values()) if step == "*" else [value[step]] if isinstance(value, dict) and step in value else []


def test_doctor_has_a_row_for_each_thing_that_is_looked_at_and_none_for_what_is_not() -> None:
    """By the names in the code of the examination."""
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "hostler" / "diagnosis").glob("*.py"))
    names = {*re.findall(r'name="([a-z ]+)"', code), *re.findall(r'wrong\("([a-z ]+)"', code)}
    names |= set(re.findall(r'_runs\("([a-z]+)"', code))
    table = text_of("docs/doctor.md").split("## What is looked at")[1].split("\n## ")[0]
    shown = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    assert {name for cell in shown for name in re.findall(r"`([^`]+)`", cell)} == names


def test_configuration_names_every_capacity_and_variable() -> None:
    text = text_of("docs/configuration.md")
    for resource in default_capacity():
        assert f"`{resource}`" in text, resource
    assert {*default_capacity()} == {*RESOURCES}
    for name in ("HOSTLER_HOME", "HOSTLER_MACHINE_DIR", "HOSTLER_CONFIG", "HOSTLER_PRINCIPAL", "HOSTLER_NODE"):
        assert name in text


def test_a_key_taken_out_of_the_configuration_stays_in_force_until_it_is_taken_back(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def ffmpeg() -> int:
        capsys.readouterr()
        assert main(["top", "--json"]) == 0
        return int(json.loads(capsys.readouterr().out)["capacity"]["ffmpeg"])

    default, file = ffmpeg(), Path(os.environ["HOSTLER_CONFIG"])
    file.write_text("[machine.capacity]\nffmpeg = 7\n", encoding="utf-8")
    Coordinator(Config.load().machine_folder, explicit=Config.load().capacity).lease({"ffmpeg": 1}).release()
    file.write_text("", encoding="utf-8")
    assert ffmpeg() == 7
    assert main(["machine", "set", "ffmpeg="]) == 0
    assert ffmpeg() == default
    assert main(["machine", "set", "ffmpeg=3"]) == 0
    assert ffmpeg() == 3
    assert "ffmpeg = 3" in file.read_text(encoding="utf-8")


def test_errors_that_name_a_page_name_one_that_exists() -> None:
    named = {
        page
        for folder in ("actors", "hostler", "hostres", "store")
        for path in (ROOT / folder).rglob("*.py")
        for page in re.findall(r"docs/[\w-]+\.md", path.read_text(encoding="utf-8"))
    }
    assert "docs/graph-files.md" in named
    assert all((ROOT / page).is_file() for page in named)
