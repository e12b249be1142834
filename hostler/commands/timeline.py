"""`hostler timeline`: a picture of what a run did when."""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from hostler.commands.arguments import add_json, add_run, command_parser
from hostler.commands.output import print_json, print_line
from hostler.commands.picture_file import STDOUT, write_picture
from hostler.pictures.page import timeline_html
from hostler.pictures.timeline import Timeline
from hostler.pictures.timeline_drawing import timeline_svg
from hostler.refusals import invalid
from hostler.run_pictures import timeline_of
from hostler.stored_runs import reading
from hostler.views.terminal import harmless

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers

DRAWINGS: Final[Mapping[str, Callable[[Timeline], str]]] = MappingProxyType(
    {".svg": timeline_svg, ".html": timeline_html}
)
"""By the end of the file's name."""


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(subparsers, "timeline", description="draw what a run did when", example="- -o timeline.svg")
    add_run(parser)
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="where to: a name that ends in .svg or .html, or - for an SVG on standard output",
    )
    add_json(parser, "print one JSON object: the run, the file and its size")


def run(args: argparse.Namespace) -> int:
    """Draw it."""
    draw = _drawing(args.output)
    if args.json and args.output == STDOUT:
        raise invalid("standard output cannot hold both the picture and JSON", "name a file, or leave out --json")
    with reading() as (_, reader):
        run_id = reader.find(args.run)
        found = timeline_of(reader, run_id)
    picture = draw(found)
    write_picture(args.output, picture)
    if args.json:
        file = str(Path(args.output).absolute())
        print_json({"run_id": run_id, "file": file, "bytes": len(picture.encode())})
    elif args.output != STDOUT:
        print_line(harmless(f"wrote {args.output}"))
    return 0


def _drawing(where: str) -> Callable[[Timeline], str]:
    if where == STDOUT:
        return timeline_svg
    draw = DRAWINGS.get(PurePath(where).suffix.lower())
    if draw is None:
        raise invalid(
            f"{where!r} does not say what to draw", "give a name that ends in .svg or .html, or - for standard output"
        )
    return draw
