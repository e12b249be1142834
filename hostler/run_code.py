"""The code a stored run goes on with: what still matches its plan, from where it came, else from its bundle."""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from actors.operations import Compute, Operation
from hostler.bundles import Bundle, extract, unpack
from hostler.code_space import CodeSpace, entry_of, open_space
from hostler.matching import difference
from hostler.places import Place, import_place, run_space
from hostler.refusals import listed
from hostler.registry import Registry, default_registry
from hostres.errors import Code, HostlerError
from store.contracts import RunRecord
from store.lazy_dataclass import dataclass
from store.plans import ComputeExecutor, GraphPlan, OperationExecutor, PlannedNode

Name = tuple[str, int]
NOT_INSTALLED: Final = "not installed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCode:
    """What there is here of the code of some nodes of a run.

    Attributes:
        operations: By kind and version.
        computes: By name.
        lacking: Key of each of these nodes whose code is missing or was changed → what that is, and why it does not
            count.

    """

    operations: dict[Name, Operation]
    computes: dict[str, Compute]
    lacking: Mapping[str, str]

    def check(self, run_id: str, nodes: Collection[str]) -> None:
        """Refuse a run if the code of one of these nodes is not here.

        Raises:
            HostlerError: conflict, naming each thing that is missing or was changed, and why.

        """
        missing = sorted({what for key, what in self.lacking.items() if key in nodes})
        if missing:
            raise HostlerError(
                Code.CONFLICT,
                f"run {run_id} needs {listed(missing)}",
                "bring them back as they were planned, then resume the run; or go on without the nodes that need them: "
                f"hostler resume {run_id} --accept-incompatible",
            )


def code_for_run(
    record: RunRecord,
    plan: GraphPlan,
    read_bundle: Callable[[str], bytes],
    scratch: Path,
    *,
    registry: Registry | None = None,
    nodes: Collection[str] | None = None,
) -> tuple[dict[Name, Operation], dict[str, Compute]]:
    """Return the code that nodes of a run need.

    Args as of `find_code`.

    Returns:
        Operations by kind and version, compute functions by name.

    Raises:
        HostlerError: Something is missing or was changed (conflict naming each and why), or the stored bundle is
            damaged (invalid-data).

    """
    found = find_code(record, plan, read_bundle, scratch, registry=registry, nodes=nodes)
    found.check(record.run_id, found.lacking)
    return found.operations, found.computes


def find_code(
    record: RunRecord,
    plan: GraphPlan,
    read_bundle: Callable[[str], bytes],
    scratch: Path,
    *,
    registry: Registry | None = None,
    nodes: Collection[str] | None = None,
) -> RunCode:
    """Return what there is here of the code of nodes of a run.

    Operations come from the recorded workflow file if they still match kind, version, policy and schemas as planned,
    else from the stored bundle, else from those that are installed. Compute code always comes from the bundle.

    Args:
        record: The run.
        plan: Its plan.
        read_bundle: Gives the bytes of a stored bundle by digest.
        scratch: Where a bundle is laid out, so that tracebacks show its lines.
        registry: The installed operations.
        nodes: Keys of the nodes; None is all of them.

    Raises:
        HostlerError: The stored bundle is damaged (invalid-data).

    """
    chosen = [node for node in plan.nodes if nodes is None or node.key in nodes]
    operations = {
        (node.executor.operation, node.executor.version): node
        for node in chosen
        if isinstance(node.executor, OperationExecutor)
    }
    computes = {node.executor.compute: node for node in chosen if isinstance(node.executor, ComputeExecutor)}
    code = _Code(record, plan, read_bundle, scratch)
    found, why = _provide_operations(operations, code, registry or default_registry())
    trusted, broken = _provide_computes(computes, code)
    missing = {**why, **broken}
    lacking = {node.key: f"{name} ({missing[name]})" for node in chosen if (name := _name_of(node)) in missing}
    return RunCode(operations=found, computes=trusted, lacking=lacking)


def _name_of(node: PlannedNode) -> str | None:
    match node.executor:
        case OperationExecutor(operation=kind, version=version):
            return f"operation {kind}@{version}"
        case ComputeExecutor(compute=name):
            return f"compute {name}"
        case _:
            return None


