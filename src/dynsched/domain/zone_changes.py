"""When a time zone changes its offset: the stretches of constant offset around an instant.

The rules are those of the installed `tzdata` package, not of the operating system, so that all
processes with the same installation compute the same instants: a run is identified by its instant.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from difflib import get_close_matches
from functools import lru_cache
from importlib.resources import files
from zoneinfo import ZoneInfo

from dynsched.domain.instants import EPOCH
from dynsched.errors import InvalidInput

_WINDOW_BITS = 25
"""Offsets are looked up in windows of 2**25 seconds (388 days), each worked out once."""
_PROBE_S = 3 * 86_400
"""Seconds between two probes. No zone has changed twice within four days (Freetown, 1939)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A span of instants in which a zone's offset does not change.

    Attributes:
        start: its first second since 1970, UTC.
        end: the first second after it.
        offset: seconds that the wall clock is ahead of UTC.
        jump: seconds by which the wall clock was put forward at `start`; negative if it was put
            back; 0 if the stretch merely begins a window.
    """

    start: int
    end: int
    offset: int
    jump: int

    @property
    def wall(self) -> int:
        """The wall time at `start`, after the jump."""
        return self.start + self.offset


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneClock:
    """A zone's offsets, worked out window by window as they are asked for."""

    name: str
    info: ZoneInfo = field(repr=False, compare=False)
    _windows: dict[int, tuple[list[int], list[Stretch]]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def at(self, second: int) -> Stretch:
        """Return the stretch that contains a second since 1970, UTC."""
        number = second >> _WINDOW_BITS
        window = self._windows.get(number)
        if window is None:
            stretches = list(self._stretches(number << _WINDOW_BITS, number + 1 << _WINDOW_BITS))
            window = self._windows[number] = ([each.start for each in stretches], stretches)
        starts, stretches = window
        return stretches[bisect_right(starts, second) - 1]

    def _stretches(self, start: int, end: int) -> Iterator[Stretch]:
        begin, offset, jump = start, self._offset(start - 1), 0
        for change, changed in self._changes(start, end):
            if change > start:
                yield Stretch(start=begin, end=change, offset=offset, jump=jump)
            begin, offset, jump = change, changed, changed - offset
        yield Stretch(start=begin, end=end, offset=offset, jump=jump)

    def _changes(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield each second in [start, end) at which the offset becomes another, and that one."""
        last, offset = start - 1, self._offset(start - 1)
        for probe in (*range(last + _PROBE_S, end - 1, _PROBE_S), end - 1):
            found = self._offset(probe)
            if found != offset:
                before, after = last, probe
                while after - before > 1:
                    middle = (before + after) // 2
                    if self._offset(middle) == offset:
                        before = middle
                    else:
                        after = middle
                yield after, found
            last, offset = probe, found

    def _offset(self, second: int) -> int:
        local = (EPOCH + timedelta(seconds=second)).astimezone(self.info)
        offset = local.utcoffset()
        assert offset is not None
        return offset // timedelta(seconds=1)


@lru_cache(maxsize=1024)
def zone_clock(name: str) -> ZoneClock:
    """Return the clock of an IANA zone.

    Raises:
        InvalidInput: no such zone; the message proposes a name that is close.

    >>> zone_clock("Asia/Kolkata").at(0).offset
    19800
    """
    if not isinstance(name, str) or name not in zone_names():
        raise InvalidInput("tz", f"{name!r} is not a zone of the IANA database", _close(name))
    with (files("tzdata.zoneinfo") / name).open("rb") as data:
        return ZoneClock(name=name, info=ZoneInfo.from_file(data, key=name))


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """Return the names of all zones.

    >>> "Europe/Riga" in zone_names()
    True
    """
    return frozenset((files("tzdata") / "zones").read_text(encoding="ascii").split())


def _close(name: object) -> str:
    """Return the advice that names the likeliest zone; compares whole names and their last part."""
    asked = str(name)[:64].strip().replace(" ", "_").lower()
    known = {zone.rpartition("/")[2].lower(): zone for zone in sorted(zone_names())}
    known |= {zone.lower(): zone for zone in zone_names()}
    found = get_close_matches(asked, known, n=1, cutoff=0.7)
    return f"did you mean {known[found[0]]}?" if found else "for example Europe/Riga or UTC"
