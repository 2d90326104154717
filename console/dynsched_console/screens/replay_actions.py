"""Previews of replays, and the louder replays of one run; from every screen with dead runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType

from dynsched.domain.access import Action
from dynsched.domain.filters import VALUES_MAX, term_text
from dynsched.domain.masking import MASK
from dynsched.domain.payload import Json
from dynsched.domain.run import Run, RunState
from dynsched.errors import InvalidInput
from dynsched.services.replay_verbs import difference
from dynsched_console.choices import ChoiceDialog
from dynsched_console.dialogs import Change
from dynsched_console.editing import DiffPage, edited, laid_out, parsed
from dynsched_console.replaying import Plan
from dynsched_console.screens.base import ConsoleScreen, sentence
from dynsched_console.sheet import Link

PATIENCE_S = 1.0  # before it is said that something takes long


class Previews(ConsoleScreen):
    """Freezes dead runs as a draft and goes there."""

    async def preview(self, plan: Plan) -> None:
        """Preview a plan and show the draft; only in a `@work` method."""
        slow = self.set_timer(PATIENCE_S, self._say_looking)
        batch = await self.change(lambda: self.source.preview(plan))
        slow.stop()
        if batch is not None:
            self.desk.visit(Link(place="batch", subject=batch.batch_id))

    def _say_looking(self) -> None:
        self.notify("looking which dead runs these are…", markup=False)

    async def preview_runs(self, runs: Sequence[Run]) -> None:
        """Preview the replay of just these runs; only in a `@work` method."""
        ids = [run.run_id for run in runs]
        if not ids:
            self.notify("only dead runs can be replayed", markup=False)
        elif len(ids) > VALUES_MAX:
            words = f"{len(ids):,} are marked, {VALUES_MAX} at most: filter, then R takes them all"
            self.notify(words, severity="warning", markup=False)
        else:
            await self.preview(Plan(filter=term_text("id", *ids)))


class LoudReplays(ConsoleScreen):
    """Replays one dead run otherwise than it was."""

    CHANGES: ClassVar = {
        "edit_payload": Action.RUN_REPLAY_EDITED,
        "as_new": Action.RUN_REPLAY_AS_NEW,
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("E", "edit_payload", "edit payload, replay", show=False, id="runs.edit"),
        Binding("N", "as_new", "replay as new", show=False, id="runs.as-new"),
    ]

    def acted_on(self) -> list[Run]:
        """Return the runs that a key is about."""
        raise NotImplementedError

    def _one_dead(self, what: str) -> Run | None:
        runs = self.acted_on()
        if len(runs) == 1 and runs[0].state is RunState.DEAD and not runs[0].hidden:
            return runs[0]
        self.notify(f"one dead run at a time can be {what}", markup=False)
        return None

    @work
    async def action_as_new(self) -> None:
        """Make a new run of a dead one, after a yes that is typed."""
        run = self._one_dead("replayed as a new one")
        if run is None:
            return
        change = Change(
            verb="Make a new run",
            sentence=f"Make a NEW run of {run.run_id}? It has a key of its own, so what the dead"
            " run did already may be done a second time. The dead run is discarded.",
            count=1,
            command=("replay", "as-new", run.run_id),
            typed=True,
            destructive=True,
        )
        yes = await self.confirm(change)
        if yes is None:
            return
        new = await self.change(lambda: self.source.replay_as_new(run.run_id, reason=yes.reason))
        if new is not None:
            self.desk.visit(Link(place="run", subject=new.run_id))

    @work
    async def action_edit_payload(self) -> None:
        """Edit a dead run's payload, show what differs, and replay it after a yes."""
        run = self._one_dead("edited")
        if run is None:
            return
        try:
            old = await self.source.ask(lambda: self.source.payload_of(run.run_id))
            payload = await self._edited(run.run_id, old)
        except Exception as error:  # noqa: BLE001 - the sentence is what helps the operator
            self.notify(sentence(error), severity="error", markup=False)
            return
        if payload is None:
            return
        text = json.dumps(payload[0], ensure_ascii=False, separators=(",", ":"))
        hidden = f" What shows {MASK} keeps what it hides." if MASK in text else ""
        change = Change(
            verb="Replay edited",
            sentence=f"Replay {run.run_id} with the edited payload? Same run and key; the payload"
            f" that it had is kept among its attempts.{hidden}",
            count=1,
            command=("replay", "edit", run.run_id, "--payload", text),
            reasoned=True,
        )
        yes = await self.confirm(change)
        if yes is not None:
            await self.change(
                lambda: self.source.replay_edited(run.run_id, payload[0], reason=yes.reason),
                "replayed with the edited payload",
            )

    async def _edited(self, run_id: str, old: str) -> tuple[Json] | None:
        """Return the new payload, in a tuple since it may be null; None to give up."""
        text = laid_out(old)
        while True:
            text = edited(self.app, text)
            try:
                value = parsed(text)
            except InvalidInput as error:
                again = await self.app.push_screen_wait(
                    ChoiceDialog(str(error), ("edit it again", "give up"))
                )
                if again != 0:
                    return None
                continue
            differs = difference(old, json.dumps(value))
            if not differs:
                self.notify("the payload is as it was: nothing is done", markup=False)
                return None
            answer = await self.app.push_screen_wait(
                DiffPage(f"The payload of {run_id}, before and after", differs)
            )
            if answer != "again":
                return (value,) if answer == "go" else None