def _provide_operations(
    wanted: Mapping[Name, PlannedNode], code: "_Code", registry: Registry
) -> tuple[dict[Name, Operation], dict[str, str]]:
    def installed() -> Iterator[Operation]:
        yield from (each for name in wanted if (each := registry.find(*name)))

    found: dict[Name, Operation] = {}
    reasons: dict[Name, str] = {}
    for supply in (code.recorded, code.stored, installed):
        for each in supply() if len(found) < len(wanted) else ():
            if not isinstance(each, Operation):
                continue
            name = each.kind, each.version
            if name not in wanted or name in found:
                continue
            reason = _difference(each, wanted[name])
            if reason is None:
                found[name] = each
            else:
                reasons.setdefault(name, reason)
    return found, {
        f"operation {name[0]}@{name[1]}": reasons.get(name) or code.trouble or NOT_INSTALLED
        for name in wanted
        if name not in found
    }


def _provide_computes(wanted: Mapping[str, PlannedNode], code: "_Code") -> tuple[dict[str, Compute], dict[str, str]]:
    found: dict[str, Compute] = {}
    reasons: dict[str, str] = {}
    for each in code.trusted() if wanted else ():
        if not isinstance(each, Compute) or each.name not in wanted or each.name in found:
            continue
        reason = _difference(each, wanted[each.name])
        if reason is None:
            found[each.name] = each
        else:
            reasons.setdefault(each.name, reason)
    return found, {
        f"compute {name}": reasons.get(name) or code.trouble or "not in its bundle"
        for name in wanted
        if name not in found
    }


def _difference(code: Operation | Compute, planned: PlannedNode) -> str | None:
    return difference(
        code,
        policy=planned.policy,
        input_schema_sha256=planned.input_schema_sha256,
        output_schema_sha256=planned.output_schema_sha256,
    )


class _Code:
    """What the workflow's own code defines, as it lies there now and as it was stored."""

    def __init__(self, record: RunRecord, plan: GraphPlan, read_bundle: Callable[[str], bytes], scratch: Path) -> None:
        self._record = record
        self._plan = plan
        self._read_bundle = read_bundle
        self._scratch = scratch
        self._root: Path | None = None
        self._same: str | None = None
        self.trouble: str | None = None
        where, colon, _ = (record.source or "").rpartition(":")
        self._where = where if colon and record.bundle_sha256 is not None else None

    def recorded(self) -> Iterator[Any]:
        """Yield what the workflow's file, where it lay when the run was created, defines now."""
        if self._where is None:
            return
        try:
            if self._where.endswith(".py"):
                path = Path(self._where)
                place = Place(root=path.parent, entry=path.name)
                bundle = place.bundle()
                space = open_space(bundle, entry=place.entry, root=place.root)
                run_space(space, str(path))
                modules: Iterable[ModuleType] = space.modules()
            else:
                module, place = import_place(self._where, Path(self._record.folder))
                bundle = place.bundle()
                modules = [module, *_modules_at(place, bundle)]
        except HostlerError as error:
            self.trouble = error.what
            return
        self._root, self._same = place.root, bundle.sha256
        yield from _names(modules)

    def stored(self) -> Iterator[Any]:
        """Yield what the stored code defines, unless it is the same as the recorded file's."""
        sha256 = self._record.bundle_sha256
        if self._where is not None and sha256 is not None and sha256 != self._same:
            yield from self._names_of_bundle(sha256)

    def trusted(self) -> Iterator[Any]:
        """Yield what the bundle that the plan names defines."""
        if self._where is not None and self._plan.bundle_sha256 is not None:
            yield from self._names_of_bundle(self._plan.bundle_sha256)

    def _names_of_bundle(self, sha256: str) -> Iterator[Any]:
        bundle = unpack(self._read_bundle(sha256), sha256)
        try:
            space = self._space_of(bundle)
            run_space(space, self._where or "")
        except HostlerError as error:
            self.trouble = error.what
            return
        yield from _names(space.modules())

    def _space_of(self, bundle: Bundle) -> CodeSpace:
        """Return the stored code under the name of the place it came from."""
        where = self._where or ""
        shown = self._scratch / bundle.sha256
        try:
            extract(bundle, shown)
        except OSError:  # a full disk costs the lines of tracebacks, not the run
            shown = self._root or self._scratch
        root = Path(where).parent if where.endswith(".py") else self._root or shown
        return open_space(bundle, entry=entry_of(where, bundle), root=root, shown=shown)


def _modules_at(place: Place, bundle: Bundle) -> list[ModuleType]:
    files = {str(place.root / name) for name in bundle.files}
    return [each for each in list(sys.modules.values()) if getattr(each, "__file__", None) in files]


def _names(modules: Iterable[ModuleType]) -> Iterator[Any]:
    for module in modules:
        yield from list(vars(module).values())
