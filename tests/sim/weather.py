"""What goes wrong in a simulation, and how often: each seed has its weather."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """Chances for each call to the store, and lengths.

    Attributes:
        name: for the report.
        lost: a write's answer is lost.
        refused: the store refuses the call.
        killed: the process dies.
        frozen: the process stands still for a while.
        frozen_s_max: the longest while, seconds.
        dispatchers: as `frozen`, for dispatchers.
        lag_s: how late the index is, seconds.
        operator_s: the longest pause between two acts of the operator, seconds.
        outage: chance that all dispatchers stand still together, for a minute and more.
        toxic: there is a job that kills its process.
    """

    name: str = "mixed"
    lost: float = 0.01
    refused: float = 0.02
    killed: float = 0.0005
    frozen: float = 0.001
    frozen_s_max: float = 25.0
    dispatchers: float = 0.001
    lag_s: tuple[float, ...] = (0.0, 0.5, 2.0)
    operator_s: float = 5.0
    outage: float = 0.3
    toxic: float = 0.3


def _mixed(rng: Random) -> Weather:
    frozen = rng.choice([0.0, 0.001, 0.003])
    return Weather(
        lost=rng.choice([0.0, 0.01, 0.03]),
        refused=rng.choice([0.0, 0.02, 0.1]),
        killed=rng.choice([0.0, 0.0005, 0.002]),
        frozen=frozen,
        dispatchers=frozen,
        frozen_s_max=rng.choice([8.0, 25.0, 60.0]),
        lag_s=rng.choice([(0.0,), (0.5,), (2.0,), (6.0,)]),
    )


CALM = Weather(
    name="calm", lost=0.0, refused=0.0, killed=0.0, frozen=0.0, dispatchers=0.0, lag_s=(0.0,)
)
KINDS: tuple[Callable[[Random], Weather], ...] = (
    _mixed,
    _mixed,
    _mixed,
    lambda _: replace(CALM, name="frozen dispatchers", dispatchers=0.015, frozen_s_max=130.0),
    lambda _: replace(CALM, name="frozen", frozen=0.006, lost=0.01, frozen_s_max=40.0),
    lambda _: replace(CALM, name="lost answers", lost=0.15, refused=0.15),
    lambda _: replace(CALM, name="refusing", refused=0.4, outage=0.0),
    lambda _: replace(CALM, name="late index", lag_s=(0.0, 3.0, 7.5), frozen=0.001, killed=0.001),
    lambda _: replace(CALM, name="dying", killed=0.005, toxic=0.0),
    lambda _: replace(CALM, name="restless", operator_s=0.6, lost=0.01, refused=0.01),
    lambda _: replace(CALM, name="poisoned", toxic=1.0, operator_s=1e9),
)


def weather_of(rng: Random) -> Weather:
    """Return the weather of a seed."""
    return rng.choice(KINDS)(rng)
