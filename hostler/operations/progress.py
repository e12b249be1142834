"""How far ffmpeg is, read from its `-progress pipe:1` lines.

Progress is advice for people. The reader takes any bytes, never raises, never goes back, and says "unknown"
when it is.
"""

import re
from typing import Final

from store.lazy_dataclass import dataclass

LINE_BYTES: Final = 4096
"""A longer line is not one of ffmpeg's; it is dropped, so that memory stays flat."""

ABSURD_US: Final = 1 << 60
"""ffmpeg shows "no timestamp" as the smallest or the largest 64-bit number."""

_CLOCK: Final = re.compile(r"(\d+):(\d\d):(\d\d(?:\.\d+)?)")
_SPEED: Final = re.compile(r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)x")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Where an encode stands.

    Attributes:
        fraction: 0 to 1; None is unknown.
        position_s: How much of the media is done, seconds; None is unknown.
        speed: Multiple of real time; None is unknown.
        left_s: Time left, seconds; None is unknown.

    """

    fraction: float | None
    position_s: float | None
    speed: float | None
    left_s: float | None


class ProgressReader:
    """Turns chunks of ffmpeg's progress output into readings.

    Blocks do not matter to it: each line stands for itself, so a lost `progress=` line or a block cut in two
    loses nothing but that line.
    """

    def __init__(self, duration_s: float | None) -> None:
        """Read progress towards *duration_s* seconds of media; None is unknown."""
        self._duration_s = duration_s if duration_s and duration_s > 0 else None
        self._position_s: float | None = None
        self._speed: float | None = None
        self._ended = False
        self._rest = b""
        self._overlong = False

    def feed(self, chunk: bytes) -> Reading | None:
        """Take the next bytes, cut anywhere.

        Returns:
            The newest reading, None if these bytes told nothing new.

        """
        lines = (self._rest + chunk).replace(b"\r", b"\n").split(b"\n")
        self._rest = lines.pop()
        told = False
        for number, line in enumerate(lines):
            if number == 0 and self._overlong:
                self._overlong = False
                continue
            told = self._take(line) or told
        if len(self._rest) > LINE_BYTES:
            self._rest = b""
            self._overlong = True
        return self._reading() if told else None

    def _take(self, line: bytes) -> bool:
        """Adopt one line; say whether it told something new."""
        name, _, value = line.decode("ascii", "replace").strip().partition("=")
        match name:
            # out_time_ms carries microseconds too, in every version of ffmpeg so far
            case "out_time_us" | "out_time_ms":
                return self._move(_microseconds(value))
            case "out_time":
                return self._move(_clock(value))
            case "speed":
                before, self._speed = self._speed, _speed(value)
                return self._speed != before
            case "progress" if value == "end" and not self._ended:
                self._ended = True
                return True
            case _:
                return False

    def _move(self, position_s: float | None) -> bool:
        if position_s is None or (self._position_s is not None and position_s <= self._position_s):
            return False
        self._position_s = position_s
        return True

    def _reading(self) -> Reading:
        fraction = left_s = None
        if self._duration_s is not None:
            if self._ended:
                fraction = 1.0
            elif self._position_s is not None:
                fraction = min(1.0, self._position_s / self._duration_s)
            if fraction is not None and self._speed:
                left_s = (1.0 - fraction) * self._duration_s / self._speed
        return Reading(fraction=fraction, position_s=self._position_s, speed=self._speed, left_s=left_s)


def _microseconds(value: str) -> float | None:
    value = value.strip()
    if not value.isascii() or not value.isdigit() or len(value) > 20 or int(value) >= ABSURD_US:
        return None
    return int(value) / 1_000_000


def _clock(value: str) -> float | None:
    found = _CLOCK.fullmatch(value.strip())
    if found is None:
        return None
    hours, minutes, seconds = found.groups()
    if len(hours) > 8:
        return None
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def _speed(value: str) -> float | None:
    found = _SPEED.fullmatch(value.strip())
    speed = float(found[1]) if found else 0.0
    return speed if 0.0 < speed < 1e9 else None
