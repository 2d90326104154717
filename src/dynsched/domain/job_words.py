"""A job's choices as people read them: the same words in every console."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta

from dynsched.domain.job import Policies
from dynsched.domain.recurrence import Schedule
from dynsched.domain.retry import RetryPolicy
from dynsched.domain.time_words import span


def schedule_words(schedule: Schedule | None, *, short: bool = False) -> str:
    """Return a schedule in words, one line; `short` leaves out what an interval counts from."""
    if schedule is None:
        return "by hand"
    words = schedule.describe()
    return words.partition(", counted from")[0] if short else words


def policies_words(policies: Policies) -> str:
    """Return the choices that differ from the defaults.

    >>> policies_words(Policies(timeout=None, share_by_job=True))
    'timeout none, share_by_job'
    """
    plain, words = Policies(), []
    for one in fields(Policies):
        value = getattr(policies, one.name)
        if value == getattr(plain, one.name):
            continue
        if isinstance(value, RetryPolicy):
            words.append(_retry_words(value))
        elif value is True:
            words.append(one.name)
        else:
            shown = span(value) if isinstance(value, timedelta) else value
            words.append(f"{one.name} {'none' if value is None else shown}")
    return ", ".join(words) or "defaults"


def _retry_words(retry: RetryPolicy) -> str:
    back_off = f"back-off {span(retry.base)} times {retry.factor:g} up to {span(retry.cap)}"
    rules = f", {len(retry.rules)} rules" if retry.rules else ""
    return f"at most {retry.max_attempts} attempts, {back_off}{rules}"
