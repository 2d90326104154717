"""Views of workers: the sessions of the shared look at the store's health, by a filter."""

from __future__ import annotations

from datetime import datetime

from dynsched.domain.filter_match import Fact, matches
from dynsched.domain.filters import WORD, WORKERS, Filter
from dynsched.domain.health import WorkerLine
from dynsched.services.health import HealthViews
from dynsched.services.health_look import WORKERS_MAX
from dynsched.services.search import Found, as_filter


def worker_state(line: WorkerLine, now: datetime) -> str:
    """Return whether a session is `alive`, `expired` or `closed`."""
    if not line.open:
        return "closed"
    return "alive" if line.expires_at > now else "expired"


class WorkerViews(HealthViews):
    """Reads worker sessions for people; only reading."""

    def find_workers(self, filter: Filter | str = "") -> Found[WorkerLine]:
        """Return the sessions that fit a filter, open ones first, the newest sign of life first.

        They are those of the shared look: sessions that are open or still hold runs, at most 100.
        Cost: that of `health`.

        Raises:
            FilterError: the filter cannot be read.
        """
        found = as_filter(filter, WORKERS)
        health, now = self.health(), self._clock.now()
        items = tuple(
            one
            for one in health.workers
            if matches(found, lambda name, line=one: _fact(name, line, now), now)  # type: ignore[misc]
        )
        full = len(health.workers) >= WORKERS_MAX
        return Found(
            items=items,
            matched=len(items),
            examined=len(health.workers),
            tested=tuple("text" if one == WORD else one for one in dict.fromkeys(found.names())),
            notes=(f"only the {WORKERS_MAX} newest sessions were looked at",) if full else (),
        )


def _fact(name: str, line: WorkerLine, now: datetime) -> Fact:
    if name == "is":
        flags = {
            worker_state(line, now): True,
            "full": line.leased >= line.slots,
            "idle": line.leased == 0,
        }
        return [flag for flag, holds in flags.items() if holds]
    facts: dict[str, Fact] = {
        WORD: (line.session, line.host, *line.queues),
        "worker": line.session,
        "host": line.host,
        "pid": line.pid,
        "queue": line.queues,
        "slots": line.slots,
        "leased": line.leased,
    }
    return facts[name]
