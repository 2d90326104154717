"""Reading: what visitors look at is read once for all of them, and never waited for too long.

A store that fails or is slow does not empty a page: the last answer is shown, with its age.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, TypeVar

from dynsched.domain.instants import Clock
from dynsched.errors import StoreError, Unavailable

T = TypeVar("T")

KEPT_MAX = 256  # answers; the least used one goes first
THREADS = 8
STALE_S = 600.0  # an answer older than this is not shown instead of an error


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """What was read.

    Attributes:
        value: it.
        age_s: how old it is, in seconds.
        trouble: why nothing newer is there; empty if it is as fresh as was asked for.
    """

    value: T
    age_s: float
    trouble: str = ""


@dataclass(slots=True)
class _Kept:
    value: Any
    at: float
    fresh: bool = True


class Reading:
    """Answers of the store that several visitors share.

    Args:
        clock: measures their age.
        fresh: how old an answer may be.
        patience: how long somebody waits for one.

    Concurrency: any number of threads may ask; one question is asked once at a time.
    """

    def __init__(self, clock: Clock, *, fresh: timedelta, patience: timedelta) -> None:
        self._clock = clock
        self._fresh_s = fresh.total_seconds()
        self._patience_s = patience.total_seconds()
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="dynsched-web-read")
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._asked: dict[Hashable, tuple[object, Future[Any]]] = {}

    def get(self, key: Hashable, load: Callable[[], T]) -> Answer[T]:
        """Return the answer to a question.

        Args:
            key: the question; all that the answer depends on is in it.
            load: asks the store.

        Raises:
            StoreError: the store failed or is too slow, and no older answer is there.
            DynschedError: the question is wrong.
        """
        with self._lock:
            kept = self._kept.get(key)
            now = self._clock.monotonic()
            if kept is not None and kept.fresh and now - kept.at < self._fresh_s:
                self._kept.move_to_end(key)
                return Answer(kept.value, now - kept.at)
            if key not in self._asked:
                token = object()
                self._asked[key] = token, self._pool.submit(self._load, key, load, token)
            future = self._asked[key][1]
        try:
            return Answer(future.result(timeout=self._patience_s), 0.0)
        except NotYet:
            slow = f"the store has not answered for {self._patience_s:g} s"
            return self._older(kept, Unavailable(slow))
        except StoreError as error:
            return self._older(kept, error)

    def forget(self) -> None:
        """Let nobody be given an answer from before now, unless the store fails."""
        with self._lock:
            self._asked.clear()
            for kept in self._kept.values():
                kept.fresh = False

    def close(self) -> None:
        """End the threads; what they have asked is let go."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _older(self, kept: _Kept | None, error: StoreError) -> Answer[Any]:
        age_s = 0.0 if kept is None else self._clock.monotonic() - kept.at
        if kept is None or age_s > STALE_S:
            raise error
        return Answer(kept.value, age_s, str(error))

    def _load(self, key: Hashable, load: Callable[[], T], token: object) -> T:
        at = self._clock.monotonic()
        try:
            value = load()
        except BaseException:
            self._settle(key, token, None)
            raise
        self._settle(key, token, _Kept(value, at))
        return value

    def _settle(self, key: Hashable, token: object, kept: _Kept | None) -> None:
        """Keep an answer, unless somebody has changed something since it was asked for."""
        with self._lock:
            asked = self._asked.get(key)
            if asked is None or asked[0] is not token:
                return
            del self._asked[key]
            if kept is None:
                return
            self._kept[key] = kept
            self._kept.move_to_end(key)
            while len(self._kept) > KEPT_MAX:
                self._kept.popitem(last=False)
