"""What a worker may not start now, and for how long it remembers that.

What is remembered is the reason (the permit, the handler), with every row that needs it, so that
a scan goes on behind them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from dynsched.domain.instants import within
from dynsched.domain.lifecycle import SUSPECT_LOSSES
from dynsched.domain.run import Run, RunKey, RunState
from dynsched.domain.target import CommandTarget, HandlerTarget, Target
from dynsched.domain.target_aws import LambdaTarget, SqsTarget
from dynsched.domain.target_base import TargetKind
from dynsched.services.hand import Hand
from dynsched.settings import Settings
from dynsched.targets.runner import TargetRunner

WAITING_MAX = 10_000  # jobs of which it is remembered that their runs wait


class Refusals:
    """The memory of one worker.

    Args:
        peek: whether a tenant has a free permit; after a refusal a read must show one before the
            next claim.
        reread: returns a run as it is stored now.
    """

    def __init__(
        self,
        *,
        settings: Settings,
        runner: TargetRunner,
        hand: Hand,
        peek: Callable[[str], bool],
        reread: Callable[[RunKey], Run | None],
    ) -> None:
        self._settings = settings
        self._runner = runner
        self._hand = hand
        self._peek = peek
        self._known: dict[str, bool] = {}
        self._capped: dict[str, datetime] = {}
        self._waiting: dict[str, datetime] = {}
        self._reread = reread
        self._suspect: tuple[RunKey, datetime] | None = None  # for whom, and when last seen ready

    def knows(self, needs: str) -> bool:
        """Return whether this worker has what a run needs."""
        known = self._known.get(needs)
        if known is None:
            target = _stand_in(needs)
            known = target is None or self._runner.knows(target)
            if known or not isinstance(target, LambdaTarget | SqsTarget):
                # Credentials may come later; the runner looks for them now and then.
                self._known[needs] = known
        return known

    def overdue(self, run: Run, now: datetime) -> bool:
        """Return whether a run has waited so long for a handler that it is to be buried."""
        return now - run.available_at >= self._settings.unknown_handler

    def usable(self, run: Run, now: datetime) -> bool:
        """Return whether a due run may be claimed here now."""
        if run.run_id in self._hand:
            return False
        if not self.knows(run.needs) and not self.overdue(run, now):
            return False
        if self._waits(run, now):
            return False
        if run.losses >= SUSPECT_LOSSES and len(self._hand):
            if now - run.available_at >= self._settings.suspect_patience:
                self._suspect = run.key, now
            return False
        return not self.shut(run.tenant, now)

    def emptying(self, now: datetime) -> bool:
        """Return whether nothing may be claimed beside what is in hand.

        A suspect is in hand, or one has waited too long for a process with nothing else in hand:
        then this one empties itself, however long that takes, unless another takes the suspect.
        """
        if not len(self._hand):
            self._suspect = None
            return False
        if any(item.run.losses >= SUSPECT_LOSSES for item in self._hand.items()):
            return True
        if self._suspect is None:
            return False
        key, seen_at = self._suspect
        if not within(now, seen_at, self._settings.lease):
            run = self._reread(key)
            waits = run is not None and run.state is RunState.READY
            self._suspect = (key, now) if waits else None
        return self._suspect is not None

    def waits(self, job_id: str, now: datetime) -> None:
        """Remember that a run of a job waits for another: so do those that are due already."""
        if len(self._waiting) >= WAITING_MAX:
            self._waiting.clear()
        self._waiting[job_id] = now

    def ended(self, run: Run) -> None:
        """Forget that runs of a job wait when one of them has left its lease here."""
        self._waiting.pop(run.job_id, None)

    def _waits(self, run: Run, now: datetime) -> bool:
        """Return whether a run was due when another of its job was last seen to stand in the way.

        One that became due since has yet to be looked at: it may have to be skipped.
        """
        since = self._waiting.get(run.job_id)
        if since is None or run.forced:
            return False
        if not within(now, since, self._settings.refusal):
            del self._waiting[run.job_id]
            return False
        return run.available_at <= since

    def cap(self, tenant: str, now: datetime) -> None:
        """Remember that a tenant had no free permit."""
        self._capped[tenant] = now

    def freed(self, run: Run) -> None:
        """Forget a tenant's refusal when one of its runs has given up its permit here."""
        self._capped.pop(run.tenant, None)

    def shut(self, tenant: str, now: datetime) -> bool:
        """Return whether a tenant is at its cap, as far as is remembered."""
        since = self._capped.get(tenant)
        if since is None:
            return False
        if within(now, since, self._settings.refusal):
            return True
        if self._peek(tenant):
            del self._capped[tenant]
            return False
        self.cap(tenant, now)
        return True


def _stand_in(needs: str) -> Target | None:
    """Return a target with the same needs, None where every worker has them."""
    kind, _, name = needs.partition(":")
    if kind == "handler":
        return HandlerTarget(name)
    if kind == "command":
        return CommandTarget("true", user=name or None)
    if kind == TargetKind.LAMBDA:
        return LambdaTarget("any")
    if kind == TargetKind.SQS:
        return SqsTarget("https://sqs.eu-west-1.amazonaws.com/000000000000/any")
    return None
