"""Work that workers outside have taken: each lease is one that the log tells of, and none of those is missing."""

from store.verification.examination import Examination
from store.verification.findings import Fault
from store.verification.retelling import Retelling


def examine_leases(examination: Examination, told: Retelling) -> None:
    """Compare the leases with what the log says.

    Until when they last is the workers' own word, of which the log does not tell.

    Args:
        examination: Where to note what is wrong.
        told: What the log says.

    """
    expected = {key: (node.attempt, node.worker) for key, node in told.nodes.items() if node.worker is not None}
    query = "SELECT node, attempt, worker FROM leases WHERE run = ? ORDER BY node"
    for node, attempt, worker in examination.rows(query):
        told_of = expected.pop(node, None)
        if told_of is None:
            what = f"{worker} has attempt {attempt} of it, and the log does not say so"
            examination.wrong(Fault.LEASE, "leases", what, node=node)
        elif told_of != (attempt, worker):
            what = f"{worker} has attempt {attempt} of it; the log says attempt {told_of[0]}, {told_of[1]}"
            examination.wrong(Fault.LEASE, "leases", what, node=node)
    for node, (attempt, worker) in expected.items():
        what = f"the lease of attempt {attempt}, which the log says {worker} has, is missing"
        examination.wrong(Fault.LEASE, "leases", what, node=node)
