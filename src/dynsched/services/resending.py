"""Resending: makes good the messages that were lost on the way to functions.

A message is sent behind its row without a transaction, and no transport is perfect. So a reaper
looks for ready runs that are due for long and sends their messages again: at ages that double, so
that a run that only waits its turn is not told of at each look; a bounded number at once; and a
trickle where a queue is deep, since nearly every old run there only waits its turn.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from dynsched.domain.instants import to_text, within
from dynsched.domain.resending import crossed, first_age
from dynsched.domain.run import Run
from dynsched.errors import StoreError
from dynsched.settings import Settings
from dynsched.storage.handoff import MessageQueue, Notice
from dynsched.storage.placement import after_share
from dynsched.storage.resends import Lap, Laps, lap_name
from dynsched.storage.store import Store

log = logging.getLogger("dynsched.handoff")

LOOKS_PER_AGE = 4
"""Looks within the first age: more would cost writes, and find little sooner."""
PAGE = 50  # rows of one read; most shares have fewer ready
PAGES_MAX = 40  # reads of one queue of messages in one look; the next goes on behind them
ROUNDS = 2  # each queue has its share of the bound first; then what others have left of theirs
TRICKLE = 20
"""Which part of the bound is sent to a deep queue: a lost message waits, but not for ever."""

Found = tuple[Run, Lap]
"""A run that is to be told of again, and the lap as it stands behind it."""


class Resending:
    """One replica's looks; any number may look at once.

    Args:
        settings: `resend_after`, `resend_most`, `resend_depth`.
    """

    def __init__(self, store: Store, *, settings: Settings) -> None:
        self._store = store
        self._settings = settings

    def resend(self, now: datetime, time_left: Callable[[], bool] = lambda: False) -> int:
        """Look once, unless somebody has just looked; return how many messages were sent.

        A message is sent once its look is written down, by the one replica that wrote it. A look
        that has used up its bound is followed by another while there is time: behind an outage
        or a restore nearly all messages are lost, and a reaper that is woken once a minute would
        need hours for them. It ends where a queue is deep, so functions set the pace.

        Args:
            now: the present instant.
            time_left: asked before each look but the first.

        Cost: a store without queues of messages is not asked. Else a read and a write unit, and
        one query for each lane of each queue; more where many runs are ready.

        Raises:
            StoreError: the store failed; the next look goes on where the last one ended.
        """
        if not self._store.topology.message_queues:
            return 0
        laps = self._store.resends.read()
        if within(now, laps.at, self._settings.resend_after / LOOKS_PER_AGE):
            return 0
        sent = total = self._look_once(laps, now)
        full = max(self._settings.resend_most, TRICKLE)  # so that it is more than a trickle
        while sent >= full and time_left():
            sent = self._look_once(self._store.resends.read(), now)
            total += sent
        if total:
            log.info("%d messages of runs that are ready for long were sent again", total)
        return total

    def _look_once(self, laps: Laps, now: datetime) -> int:
        """Look over all queues of messages up to the bound; return how many were sent."""
        queues = self._store.topology.message_queues
        after = {lap_name(queue): laps.laps.get(lap_name(queue), Lap()) for queue in queues}
        left, hungry = self._settings.resend_most, list(queues)
        todo: list[tuple[MessageQueue, list[Notice]]] = []
        for _ in range(ROUNDS):
            asked, hungry = hungry, []
            for place, queue in enumerate(asked):
                most = -(-left // (len(asked) - place))
                found, after[lap_name(queue)] = self._look(queue, after[lap_name(queue)], now, most)
                left -= len(found)
                todo.append((queue, [Notice(r.run_id, r.share, r.available_at) for r in found]))
                if len(found) == most:
                    hungry.append(queue)
        return self._send(laps, after, now, todo)

    def _send(
        self,
        laps: Laps,
        after: Mapping[str, Lap],
        now: datetime,
        todo: list[tuple[MessageQueue, list[Notice]]],
    ) -> int:
        if not self._store.resends.write(replace(laps, at=now, laps=after)):
            return 0  # another replica looked in this moment, and sends
        for queue, notices in todo:
            if notices:
                self._store.handoff.send(queue, notices)
        return sum(len(notices) for _, notices in todo)

    def _look(
        self, queue: MessageQueue, lap: Lap, now: datetime, most: int
    ) -> tuple[list[Run], Lap]:
        """Return the runs of a queue to tell of again, and the lap as it stands then.

        The transport is asked how deep the queue is only if there is something to send. As long as
        it does not answer the lap stays where it is, so that it covers the outage afterwards.
        """
        found, end = self._walk(queue, replace(lap, until=lap.until or now), most)
        if not found:
            return [], end
        try:
            depth = self._store.handoff.depth(queue)
        except StoreError as error:
            log.warning("nothing is sent again to %s: %s", queue.url, error)
            return [], lap
        if depth > self._settings.resend_depth:
            few = max(1, self._settings.resend_most // TRICKLE)
            if len(found) > few:
                found = found[:few]
                end = found[-1][1]
        return [run for run, _ in found], end

    def _walk(self, queue: MessageQueue, lap: Lap, most: int) -> tuple[list[Found], Lap]:
        """Go over a lap's ready runs up to a number of finds or of pages; say how it stands."""
        assert lap.until is not None
        found: list[Found] = []
        youngest = to_text(lap.until - self._settings.resend_after)
        for _ in range(PAGES_MAX):
            if lap.lane >= self._store.topology.lanes:
                return found, Lap(since=lap.until)
            if len(found) >= most:
                break
            page = self._store.resends.page(queue, lap.lane, after=lap.after, limit=PAGE)
            for sort, run in page.rows:
                if self._is_to_be_told(run, lap):
                    found.append((run, replace(lap, after=sort)))
                    if len(found) >= most:
                        return found, found[-1][1]
            lap = _behind(lap, page.last, youngest, more=page.cursor is not None)
        return found, lap

    def _is_to_be_told(self, run: Run, lap: Lap) -> bool:
        assert lap.until is not None
        first = first_age(self._settings.resend_after, waits=run.waits)
        return crossed(run.available_at, lap.since, lap.until, first)


def _behind(lap: Lap, last: str, youngest: str, *, more: bool) -> Lap:
    """Return a lap as it stands behind a page, whose last sort key is `last`.

    A share's runs lie in the order of their times: behind one that is too young all are.
    """
    if not more or not last:
        return replace(lap, lane=lap.lane + 1, after="")
    share, _, rest = last.partition("#")
    return replace(lap, after=after_share(share) if rest > youngest else last)
