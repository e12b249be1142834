"""What is wrong when a tool of the ffmpeg family fails, and whether trying the same again can help. Pure.

A small classification: first by who ended it; then by its exit code, which in newer versions is the error number
itself, modulo 256; and by what it says, since older ones exit with 1 whatever it is.
"""

import re
import signal
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from actors.context import OperationFailed
from store.policy import FailureCode

SIGNAL_BASE: Final = 128
ENDED: Final = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGTERM, signal.SIGXCPU})
CRASHED: Final = frozenset({signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV})
"""Newer versions of ffmpeg exit with an error number, maybe above 128: not every such code is a signal."""

TRAPPED: Final = 255
"""What ffmpeg exits with when a signal told it to stop."""


NOT_THERE: Final = 8
"""What newer versions exit with when an encoder, decoder, filter, format or protocol is not in this build."""

_BY_EXIT: Final[Mapping[int, FailureCode]] = MappingProxyType(
    {
        NOT_THERE: FailureCode.UNSUPPORTED_PLAN,  # AVERROR_*_NOT_FOUND, all of which begin with the byte 0xF8
        183: FailureCode.INVALID_DATA,  # AVERROR_INVALIDDATA, 'I'
        234: FailureCode.INVALID_DATA,  # EINVAL
        235: FailureCode.INVALID_DATA,  # EISDIR
        236: FailureCode.INVALID_DATA,  # ENOTDIR
        243: FailureCode.INVALID_DATA,  # EACCES
        254: FailureCode.INVALID_DATA,  # ENOENT
    }
)
"""Exit codes of newer versions after which the same would fail again, and what it was."""

_SHORT: Final = re.compile(
    rb"out of memory|Cannot allocate memory|Resource temporarily unavailable|Too many open files"
    rb"|No free encoding sessions|incompatible client key",
    re.IGNORECASE,
)
"""The machine is short of something for now: encoder sessions, memory, descriptors."""
_NOT_BUILT_IN: Final = re.compile(
    rb"Unknown (?:encoder|decoder)|(?:En|De)coder not found|Decoder \([^)]*\) not found|no decoder found for"
    rb"|No such filter|Filter not found|(?:Mux|Demux)er not found|Protocol not found|Bitstream filter not found"
    rb"|Unknown (?:input|output) format|Requested output format"
    rb"|Unable to (?:choose an|find a suitable) output format"
    rb"|Cannot load lib\S+\.so|No capable devices found|Device creation failed|No device available"
)
_WRONG: Final = re.compile(
    rb"Invalid argument|Invalid data found|No such file or directory|Permission denied|Is a directory"
    rb"|Unrecognized option|Option not found|Option \S+ not found|Error parsing|Unable to parse"
    rb"|Undefined constant|Error setting (?:option|preset)|No option name near|matches no streams"
    rb"|moov atom not found|codec not currently supported in container|does not contain any stream"
    rb"|incorrect parameters"
)
_TELLS_NOTHING: Final = frozenset({1, 69, 187, 255})
"""Exit codes of older versions for anything; 69 where too much of the source was damaged, 187 of a foreign library."""

READ_THE_LOG: Final = "read its log with: hostler logs RUN NODE"

_TODO: Final[Mapping[FailureCode, str]] = MappingProxyType(
    {
        FailureCode.UNSUPPORTED_PLAN: "ask for something else, or install a build of ffmpeg that has it",
        FailureCode.INVALID_DATA: "correct the input of the node or the file; the same again would fail the same way",
    }
)

_PREFIX: Final = re.compile(r"^(?:\[[^]]*@ 0x[0-9a-f]+\]\s*)*\[(fatal|error|warning|panic)\]\s*")
_GENERIC: Final = re.compile(
    r"Conversion failed|Error opening (?:input|output) files?\b|Error parsing options"
    r"|Error selecting an encoder|Error sending frames|Task finished with error|Terminating thread"
    r"|Could not open encoder before EOF|Nothing was written into output|Failed to set value"
    r"|Error reinitializing filters|Failed to inject frame|Error while processing the decoded data"
    r"|Error initializing output stream"
)


def failure(program: str, code: int, stderr: bytes) -> OperationFailed:
    """Explain why a tool of the ffmpeg family failed.

    Args:
        program: Its name.
        code: Its exit code, 128 + signal where a signal ended it.
        stderr: The end of its standard error.

    """
    for full in ("No space left on device", "Disk quota exceeded"):
        if full.encode() in stderr:
            return OperationFailed(
                FailureCode.UNAVAILABLE, f"{program} failed: {full}", "free some space, then retry the node"
            )
    number = code - SIGNAL_BASE
    if number in ENDED or (code == TRAPPED and b"received signal" in stderr):
        by = f"by {signal.Signals(number).name}" if number in ENDED else "by a signal that it handled"
        return OperationFailed(
            FailureCode.SUBPROCESS,
            f"{program} was ended from outside {by}",
            "look whether the machine ran out of memory, then retry the node",
            retryable=True,
        )
    if number in CRASHED:
        return OperationFailed(
            FailureCode.SUBPROCESS, f"{program} crashed with {signal.Signals(number).name}", READ_THE_LOG
        )
    said = complaint(stderr)
    message = f"{program} ended with exit code {code}"
    kind = kind_of(code, stderr)
    return OperationFailed(kind, f"{message}: {said}" if said else message, _TODO.get(kind, READ_THE_LOG))


def kind_of(code: int, stderr: bytes) -> FailureCode:
    """Return what kind of failure an exit code and what was said of it are.

    Only `SUBPROCESS` may be tried again by a policy: the others would fail the same way.

    Args:
        code: Its exit code; no signal ended it.
        stderr: The end of its standard error.

    """
    errors = b"\n".join(line for line in stderr.splitlines() if b"[warning]" not in line and b"[info]" not in line)
    if _SHORT.search(errors):
        return FailureCode.SUBPROCESS
    if code in _TELLS_NOTHING:
        if _NOT_BUILT_IN.search(errors):
            return FailureCode.UNSUPPORTED_PLAN
        return FailureCode.INVALID_DATA if _WRONG.search(errors) else FailureCode.SUBPROCESS
    if code == NOT_THERE and _WRONG.search(errors) and not _NOT_BUILT_IN.search(errors):
        return FailureCode.INVALID_DATA  # an option or a stream that is not there
    return _BY_EXIT.get(code, FailureCode.SUBPROCESS)


def complaint(stderr: bytes) -> str:
    """Return what ffmpeg's standard error says is wrong, one line, without its closing formulas."""
    meaningful: list[str] = []
    other: list[str] = []
    for raw in stderr.decode("utf-8", "replace").splitlines():
        line = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in raw).strip()
        found = _PREFIX.match(line)
        if found is None:
            if line:
                other.append(line)
            continue
        text = re.sub(r"^(?:\[[^]]*\]\s*)*", "", line[found.end() :])
        if not text or found[1] == "warning" or text.endswith("around:"):  # ffmpeg echoes what it was given
            continue
        (other if _GENERIC.match(text) else meaningful).append(text)
    distinct = list(dict.fromkeys(meaningful))
    lines = list(dict.fromkeys((*distinct[:1], *distinct[-1:]))) or other[-1:]  # the cause comes first
    return "; ".join(line.rstrip(".") for line in lines)[-1000:]
