"""What reaches the disk: frozen, strict, bounded, and written today as it was yesterday."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from store.amounts import Budget, Usage
from store.contracts import (
    Event,
    EventKind,
    Failure,
    Grant,
    GrantAction,
    NodeRecord,
    Request,
    RequestKind,
    RunRecord,
    Summary,
)
from store.fields import Contract
from store.lifecycle import RunStatus, Status
from store.plans import (
    CommandExecutor,
    ComputeExecutor,
    GateExecutor,
    GraphPlan,
    NodePlan,
    OperationExecutor,
    PlannedNode,
    RunLimits,
)
from store.policy import Backoff, Effect, FailureCode, Policy, Resume, Retry
from store.receipts import Receipt
from store.records import decode, document, encode
from store.rules import Action
from store.terms import Envelope, Evidence, EvidenceType, Owner, Provider, Terms
from store.values import Domain, digest_bytes

RUN = "run_" + "0" * 26
SHA = "ab" * 32
AT = "2026-01-01T00:00:00.000Z"
JSON_FIELDS = {"input", "inputs", "outputs", "data", "descriptors"}
"""Where JSON values lie, which are bounded as a whole and read-only by convention."""

POLICY = Policy(effect=Effect.PAID_CLOUD, resume=Resume.VERIFIED_RECEIPT, claims={"cpu": 2}, publishes=("out",))
OPERATION = OperationExecutor(operation="media.probe", version=1)
COMMAND = CommandExecutor(cwd="work", outputs={"film": "out.mp4"})
FAILURE = Failure(code=FailureCode.SUBPROCESS, message="it broke", todo="mend it")
NODE = PlannedNode(key="a/b", label="Probe", executor=OPERATION, input={"n": 1.5}, dependencies=("x",), policy=POLICY)

PROVIDER = Provider(mode="read", capabilities=("search",))
ENVELOPE = Envelope(actions=("edit",), paths=("src",), commands=("lint",), providers={"web": PROVIDER})
TERMS = Terms(
    parent="plan",
    owner=Owner(role="lead", id="ada"),
    budget=Budget(tasks=2),
    authority=ENVELOPE,
    evidence=(Evidence(id="suite", type=EvidenceType.TEST),),
)

WRITTEN: dict[type[Contract], tuple[Contract, str]] = {
    type(model): (model, sha256)
    for model, sha256 in [
        (POLICY, "fc26f34c009f13cb664ce287df879729ab5cfcbb26d74db941ccf442170fafc9"),
        (Retry(attempts=3, delays=(1.0, 2.5)), "fdb92a9c6b9f314eb0f98a722a171eb4eee4987e50e3d79687f943a0d9825ef4"),
        (Backoff(first_s=2.0, jitter=0.5), "87ff2f2e210ceae4c50a31b66f69bb6ee7470aa4d739def925a7e5456d96053a"),
        (RunLimits(seconds=60.0, active=2), "86dc5df6912ad8689d026380d6c28d8be3e5868d7e4aff33400072ad9ac56fc3"),
        (OPERATION, "b2c83c56dc99ebae053ad3330625e9b98301b6c4131bf1eb48092b8ba2ce6b60"),
        (ComputeExecutor(compute="double"), "c00d30cbf61446c8bebd96c26787d83bcb17fb7e856e6d15ac495f2897b56ab8"),
        (COMMAND, "d85fbd4db467f01fc452d9cb87e6e838887d7a05aaf96c49c3d1e4ec64d87d78"),
        (GateExecutor(gate="merge"), "c29b3cc2f36cd4f6b8a1ee9914ae99ddad35da57b6a35df044ed736925bbb11d"),
        (TERMS, "ea198dffabeebb151ad4a3618237eb0c36b0ecd1b5f54b1bbcee20e81cb8aaff"),
        (Owner(role="lead", id="ada"), "328182532f96d691352a64d191da532578d77c4b995a70ff38ea09f317363eb0"),
        (Budget(tokens=1000, cost=Decimal("0.30"), seconds=Decimal("1.5"), tasks=3, retries=0), "328a156fba4cb355aacd641fbc4c5c71f510e9e36b65109d48bc231ebed28db7"),
        (Usage(tokens=12, cost=Decimal("0.012")), "836efa8effe2bdb42b949316a34b05d1cc8d51ba53db2bbcb879428f0caf6191"),
        (Evidence(id="suite", type=EvidenceType.TEST), "35f371f919708f4ac38c26d55f9ffd00f777e3a150a02fc6c0dd2d125ce1899f"),
        (ENVELOPE, "74c71e8fce0132583a30fec2e4ad6368497c520e9f8f33c530d5979b9e533bae"),
        (PROVIDER, "6438b841d7a05d527ae9f6d4ff740b8153379ce5b7587a0768ef859765907e2f"),
        (NODE, "a7d76e4633a7573231bb2f1692667e794fd28100ef94eede7d6ec2627bd3c60a"),
        (GraphPlan(workflow="w", version=1, inputs={"é": [None]}, nodes=(NODE,), outputs={}, bundle_sha256=SHA), "b33ef1b096b1a7f9da46d7f672fcf9bbb984c2a0d20e024a4a3d723a810214a6"),
        (
            NodePlan(
                run_id=RUN, node="a", executor=COMMAND, input=1, input_sha256=SHA, dependencies={"x": SHA, "b": SHA},
                policy=POLICY, keys=("file:/films/out",),
            ),
            "70c7623c40a2961d5abcc144a245be6c5eff843f6361158819d1b96b49249321",
        ),
        (FAILURE, "b18217cff04f262d4ffb6a8e0b38d1dd0e690423aec8fd22e5fadb71f123bf23"),
        (NodeRecord(key="a", status=Status.FAILED, attempt=2, plan_sha256=SHA, started_at=AT, failure=FAILURE), "2f827137316967c6fe688c70edd0850bcd988c886dd1c8ed442ee1aa6d4fa2ac"),
        (
            RunRecord(
                run_id=RUN, workflow="w", workflow_version=1, plan_sha256=SHA, folder="/films", source="w.py:f",
                created_at=AT, principal="human:ada",
            ),
            "ad87f71617534f6b8514edfddac423eb74d1b2a2297823ee8c2584bf68861efc",
        ),
        (
            Event(
                run_id=RUN, seq=1, at=AT, boot_ns=1, kind=EventKind.RUN_CREATED, data={"n": 1}, prev_sha256=SHA,
                sha256=SHA,
            ),
            "a7e6c09de4bb66eac6af3d250d64f7d0ea2751ac0c6246b2427342973f4977eb",
        ),
        (
            Grant(
                grant_id="g", run_id=RUN, node="a", action=GrantAction.REPLAY, plan_sha256=SHA, attempt=2,
                bundle_sha256=SHA, compute="double", allowed=True, principal="human:ada", rule="r", at=AT,
            ),
            "abdc6501469aca96dc93203bc74d9362fd2b4f9ff80a9cf2584cb50da2e37a38",
        ),
        (
            Receipt(
                receipt_id="night", run_id=RUN, node="a", action=Action.APPROVE, plan_sha256=SHA, approver="human:ada",
                subject="agent:b", rule="r", lasts_ms=1000, created_at=AT, expires_at=AT, request_id="r",
            ),
            "101a82c6566f5badba7f24f8837176621e9346258c4287ea3818a182e411241e",
        ),
        (Request(request_id="r", run_id=RUN, kind=RequestKind.SETTLE, node="a", principal="human:ada", at=AT), "08471cb48a5ea3e941bf6c3dc86de0917059e15f53a24e8978b42efaa2f21c3f"),
        (Summary(status=RunStatus.PARTIAL, counts={"failed": 1, "completed": 1}, outputs=[1]), "ea220de106d6062f7b9d2d49d3d2775d6ed9bb431d20c80d372b0915db338876"),
    ]
}  # fmt: skip
"""One of each, and the digest of its stored bytes."""

EVERY = pytest.mark.parametrize("model", WRITTEN, ids=lambda model: model.__name__)


def contracts(base: type[Contract] = Contract) -> Iterator[type[Contract]]:
    for model in base.__subclasses__():
        if model.__module__.startswith("store."):
            yield model
            yield from contracts(model)


def parts(schema: Any, where: str = "$") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Walk a JSON schema, with the path to each part."""
    if isinstance(schema, dict):
        yield where, schema
        for key, part in schema.items():
            yield from parts(part, f"{where}.{key}")
    elif isinstance(schema, list):
        for index, part in enumerate(schema):
            yield from parts(part, f"{where}[{index}]")


