"""The rows of a run's nodes: records and outputs, each by its digest and against the graph plan."""

from collections import OrderedDict
from typing import Final

import orjson
from pydantic import JsonValue

from store.contracts import NodeRecord
from store.plans import GraphPlan
from store.row_ids import of_run, row_id
from store.values import Domain
from store.verification.examination import Examination
from store.verification.findings import Fault

_KEPT_BYTES: Final = 32 << 20


def examine_records(examination: Examination, plan: GraphPlan | None) -> dict[str, NodeRecord]:
    """Examine the node records.

    Returns:
        Those that can be read, by key.

    """
    records: dict[str, NodeRecord] = {}
    keys: list[str] = []
    query = of_run("position, key, status, record, sha256", "nodes")
    for position, key, status, data, sha256 in examination.rows(query):
        keys.append(key)
        if position != len(keys) - 1:
            examination.wrong(Fault.MISSING, "nodes", f"the record at position {len(keys) - 1} is missing")
        record = examination.record(NodeRecord, data, sha256, table="nodes", what="its record", node=key)
        if record is None:
            continue
        records[record.key] = record
        if (record.key, record.status.value) != (key, status):
            what = f"its columns say {key} {status}, its record {record.key} {record.status}"
            examination.wrong(Fault.COLUMN, "nodes", what, node=record.key)
    if plan is not None and keys != [node.key for node in plan.nodes]:
        examination.wrong(Fault.PLAN, "nodes", "the nodes are not those of the graph plan")
    return records


class Outputs:
    """The outputs of a run, examined once and read again where a plan refers to them."""

    def __init__(self, examination: Examination, records: dict[str, NodeRecord], plan: GraphPlan) -> None:
        self._examination = examination
        self._records = records
        self._positions = {node.key: position for position, node in enumerate(plan.nodes)}
        self._keys = [node.key for node in plan.nodes]
        self._sound: set[str] = set()
        self._kept: OrderedDict[str, tuple[JsonValue, int]] = OrderedDict()
        self._kept_bytes = 0

    def examine(self) -> None:
        """Examine them all."""
        query = of_run("position, sha256, size, content", "outputs")
        for position, *row in self._examination.rows(query):
            if not 0 <= position < len(self._keys):
                self._examination.wrong(Fault.PLAN, "outputs", f"there is no node at position {position}")
                continue
            key = self._keys[position]
            record = self._records.get(key)
            given = None if record is None else record.output_sha256
            if given not in (None, row[0]):
                what = f"its output has the digest {row[0]}, its record says {given}"
                self._examination.wrong(Fault.COLUMN, "outputs", what, node=key)
            value = self._value(key, (row[0], row[1], row[2]))
            if value is not None:
                self._sound.add(key)
                self._keep(key, value[0], row[1])
        for key, record in self._records.items():
            if record.output_sha256 is not None and key not in self._sound and not self._has(key):
                self._examination.wrong(Fault.MISSING, "outputs", "its output is missing", node=key)

    def of(self, key: str) -> JsonValue:
        """Return a sound output."""
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key][0]
        query = "SELECT sha256, size, content FROM outputs WHERE id = ?"
        row = next(self._examination.rows(query, row_id(self._examination.run, self._positions[key])))
        value = self._value(key, row)
        assert value is not None  # it was sound in this very snapshot
        self._keep(key, value[0], row[1])
        return value[0]

    def has(self, keys: set[str] | frozenset[str]) -> bool:
        """Say whether all of those are there and sound."""
        return keys <= self._sound

    def _has(self, key: str) -> bool:
        position = self._positions.get(key)
        if position is None:
            return False
        query = "SELECT 1 FROM outputs WHERE id = ?"
        return next(self._examination.rows(query, row_id(self._examination.run, position)), None) is not None

    def _value(self, key: str, row: tuple[str, int, bytes | None]) -> tuple[JsonValue] | None:
        data = self._examination.content(Domain.OUTPUT, row, table="outputs", what="its output", node=key)
        if data is None:
            return None
        try:
            return (orjson.loads(data),)
        except ValueError as error:
            self._examination.wrong(Fault.MALFORMED, "outputs", f"its output is not JSON: {error}", node=key)
            return None

    def _keep(self, key: str, value: JsonValue, size: int) -> None:
        self._kept[key] = value, size
        self._kept_bytes += size
        while self._kept_bytes > _KEPT_BYTES and len(self._kept) > 1:
            self._kept_bytes -= self._kept.popitem(last=False)[1][1]
