"""Where a worker process finds the function that it is to call.

Trusted code is in the bundle that was stored with the run, and comes from there alone. An operation that asks for a
process of its own comes from where the host has it: the same bytes of a workflow's file, or an installed module.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import hostler
from actors.operations import Compute, Entry, Operation
from hostler.bundles import Bundle, unpack
from hostler.code_at import CodeAt
from hostler.code_space import PREFIX, entry_of, space_of
from hostler.places import Place, place_of
from hostler.refusals import invalid
from hostler.schemas import input_sha256, output_sha256
from hostres.errors import Code, HostlerError
from store.lazy_dataclass import dataclass
from store.policy import Isolation

BOOT: Final = "import gc, sys; gc.disable(); sys.path.append(sys.argv[1]); from hostler.worker import main; main()"
"""Collecting garbage while modules are imported finds none, and costs a tenth of the start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Where code is.

    Attributes:
        module: An importable module, None for a bundle.
        bundle: The code itself.
        entry: The workflow's file in it.
        root: Where its code says that it lies.

    """

    module: str | None = None
    bundle: Bundle | None = None
    entry: str = ""
    root: Path = Path()


class RunEntries:
    """How the worker processes of one run are started.

    Args:
        source: Where the run's workflow came from, as its record says.
        bundle_sha256: Digest of the stored bundle that its plan names.
        read_bundle: Gives the bytes of a stored bundle by digest.

    """

    def __init__(self, *, source: str | None, bundle_sha256: str | None, read_bundle: Callable[[str], bytes]) -> None:
        self._where = (source or "").rpartition(":")[0]
        self._bundle_sha256 = bundle_sha256
        self._read_bundle = read_bundle

    def __call__(self, code: Operation | Compute) -> Entry:
        """Return how to start the worker of *code*; may read files and the store.

        Raises:
            HostlerError: Its code is not to be had (not-found, invalid-data), or this program does not know its
                interpreter (unavailable).

        """
        if not sys.executable:
            raise HostlerError(
                Code.UNAVAILABLE,
                "this program does not know the Python interpreter that it runs in",
                "set sys.executable, or run it by python",
            )
        data, at = self._trusted(code) if isinstance(code, Compute) else _operation(code)
        argv = (sys.executable, "-P", "-c", BOOT, str(Path(hostler.__file__).absolute().parents[1]))
        return Entry(argv=argv, code=at.model_dump(mode="json"), bundle=data)

    def _trusted(self, code: Compute) -> tuple[bytes | None, CodeAt]:
        sha256 = self._bundle_sha256
        if sha256 is None:
            raise invalid(f"compute {code.name} has no stored code", "create the run again from its workflow file")
        data = self._read_bundle(sha256)
        entry = entry_of(self._where, unpack(data, sha256))
        at = _at(code, kind="compute", name=code.name, version=0)
        root = str(self._root(code))
        return data, at.model_copy(update={"bundle_sha256": sha256, "entry": entry, "root": root})

    def _root(self, code: Compute) -> Path:
        if self._where.endswith(".py"):
            return Path(self._where).parent
        if code.function.__module__.startswith(PREFIX):
            return space_of(code.function.__module__).root
        module = sys.modules.get(self._where)
        return place_of(module, self._where).root if module is not None else Path.cwd()


def check_found(operation: Operation) -> None:
    """Refuse an operation that a worker process could not find.

    Raises:
        HostlerError: It asks for a process of its own and is not at the top level of a module (invalid-data).

    """
    if operation.policy.isolation is Isolation.PROCESS:
        _module_of(operation)


def check_trusted(code: Compute) -> None:
    """Refuse trusted code that a worker process could not find.

    Raises:
        HostlerError: It is not at the top level of a module (invalid-data).

    """
    likely = sys.modules.get(code.function.__module__)
    for module in (likely, *tuple(sys.modules.values())):
        if any(each is code for each in tuple(getattr(module, "__dict__", {}).values())):
            return
    raise invalid(f"compute {code.name} is not at the top level of a file", "define it there")


def _operation(code: Operation) -> tuple[bytes | None, CodeAt]:
    found = _find(code)
    at = _at(code, kind="operation", name=code.kind, version=code.version)
    if found.bundle is None:
        return None, at.model_copy(update={"module": found.module})
    return found.bundle.data, at.model_copy(
        update={"bundle_sha256": found.bundle.sha256, "entry": found.entry, "root": str(found.root)}
    )


def _at(code: Operation | Compute, *, kind: str, name: str, version: int) -> CodeAt:
    return CodeAt(
        kind=kind,
        name=name,
        version=version,
        path=tuple(_absolute(each) for each in sys.path if _is_text(each)),
        policy=code.policy,
        input_sha256=input_sha256(code.input_type) if code.input_type else None,
        output_sha256=output_sha256(code.output_type) if code.output_type else None,
    )


def _absolute(path: str) -> str:
    return os.path.abspath(path)  # noqa: PTH100 - an empty one is where this host is, and links stay as they are


def _is_text(path: str) -> bool:
    """Say whether a path can be told in JSON."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _find(operation: Operation) -> Found:
    module = _module_of(operation)
    name = module.__name__
    if name.startswith(PREFIX):
        space = space_of(name)
        return Found(bundle=space.bundle, entry=space.entry, root=space.root)
    spec = module.__spec__
    if name != "__main__":
        return Found(module=name)
    if spec is not None and "." in spec.name:
        return Found(module=spec.name)
    path = Path(_absolute(module.__file__ or ""))
    place = Place(root=path.parent, entry=path.name)
    return Found(bundle=place.bundle(), entry=place.entry, root=place.root)


def _module_of(operation: Operation) -> ModuleType:
    module = sys.modules.get(operation.function.__module__)
    names: dict[str, Any] = vars(module) if module is not None else {}
    if module is None or not any(each is operation for each in names.values()):
        raise invalid(
            f"operation {operation.kind}: isolation process needs it at the top level of its module",
            "define it there, or leave it in a thread",
        )
    return module
