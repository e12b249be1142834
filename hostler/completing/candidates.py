"""What may stand at the end of a command line that is being typed. Nothing is made or changed by it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from store.patterns import NEWEST, PREFIX

FILES: Final = ":files"
PROGRAMS: Final = ":programs"
"""Lines that let the shell itself offer files, or programs."""
Candidate = tuple[str, str]
"""A word, and what it means."""


def candidates(words: Sequence[str], vocabulary: Mapping[str, Any], offers: "Offers") -> list[Candidate]:
    """Return what the last word may become.

    Args:
        words: What was typed after the program's name; the last one is being typed, and perhaps empty.
        vocabulary: The words of the command line.
        offers: What the store and the machine have.

    """
    *before, last = words or [""]
    line = _Line(vocabulary)
    for word in before:
        line.take(word)
    return [one for one in line.next(last, offers) if one[0].startswith(last) or one[0] in (FILES, PROGRAMS)]


class Offers:
    """What there is of a kind, looked up when it is wanted."""

    def __init__(
        self,
        *,
        runs: Callable[[str], Sequence[Candidate]],
        nodes: Callable[[str], Sequence[str]],
        resources: Callable[[], Sequence[str]],
        tickets: Callable[[], Sequence[str]],
        schemas: Callable[[], Sequence[str]],
    ) -> None:
        """Take the ways to look.

        Args:
            runs: Ids that begin so, newest first, and what they mean.
            nodes: Keys of the run of that id.
            resources: Names of what can be claimed.
            tickets: Numbers of the tickets of the machine.
            schemas: Commands whose output has a schema.

        """
        self._runs = runs
        self._nodes = nodes
        self._resources = resources
        self._tickets = tickets
        self._schemas = schemas

    def of(self, kind: str, last: str, run: str | None) -> Iterator[Candidate]:
        """Yield what there is of a kind.

        Args:
            kind: As the vocabulary names it.
            last: The word that is being typed.
            run: The run that the line is about, as it was typed.

        """
        match kind:
            case "file":
                yield FILES, ""
            case "program":
                yield PROGRAMS, ""
            case "run" | "run-or-file":
                yield from self._all_runs(last)
                if kind == "run-or-file":
                    yield FILES, ""
            case "node":
                run_id = self._run(run)
                yield from ((key, "") for key in (self._nodes(run_id) if run_id else ()))
            case "resource":
                yield from ((f"{name}=", "") for name in self._resources())
            case "ticket":
                yield from ((number, "") for number in self._tickets())
            case "schema":
                yield from ((name, "") for name in self._schemas())

    def _all_runs(self, last: str) -> Iterator[Candidate]:
        if not last:
            yield NEWEST, "the newest run"
        short = bool(last) and not last.startswith(PREFIX) and not PREFIX.startswith(last)
        for run_id, about in self._runs(PREFIX + last if short else last or PREFIX):
            yield (run_id.removeprefix(PREFIX) if short else run_id), about

    def _run(self, typed: str | None) -> str | None:
        if not typed:
            return None
        named = typed if typed.startswith(PREFIX) else PREFIX + typed
        found = self._runs(PREFIX if typed == NEWEST else named)
        return found[0][0] if found and (typed == NEWEST or len(found) == 1) else None


class _Line:
    """A command line as far as it is typed."""

    def __init__(self, vocabulary: Mapping[str, Any]) -> None:
        self._at: Mapping[str, Any] = vocabulary
        self._arguments: list[str] = []
        self._path: list[str] = []
        self._awaited: Any = None
        self._options_over = False

    def take(self, word: str) -> None:
        """Take in a whole word."""
        if self._awaited is not None:
            self._awaited = None
        elif word == "--" and not self._options_over:
            self._options_over = True
        elif word.startswith("-") and word != "-" and not self._options_over:
            option = self._at["options"].get(word)
            self._awaited = option.get("takes") if option else None
        elif not self._arguments and word in self._at.get("below", ()):
            self._at = self._at["below"][word]
            self._path.append(word)
        else:
            self._arguments.append(word)
            self._options_over = self._options_over or self._kind() == "program"

    def next(self, last: str, offers: Offers) -> Iterator[Candidate]:
        """Yield what may stand here."""
        if self._awaited is not None:
            yield from self._of(self._awaited, last, offers)
            return
        option, equals, value = last.partition("=")
        if equals and option in self._at["options"] and not self._options_over:
            found = self._of(self._at["options"][option].get("takes", "text"), value, offers)
            yield from ((f"{option}={word}" if word not in (FILES, PROGRAMS) else word, about) for word, about in found)
            return
        if last.startswith("-") and not self._options_over:
            yield from ((name, each["about"]) for name, each in self._at["options"].items())
        below = {} if self._arguments else self._at.get("below", {})
        yield from ((name, each["about"]) for name, each in below.items())
        kind = self._kind()
        if kind == "program" and self._arguments:
            yield FILES, ""
        elif kind is not None and not (below and not last):
            yield from self._of(kind, last, offers)

    def _kind(self) -> Any:
        """Return what the next argument stands for, None if there is none."""
        slots = self._at["arguments"]
        if len(self._arguments) < len(slots):
            return slots[len(self._arguments)]["takes"]
        return slots[-1]["takes"] if slots and slots[-1].get("many") else None

    def _of(self, takes: Any, last: str, offers: Offers) -> Iterator[Candidate]:
        if isinstance(takes, list):
            yield from ((word, "") for word in takes)
        else:
            yield from offers.of(takes, last, self._arguments[0] if self._arguments else None)
