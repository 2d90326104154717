"""The rules of sessions, claims and attempts, each taken out."""

from __future__ import annotations

from tests.rules.mutation import Edit, Mutation, cut

SESSIONS = (
    cut(
        "sessionfirst",
        "services/session.py",
        "row = self._store.control.write_session(new)",
        "row = new",
        "test_a_claim_names_a_session_whose_row_is_written",
    ),
    cut(
        "guardedclose",
        "services/reaper.py",
        "            return  # a heartbeat landed first: it lives",
        "            pass",
        "test_a_heartbeat_that_lands_in_time_saves_the_session",
    ),
    Mutation(
        "freshsid",
        (
            Edit(
                "services/session.py",
                "        session = new_id(self._rng)\n",
                '        session = "0"\n        old = self._store.control.session(session)\n',
            ),
            Edit(
                "services/session.py",
                "            session=session,\n            started_at=now,\n",
                "            session=session,\n            started_at=now,\n"
                "            version=old.version if old else 0,\n",
            ),
        ),
        ("test_a_session_that_replaces_a_lost_one_has_another_id",),
    ),
    cut(
        "leasesession",
        "services/worker.py",
        "return self._keeper.alive(item.session)",
        "return self._keeper.session is not None",
        "test_a_lease_is_judged_by_its_own_session",
    ),
    cut(
        "nolapse",
        "services/session.py",
        "            if not self.alive(row.session):\n                return False  # lapsed",
        "            if False:\n                return False  # lapsed",
        "test_a_lapsed_session_is_never_renewed",
        "test_a_session_that_lapses_while_it_merges_mail_is_not_renewed",
    ),
    cut(
        "reconcile",
        "services/worker.py",
        "first, self._reconciled_at = self._reconciled_at is None, now",
        "first, self._reconciled_at = True, now",
        "test_a_run_in_nobodys_hand_is_handed_back_by_its_own_process",
    ),
    Mutation(
        "inhand",
        (
            Edit(
                "services/hand.py",
                "            if run.run_id in self._items:\n",
                "            if False:\n",
            ),
            Edit("services/refusals.py", "if run.run_id in self._hand:", "if False:"),
        ),
        ("test_a_run_in_hand_is_not_claimed_again",),
    ),
    cut(
        "claimsettle",
        "services/claims.py",
        "current = outcome.run if isinstance(outcome, RunApplied) else outcome.current",
        "current = outcome.run if isinstance(outcome, RunApplied) else None",
        "test_a_claim_whose_answer_was_lost_is_recognised",
    ),
    cut(
        "startcheck",
        "services/starts.py",
        "if alive(item):",
        "if True:",
        "test_a_run_does_not_start_when_its_lease_is_over",
        "test_a_step_back_counts_no_try",
    ),
    cut(
        "ownclosed",
        "services/reaper.py",
        "            elif not session.open:\n",
        "            elif session.by_owner:\n"
        "                continue\n"
        "            elif not session.open:\n",
        "test_sessions_that_their_owner_closed_are_read_at_once",
    ),
    cut(
        "ownclosed",
        "services/reaper.py",
        "            timedelta(0),\n",
        "",
        "test_sessions_that_their_owner_closed_are_read_at_once",
        "test_a_reaper_that_dies_after_its_close_delays_nobody",
    ),
    cut(
        "ownclosed",
        "services/reaper.py",
        "if returned or following is None or since_close >= following:",
        "if True:",
        "test_a_run_that_could_not_be_returned_is_returned_by_the_next_sweep",
    ),
    cut(
        "reread",
        "services/reaper.py",
        "            self._settings.index_lag,\n"
        "            timedelta(minutes=10),\n"
        "            timedelta(minutes=60),\n",
        "",
        "test_partitions_of_closed_sessions_are_read_again",
    ),
    cut(
        "sweep",
        "services/reaper.py",
        "        self._sweep_all(now)\n",
        "",
        "test_the_daily_sweep_finds_what_the_re_readings_missed",
    ),
    cut(
        "samefence",
        "services/endings.py",
        "elif (current := _still_mine(item, outcome)) is not None:",
        "elif (current := None) is not None:",
        "test_a_friends_write_is_not_taken_for_a_lost_lease",
    ),
    cut(
        "attempt",
        "domain/lifecycle.py",
        "losses, attempt = run.losses + 1, run.attempt + 1",
        "losses, attempt = run.losses + 1, run.attempt",
        "test_a_lost_lease_counts_as_a_try",
    ),
    cut(
        "attempt",
        "domain/lifecycle.py",
        'changes: dict[str, object] = {"reason": reason}',
        'changes: dict[str, object] = {"reason": reason, "attempt": run.attempt + 1}',
        "test_a_step_back_counts_no_try",
    ),
    cut(
        "cancelflag",
        "services/cancelling.py",
        "outcome = store.runs.apply(lifecycle.ask_cancel(current, reason=reason))",
        "outcome = RunApplied(lifecycle.ask_cancel(current, reason=reason).after)",
        "test_a_cancel_outlives_the_holder",
        "test_a_cancelled_run_is_not_tried_again",
    ),
    cut(
        "cancelflag",
        "domain/lifecycle.py",
        "    if run.cancel_requested:\n        after = after.changed(",
        "    if False:\n        after = after.changed(",
        "test_a_cancel_outlives_the_holder",
        "test_a_cancelled_run_is_not_tried_again",
    ),
    cut(
        "cancelflag",
        "services/cancelling.py",
        "if current is not None and current.session is not None and not current.fixed_lease:",
        "if False:",
        "test_a_heartbeat_brings_the_mail_and_overwrites_none",
    ),
)
