"""New runs: whole and right, or not there."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from hostres.errors import Code, HostlerError
from store.contracts import RunRecord
from store.lifecycle import RunStatus, Status
from store.limits import Limits
from store.plans import GraphPlan, PlannedNode
from store.policy import Policy
from store.reader import Reader
from store.values import Domain, digest_bytes
from tests.store.support import COMPUTE, DIAMOND, OPERATION, Setting, assert_refused, plan_of, record_of

BUNDLE = b"PK\x03\x04 not really a zip"
BUNDLE_SHA256 = digest_bytes(Domain.BUNDLE, BUNDLE)


def refusal(setting: Setting, record: RunRecord, plan: GraphPlan, bundle: bytes | None = None) -> HostlerError:
    with pytest.raises(HostlerError) as caught:
        setting.store.create(record, plan, bundle=bundle)
    with Reader.open(setting.home) as reader:
        assert record.run_id not in [row.run_id for row in reader.runs()]
    return caught.value


def test_a_new_run_is_planned_its_roots_ready_its_other_nodes_pending(setting: Setting) -> None:
    run = setting.created(DIAMOND)
    with Reader.open(setting.home) as reader:
        assert [(node.key, node.status) for node in reader.nodes(run)] == [
            ("a", Status.READY),
            ("b", Status.PENDING),
            ("c", Status.PENDING),
            ("d", Status.PENDING),
        ]
        view = reader.run(run)
        assert (view.status, view.owner, view.summary, view.cancel_waits) == (RunStatus.PLANNED, None, None, False)
        assert reader.plan(view.record.plan_sha256) == DIAMOND
        (event,) = reader.events(run)
        assert (event.seq, event.kind, event.principal) == (1, "run-created", "human:ada")


def test_creating_a_run_again_is_a_conflict_and_changes_nothing(setting: Setting) -> None:
    record = record_of(DIAMOND)
    setting.store.create(record, DIAMOND, bundle=None)
    commits = setting.store.commits
    with pytest.raises(HostlerError) as caught:
        setting.store.create(record, DIAMOND, bundle=None)
    assert_refused(caught.value, Code.CONFLICT, record.run_id)
    assert setting.store.commits == commits


def test_runs_share_plans_and_bundles(setting: Setting) -> None:
    plan = plan_of({"a": []}, executors={"a": COMPUTE}, bundle_sha256=BUNDLE_SHA256)
    for _ in range(3):
        setting.store.create(record_of(plan, bundle=BUNDLE), plan, bundle=BUNDLE)
    for table in ("graph_plans", "bundles"):
        assert setting.store._connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (1,)
    with Reader.open(setting.home) as reader:
        assert reader.bundle(BUNDLE_SHA256) == BUNDLE


def of(node: str) -> JsonValue:
    return {"$ref": {"node": node, "path": []}}


def two(first: dict[str, Any], second: dict[str, Any]) -> GraphPlan:
    made = [
        PlannedNode(**{"executor": OPERATION, "input": None, "policy": Policy(), **fields})
        for fields in (first, second)
    ]
    return GraphPlan(workflow="test", version=1, inputs={}, nodes=tuple(made))


@pytest.mark.parametrize(
    ("plan", "changes", "bundle", "why"),
    [
        (DIAMOND, {"plan_sha256": "0" * 64}, None, "does not have the digest"),
        (DIAMOND, {"workflow": "other"}, None, "its plan is of test 1"),
        (DIAMOND, {"workflow_version": 2}, None, "its plan is of test 1"),
        (DIAMOND, {"bundle_sha256": BUNDLE_SHA256}, None, "code bundle that is not given"),
        (DIAMOND, {}, BUNDLE, "code bundle that is not given"),
        (DIAMOND, {"bundle_sha256": "1" * 64}, BUNDLE, "its code does not have the digest"),
        (plan_of({"a": []}, bundle_sha256="2" * 64), {"bundle_sha256": BUNDLE_SHA256}, BUNDLE, "of other code"),
        (plan_of({"a": []}, bundle_sha256="2" * 64), {}, None, "of other code"),
        (two({"key": "a"}, {"key": "a"}), {}, None, "two nodes a"),
        (two({"key": "a", "dependencies": ("b",)}, {"key": "b"}), {}, None, "node a does not come after b"),
        (two({"key": "a", "dependencies": ("zz",)}, {"key": "b"}), {}, None, "node a does not come after zz"),
        (two({"key": "a"}, {"key": "b", "input": of("a")}), {}, None, "node b refers to a, on which it does not"),
        (two({"key": "a"}, {"key": "b", "input": [of("zz")]}), {}, None, "node b refers to zz, on which it does not"),
    ],
)
def test_a_run_that_does_not_hold_together_is_refused_and_not_listed(
    setting: Setting, plan: GraphPlan, changes: dict[str, Any], bundle: bytes | None, why: str
) -> None:
    """V2."""
    error = refusal(setting, record_of(plan, **changes), plan, bundle)
    assert_refused(error, Code.INVALID_DATA, why)


def test_plans_and_bundles_beyond_their_limits_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    setting = Setting(tmp_path / "home", limits=Limits(value_bytes=2000, bundle_bytes=10))
    wide = plan_of({"a": []}, inputs={"text": "x" * 3000})
    assert_refused(refusal(setting, record_of(wide), wide), Code.INVALID_DATA, "2000 are allowed")
    small = plan_of({"a": []})
    too_much = refusal(setting, record_of(small, bundle=BUNDLE), small, BUNDLE)
    assert_refused(too_much, Code.INVALID_DATA, f"{len(BUNDLE)} bytes, 10 are allowed")
    assert list(setting.home.content.iterdir()) == []
    setting.close()


def test_a_large_plan_and_bundle_lie_in_files_by_digest(setting: Setting) -> None:
    bundle = b"x" * 300_000
    plan = plan_of(
        {"a": []},
        executors={"a": COMPUTE},
        bundle_sha256=digest_bytes(Domain.BUNDLE, bundle),
        inputs={"text": "y" * 300_000},
    )
    claimed = setting.claimed(plan, bundle=bundle)
    assert claimed.plan == plan
    names = {claimed.record.plan_sha256, claimed.record.bundle_sha256}
    assert {path.name for path in setting.home.content.iterdir()} == names
    with Reader.open(setting.home) as reader:
        assert reader.bundle(claimed.record.bundle_sha256 or "") == bundle


def test_a_run_asked_for_again_under_its_key_is_the_same_and_nothing_is_stored(setting: Setting) -> None:
    first = record_of(DIAMOND).model_copy(update={"submission": "film 7"})
    again = record_of(DIAMOND).model_copy(update={"submission": "film 7"})
    assert setting.store.create(first, DIAMOND, bundle=None) == first.run_id
    assert setting.store.create(again, DIAMOND, bundle=None) == first.run_id
    with Reader.open(setting.home) as reader:
        assert [row.run_id for row in reader.runs()] == [first.run_id]


def test_something_else_under_a_key_that_was_used_is_refused_and_nothing_is_stored(setting: Setting) -> None:
    first = record_of(DIAMOND).model_copy(update={"submission": "k"})
    setting.store.create(first, DIAMOND, bundle=None)
    other = record_of(DIAMOND).model_copy(update={"submission": "k", "folder": "/elsewhere"})
    with pytest.raises(HostlerError) as caught:
        setting.store.create(other, DIAMOND, bundle=None)
    assert_refused(caught.value, Code.CONFLICT, first.run_id, "another folder")
    with Reader.open(setting.home) as reader:
        assert [row.run_id for row in reader.runs()] == [first.run_id]
