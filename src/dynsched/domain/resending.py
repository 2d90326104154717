"""Resending: at which ages a ready run is told of again, in case its message was lost.

A run that is due and still ready is either waiting its turn, with its message in the queue, or its
message was lost. Nobody can tell which, so it is told of again ever more rarely: a backlog is not
doubled at each look, and a lost message is made good within a factor of two of its age.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from dynsched.domain.arrival import CAPPED_MAX

WAITING = 2 * CAPPED_MAX
"""The first age of a run that waits for another: its message puts it off at each visit."""
LONGEST = 1_024
"""Ages double up to so many times the first one; from then on they are this far apart."""


def last_mark(age: timedelta, first: timedelta) -> timedelta | None:
    """Return the last age, up to one, at which a run is told of again; None before the first.

    >>> minute = timedelta(minutes=1)
    >>> marks = [last_mark(minute * age, minute) for age in (0, 1, 3, 4, 3_000)]
    >>> [None if mark is None else mark // minute for mark in marks]
    [None, 1, 2, 4, 2048]
    """
    if age < first:
        return None
    longest = first * LONGEST
    if age >= longest:
        return age // longest * longest
    return first * (1 << (age // first).bit_length() - 1)


def crossed(available_at: datetime, since: datetime, until: datetime, first: timedelta) -> bool:
    """Return whether a run that is due came to one of these ages after `since`, up to `until`."""
    mark = last_mark(until - available_at, first)
    return mark is not None and available_at + mark > since


def first_age(resend_after: timedelta, *, waits: int) -> timedelta:
    """Return at which age a ready run is told of again for the first time.

    One that waits for another run has been visited, was put off, and is visited again within
    `CAPPED_MAX`. Told of in between, it would have ever more messages, of which each costs a claim
    and a step back. The end of the other run pulls it forward, with a message of its own.

    Args:
        resend_after: the first age of other runs.
        waits: how often it was put off.
    """
    return max(resend_after, WAITING) if waits else resend_after


def has_successor(sent_at: datetime | None, now: datetime, resend_after: timedelta) -> bool:
    """Return whether a message is so old that its run, ready the whole time, was told of since.

    Without an end of them a run that may not start for days would have ever more messages, and a
    queue can hide no more than some 100,000.

    Args:
        sent_at: when it was sent; None if that is not known.
        now: when it is looked at.
        resend_after: the first age of runs.

    >>> from datetime import UTC
    >>> start = datetime(2026, 1, 1, tzinfo=UTC)
    >>> has_successor(start, start + timedelta(hours=34), timedelta(minutes=1))
    False
    >>> has_successor(start, start + timedelta(hours=35), timedelta(minutes=1))
    True
    """
    return sent_at is not None and now - sent_at >= 2 * LONGEST * resend_after
