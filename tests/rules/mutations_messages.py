"""The rules of the hand-off by messages, each taken out."""

from __future__ import annotations

from tests.rules.mutation import cut

_COMES_BACK = "test_a_run_that_comes_back_has_a_message"

MESSAGES = (
    cut(
        "sqsall",
        "storage/runs.py",
        "        self._sending.tell(run for run, new in zip(runs, made, strict=True) if new)\n",
        "",
        "test_an_occurrence_that_a_tick_makes_has_a_message",
    ),
    cut(
        "sqsall",
        "storage/runs.py",
        "        self._tell(item for item, outcome in pairs if isinstance(outcome, Applied))\n",
        "",
        f"{_COMES_BACK}[_fails]",
        f"{_COMES_BACK}[_snoozes]",
        f"{_COMES_BACK}[_loses_its_worker]",
        f"{_COMES_BACK}[_is_due_again]",
        f"{_COMES_BACK}[_is_pulled_forward]",
        f"{_COMES_BACK}[_is_handed_back]",
        f"{_COMES_BACK}[_is_replayed]",
    ),
    cut(
        "sqsall",
        "storage/runs.py",
        "            self._tell([transition])\n",
        "",
        f"{_COMES_BACK}[_is_replayed_with_another_payload]",
    ),
    cut(
        "sqsall",
        "storage/sending.py",
        "                far.append(run)\n",
        "                continue\n",
        "test_a_run_far_ahead_has_a_message_in_time",
    ),
    cut(
        "sqsall",
        "services/dispatcher.py",
        "return len(runs) + self._reminding.send(minute, shard, times.horizon, most=most)",
        "return len(runs)",
        "test_a_run_far_ahead_has_a_message_in_time",
    ),
    cut(
        "sqsall",
        "storage/runs.py",
        "        writes = [PutNew(self.row_of(run)) for run in runs]\n",
        "        self._sending.tell(runs)\n"
        "        writes = [PutNew(self.row_of(run)) for run in runs]\n",
        "test_a_message_does_not_come_before_its_row",
    ),
    cut(
        "sqsall",
        "storage/runs.py",
        "        writes = [Replace(self.row_of(item.after), item.before.version)"
        " for item in transitions]\n",
        "        self._tell(transitions)\n"
        "        writes = [Replace(self.row_of(item.after), item.before.version)"
        " for item in transitions]\n",
        "test_a_message_does_not_come_before_its_run_is_ready_again",
    ),
    cut(
        "sqsall",
        "services/reaper.py",
        "        report.resent = self._resending.resend(now, self._in_slice())\n",
        "",
        "test_a_message_that_was_lost_between_row_and_queue_is_made_good",
        "test_a_worker_that_pulls_and_steps_back_leaves_the_run_to_pulls_and_to_the_reaper",
    ),
    cut(
        "sqsbound",
        "services/resending.py",
        "        if depth > self._settings.resend_depth:\n",
        "        if False:\n",
        "test_a_backlog_makes_no_storm",
    ),
    cut(
        "sqsbound",
        "services/resending.py",
        "        return crossed(run.available_at, lap.since, lap.until, first)\n",
        "        return run.available_at + self._settings.resend_after <= lap.until\n",
        "test_a_run_that_waits_its_turn_is_told_of_ever_more_rarely",
    ),
    cut(
        "sqsbound",
        "services/resending.py",
        "        left, hungry = self._settings.resend_most, list(queues)\n",
        "        left, hungry = 100_000, list(queues)\n",
        "test_what_was_lost_in_an_outage_is_sent_again_as_fast_as_it_is_taken",
    ),
    cut(
        "sqsbound",
        "services/resending.py",
        '            log.warning("nothing is sent again to %s: %s", queue.url, error)\n'
        "            return [], lap\n",
        '            log.warning("nothing is sent again to %s: %s", queue.url, error)\n'
        "            return [], end\n",
        "test_what_was_lost_in_an_outage_is_sent_again_as_fast_as_it_is_taken",
    ),
    cut(
        "onemessage",
        "domain/message.py",
        "    return transition.after.state is RunState.READY"
        " and transition.event is not Event.STEP_BACK\n",
        "    return transition.after.state is RunState.READY\n",
        "test_messages_do_not_double_while_a_run_waits",
    ),
)
