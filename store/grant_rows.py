"""The rows of grants: made once, each for the plan and the revision that its node has."""

import sqlite3
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from hostres.errors import Code, HostlerError
from store.contracts import Grant, GrantAction
from store.heads import Head
from store.held import Held
from store.records import encode
from store.shapes import names_its_revision
from store.values import Domain, digest_bytes

_BOUND_TO: Final[Mapping[GrantAction, str]] = MappingProxyType({
    GrantAction.PREPARATION: "preparation_sha256",
    GrantAction.EFFECT: "plan_sha256",
    GrantAction.GATE: "plan_sha256",
    GrantAction.REPLAY: "plan_sha256",
    GrantAction.EVIDENCE: "plan_sha256",
})  # fmt: skip
"""Which plan of its node a grant must name."""


def put_grants(connection: sqlite3.Connection, head: Head, grants: tuple[Grant, ...]) -> None:
    """Store grants inside a write transaction; one that is stored already stays.

    Args:
        connection: The connection.
        head: The run.
        grants: Of its owner.

    Raises:
        HostlerError: conflict, for a grant of another run, or one whose id another one has.

    """
    for grant in grants:
        if grant.run_id != head.run_id:
            what = f"grant {grant.grant_id} is for run {grant.run_id}"
            raise HostlerError(Code.CONFLICT, what, f"it does not count in run {head.run_id}")
        data = encode(grant)
        stored = connection.execute("SELECT record FROM grants WHERE grant_id = ?", (grant.grant_id,)).fetchone()
        if stored is None:
            connection.execute(
                "INSERT INTO grants (grant_id, run, record, sha256) VALUES (?, ?, ?, ?)",
                (grant.grant_id, head.run, data, digest_bytes(Domain.RECORD, data)),
            )
        elif stored[0] != data:
            what = f"there is another grant {grant.grant_id} already"
            raise HostlerError(Code.CONFLICT, what, "give each grant its own id")


def check_grants(run: Held, grants: tuple[Grant, ...]) -> None:
    """Refuse a grant for another plan than the one that its node has, before it can ever count.

    Args:
        run: The run, with what the transaction made of its nodes.
        grants: Of its owner.

    Raises:
        HostlerError: conflict; not-found, for a node that the run does not have.

    """
    for grant in grants:
        position = run.position(grant.node)
        if not names_its_revision(grant, run.node(position)):
            what = f"grant {grant.grant_id} is of another revision than node {grant.node} has"
            raise HostlerError(Code.CONFLICT, what, f"see `hostler show {run.head.run_id}` for what waits")
        field = _BOUND_TO.get(grant.action)
        if field is None:
            continue
        plan_sha256 = getattr(run.node(position), field)
        if grant.plan_sha256 is None or grant.plan_sha256 != plan_sha256:
            what = f"grant {grant.grant_id} is for plan {grant.plan_sha256}; node {grant.node} has {plan_sha256}"
            raise HostlerError(Code.CONFLICT, what, f"see `hostler show {run.head.run_id}` for what waits")
