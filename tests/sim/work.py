"""What simulated jobs do: they take time, fail, come back later, and kill their process."""

from __future__ import annotations

import zlib
from datetime import timedelta
from random import Random
from typing import Any, Protocol

from dynsched.targets.app import App
from dynsched.targets.context import Permanent, RetryAfter, Snooze
from dynsched.testing.history import History
from tests.sim.baton import Baton, Killed, Life

STEP_S = 0.25
TOXIC = "toxic"


class Place(Protocol):
    """Where handlers run."""

    seed: int
    baton: Baton

    @property
    def history(self) -> History:
        """Return where starts are noted."""


def is_toxic(run_id: str) -> bool:
    """Say whether a run of the toxic job kills its process at each try."""
    return zlib.crc32(run_id.encode()) % 3 == 0


def make_app(place: Place, life: Life) -> App:
    """Return the app of one process."""
    app = App()

    @app.job("work")
    def work(ctx: Any) -> Any:
        place.history.started(ctx)
        rng = Random(f"{place.seed} {ctx.run_id} {ctx.attempt}")
        _take_time(place.baton, rng, ctx)
        return _end(rng, ctx)

    @app.job(TOXIC)
    def toxic(ctx: Any) -> None:
        place.history.started(ctx)
        place.baton.pause(0.5)
        if is_toxic(ctx.run_id):
            place.baton.kill(life)
            raise Killed

    return app


def _take_time(baton: Baton, rng: Random, ctx: Any) -> None:
    """Work for a while, some beyond their lease; most end when they are asked to."""
    left_s = rng.choice([0.0, 0.0, 0.05, 0.3, 1.0, 2.5, 6.0, 15.0])
    deaf = rng.random() < 0.3
    while left_s > 0:
        baton.pause(min(left_s, STEP_S))
        left_s -= STEP_S
        if not deaf:
            ctx.raise_if_cancelled()


def _end(rng: Random, ctx: Any) -> Any:
    chance = rng.random()
    if chance < 0.2:
        raise OSError(f"try {ctx.attempt} fails")
    if chance < 0.23:
        raise Permanent("it cannot succeed")
    if chance < 0.28:
        raise Snooze(after=timedelta(seconds=rng.choice([0, 3, 20])))
    if chance < 0.31:
        raise RetryAfter(timedelta(seconds=rng.choice([0, 2, 15])))
    return None if chance < 0.7 else {"attempt": ctx.attempt}
