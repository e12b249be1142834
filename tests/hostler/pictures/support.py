"""Runs told by hand, and by chance, as their logs tell them."""

import random
from dataclasses import dataclass, field
from typing import Any
from xml.etree.ElementTree import Element, fromstring

from hostler.pictures.timeline import Subject, Timeline, timeline
from store.clock import Stamp, instant
from store.contracts import Event, EventKind
from store.lifecycle import FINAL, MOVES, Status
from tests.hostler.views.support import RUN_ID
from tests.store.support import EPOCH_MS

SVG = "{http://www.w3.org/2000/svg}"
CAPACITY = {"cpu": 4, "ffmpeg": 2, "whisper": 1}


@dataclass
class Story:
    """A log that is being written; each event is a tenth of a second after the one before, unless it says more."""

    nodes: list[tuple[str, str | None, bool]]
    now_s: float = 0.0
    boot_s: float = 1000.0
    events: list[Event] = field(default_factory=list)
    tickets: int = 0

    def __post_init__(self) -> None:
        self.log(EventKind.RUN_CREATED, after_s=0)

    @property
    def stamp(self) -> Stamp:
        """This moment."""
        return Stamp(at=instant(EPOCH_MS + round(self.now_s * 1000)), boot_ns=round((self.boot_s + self.now_s) * 1e9))

    def log(self, kind: EventKind, node: str | None = None, *, after_s: float = 0.1, **data: Any) -> None:
        """Write an event."""
        self.now_s += after_s
        stamp = self.stamp
        attempt = data.pop("attempt", None)
        self.events.append(
            Event(
                run_id=RUN_ID, seq=len(self.events) + 1, at=stamp.at, boot_ns=stamp.boot_ns, kind=kind, node=node,
                attempt=attempt, data=data, prev_sha256="0" * 64, sha256="0" * 64,
            )
        )  # fmt: skip

    def claim(self, after_s: float = 0.1) -> None:
        """Let a host take the run."""
        self.log(EventKind.RUN_CLAIMED, after_s=after_s)

    def move(self, node: str, status: Status, *, after_s: float = 0.1, **data: Any) -> None:
        """Move a node."""
        self.log(EventKind.NODE_STATUS, node, after_s=after_s, status=status.value, **data)

    def start(self, node: str, attempt: int = 1, *, after_s: float = 0.1, **claims: int) -> int:
        """Start an attempt, and return its ticket."""
        self.tickets += 1
        self.log(
            EventKind.NODE_RUNNING, node, after_s=after_s, attempt=attempt, status=Status.RUNNING.value,
            ticket=self.tickets, claims=claims, admitted_boot_ns=round((self.boot_s + self.now_s + after_s) * 1e9),
        )  # fmt: skip
        return self.tickets

    def release(self, node: str, ticket: int, *, after_s: float = 0.0) -> None:
        """Give back what an attempt held."""
        at = round((self.boot_s + self.now_s + after_s) * 1e9)
        self.log(EventKind.LEASE_RELEASED, node, after_s=after_s, ticket=ticket, released_boot_ns=at)

    def told(self, *, running: bool = False, owned: bool = True, status: str = "running", title: str = "") -> Timeline:
        """Return its timeline; of a run that goes on, a second after its last event."""
        self.now_s += 1.0 if running else 0.0
        subject = Subject(title=title or f"w@1 · {RUN_ID}", status=status, nodes=self.nodes, capacity=CAPACITY)
        return timeline(subject, self.events, now=self.stamp if running else None, owned=owned)


def by_chance(chance: random.Random) -> Timeline:
    """Return the timeline of a run that went as chance would have it, within the lifecycle and the capacities."""
    keys = [f"n/{number}" for number in range(chance.randint(1, 8))]
    story = Story([(key, chance.choice([None, "A <label>"]), chance.random() < 0.5) for key in keys])
    statuses = {key: Status.PENDING if waits else Status.READY for key, _, waits in story.nodes}
    held: dict[str, tuple[int, dict[str, int]]] = {}
    owned = False
    for _ in range(chance.randint(0, 60)):
        after_s = chance.choice([0.0, 0.001, 0.2, 3.0, 5000.0 * (chance.random() < 0.05)])
        if not owned or chance.random() < 0.05:
            if owned and chance.random() < 0.5:  # given back; otherwise its host dies, and what it held is held on
                for one in list(held):
                    story.release(one, held.pop(one)[0])
                story.log(EventKind.RUN_RELEASED, after_s=after_s)
            if chance.random() < 0.3:  # a reboot
                story.boot_s = 10.0 - story.now_s
            story.claim(after_s)
            owned = True
            continue
        key = chance.choice(keys)
        later = sorted(MOVES[statuses[key]] - {statuses[key]})
        if not later:
            continue
        status = chance.choice(later)
        if key in held:
            ticket, _ = held.pop(key)
            story.release(key, ticket, after_s=after_s)
        if status is Status.RUNNING:
            claims = {name: chance.randint(0, units) for name, units in CAPACITY.items()}
            taken = {name: sum(each[name] for _, each in held.values()) for name in CAPACITY}
            if any(taken[name] + claims[name] > CAPACITY[name] for name in CAPACITY):
                continue
            held[key] = story.start(key, after_s=after_s, **claims), claims
        else:
            story.move(key, status, after_s=after_s)
        statuses[key] = status
    running = any(status not in FINAL for status in statuses.values()) and chance.random() < 0.8
    owned = owned and chance.random() < 0.7
    return story.told(running=running, owned=owned, status="running" if running else "imported")


def parsed(svg: str) -> Element:
    """Return a picture as what it is, XML; it holds nothing that runs or is fetched."""
    root = fromstring(svg)
    for element in root.iter():
        assert element.tag in {SVG + name for name in SAFE}, element.tag
        assert not [name for name in element.attrib if name.startswith("on") or name == "style" or "href" in name]
        assert not [text for text in element.attrib.values() if "url(" in text and not text.startswith("url(#")]
    return root


SAFE = ("svg", "defs", "title", "text", "rect", "path", "pattern", "marker")


def words(root: Element) -> list[str]:
    """Return what is written in a picture, where it is seen and where a pointer rests."""
    return [text for element in root.iter() if (text := (element.text or "").strip())]
