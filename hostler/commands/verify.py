"""`hostler verify`: prove runs, or an archive of one, from what is stored."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hostler.commands.archive_files import archive_named, open_archive
from hostler.commands.arguments import add_json, command_parser
from hostler.commands.output import print_json, print_line
from hostler.stored_runs import reading
from hostler.views.verification import damage, problem_json, verdict_json, verdict_text
from hostres.errors import EXIT_CODES, Code, HostlerError
from store.archive.reading import opened
from store.home import Home
from store.proving import check_file, numbers, prove
from store.verification.findings import Problem, Verdict

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers,
        "verify",
        description="prove runs, or an archive of one, from what is stored",
        example="-",
        more=("talk.hostler-run.tar", "--all --no-files"),
    )
    parser.add_argument(
        "targets",
        nargs="*",
        metavar="RUN|FILE",
        help="a run (any unique prefix of its id, - for the newest), or the file of an archive; "
        "with a slash it is always a file, else - and run_… always a run",
    )
    parser.add_argument("--all", action="store_true", help="every run, and the file that they are in")
    parser.add_argument(
        "--no-files", action="store_true", help="do not read the files that outputs name, which may be large"
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print what is wrong; a clean run says so in one line."""
    if not args.targets and not args.all:
        raise HostlerError(Code.INVALID_DATA, "nothing is named to be verified", "name a run or a file, or give --all")
    archives = {text: path for text in args.targets if (path := archive_named(text)) is not None}
    runs = [text for text in args.targets if text not in archives]
    report = _Report(json=args.json)
    for text, path in archives.items():
        report.take(_verdict_of_file(path), file=text)
    if runs or args.all:
        with reading() as (home, reader):
            wanted = {reader.find(text) for text in runs}
        _verify_runs(home, report, wanted, every=args.all, files=not args.no_files)
    return report.finish()


def _verdict_of_file(path: Path) -> Verdict:
    with open_archive(path) as file, opened(file, str(path)) as archive:
        return archive.verdict


def _verify_runs(home: Home, report: "_Report", wanted: set[str], *, every: bool, files: bool) -> None:
    if every:
        report.take_file(check_file(home))
    for number, run_id in numbers(home).items():
        if not every and run_id not in wanted:
            continue
        try:
            report.take(prove(home, number, files=files))
        except HostlerError as error:
            if not every or error.code is not Code.NOT_FOUND:  # one that was removed meanwhile
                raise


class _Report:
    """What is printed, and how the command ends."""

    def __init__(self, *, json: bool) -> None:
        self._json = json
        self._shapes: list[dict[str, Any]] = []
        self._store: list[Problem] | None = None
        self._damage: list[str] = []
        self._any = False

    def take(self, verdict: Verdict, *, file: str | None = None) -> None:
        """Take in what was said of a run."""
        self._any = True
        if verdict.problems:
            self._damage.append(damage(verdict, file=file))
        if self._json:
            self._shapes.append(verdict_json(verdict, file=file))
        else:
            print_line(verdict_text(verdict, file=file))

    def take_file(self, problems: list[Problem]) -> None:
        """Take in what was said of the database."""
        self._store = problems
        if problems:
            self._damage.append(f"the database is damaged: {problems[0].what}")
        if not self._json:
            for problem in problems:
                print_line(f"database: [{problem.fault}] {problem.what}")

    def finish(self) -> int:
        """Say how it ended."""
        if self._json:
            shape: dict[str, Any] = {"ok": not self._damage, "results": self._shapes}
            if self._store is not None:
                shape["database"] = {"ok": not self._store, "problems": [problem_json(one) for one in self._store]}
            print_json(shape)
            return EXIT_CODES[self._code] if self._damage else 0
        if self._store == [] and not self._any:
            print_line("no runs")
        if self._damage:
            more = f" (and {len(self._damage) - 1} more)" if len(self._damage) > 1 else ""
            todo = "restore it from a copy; what it names can no longer be trusted"
            raise HostlerError(self._code, f"{self._damage[0]}{more}", todo)
        return 0

    @property
    def _code(self) -> Code:
        return Code.UNSAFE_STATE if self._store else Code.INVALID_DATA
