"""Who is asking: the person at the keyboard, or an agent that Hostler itself started.

A program that runs inside a node carries HOSTLER_NODE; so do all that it starts. Whoever finds that name in its
own environment or in that of any ancestor is that node's agent, also if it took the name out of its own.
"""

import os
import pwd
import re
from collections.abc import Iterable, Mapping
from typing import Final

from hostres.errors import Code, HostlerError
from hostres.procfs import environment_of, read_process

NODE: Final = "HOSTLER_NODE"
PRINCIPAL: Final = "HOSTLER_PRINCIPAL"
_ID: Final = re.compile(r"[^\s\x00-\x1f\x7f\ud800-\udfff]{1,255}")
_ODD: Final = re.compile(r"[\s\x00-\x1f\x7f\ud800-\udfff]")
_KINDS: Final = ("human:", "agent:", "service:")


def principal(environ: Mapping[str, str] | None = None, ancestors: Iterable[Mapping[str, str]] | None = None) -> str:
    """Return the principal of this process, `kind:id`.

    Args:
        environ: Its environment; None takes the real one.
        ancestors: The environments of its ancestors; None looks them up, leaving out those it may not read.

    Raises:
        HostlerError: invalid-data, if HOSTLER_PRINCIPAL holds no usable id.

    """
    own = os.environ if environ is None else environ
    for environment in (own, *(_ancestors() if ancestors is None else ancestors)):
        if NODE in environment:
            return f"agent:{_ODD.sub('?', environment[NODE])[:255] or 'unnamed'}"
    if PRINCIPAL in own:
        return f"agent:{_agent_id(own[PRINCIPAL])}"
    return f"human:{_user()}"


def is_human(name: str) -> bool:
    """Say whether a principal is a person."""
    return name.startswith("human:")


def _agent_id(text: str) -> str:
    # Whoever names itself is an agent, whatever kind it claims to be.
    for kind in _KINDS:
        text = text.removeprefix(kind)
    if not _ID.fullmatch(text):
        raise HostlerError(
            Code.INVALID_DATA,
            f"{PRINCIPAL} is {text!r}, which is no id of an agent",
            "set it to a name of 1 to 255 characters in UTF-8 without spaces, or unset it",
        )
    return text


def _ancestors() -> Iterable[Mapping[str, str]]:
    child = read_process(os.getpid())
    while child is not None:
        parent = read_process(child.parent)
        if parent is None or parent.start_time > child.start_time:  # the number is another's by now
            return
        yield {os.fsdecode(name): os.fsdecode(value) for name, value in environment_of(parent.pid).items()}
        child = parent


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
