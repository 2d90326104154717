"""A lease with a fixed end, as its holder judges it: by the wall and by the monotonic clock.

An invocation of a function has so much time and no more; whatever it holds is nobody's after its
end. It may be frozen at any point and wake later, so both clocks are looked at each time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from dynsched.domain.instants import Clock
from dynsched.domain.run import FIXED_SESSION

MARGINS = 6  # margins that an invocation must at least have


@dataclass(frozen=True, slots=True)
class FixedLease:
    """The time of one invocation.

    Attributes:
        session: what its leases name; no other invocation has it, nor a repetition of this one.
        ends_at: when it ends, by the wall clock.
        ends_mono: the same by the monotonic clock.
        margin: kept before the end: handlers are told to stop two of it before, and what still
            runs one before has failed.
    """

    session: str
    ends_at: datetime
    ends_mono: float
    margin: timedelta

    @classmethod
    def until(
        cls, ends_at: datetime, clock: Clock, *, invocation: str, nonce: str, margin: timedelta
    ) -> FixedLease:
        """Return the lease of an invocation that ends at an instant; a short one has less margin.

        Args:
            ends_at: by the wall clock.
            clock: both clocks, read now.
            invocation: its id.
            nonce: AWS repeats an id when it repeats an invocation; this tells them apart.
            margin: the longest.
        """
        length = max(ends_at - clock.now(), timedelta(0))
        return cls(
            session=f"{FIXED_SESSION}{invocation}-{nonce}",
            ends_at=ends_at,
            ends_mono=clock.monotonic() + length.total_seconds(),
            margin=min(margin, length / MARGINS),
        )

    def left(self, clock: Clock) -> timedelta:
        """Return how much is left, by the clock that shows less."""
        by_mono = timedelta(seconds=self.ends_mono - clock.monotonic())
        return min(self.ends_at - clock.now(), by_mono)

    def end_for(self, now: datetime, limit: timedelta | None) -> datetime:
        """Return when a run's lease is to end: early, if its time limit lets it be back earlier.

        So a run whose process died is found soon, and not at the end of the longest invocation.
        """
        return self.ends_at if limit is None else min(self.ends_at, now + limit + self.margin)

    def lets_start(self, clock: Clock, end: datetime, limit: timedelta | None) -> bool:
        """Return whether a handler may still be called under a lease that ends so.

        There must be time to stop it and to write what became of it; under a lease that was cut
        to its time limit, the whole of that limit too.
        """
        early = max(self.ends_at - end, timedelta(0))
        left = self.left(clock) - early
        if limit is not None and early:
            return left > limit
        return left > 2 * self.margin
