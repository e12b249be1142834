"""The code of a workflow as an archive: which files, which bytes, and nothing that leads outside."""

import ast
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.bundles import MAX_BYTES, extract, pack, unpack
from hostler.own_modules import own_files
from hostres.errors import Code, HostlerError
from store.values import Domain, digest_bytes


def refusal(call: object, *args: object) -> str:
    with pytest.raises(HostlerError) as caught:
        call(*args)  # type: ignore[operator]
    assert caught.value.code is Code.INVALID_DATA
    assert "\n" not in str(caught.value)
    return str(caught.value)


def lay_out(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


# --- archives -----------------------------------------------------------------------------------------------------

NAMES = st.from_regex(r"[a-z]{1,3}(/[a-z]{1,3}){0,2}\.py", fullmatch=True)


@given(st.dictionaries(NAMES, st.binary(max_size=50), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_the_same_files_give_the_same_bytes_and_come_back_whole(files: dict[str, bytes], dice: object) -> None:
    items = list(files.items())
    dice.shuffle(items)  # type: ignore[attr-defined]
    bundle = pack(files)
    assert pack(dict(items)).data == bundle.data
    assert bundle.sha256 == digest_bytes(Domain.BUNDLE, bundle.data)
    assert unpack(bundle.data, bundle.sha256) == bundle
    assert dict(bundle.files) == files


@given(st.data())
def test_a_changed_byte_anywhere_is_another_digest_and_refused(data: st.DataObject) -> None:
    bundle = pack({"a.py": b"x = 1\n", "b/c.py": b"y = 2\n"})
    at = data.draw(st.integers(0, len(bundle.data) - 1))
    damaged = bytearray(bundle.data)
    damaged[at] ^= data.draw(st.integers(1, 255))
    assert f"bundle {bundle.sha256} is damaged" in refusal(unpack, bytes(damaged), bundle.sha256)


def test_the_bytes_are_what_they_were_in_every_version() -> None:
    """Stored plans name them; a change of this digest would make every stored run look damaged."""
    bundle = pack({"flow.py": b"x = 1\n"})
    assert bundle.sha256 == "199bfcb2bde0b9a39980fa0a142795eca1889b595b3f03fa4511f51f4a004fcf"


def test_too_much_code_is_refused() -> None:
    assert "more than 16,777,216" in refusal(pack, {"a.py": bytes(MAX_BYTES + 1)})
    assert "more than 16,777,216" in refusal(pack, {"a.py": bytes(MAX_BYTES - 10)})
    assert len(pack({"a.py": bytes(MAX_BYTES - 1000)}).data) <= MAX_BYTES


@pytest.mark.parametrize("name", ["/etc/passwd", "../a.py", "a/../b.py", "a//b.py", "./a.py", "", "a\\b.py", "a/"])
def test_a_member_that_leads_outside_is_refused(name: str) -> None:
    if name:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("ok.py", b"")
            archive.writestr(zipfile.ZipInfo(name), b"")
        assert "is not a relative path inside it" in refusal(unpack, buffer.getvalue())
    assert "is not a relative path inside it" in refusal(pack, {name: b""})


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_archive_of_another_kind_is_refused() -> None:
    compressed, twice = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(compressed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.py", b"x" * 1000)
    with zipfile.ZipFile(twice, "w") as archive:
        archive.writestr("a.py", b"1")
        archive.writestr("a.py", b"2")
    assert "a.py is compressed or encrypted" in refusal(unpack, compressed.getvalue())
    assert "it has a.py twice" in refusal(unpack, twice.getvalue())
    assert "the code bundle is not usable" in refusal(unpack, b"no archive at all")
    assert "the code bundle is not usable" in refusal(unpack, pack({"a.py": b"x"}).data[:-10])


def test_extracting_lays_the_files_out_privately_and_twice_is_as_good_as_once(tmp_path: Path) -> None:
    bundle = pack({"a.py": b"x", "b/c.py": b"y"})
    for _ in range(2):
        extract(bundle, tmp_path / "out")
    (tmp_path / "out/a.py").write_bytes(b"changed")
    extract(bundle, tmp_path / "out")
    assert {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.py")} == {
        "a.py",
        "b/c.py",
    }
    assert (tmp_path / "out/a.py").read_bytes() == b"x"
    assert (tmp_path / "out/a.py").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "out/b").stat().st_mode & 0o077 == 0


# --- which files --------------------------------------------------------------------------------------------------


def test_a_workflow_is_its_file_and_what_it_imports_from_its_own_folder(tmp_path: Path) -> None:
    root = lay_out(
        tmp_path,
        {
            "flow.py": "import json, helper\nfrom pack import inner\ndef f():\n    import late.deep\n",
            "helper.py": "from pack.other import thing\n",
            "pack/__init__.py": "",
            "pack/inner.py": "from . import sibling\nfrom .sub.far import x\n",
            "pack/other.py": "thing = 1\n",
            "pack/sibling.py": "",
            "pack/sub/__init__.py": "",
            "pack/sub/far.py": "from ..unused_not import y\nx = 1\n",
            "pack/unused.py": "",
            "late/deep.py": "",
            "unrelated.py": "import flow\n",
            "data.txt": "",
        },
    )
    assert sorted(own_files(root, "flow.py")) == [
        "flow.py", "helper.py", "late/deep.py", "pack/__init__.py", "pack/inner.py", "pack/other.py",
        "pack/sibling.py", "pack/sub/__init__.py", "pack/sub/far.py",
    ]  # fmt: skip


def test_a_folder_with_a_file_named_like_this_program_never_replaces_it(tmp_path: Path) -> None:
    root = lay_out(
        tmp_path,
        {"flow.py": "import hostler, store.values, sys\n", "hostler.py": "", "store/values.py": "", "sys.py": ""},
    )
    assert list(own_files(root, "flow.py")) == ["flow.py"]


def test_of_a_module_in_a_package_only_that_package_counts(tmp_path: Path) -> None:
    root = lay_out(
        tmp_path,
        {
            "mine/__init__.py": "from mine import always\n",
            "mine/always.py": "",
            "mine/flows/__init__.py": "",
            "mine/flows/main.py": "import other\nfrom ..tools import x\n",
            "mine/tools.py": "x = 1\n",
            "other.py": "",
        },
    )
    assert sorted(own_files(root, "mine/flows/main.py", top="mine")) == [
        "mine/__init__.py", "mine/always.py", "mine/flows/__init__.py", "mine/flows/main.py", "mine/tools.py",
    ]  # fmt: skip


def test_a_broken_or_missing_file_is_named_with_its_line(tmp_path: Path) -> None:
    root = lay_out(tmp_path, {"flow.py": "import helper\n", "helper.py": "x = 1\ny = = 2\n", "nul.py": "x\0"})
    assert f"{root}/helper.py line 2: SyntaxError: invalid syntax" in refusal(own_files, root, "flow.py")
    assert f"{root}/none.py cannot be read: No such file" in refusal(own_files, root, "none.py")
    assert "null bytes" in refusal(own_files, root, "nul.py")


def test_a_file_is_read_again_where_the_parser_has_lost_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CPython 3.11 does, if another thread builds a tree at the same time, as for a traceback."""
    parse, failures = ast.parse, iter([SystemError("AST constructor recursion depth mismatch")])

    def fails_once(content: bytes, name: str) -> ast.Module:
        for failure in failures:
            raise failure
        return parse(content, name)

    monkeypatch.setattr(ast, "parse", fails_once)
    root = lay_out(tmp_path, {"flow.py": "import helper", "helper.py": ""})
    assert sorted(own_files(root, "flow.py")) == ["flow.py", "helper.py"]


def test_endless_code_is_not_read_to_its_end(tmp_path: Path) -> None:
    root = lay_out(tmp_path, {"flow.py": "import a, b\n", "a.py": "", "b.py": ""})
    for name in ("a.py", "b.py"):
        with (root / name).open("wb") as file:
            file.truncate(MAX_BYTES + 1)
    assert len(own_files(root, "flow.py")) == 2
    assert "more than" in refusal(pack, own_files(root, "flow.py"))
