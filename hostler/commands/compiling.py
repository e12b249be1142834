"""WORKFLOW and its inputs from the command line to a compiled plan."""

import argparse
from pathlib import Path

from hostler.compiler import Compiled, compile_workflow
from hostler.config import Config
from hostler.inputs import read_inputs
from hostler.loading import load


def compiled(args: argparse.Namespace, config: Config) -> Compiled:
    """Return what the arguments of `arguments.add_workflow` describe, compiled.

    Args:
        args: Of the command.
        config: Says how many nodes a workflow may have.

    Raises:
        HostlerError: invalid-data, if the workflow or an input is missing or broken.

    """
    folder = Path.cwd()
    workflow = load(args.workflow, folder=folder)
    inputs = read_inputs(workflow, args.inputs, args.input_file, folder=folder)
    return compile_workflow(workflow, inputs, folder=folder, max_nodes=config.max_nodes)
