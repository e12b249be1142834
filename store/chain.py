"""A run's log as a hash chain: each event names the digest of the one before it. Pure.

The digest covers the canonical bytes of every field that the event has, but itself.
"""

from typing import Any, Final

import orjson

from store.clock import Stamp
from store.contracts import Event
from store.faults import damaged
from store.transactions import NewEvent
from store.values import Domain, canonical, digest_bytes, is_plain, sorted_json

GENESIS: Final = "0" * 64
"""What the first event names as the one before it."""

_LARGEST: Final = (1 << 63) - 1


def seal(event: NewEvent, *, run_id: str, seq: int, stamp: Stamp, prev_sha256: str) -> tuple[bytes, str]:
    """Give *event* its place in a run's log.

    Args:
        event: What happened.
        run_id: The run.
        seq: Its number in the log, from 1.
        stamp: When.
        prev_sha256: Digest of the event before, `GENESIS` for the first.

    Returns:
        The canonical bytes of all fields but the digest, and the digest.

    Raises:
        HostlerError: invalid-data, naming the path of what is not a JSON value in its data.

    """
    inner = dict(event.data)
    fields: dict[str, Any] = {
        "at": stamp.at,
        "boot_ns": stamp.boot_ns,
        "data": inner,
        "kind": event.kind._value_,  # past the descriptor of `value`, which is Python
        "prev_sha256": prev_sha256,
        "run_id": run_id,
        "seq": seq,
    }
    if event.node is not None:
        fields["node"] = event.node
    if event.attempt is not None:
        fields["attempt"] = event.attempt
    if event.principal is not None:
        fields["principal"] = event.principal
    # only what `data` holds can be anything; around it are short texts, small integers and names of our own
    if is_plain(inner, largest=_LARGEST, inside=1) and (event.principal is None or event.principal.isascii()):
        data = sorted_json(fields)
    else:
        data = canonical(fields, largest=_LARGEST)
    return data, digest_bytes(Domain.EVENT, data)


def unseal(data: bytes, sha256: str, *, run_id: str, seq: int, prev_sha256: str | None) -> Event:
    """Return a stored event, having checked its digest and its place.

    Args:
        data: The stored bytes.
        sha256: The stored digest.
        run_id: The run it must belong to.
        seq: The number it must have.
        prev_sha256: The digest that the event before it has; None leaves that unchecked.

    Raises:
        HostlerError: invalid-data, naming the event.

    """
    what = f"event {seq} of run {run_id}"
    if digest_bytes(Domain.EVENT, data) != sha256:
        raise damaged(what)
    event = parse_event(data, sha256, what)
    if (event.run_id, event.seq) != (run_id, seq):
        raise damaged(what, f"it is event {event.seq} of run {event.run_id}")
    if prev_sha256 is not None and event.prev_sha256 != prev_sha256:
        raise damaged(what, "it does not follow the event before it")
    return event


def parse_event(data: bytes, sha256: str, what: str) -> Event:
    """Return the event of those bytes, its digest unchecked.

    Raises:
        HostlerError: invalid-data, naming *what*.

    """
    try:
        return Event.model_validate({**orjson.loads(data), "sha256": sha256})
    except (ValueError, TypeError) as error:
        raise damaged(what, str(error).partition("\n")[0]) from None


def event_document(event: Event) -> dict[str, Any]:
    """Return what `events --json` prints: every field that the event has, and its digest."""
    document = event.model_dump(mode="json")
    return {key: value for key, value in document.items() if value is not None}


def check_digest(event: Event) -> None:
    """Prove that *event* is what was sealed.

    Raises:
        HostlerError: invalid-data, naming the event.

    """
    fields = event_document(event)
    del fields["sha256"]
    if digest_bytes(Domain.EVENT, canonical(fields, largest=_LARGEST)) != event.sha256:
        raise damaged(f"event {event.seq} of run {event.run_id}")
