"""`hostler plan`: compile a workflow and show what it would do."""

import argparse
from typing import TYPE_CHECKING, Final

from hostler.commands.arguments import add_json, add_workflow, command_parser
from hostler.commands.compiling import compiled
from hostler.commands.excess import warn_of_excess
from hostler.commands.output import json_alone, print_json, print_line, print_xml, width
from hostler.config import Config
from hostler.principal import principal
from hostler.views.asking import asking, rulings
from hostler.views.plan import plan_json, plan_mermaid, plan_text
from store.rules import Verdict

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers

FORMATS: Final = ("text", "json", "mermaid", "svg")


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers,
        "plan",
        description="compile a workflow and show what it would do, without doing it",
        example="examples/podcast.py -i source=talk.mp4 -i out=out --format mermaid",
        more=("examples/greeting.toml -i name=Ann --json",),
    )
    add_workflow(parser)
    parser.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    add_json(parser, "the same as --format json")


def run(args: argparse.Namespace) -> int:
    """Print the plan."""
    config = Config.load()
    as_json = args.json or args.format == "json"
    with json_alone(wanted=as_json or args.format in ("mermaid", "svg")):
        result = compiled(args, config)
    warn_of_excess(result.plan, config)
    said = rulings(result.plan, rules=config.rules, principal=principal(), folder=result.folder)
    if as_json:
        print_json(plan_json(result.plan, result.plan_sha256, said))
    elif args.format == "mermaid":
        print_line(plan_mermaid(result.plan, said))
    elif args.format == "svg":
        from hostler.pictures.chart import plan_chart  # noqa: PLC0415 (pictures are an extra)
        from hostler.pictures.chart_drawing import chart_svg  # noqa: PLC0415

        chart = plan_chart(result.plan, asks=asking(said), denied=asking(said, Verdict.DENY))
        print_xml(chart_svg(chart))
    else:
        print_line(plan_text(result.plan, result.plan_sha256, said, width=width()))
    return 0