def values(value: Any) -> Iterator[Any]:
    """Walk a model, but not into the JSON that it carries."""
    yield value
    if isinstance(value, Contract):
        for name in type(value).model_fields:
            if name not in JSON_FIELDS:
                yield from values(getattr(value, name))
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from values(item)
    elif isinstance(value, tuple):
        for item in value:
            yield from values(item)


def test_no_contract_is_missing_below() -> None:
    assert set(contracts()) <= set(WRITTEN)


@EVERY
def test_every_contract_is_frozen_strict_and_takes_no_unknown_field(model: type[Contract]) -> None:
    assert (model.model_config.get("frozen"), model.model_config.get("extra"), model.model_config.get("strict")) == (
        True, "forbid", True,
    )  # fmt: skip
    one, _ = WRITTEN[model]
    name = next(iter(model.model_fields))
    with pytest.raises(ValidationError, match="frozen"):
        setattr(one, name, getattr(one, name))
    with pytest.raises(ValidationError, match="another"):
        model.model_validate({**document(one), "another": 1})


@EVERY
def test_nothing_inside_a_contract_can_be_changed_in_place(model: type[Contract]) -> None:
    one, _ = WRITTEN[model]
    assert not [value for value in values(one) if isinstance(value, list | dict | set)]
    assert not [each for each in model.model_fields.values() if list in (each.annotation, *get_args(each.annotation))]


