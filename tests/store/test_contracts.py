"""What reaches the disk: frozen, strict, bounded, and written today as it was yesterday."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from store.agent_results import AgentResult, AgentStatus
from store.amounts import Amounts, Ask, Budget, Demand, Usage
from store.contracts import (
    Event,
    EventKind,
    Failure,
    Grant,
    GrantAction,
    NodeRecord,
    Request,
    RequestKind,
    Revision,
    RunRecord,
    Summary,
)
from store.fields import Contract
from store.ledgers import Change, Entry, Kept, Ledger
from store.lifecycle import RunStatus, Status
from store.plans import (
    AgentExecutor,
    CommandExecutor,
    ComputeExecutor,
    GateExecutor,
    GraphPlan,
    NodePlan,
    OperationExecutor,
    PlannedNode,
    RunLimits,
)
from store.policy import Backoff, Effect, FailureCode, Heartbeat, Policy, Resume, Retry
from store.receipts import Receipt
from store.records import decode, document, encode
from store.rules import Action
from store.terms import Envelope, Evidence, EvidenceType, Owner, Provider, Terms
from store.values import Domain, digest_bytes
from store.workspace import GitWorkspace, WorkspaceRecord

RUN = "run_" + "0" * 26
SHA = "ab" * 32
AT = "2026-01-01T00:00:00.000Z"
JSON_FIELDS = {"input", "inputs", "output", "outputs", "data", "descriptors"}
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
AMOUNTS = Amounts(tokens=5, cost=Decimal("0.10"), seconds=Decimal("1.5"), tasks=1, retries=2)
KEPT = Kept(attempt=1, amount=AMOUNTS)

WRITTEN: dict[type[Contract], tuple[Contract, str]] = {
    type(model): (model, sha256)
    for model, sha256 in [
        (POLICY, "1f55ddf59cec4f5305821764f29623971cea0f003dc9cc421364635679b30a34"),
        (Retry(attempts=3, delays=(1.0, 2.5)), "fdb92a9c6b9f314eb0f98a722a171eb4eee4987e50e3d79687f943a0d9825ef4"),
        (Heartbeat(seconds=1.5, grace_seconds=60.0), "bed09add735b0c0228180d38faf4bc61f32c68746c9221c45c1e3d7861364798"),
        (Backoff(first_s=2.0, jitter=0.5), "87ff2f2e210ceae4c50a31b66f69bb6ee7470aa4d739def925a7e5456d96053a"),
        (RunLimits(seconds=60.0, active=2), "debd4bdc0dfcb575b63026e96f69d1a4001a7c20826ed72cc528bffbec49cee8"),
        (OPERATION, "b2c83c56dc99ebae053ad3330625e9b98301b6c4131bf1eb48092b8ba2ce6b60"),
        (ComputeExecutor(compute="double"), "c00d30cbf61446c8bebd96c26787d83bcb17fb7e856e6d15ac495f2897b56ab8"),
        (COMMAND, "d85fbd4db467f01fc452d9cb87e6e838887d7a05aaf96c49c3d1e4ec64d87d78"),
        (AgentExecutor(cwd="work"), "319fd00a9b5c7db24a73a3da1eabdb6612f29c1976102037d27318295412aebf"),
        (AgentResult(status=AgentStatus.SUCCESS, summary="done", usage=Usage(tokens=1), output=1), "9741b11ac852af37ce09bc730064b816b1d5673f95c4b9593b018f0e49a65fb9"),
        (GateExecutor(gate="merge"), "c29b3cc2f36cd4f6b8a1ee9914ae99ddad35da57b6a35df044ed736925bbb11d"),
        (TERMS, "ea198dffabeebb151ad4a3618237eb0c36b0ecd1b5f54b1bbcee20e81cb8aaff"),
        (Owner(role="lead", id="ada"), "328182532f96d691352a64d191da532578d77c4b995a70ff38ea09f317363eb0"),
        (Budget(tokens=1000, cost=Decimal("0.30"), seconds=Decimal("1.5"), tasks=3, retries=0), "328a156fba4cb355aacd641fbc4c5c71f510e9e36b65109d48bc231ebed28db7"),
        (Usage(tokens=12, cost=Decimal("0.012")), "836efa8effe2bdb42b949316a34b05d1cc8d51ba53db2bbcb879428f0caf6191"),
        (AMOUNTS, "b1ee60cb8ac2161c06d329457172c25a51ffd6dc2453a4df4f22a908570cebcc"),
        (Ask(tokens=5, cost=Decimal("0.1"), seconds=Decimal(2)), "d9a751b46cd6cf55347789f26216072b7f83b9ddbe8ba3932da04a55fb4e123e"),
        (Demand(ask=Ask(tokens=5), minimum=Ask(tokens=1)), "cfbc6eb3ccb0829d65db7c5cc2dd5d05a4f2a94179916f4f5653b857e535260c"),
        (Entry(node="a", attempt=1, change=Change.SETTLE, amount=AMOUNTS, assumed=True), "da72eaca95d086cc758ad5af6ac910bd12173e3634358ae9f5787511db1270e1"),
        (KEPT, "944444a16d41c4ca92ac1287464dd40b5183ed2964a8270ca5abfc21566845dd"),
        (Ledger(node="a", reserved=KEPT, assumed=(KEPT,), spent=AMOUNTS, added=AMOUNTS), "7ca2bf3a1bd4fae2087f5d6a9176ede78237093836c88955afd5041a0be584d5"),
        (Evidence(id="suite", type=EvidenceType.TEST), "35f371f919708f4ac38c26d55f9ffd00f777e3a150a02fc6c0dd2d125ce1899f"),
        (ENVELOPE, "74c71e8fce0132583a30fec2e4ad6368497c520e9f8f33c530d5979b9e533bae"),
        (PROVIDER, "6438b841d7a05d527ae9f6d4ff740b8153379ce5b7587a0768ef859765907e2f"),
        (GitWorkspace(repository="code", base="main"), "4a627a035d8f84343ed49ddce490fa5490c63a67ac54ffa171ba774cc5b46ac7"),
        (
            WorkspaceRecord(
                attempt=1, base_commit="c" * 40, claim="f00d", claimed_at=AT, git_dir="/code/.git/worktrees/t",
                host_id="host", identity="1:2", node="a", path="/t", plan_sha256=SHA, ready=True,
            ),
            "3e82e78aa83661f61f7df331e38ff97618e97b864e69e6c593947396c3b95619",
        ),
        (NODE, "52069b64b3c37d12d97717721092982c7e0bef6705b220fb9943d6a570bb557c"),
        (GraphPlan(workflow="w", version=1, inputs={"é": [None]}, nodes=(NODE,), outputs={}, bundle_sha256=SHA), "32659b8099c15749aede1e7173265eff2cc368f7cd75b2a3176b038f5231312f"),
        (
            NodePlan(
                run_id=RUN, node="a", executor=COMMAND, input=1, input_sha256=SHA, dependencies={"x": SHA, "b": SHA},
                policy=POLICY, keys=("file:/films/out",),
            ),
            "a841f835584ce02b12cebb018e85af7441c229f02bbb8eedb073cbd30c1e75cb",
        ),
        (FAILURE, "b18217cff04f262d4ffb6a8e0b38d1dd0e690423aec8fd22e5fadb71f123bf23"),
        (NodeRecord(key="a", status=Status.FAILED, attempt=2, plan_sha256=SHA, started_at=AT, failure=FAILURE), "77000fc4d537c3d09cb3ae417596ce3b1db7708a2450136fefe3f46d8cf7d83d"),
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
            "e27f233e765ba5eeebbcf407f642842169012b379661fa99535cb1284d7688d0",
        ),
        (
            Receipt(
                receipt_id="night", run_id=RUN, node="a", action=Action.APPROVE, plan_sha256=SHA, approver="human:ada",
                subject="agent:b", rule="r", lasts_ms=1000, created_at=AT, expires_at=AT, request_id="r",
            ),
            "101a82c6566f5badba7f24f8837176621e9346258c4287ea3818a182e411241e",
        ),
        (Revision(number=2, input={"n": 1.5}), "23315826884d72c215aa91e70282ccd1897b89fccf6963c2fa43059cf77ed749"),
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


def test_a_changed_copy_is_what_pydantic_makes_of_it() -> None:
    record = NodeRecord(key="a", attempt=1)
    changed = record.but({"attempt": 2, "cancelling": True})
    wanted = record.model_copy(update={"attempt": 2, "cancelling": True})
    assert changed == wanted
    assert (changed.model_fields_set, changed.model_dump_json()) == (wanted.model_fields_set, wanted.model_dump_json())
    assert record == NodeRecord(key="a", attempt=1)
    with pytest.raises(ValidationError):
        changed.attempt = 3  # type: ignore[misc]
