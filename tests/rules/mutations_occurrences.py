"""The rules of occurrences, each taken out."""

from __future__ import annotations

from tests.rules.mutation import Edit, Mutation, cut

OCCURRENCES = (
    cut(
        "generation",
        "domain/verdict.py",
        "named = generation.schedule is not None and generation.schedule.names(run.scheduled_for)",
        "named = False",
        "test_a_run_starts_if_the_schedule_in_force_at_its_instant_names_it",
    ),
    cut(
        "generation",
        "domain/verdict.py",
        "named = generation.schedule is not None and generation.schedule.names(run.scheduled_for)",
        "named = True",
        "test_a_run_is_skipped_if_the_schedule_in_force_at_its_instant_does_not_name_it",
    ),
    cut(
        "generation",
        "services/look.py",
        "if job is not None and needs_old_generations(run, job):",
        "if False:",
        "test_a_generation_that_has_left_the_row_still_judges_its_instants",
    ),
    cut(
        "generation",
        "services/job_verbs.py",
        "self._store.jobs.put_generations(job.job_id, generations[:-GENERATIONS_IN_ROW])",
        "pass",
        "test_a_generation_that_has_left_the_row_still_judges_its_instants",
    ),
    cut(
        "settle",
        "services/job_verbs.py",
        "if not job.due or job.next_at is None or job.next_at >= at:",
        "if True:",
        "test_an_edit_after_an_outage_serves_what_was_due_before_it",
    ),
    cut(
        "effective",
        "services/job_verbs.py",
        "at = now + self._settings.clock_bound",
        "at = now",
        "test_a_process_with_a_fast_clock_skips_nothing_that_a_resume_lets_run",
    ),
    cut(
        "jump",
        "domain/catchup.py",
        "    next_at = schedule.next_after(before - MILLISECOND)\n",
        "    occurrences = occurrences[:1]\n"
        "    last = occurrences[0].scheduled_for if occurrences else before - MILLISECOND\n"
        "    next_at = schedule.next_after(last)\n",
        "test_one_serve_makes_all_rows_and_lands_in_no_past_minute",
    ),
    Mutation(
        "jump",
        (
            Edit(
                "domain/catchup.py",
                "fresh = list(schedule.instants(late_end, before, SERVED_MAX + 1))\n",
                "most = SERVED_MAX - len(late)\n"
                "    fresh = list(schedule.instants(late_end, before, most + 1))\n",
            ),
            Edit("domain/catchup.py", "if len(fresh) > SERVED_MAX:", "if len(fresh) > most:"),
            Edit(
                "domain/catchup.py",
                "before, fresh = fresh[SERVED_MAX], fresh[:SERVED_MAX]",
                "before, fresh = fresh[most], fresh[:most]",
            ),
        ),
        ("test_the_advance_lands_in_no_past_minute_however_many_are_caught_up",),
    ),
    cut(
        "closed_margin",
        "services/minute_walk.py",
        "return minute_start(minute + 1) + self._settings.close_after <= now",
        "return minute_start(minute + 1) <= now",
        "test_a_minute_is_closed_only_when_no_entry_can_come_any_more",
    ),
    cut(
        "reread",
        "services/minute_walk.py",
        "while marks[net] < end and self._closed(marks[net], times.judged - after):",
        "while False:",
        "test_closed_minutes_are_read_again",
    ),
    cut(
        "cursor0",
        "services/dispatcher.py",
        "            self._store.ensure_cursors(topology)\n",
        "            from dynsched.domain.instants import minute_of\n"
        "            for shard, cursor in enumerate(found):\n"
        "                minute = minute_of(self._clock.now())\n"
        "                begun = Cursor(kind=kind, shard=shard, minute=minute)\n"
        "                cursor or self._store.control.write_cursor(begun)\n",
        "test_a_cursor_begins_where_its_shard_begins",
    ),
    cut(
        "readmax",
        "storage/placement.py",
        "return max(entry.shards for entry in self.entries)",
        "return self.entries[-1].shards",
        "test_readers_read_every_shard_under_which_jobs_may_lie",
    ),
    cut(
        "readmax",
        "storage/placement.py",
        "return max(entry.lanes for entry in self.entries)",
        "return self.entries[-1].lanes",
        "test_readers_read_every_lane_in_which_runs_may_lie",
    ),
    cut(
        "readmax",
        "services/sweep.py",
        "if minute_start(topology.entries[-1].from_minute) + OVERDUE <= self._state.begun_at:",
        "if True:",
        "test_the_map_keeps_older_counts_while_somebody_may_write_by_them",
    ),
    cut(
        "readmax",
        "services/sweep.py",
        "            self._store.control.write_map(topology.newest())",
        "            pass",
        "test_the_map_forgets_older_counts_when_nothing_lies_under_them",
    ),
    cut(
        "readmax",
        "services/reaper.py",
        "self._store.refresh_by(self._clock.now())  # returned runs lie where the map says",
        "pass",
        "test_a_reaper_puts_runs_back_where_workers_look",
    ),
    cut(
        "kindkey",
        "services/run_verbs.py",
        "RunKey(job.job_id, at, RunKind.MANUAL, nonce or self._nonces(now, 1)[0])",
        "RunKey(job.job_id, at, RunKind.CRON)",
        "test_a_manual_run_takes_no_occurrences_place",
    ),
    cut(
        "ttl",
        "domain/verdict.py",
        "if at < now - (job.policies.retention - EXPIRY_MARGIN):",
        "if False:",
        "test_an_instant_older_than_its_retention_does_not_run_again",
    ),
    cut(
        "ttlreported",
        "domain/verdict.py",
        "return not run.reported and run.replays == 0",
        "return run.attempt == 0 and run.replays == 0",
        "test_an_expired_instant_does_not_run_because_its_lease_was_lost",
        "test_a_skipped_instant_does_not_run_because_its_lease_was_lost",
    ),
    cut(
        "park",
        "services/serving.py",
        "if self._store.jobs.park(row, reason):",
        "if False:",
        "test_a_job_that_cannot_be_evaluated_leaves_the_due_index",
    ),
    cut(
        "park",
        "storage/codec.py",
        "read_schedule(cast(Body, schedule))",
        '__import__("dynsched.domain.recurrence").domain.recurrence.schedule_from_body(schedule)',
        "test_an_edit_brings_a_parked_job_back",
    ),
    cut(
        "park",
        "domain/verdict.py",
        "    if generation.effective_from == run.generation:\n        return START  # the one",
        "    if False:\n        return START  # the one",
        "test_a_run_of_a_job_that_cannot_be_evaluated_any_more_starts",
    ),
    cut(
        "park",
        "domain/verdict.py",
        "return Verdict(hold=True)\n    named",
        "return START\n    named",
        "test_a_run_whose_instant_cannot_be_judged_waits_for_the_edit",
    ),
    cut(
        "skiprange",
        "domain/verdict.py",
        "if span.covers(at):",
        "if False:",
        "test_an_instant_that_was_counted_as_skipped_does_not_run",
    ),
    Mutation(
        "spansfirst",
        (
            Edit(
                "services/serving.py",
                "            if plan.apart:\n"
                "                self._store.jobs.put_spans(job.job_id, plan.apart)\n",
                "            pass\n",
            ),
            Edit(
                "services/serving.py",
                "        outcomes = self._store.jobs.replace_many(changes)\n",
                "        outcomes = self._store.jobs.replace_many(changes)\n"
                "        for job, plan in plans:\n"
                "            self._store.jobs.put_spans(job.job_id, plan.apart)\n",
            ),
        ),
        ("test_a_span_is_written_apart_before_the_advance_that_drops_it",),
    ),
    cut(
        "spansapart",
        "services/look.py",
        "if job is not None and needs_old_spans(run, job):",
        "if False:",
        "test_an_instant_in_a_span_that_has_left_the_row_does_not_run",
    ),
    Mutation(
        "joblast",
        (
            Edit(
                "services/look.py",
                "        overlaps = self._desk.overlap(wanted) if wanted else {}\n",
                "        ids = list(dict.fromkeys(run.job_id for run in claimed))\n"
                "        jobs = self._store.jobs.read_many(ids)\n"
                "        overlaps = self._desk.overlap(wanted) if wanted else {}\n",
            ),
            Edit(
                "services/look.py",
                "        ids = list(dict.fromkeys(run.job_id for run in claimed))\n"
                "        jobs = self._store.jobs.read_many(ids)\n",
                "",
            ),
        ),
        ("test_the_job_is_read_after_the_permits",),
    ),
    cut(
        "deadline",
        "domain/verdict.py",
        "return SkipReason.DEADLINE",
        "return None",
        "test_a_run_that_would_start_too_late_is_skipped",
    ),
    cut(
        "deadline",
        "domain/verdict.py",
        "deadline is not None and run.first_started_at is None and now",
        "deadline is not None and now",
        "test_a_run_that_was_drained_is_not_late_for_its_deadline",
    ),
)