@EVERY
def test_every_number_and_text_that_reaches_the_disk_has_bounds(model: type[Contract]) -> None:
    for where, part in parts(model.model_json_schema()):
        if "enum" in part or "const" in part:
            continue
        match part.get("type"):
            case "string":
                pattern = part.get("pattern", "*")
                assert "maxLength" in part or not set("*+") & set(pattern), where
            case "integer" | "number":
                assert {"minimum", "exclusiveMinimum"} & part.keys(), where
                assert {"maximum", "exclusiveMaximum"} & part.keys(), where


@EVERY
def test_what_was_written_yesterday_is_written_so_today_and_can_be_read(model: type[Contract]) -> None:
    """A digest that differs here means that stored plans no longer match theirs: such a change needs a new format."""
    one, sha256 = WRITTEN[model]
    data = encode(one)
    assert digest_bytes(Domain.RECORD, data) == sha256
    assert decode(model, data, "it") == one
    assert encode(decode(model, data, "it")) == data
    assert set(document(one)) == set(model.model_fields)


@EVERY
def test_a_value_of_another_type_is_never_made_to_fit(model: type[Contract]) -> None:
    one, _ = WRITTEN[model]
    fields = document(one)
    for name in fields.keys() - JSON_FIELDS - {"format"}:
        for odd in (object(), b"x", 1.5, ["x"], {"x": "y"}, "\n", "x" * 9000, -1, 10**30, True):
            if odd == fields[name] and type(odd) is type(fields[name]):
                continue
            try:
                taken = model.model_validate({**fields, name: odd})
            except (ValidationError, TypeError):
                continue
            kept = getattr(taken, name)
            assert (
                type(kept) is type(odd)
                or isinstance(odd, list | dict)
                or (odd == 1.5 and isinstance(kept, float))
                or (odd == kept and isinstance(kept, Decimal))  # an amount is the number that was written
            )
