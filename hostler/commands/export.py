"""`hostler export`: write a run as one file, which can be verified anywhere and imported elsewhere."""

import argparse
import contextlib
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from actors.publication import is_special
from hostler.commands.arguments import add_json, add_run, command_parser
from hostler.commands.output import print_json, print_line
from hostler.commands.unwritable import unwritable
from hostler.stored_runs import reading
from hostler.views.terminal import harmless
from hostler.views.verification import damage
from hostres.errors import Code, HostlerError
from hostres.folders import machine_folder
from hostres.replacement import sync
from store.archive.exporting import write_archive
from store.home import Home
from store.proving import prove
from store.snapshots import snapshot

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers, "export", description="write a run as one file", example="- talk.hostler-run.tar"
    )
    add_run(parser)
    parser.add_argument("file", metavar="FILE", type=Path, help="where to; one that is there is replaced")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Write the archive beside FILE, then give it its name."""
    with reading() as (home, reader):
        run_id = reader.find(args.run)
    target: Path = args.file.absolute()
    _refuse_own(target, home)
    if is_special(target):
        raise HostlerError(Code.CONFLICT, f"{target} is not a regular file", "give another name")
    beside = target.parent / f".hostler-{secrets.token_hex(6)}"
    try:
        digest, size = _write(home, run_id, beside)
        beside.rename(target)
        sync(target.parent)
    except OSError as error:
        raise unwritable(target, error, draft=beside) from error
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
    if args.json:
        print_json({"run_id": run_id, "file": str(target), "bytes": size, "sha256": digest})
    else:
        print_line(harmless(f"{run_id} is in {target}; {size:,} bytes, sha256 {digest}"))
    return 0


def _refuse_own(target: Path, home: Home) -> None:
    """Refuse a place among what Hostler itself keeps: its name may be that of the store."""
    folder = Path(os.path.realpath(target.parent))
    for own in (home.root, machine_folder(os.environ)):
        if folder.is_relative_to(os.path.realpath(own)):
            raise HostlerError(Code.CONFLICT, f"{target} lies in {own}, which Hostler keeps", "name a file elsewhere")


def _write(home: Home, run_id: str, place: Path) -> tuple[str, int]:
    with snapshot(home) as seen:
        assert seen is not None  # the run was found in it
        number = seen.number(run_id)
        verdict = prove(home, number, files=False)
        if verdict.problems:
            todo = f"see all of it with `hostler verify {run_id}`"
            raise HostlerError(Code.INVALID_DATA, damage(verdict, file=None), todo)
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o600)
            digest = write_archive(seen.connection, seen.content, number, home.logs_of_run(run_id), file)
            file.flush()
            os.fsync(descriptor)
            return digest, file.tell()
