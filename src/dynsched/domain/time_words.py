"""Instants and durations as people read them: the same words in every console."""

from __future__ import annotations

from datetime import datetime, timedelta

from dynsched.domain.instants import MILLISECOND, from_ms, to_ms, to_text

_STEPS = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "m"), (60, "m", 1, "s"))


def when(instant: datetime | None, now: datetime) -> str:
    """Return an instant in UTC with how far it is from now.

    >>> from dynsched.domain.instants import EPOCH
    >>> when(EPOCH + timedelta(seconds=200), EPOCH)
    '1970-01-01 00:03:20Z (in 3m 20s)'
    """
    if instant is None:
        return ""
    return f"{stamp(instant)} ({distance(instant, now)})"


def stamp(instant: datetime) -> str:
    """Return an instant in UTC in whole seconds.

    >>> from dynsched.domain.instants import EPOCH
    >>> stamp(EPOCH)
    '1970-01-01 00:00:00Z'
    """
    return from_ms(to_ms(instant)).strftime("%Y-%m-%d %H:%M:%SZ")


def exact(instant: datetime) -> str:
    """Return an instant so that it can be typed again: with its milliseconds where it has any.

    >>> from dynsched.domain.instants import EPOCH
    >>> exact(EPOCH), exact(EPOCH + MILLISECOND)
    ('1970-01-01T00:00:00Z', '1970-01-01T00:00:00.001Z')
    """
    return to_text(instant).replace(".000Z", "Z")


def distance(instant: datetime, now: datetime) -> str:
    """Return how far an instant is from now, in words.

    >>> from dynsched.domain.instants import EPOCH
    >>> distance(EPOCH, EPOCH + timedelta(hours=30)), distance(EPOCH, EPOCH)
    ('1d 6h ago', 'now')
    """
    ahead = (instant - now) / timedelta(seconds=1)
    if abs(ahead) < 1:
        return "now"
    words = span(abs(instant - now))
    return f"in {words}" if ahead > 0 else f"{words} ago"


def span(duration: timedelta) -> str:
    """Return a duration in its two largest units.

    >>> span(timedelta(seconds=90)), span(timedelta(milliseconds=1500)), span(timedelta(days=3))
    ('1m 30s', '1.5s', '3d')
    """
    if duration < timedelta(seconds=60):
        number = duration // MILLISECOND / 1000
        return f"{number:.2g}s" if number < 10 else f"{int(number)}s"
    whole = int(duration.total_seconds())
    for size, unit, next_size, next_unit in _STEPS:
        if whole >= size:
            first, rest = divmod(whole, size)
            second = rest // next_size
            return f"{first}{unit} {second}{next_unit}" if second else f"{first}{unit}"
    return f"{whole}s"


def number(count: int, one: str, many: str = "") -> str:
    """Return a count with its noun.

    >>> number(1, "run"), number(2_000, "run"), number(2, "try", "tries")
    ('1 run', '2,000 runs', '2 tries')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"
