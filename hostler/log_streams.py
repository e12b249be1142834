"""How the logs of one attempt are called, by stream and process, and the order in which they are read."""

from collections.abc import Iterable
from typing import Final

from store.home import PROGRAM

PROCESS_STREAMS: Final = ("stdout", "stderr")
ERROR: Final = "error"
"""The stream that holds the traceback of an operation's own exception."""


def said(streams: Iterable[str]) -> list[str]:
    """Return the streams that hold output: by process, the traceback of the node's own code last."""
    return sorted((stream for stream in streams if stream.partition(".")[0] != PROGRAM), key=_place)


def stream_of(name: str, number: int) -> str:
    """Return how the stream of that name of a process is called; processes are counted from 1."""
    return name if number == 1 else f"{name}.{number}"


def process_of(stream: str) -> int:
    """Return the number of the process whose stream it is."""
    return int(stream.partition(".")[2] or 1)


def _place(stream: str) -> tuple[bool, int, int]:
    name = stream.partition(".")[0]
    return name == ERROR, process_of(stream), PROCESS_STREAMS.index(name) if name in PROCESS_STREAMS else 0
