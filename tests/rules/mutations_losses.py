"""The rules of losses and poison, each taken out."""

from __future__ import annotations

from tests.rules.mutation import cut

LOSSES = (
    cut(
        "solo",
        "services/refusals.py",
        "if run.losses >= SUSPECT_LOSSES and len(self._hand):",
        "if False:",
        "test_a_busy_process_passes_a_suspect_over",
    ),
    cut(
        "solo",
        "services/worker.py",
        "        if suspects:\n",
        "        if False:\n",
        "test_a_suspect_is_claimed_alone",
    ),
    cut(
        "solo",
        "services/refusals.py",
        "if any(item.run.losses >= SUSPECT_LOSSES for item in self._hand.items()):",
        "if False:",
        "test_nothing_is_claimed_beside_a_suspect",
    ),
    cut(
        "solo",
        "services/refusals.py",
        "        if self._suspect is None:\n            return False\n",
        "        if True:\n            return False\n",
        "test_a_suspect_that_waits_too_long_gets_a_process_of_its_own",
    ),
    cut(
        "solo",
        "services/refusals.py",
        "self._suspect = (key, now) if waits else None",
        "self._suspect = None",
        "test_a_suspect_that_waits_too_long_gets_a_process_of_its_own",
    ),
    cut(
        "solo",
        "services/refusals.py",
        "waits = run is not None and run.state is RunState.READY",
        "waits = True",
        "test_nobody_empties_himself_for_a_suspect_that_another_took",
    ),
    cut(
        "poison",
        "domain/lifecycle.py",
        "if losses >= POISON_LOSSES and not run.cancel_requested:",
        "if False:",
        "test_the_third_loss_in_a_row_is_dead",
    ),
    cut(
        "losszero",
        "domain/lifecycle.py",
        "        spent=run.spent + 1,\n        losses=0,\n",
        "        spent=run.spent + 1,\n",
        "test_a_reported_outcome_zeroes_the_losses[fail]",
    ),
    cut(
        "losszero",
        "domain/lifecycle.py",
        '        reason="snoozed",\n        losses=0,\n',
        '        reason="snoozed",\n',
        "test_a_reported_outcome_zeroes_the_losses[snooze]",
    ),
    cut(
        "replaysolo",
        "domain/lifecycle.py",
        "losses=SUSPECT_LOSSES if run.losses >= POISON_LOSSES else 0,",
        "losses=0,",
        "test_a_replayed_poison_run_dies_at_its_next_loss",
    ),
    cut(
        "lapsereport",
        "services/worker.py",
        "        self._exits.hand_back(started, StopReason.LEASE_LOST, now)\n",
        "",
        "test_a_living_process_whose_lease_ran_out_reports_no_loss",
    ),
)
