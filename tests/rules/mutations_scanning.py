"""The rules of scanning and turns, each taken out."""

from __future__ import annotations

from tests.rules.mutation import cut

SCANNING = (
    cut(
        "passover",
        "services/scan.py",
        "            after = self._lane.refused_up_to(last, self._now)\n",
        "            after = after_tenant(last.share)\n",
        "test_a_scan_goes_on_behind_rows_whose_handler_is_unknown_here",
    ),
    cut(
        "passover",
        "services/scan.py",
        "        after = max(after, ready_sort(last))\n",
        "        after = ready_sort(last)\n",
        "test_a_scan_goes_on_behind_rows_whose_handler_is_unknown_here",
    ),
    cut(
        "passover",
        "services/scan.py",
        "if self._pages[last.tenant] >= QUERIES_OF_TENANT:",
        "if False:",
        "test_a_scan_goes_on_behind_rows_whose_handler_is_unknown_here",
    ),
    cut(
        "passover",
        "services/scan.py",
        "if self._sieve.shut(last.tenant, self._now):",
        "if False:",
        "test_a_scan_goes_on_behind_a_tenant_at_its_cap",
    ),
    cut(
        "passover",
        "services/starts.py",
        "elif self._refusals.knows(looked.job.needs):",
        "elif self._refusals.knows(item.run.needs):",
        "test_a_run_whose_job_got_a_target_that_is_unknown_here_is_left_to_others",
    ),
    cut(
        "passover",
        "services/starts.py",
        "elif looked.job.needs != item.run.needs:",
        "elif False:",
        "test_a_run_whose_job_got_a_target_that_is_unknown_here_is_left_to_others",
    ),
    cut(
        "defer",
        "services/leadout.py",
        "delay = min(WAIT_MAX, timedelta(seconds=2 ** min(run.waits, WAIT_DOUBLINGS)))",
        "delay = timedelta(0)",
        "test_a_waiting_run_is_not_looked_at_at_each_poll",
    ),
    cut(
        "defer",
        "services/leadout.py",
        "timedelta(seconds=2 ** min(run.waits, WAIT_DOUBLINGS))",
        "timedelta(seconds=1)",
        "test_a_waiting_run_is_put_back_later_and_later",
    ),
    cut(
        "turns",
        "services/scan.py",
        "            self.turn = after_tenant(taken[-1].share)\n",
        "            pass\n",
        "test_every_tenant_has_a_turn_however_many_there_are",
    ),
    cut(
        "turns",
        "services/scan.py",
        "        lane.order = in_turn(found, lane.shares)\n",
        "        lane.order = list(found)\n",
        "test_tenants_take_turns",
        "test_the_jobs_of_a_tenant_take_turns_where_they_share",
    ),
    cut(
        "turns",
        "services/scan.py",
        "self.shares.update((run.tenant, run.share) for run in taken if run.share != run.tenant)",
        "pass",
        "test_every_job_that_shares_has_a_turn_however_many_there_are",
    ),
    cut(
        "turns",
        "services/scan.py",
        "        after = after_share(last.share)\n",
        "        after = after_tenant(last.share)\n",
        "test_the_jobs_of_a_tenant_take_turns_where_they_share",
        "test_jobs_that_share_do_not_stand_behind_rows_that_are_not_due",
    ),
    cut(
        "weights",
        "domain/selection.py",
        "chosen = max(available, key=lambda priority: self._credit[priority])",
        "chosen = max(available, key=lambda priority: self._weights[priority])",
        "test_priorities_share_by_weight_and_none_starves",
    ),
    cut(
        "lanes",
        "services/worker.py",
        "if not within(now, self._foreign_at, foreign):",
        "if False:",
        "test_a_lane_whose_worker_died_is_read_by_the_others",
    ),
)
