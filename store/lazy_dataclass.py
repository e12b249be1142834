"""Frozen dataclasses whose constructor is written when the first instance is made.

`dataclasses.dataclass` compiles six methods for each class. For the 142 that a program loads, a third of which it needs
for a first step, that was a quarter of the time until then. Here one piece of code serves all classes, but for the
constructor. What a class promises is what the standard library promises of `dataclass(frozen=True, slots=True)`; type
checkers are shown that one.
"""

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - for who imports it from here
else:
    _Class = TypeVar("_Class", bound=type)

    def dataclass(*, frozen: bool, slots: bool, kw_only: bool = False) -> Callable[[_Class], _Class]:
        """Make a class a frozen dataclass with slots.

        Args:
            frozen: True, as whoever reads the class expects to find it there.
            slots: True, likewise.
            kw_only: Whether its fields can only be given by name.

        """
        if not (frozen and slots):
            raise TypeError("use dataclasses.dataclass")

        def made(cls: _Class) -> _Class:
            cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)(cls)
            _complete(cls)
            return cls

        return made


def _complete(cls: Any) -> None:
    """Give *cls* the methods that `dataclasses` was told to leave out."""
    if not all(field.init for field in dataclasses.fields(cls)):
        raise TypeError("a field that is not given: use dataclasses.dataclass")
    compared = [field.name for field in dataclasses.fields(cls) if field.compare]
    values = _values_of(compared)

    def equal(self: Any, other: object) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def hashed(self: Any) -> int:
        return hash(values(self))

    def first(self: Any, *args: Any, **given: Any) -> None:
        cls.__init__ = _constructor(cls)
        cls.__init__(self, *args, **given)

    own = {"__init__": first, "__repr__": _shown, "__eq__": equal, "__hash__": hashed}
    always = {
        "__setattr__": _refuse_to_set,
        "__delattr__": _refuse_to_delete,
        "__getstate__": _state,
        "__setstate__": _set_state,
    }
    for name, method in own.items():
        if cls.__dict__.get(name) is None:  # else the class has its own
            setattr(cls, name, method)
    for name, method in always.items():
        setattr(cls, name, method)


def _values_of(names: list[str]) -> Callable[[Any], Any]:
    return attrgetter(*names) if names else lambda _: ()


def _constructor(cls: Any) -> Any:
    """Write the constructor of *cls*: a slot a field, past the refusal to set one."""
    known: dict[str, Any] = {"MISSING": dataclasses.MISSING}
    by_place, by_name, body = ["self"], list[str](), list[str]()
    for field in dataclasses.fields(cls):
        name = value = argument = field.name
        known[f"set_{name}"] = getattr(cls, name).__set__
        if field.default is not dataclasses.MISSING:
            known[f"default_{name}"] = field.default
            argument = f"{name}=default_{name}"
        elif field.default_factory is not dataclasses.MISSING:
            known[f"make_{name}"] = field.default_factory
            argument, value = f"{name}=MISSING", f"make_{name}() if {name} is MISSING else {name}"
        (by_name if field.kw_only else by_place).append(argument)
        body.append(f"set_{name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    arguments = ", ".join([*by_place, "*", *by_name] if by_name else by_place)
    exec(f"def __init__({arguments}):\n    " + "\n    ".join(body or ["pass"]), known)  # noqa: S102 - of names of fields
    constructor = known["__init__"]
    constructor.__qualname__ = f"{cls.__qualname__}.__init__"
    return constructor


def _shown(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _refuse_to_set(self: Any, name: str, value: object) -> None:  # noqa: ARG001 - what Python calls
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> None:  # noqa: ARG001 - likewise
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
