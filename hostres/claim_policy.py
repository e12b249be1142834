"""What a claim takes beside what it names: `[machine.claims]` of the configuration.

An operation claims what it works with, `ffmpeg=1`. What that takes of a machine is for whoever knows the machine to
say: `ffmpeg = { cpu = "all" }` for an encoder that uses whatever CPUs it finds.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from hostres.errors import Code, HostlerError
from hostres.toml_places import where

ALL: Final = "all"
"""As many units as there are."""

TABLE: Final = ("machine", "claims")


class ClaimPolicy(NamedTuple):
    """What claims take.

    Attributes:
        takes: Resource → what one unit of it takes: resource → units, or `ALL`.
        path: The configuration that says so.

    """

    takes: Mapping[str, Mapping[str, int | str]]
    path: Path

    @classmethod
    def of_configuration(cls, value: Any, path: Path) -> Self:
        """Read `[machine.claims]`, of which each name and value is right by itself.

        Args:
            value: What stands there.
            path: The configuration.

        Raises:
            HostlerError: `invalid-profile`, naming file and line.

        """
        for name, taken in value.items():
            for resource in taken:
                if resource in value:
                    what = "takes itself" if resource == name else f"takes {resource}, which takes something itself"
                    raise _wrong(path, (*TABLE, name, resource), what, "name what it takes in the end, as in cpu")
        return cls(takes=value, path=path)

    def check(self, capacity: Mapping[str, int]) -> None:
        """Refuse names that this machine does not have: what stands there would never count.

        Args:
            capacity: Resource → units, of the profile in force.

        Raises:
            HostlerError: `invalid-profile`, naming file and line, and what may have been meant.

        """
        for name, taken in self.takes.items():
            if name not in capacity:
                raise self._unknown((*TABLE, name), name, capacity)
            for resource in taken:
                if resource not in capacity:
                    raise self._unknown((*TABLE, name, resource), resource, capacity)

    def physical(self, claims: Mapping[str, int], room: Mapping[str, int]) -> Mapping[str, int]:
        """Return claims with all that they take.

        What several of them take adds up; what is claimed anyway counts within it, not beside it.

        Args:
            claims: Resource → units, as they were asked for.
            room: Resource → units there are at most: of the machine, or of the lease of which this is a part.

        Raises:
            HostlerError: `invalid-claims`: together they take more than there can be.

        """
        taken: dict[str, int] = {}
        everything: set[str] = set()
        for name, units in claims.items():
            for resource, each in self.takes.get(name, {}).items():
                if isinstance(each, int):
                    taken[resource] = taken.get(resource, 0) + each * units
                else:
                    everything.add(resource)
        for resource in everything:
            taken[resource] = max(1, room.get(resource, 0))
        for resource, units in taken.items():
            if units > room.get(resource, 0) and claims.get(resource, 0) <= room.get(resource, 0):
                by = ", ".join(name for name in claims if resource in self.takes.get(name, {}))
                place = where(self.path, (*TABLE, by.partition(",")[0]))
                raise HostlerError(
                    Code.INVALID_CLAIMS,
                    f"{by} takes {resource}={units} by {place}, and there are {room.get(resource, 0)}",
                    "claim less, or let it take less",
                )
        return {**claims, **{resource: max(units, claims.get(resource, 0)) for resource, units in taken.items()}}

    def takes_all(self, claims: Mapping[str, int]) -> bool:
        """Return whether claims take all there is of something, however much that is."""
        return any(each == ALL for name in claims for each in self.takes.get(name, {}).values())

    def lines(self) -> Iterable[str]:
        """Return for each resource what a claim of one unit takes."""
        for name, taken in sorted(self.takes.items()):
            yield f"{name} takes {' '.join(f'{resource}={units}' for resource, units in sorted(taken.items()))}"

    def _unknown(self, place: tuple[str, ...], name: str, capacity: Mapping[str, int]) -> HostlerError:
        from hostres.suggestions import nearest  # noqa: PLC0415  only to say so

        near = nearest(name, capacity, cutoff=0.0) or "cpu"
        what = f"names {name}, which this machine does not have"
        return _wrong(self.path, place, what, f"the nearest it has is {near}, or add it to [machine.capacity]")


def _wrong(path: Path, place: tuple[str, ...], what: str, todo: str) -> HostlerError:
    return HostlerError(Code.INVALID_PROFILE, f"{where(path, place)}: {'.'.join(place[:3])} {what}", todo)
