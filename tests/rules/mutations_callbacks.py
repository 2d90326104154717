"""The rules of runs that wait for their callbacks, each taken out."""

from __future__ import annotations

from tests.rules.mutation import cut

CALLBACKS = (
    cut(
        "callbacktoken",
        "services/callbacks.py",
        " or not hmac.compare_digest(run.callback, digest):",
        " or not digest:",
        "test_a_wrong_token_is_refused[nonsense]",
        "test_a_failure_is_tried_again_by_its_policy_and_then_dead",
    ),
    cut(
        "callbackonce",
        "services/callbacks.py",
        "    if run.awaits_callback:\n        return run\n    if not run.callback:",
        "    if run.callback:\n        return run\n    if not run.callback:",
        "test_a_second_answer_is_refused_and_changes_nothing",
    ),
    cut(
        "callbackloss",
        "services/reaper.py",
        "            if run.awaits_callback:\n",
        "            if False:\n",
        "test_a_wait_that_ends_without_an_answer_is_a_failure_and_no_loss",
    ),
    cut(
        "callbackcancel",
        "services/run_verbs.py",
        "if asked is not None and asked.awaits_callback:",
        "if asked is None:",
        "test_a_cancel_ends_an_awaiting_run_at_once",
    ),
    cut(
        "callbackflag",
        "services/callbacks.py",
        "            if run.cancel_requested or item.stop.is_set():\n",
        "            if item.stop.is_set():\n",
        "test_a_run_that_is_called_off_before_its_wait_begins_is_not_invoked",
    ),
)
