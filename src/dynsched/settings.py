"""Settings: every bound of the services, with its unit and its reason, in one validated object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta

from dynsched.domain.masking import Masker
from dynsched.errors import InvalidInput

PREFIX = "DYNSCHED_"
DURATION_MAX = timedelta(days=366)
BATCH_CHUNK_MAX = 2_000  # a DynamoDB item holds twice as many entries
_TOO_LONG = (
    f"longer than {DURATION_MAX.days} days",
    f"give at most {DURATION_MAX // timedelta(seconds=1)} seconds",
)


def _s(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the services are bounded by.

    Each field can be set by an environment variable `DYNSCHED_{FIELD}`: durations in seconds with
    the suffix `_S` (`DYNSCHED_LEASE_S=30`), counts plainly (`DYNSCHED_SLOTS=16`).

    Attributes:
        clock_bound: how far clocks may differ; pause and edit take effect this much later.
        skew_stop: a process whose clock differs from the store's by more stops ticking.
        lease: life of a worker session from a heartbeat; heartbeats come every third of it.
        lease_margin: kept on either side of a lease's end: the worker stops before, the reaper
            acts after.
        reaper_period: between two sweeps of the reaper.
        index_lag: how long an index entry may take to appear.
        close_after: a minute bucket is closed this long after its end
            (`index_lag` + 2 * `clock_bound`, rounded up).
        catch_up_pace: caught-up runs of one job become available this far apart.
        slots: handlers that one worker process runs at once.
        poll_idle: longest pause between two polls of an idle worker.
        foreign_lanes: how often a worker with free slots looks at lanes that are not its own.
        drain_grace: how long handlers may go on after SIGTERM.
        tick_jobs: jobs that one tick serves at most before it looks at the clock again.
        tick_minutes: past minute buckets that one tick reads at most.
        unknown_handler: a run whose handler no worker knew for so long is dead.
        suspect_patience: a worker that meets a suspect run older than this empties itself for it.
        sweep_period: between two sweeps over all rows, the last net.
        refusal: how long a refused permit, breaker or handler is remembered.
        health_delay_warn: health warns when the 95th percentile of start delays over five minutes
            reaches this.
        health_delay_bad: and calls it bad from here on.
        health_wait_warn: health warns when a due run has waited so long for its start.
        health_wait_bad: and calls it bad from here on; runs of bulk priority are made to wait.
        health_silence: a dispatcher or reaper that was not heard for so long is stuck; they give a
            sign of life each half minute.
        health_lag: health warns when the dispatcher's cursors are so far behind; some three
            minutes are healthy.
        health_dead_warn: health warns when so many runs died within an hour.
        health_dead_bad: and calls it bad from here on.
        batch_runs: dead runs that one replay batch holds at most.
        batch_chunk: entries of a replay batch that lie in one row.
        batch_draft: how long a previewed replay batch can be confirmed.
        batch_lease: a stepper that was not heard of for so long loses its batch to another.
        step_period: between two steps of a running batch.
        step_idle: between two looks for batches while none is running.
        step_runs: entries of a batch that one step moves at most.
        resend_after: where runs are handed off by messages, a run that is due and ready for so
            long is told of again, in case its message was lost; then at twice that age, and so on.
        resend_most: messages that one look sends again at most; there are four in that time, and
            behind one that sent as many another one at once, until the queues are deep.
        resend_depth: a queue with more messages, visible or in flight, is deep: a twentieth of
            that is sent again there.
        mask_keys: names of keys whose values people are not shown, with commas between; beside
            password, token, secret and the like.
    """

    clock_bound: timedelta = timedelta(seconds=2)
    skew_stop: timedelta = timedelta(seconds=2)
    lease: timedelta = timedelta(seconds=30)
    lease_margin: timedelta = timedelta(seconds=5)
    reaper_period: timedelta = timedelta(seconds=5)
    index_lag: timedelta = timedelta(seconds=60)
    close_after: timedelta = timedelta(seconds=90)
    catch_up_pace: timedelta = timedelta(seconds=1)
    slots: int = 32
    poll_idle: timedelta = timedelta(seconds=0.5)
    foreign_lanes: timedelta = timedelta(seconds=2)
    drain_grace: timedelta = timedelta(seconds=20)
    tick_jobs: int = 5_000
    tick_minutes: int = 1_500
    unknown_handler: timedelta = timedelta(hours=24)
    suspect_patience: timedelta = timedelta(seconds=60)
    sweep_period: timedelta = timedelta(hours=24)
    refusal: timedelta = timedelta(seconds=3)
    health_delay_warn: timedelta = timedelta(seconds=5)
    health_delay_bad: timedelta = timedelta(seconds=30)
    health_wait_warn: timedelta = timedelta(seconds=30)
    health_wait_bad: timedelta = timedelta(minutes=5)
    health_silence: timedelta = timedelta(seconds=90)
    health_lag: timedelta = timedelta(minutes=5)
    health_dead_warn: int = 10
    health_dead_bad: int = 100
    batch_runs: int = 100_000
    batch_chunk: int = 500
    batch_draft: timedelta = timedelta(minutes=15)
    batch_lease: timedelta = timedelta(seconds=15)
    step_period: timedelta = timedelta(seconds=1)
    step_idle: timedelta = timedelta(seconds=5)
    step_runs: int = 250
    resend_after: timedelta = timedelta(seconds=60)
    resend_most: int = 200
    resend_depth: int = 1_000
    mask_keys: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check every bound, naming the field that is wrong."""
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, timedelta) and value <= timedelta(0):
                raise InvalidInput(field.name, "must be longer than nothing")
            if isinstance(value, timedelta) and value > DURATION_MAX:
                raise InvalidInput(field.name, *_TOO_LONG)
            if isinstance(value, int) and value < 1:
                raise InvalidInput(field.name, "must be at least 1")
        Masker(self.mask_keys)  # it checks them
        if self.batch_chunk > BATCH_CHUNK_MAX:
            raise InvalidInput("batch_chunk", f"must be at most {BATCH_CHUNK_MAX}")
        if self.lease < 2 * self.lease_margin:
            raise InvalidInput("lease", "must be at least twice lease_margin")
        if self.close_after < self.index_lag + 2 * self.clock_bound:
            raise InvalidInput("close_after", "must be at least index_lag + 2 * clock_bound")


def settings_from(environment: Mapping[str, str], base: Settings | None = None) -> Settings:
    """Return the settings with what the environment sets.

    Raises:
        InvalidInput: a value is no number or out of bounds; the field is named.
    """
    settings = base or Settings()
    changes: dict[str, timedelta | int | tuple[str, ...]] = {}
    for field in fields(Settings):
        value = getattr(settings, field.name)
        duration = isinstance(value, timedelta)
        variable = PREFIX + field.name.upper() + ("_S" if duration else "")
        text = environment.get(variable)
        if text is None:
            continue
        if isinstance(value, tuple):
            changes[field.name] = tuple(filter(None, map(str.strip, text.split(","))))
            continue
        try:
            changes[field.name] = _s(float(text)) if duration else int(text)
        except ValueError:
            raise InvalidInput(variable, f"{text!r} is not a number") from None
        except OverflowError:
            raise InvalidInput(variable, *_TOO_LONG) from None
    return replace(settings, **changes) if changes else settings  # type: ignore[arg-type]
