"""What can be done to runs, from every screen that shows some; each after a yes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType

from dynsched.domain.access import Action
from dynsched.domain.run import Run, RunState
from dynsched.services.documents import run_document
from dynsched_console.clipboard import Copy
from dynsched_console.dialogs import Change, command_line
from dynsched_console.screens.base import ConsoleScreen


def run_copies(run: Run) -> list[Copy]:
    """Return what can be copied of a run."""
    return [
        Copy("id", run.run_id),
        Copy("command", command_line("run", "show", run.run_id)),
        Copy("error", run.error),
        Copy("key", run.idempotency_key),
        Copy("JSON", json.dumps(run_document(run), indent=2)),
    ]


def run_change(
    runs: Sequence[Run],
    *,
    verb: str,
    words: str,
    command: Sequence[str],
    destructive: bool = False,
    typed: bool = False,
) -> Change:
    """Return the question whether something shall be done to some runs.

    Args:
        runs: at least one.
        verb: what the button says.
        words: the sentence's verb and what follows, as in `Replay {}: it starts again`; the braces
            stand for the runs.
        command: the command that does the same, before the ids.
        destructive: it takes something away.
        typed: the count is typed whatever it is.
    """
    tenants = sorted({run.tenant for run in runs})
    many = f"{len(runs):,} runs of {', '.join(tenants[:3])}" + (", …" if len(tenants) > 3 else "")
    what = many if len(runs) > 1 else f"run {runs[0].run_id}"
    return Change(
        verb=verb,
        sentence=words.format(what),
        count=len(runs),
        tenants=len(tenants),
        command=(*command, *(run.run_id for run in runs)),
        destructive=destructive,
        typed=typed,
    )


class RunActions(ConsoleScreen):
    """Replays, cancels and discards the runs that `acted_on` names."""

    CHANGES: ClassVar = {
        "replay": Action.RUN_REPLAY,
        "cancel_run": Action.RUN_CANCEL,
        "discard": Action.RUN_DISCARD,
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "replay", "replay", id="runs.replay"),
        Binding("x", "cancel_run", "cancel", id="runs.cancel"),
        Binding("D", "discard", "discard", show=False, id="runs.discard"),
    ]

    def acted_on(self) -> list[Run]:
        """Return the runs that a key is about."""
        raise NotImplementedError

    @work
    async def action_replay(self) -> None:
        """Bring dead runs back, after a yes."""
        runs = [run for run in self.acted_on() if run.state is RunState.DEAD]
        if not runs:
            self.notify("only dead runs can be replayed", markup=False)
            return
        change = run_change(
            runs,
            verb="Replay",
            words="Replay {}? Same key, earlier attempts kept.",
            command=("dlq", "replay"),
        )
        await self.change_each(runs, change, "replayed", self._replay_one)

    @work
    async def action_cancel_run(self) -> None:
        """Cancel runs that have not ended, after a yes."""
        runs = [run for run in self.acted_on() if not run.terminal]
        if not runs:
            self.notify("only runs that have not ended can be cancelled", markup=False)
            return
        change = run_change(
            runs,
            verb="Cancel run" if len(runs) == 1 else "Cancel runs",
            words="Cancel {}? What waits ends at once, what runs is asked to stop.",
            command=("run", "cancel"),
            destructive=True,
        )
        await self.change_each(runs, change, "cancelled", self._cancel_one)

    @work
    async def action_discard(self) -> None:
        """Hide dead runs until they expire, after a yes and the typed count."""
        runs = [run for run in self.acted_on() if run.state is RunState.DEAD and not run.hidden]
        if not runs:
            self.notify("only dead runs can be discarded", markup=False)
            return
        change = run_change(
            runs,
            verb="Discard",
            words="Discard {}? Hidden, and restorable until it expires.",
            command=("dlq", "discard"),
            destructive=True,
            typed=True,
        )
        await self.change_each(runs, change, "discarded", self._discard_one)

    def _replay_one(self, run: Run, reason: str) -> Run:
        return self.source.replay(run.run_id, reason=reason)

    def _cancel_one(self, run: Run, reason: str) -> Run:
        return self.source.cancel(run.run_id, reason=reason)

    def _discard_one(self, run: Run, reason: str) -> Run:
        return self.source.discard(run.run_id, reason=reason)
