"""Which operations there are, without importing what nobody asks for."""

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel

from actors.operations import Operation
from hostler.authoring import operation
from hostler.registry import GROUP, Registry, default_registry
from hostres.errors import Code, HostlerError

ROOT = Path(__file__).parents[2]


class Thing(BaseModel):
    name: str


def thing(kind: str, version: int = 1) -> Operation:
    @operation(kind, version=version)
    def same(ctx: Any, input: Thing) -> Thing:
        return input

    return same


def registry(monkeypatch: pytest.MonkeyPatch, **modules: dict[str, Any]) -> Registry:
    """Return a registry of packages, one entry point each, named by their modules."""
    entries = []
    for name, names in modules.items():
        module = ModuleType(name)
        vars(module).update(names)
        monkeypatch.setitem(sys.modules, name, module)
        entries.append(EntryPoint(name=name, value=name, group=GROUP))
    return Registry(built_in={}, installed=lambda: entries)


def test_the_built_in_operations_are_found() -> None:
    found = default_registry().named("files.publish@1")
    assert (found.kind, found.version) == ("files.publish", 1)
    assert default_registry().find("files.publish", 2) is None
    assert default_registry().find("no.such", 1) is None
    assert {"files.publish", "media.probe", "speech.transcribe"} <= {each.kind for each in default_registry().every()}


def test_nothing_is_imported_before_somebody_asks_for_it() -> None:
    code = """
import sys
from hostler.registry import default_registry
assert not any(name.startswith("hostler.operations") for name in sys.modules)
default_registry().named("files.publish@1")
assert "hostler.operations.files" in sys.modules
assert "hostler.operations.speech" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_packages_bring_operations_as_modules_or_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("plug_in_a")
    module.one = thing("plug.one")  # type: ignore[attr-defined]
    module.two = thing("plug.two", 2)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "plug_in_a", module)
    whole = Registry(built_in={}, installed=lambda: [EntryPoint("a", "plug_in_a", GROUP)])
    assert [f"{each.kind}@{each.version}" for each in whole.every()] == ["plug.one@1", "plug.two@2"]
    single = Registry(built_in={}, installed=lambda: [EntryPoint("a", "plug_in_a:two", GROUP)])
    assert [each.kind for each in single.every()] == ["plug.two"]
    assert single.named("plug.two@2") is module.two
    assert whole.broken() == single.broken() == []


def test_one_broken_package_does_not_take_the_others_away(monkeypatch: pytest.MonkeyPatch) -> None:
    found = registry(monkeypatch, plug_in_good={"one": thing("plug.one")})
    entries = [
        EntryPoint("a", "no_such_package", GROUP),
        EntryPoint("b", "json:dumps", GROUP),
        *found._installed(),
    ]
    mixed = Registry(built_in={}, installed=lambda: entries)
    assert mixed.find("plug.one", 1) is not None
    assert mixed.broken() == [
        "no_such_package: ModuleNotFoundError: No module named 'no_such_package'",
        "json:dumps is neither an operation nor a module",
    ]
    with pytest.raises(HostlerError, match=r"no operation plug.tow@1 \(could not be loaded: no_such_package"):
        mixed.named("plug.tow@1")


def test_a_kind_that_two_packages_bring_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    first = thing("plug.one")
    found = registry(monkeypatch, plug_in_b={"one": first}, plug_in_c={"one": thing("plug.one")})
    assert found.named("plug.one@1") is first
    assert found.broken() == ["plug_in_c brings plug.one@1 a second time"]


@pytest.mark.parametrize("text", ["media.probe", "@1", "media.probe@", "media.probe@x", "media.probe@1.0", ""])
def test_a_text_that_names_no_operation_says_how_one_is_written(text: str) -> None:
    with pytest.raises(HostlerError, match=r"write it as kind@version, for example media\.probe@1") as caught:
        default_registry().named(text)
    assert caught.value.code is Code.INVALID_DATA


def test_a_name_that_is_nearly_right_is_answered_with_the_right_one() -> None:
    with pytest.raises(HostlerError, match=r"no operation files\.publsh@1; did you mean files\.publish@1\?"):
        default_registry().named("files.publsh@1")
