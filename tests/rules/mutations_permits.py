"""The rules of caps and overlap, each taken out."""

from __future__ import annotations

from tests.rules.mutation import Edit, Mutation, cut

PERMITS = (
    Mutation(
        "permitafter",
        (
            Edit(
                "services/worker.py",
                "        claimed = self._claims.take(runs, session) if runs else []\n",
                "        coming = [lifecycle.claim(run, session=session).after for run in runs]\n"
                "        self._look.early = self._look._caps(coming, {})\n"
                "        claimed = self._claims.take(runs, session) if runs else []\n",
            ),
            Edit(
                "services/look.py",
                "        permits = self._caps(claimed, overlaps)\n",
                "        permits = self.early\n",
            ),
        ),
        ("test_a_permit_is_written_after_the_claim",),
    ),
    cut(
        "permitfree",
        "domain/overlap.py",
        "        and holder_run is not None\n"
        "        and holder_run.state is RunState.LEASED\n"
        "        and holder_run.fence == holder[1]\n",
        "",
        "test_nobody_has_to_release_a_permit",
        "test_a_permit_of_an_older_lease_of_the_run_holds_nobody_up",
    ),
    cut(
        "permitfree",
        "domain/overlap.py",
        "        and holder_run.state is RunState.LEASED\n",
        "        and holder_run.state in (RunState.LEASED, RunState.FAILED)\n",
        "test_a_run_in_back_off_does_not_count_as_running",
    ),
    cut(
        "probe",
        "services/permits.py",
        "            yield [mark]\n",
        "            yield [mark]\n            return\n",
        "test_every_permit_is_tried_when_the_mark_is_of_no_use",
    ),
    cut(
        "permitmem",
        "services/leadout.py",
        "            self._refusals.cap(run.tenant, now)\n",
        "",
        "test_a_refused_permit_is_remembered_for_all_who_need_it",
    ),
    cut(
        "permitmem",
        "services/exits.py",
        "            if item.permit is not None:\n                self._refusals.freed(item.run)\n",
        "            self._refusals.freed(item.run)\n",
        "test_a_refused_permit_is_remembered_for_all_who_need_it",
    ),
    cut(
        "permitpeek",
        "services/refusals.py",
        "if self._peek(tenant):",
        "if True:",
        "test_after_a_refusal_a_read_shows_a_free_permit_before_the_next_claim",
    ),
    Mutation(
        "claimfirst",
        (
            Edit(
                "services/worker.py",
                "        claimed = self._claims.take(runs, session) if runs else []\n",
                "        self._look.early = self._look.at(runs)\n"
                "        claimed = self._claims.take(runs, session) if runs else []\n",
            ),
            Edit(
                "services/starts.py",
                "for looked in self._look.at([item.run for item in claimed]):",
                "for looked in [one for one in self._look.early if one.run.run_id in items]:",
            ),
        ),
        ("test_the_look_comes_after_the_claim",),
    ),
    cut(
        "lock",
        "services/permits.py",
        "            if done:\n                decided[run.run_id] = decision\n",
        "            if True:\n                decided[run.run_id] = decision\n",
        "test_a_permit_is_taken_under_the_version_that_was_read",
    ),
    cut(
        "lock",
        "services/permits.py",
        "            if done:\n                taken[run.run_id] = Taken(tenant, number)\n",
        "            if True:\n                taken[run.run_id] = Taken(tenant, number)\n",
        "test_a_permit_of_a_cap_is_taken_under_the_version_that_was_read",
    ),
    cut(
        "lockfence",
        "domain/overlap.py",
        "        and holder_run.fence == holder[1]\n",
        "",
        "test_a_permit_of_an_older_lease_of_the_run_holds_nobody_up",
    ),
    cut(
        "lockfence",
        "domain/overlap.py",
        "if holder is not None and holder[0] == me[0] and holder[1] > me[1]:",
        "if False:",
        "test_an_old_claim_does_not_write_itself_over_a_newer_one_of_its_run",
    ),
    cut(
        "waiter",
        "domain/overlap.py",
        "return None if late else blocker",
        "return None",
        "test_skip_skips_a_later_run_and_names_the_running_one",
    ),
    cut(
        "waiter",
        "domain/overlap.py",
        "first = run.key.kind is RunKind.CRON and run.replays",
        "first = run.replays",
        "test_skip_lets_a_manual_run_wait",
    ),
    cut(
        "waiter",
        "domain/overlap.py",
        "run.replays == 0 and run.attempt == 0",
        "run.replays == 0",
        "test_a_try_again_waits_for_the_run_that_is_running",
    ),
    cut(
        "waiter",
        "domain/overlap.py",
        "return waiting if waiting is not None and waiting.run_id < run.run_id else None",
        "return None",
        "test_queue_one_keeps_the_first_waiter",
    ),
    cut(
        "waiter",
        "domain/overlap.py",
        "WAITING = (RunState.READY, RunState.LEASED)",
        "WAITING = (RunState.READY,)",
        "test_queue_one_keeps_the_first_of_those_that_are_looked_at_together",
    ),
    cut(
        "waiter",
        "domain/overlap.py",
        "if other is not None and other.scheduled_for > run.scheduled_for:",
        "if False:",
        "test_cancel_running_stops_the_running_one_and_keeps_the_newest",
    ),
    cut(
        "waiter",
        "domain/overlap.py",
        "policy is Overlap.CANCEL_RUNNING and blocker.scheduled_for <= run.scheduled_for,",
        "False,",
        "test_cancel_running_stops_the_running_one_and_keeps_the_newest",
    ),
    cut(
        "waiter",
        "services/endings.py",
        "if move.before.waiter is not None:",
        "if False:",
        "test_the_run_that_ends_pulls_its_waiter_forward",
    ),
    cut(
        "waiter",
        "services/reaper.py",
        "if before.waiter is not None:",
        "if False:",
        "test_a_reaped_run_pulls_its_waiter_forward",
    ),
    Mutation(
        "waiter",
        (
            Edit(
                "services/look.py",
                "if policies[run.job_id] is not Overlap.ALLOW and not run.forced\n",
                "if policies[run.job_id] is not Overlap.ALLOW\n",
            ),
            Edit(
                "services/look.py",
                "policy = Overlap.ALLOW if run.forced else policies[run.job_id]",
                "policy = policies[run.job_id]",
            ),
        ),
        ("test_a_forced_run_does_not_wait",),
    ),
)
