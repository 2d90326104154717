"""The rules of leases with a fixed end, taken out."""

from __future__ import annotations

from tests.rules.mutation import Edit, Mutation, cut

UNJUDGED = Edit(
    "services/reaper.py",
    "if run.lease_ends_at is not None and not self._ended(run.lease_ends_at, now):",
    "if False:",
)

LEASES = (
    Mutation(
        "lamclosed",
        (Edit("services/lease_ends.py", ", before=times.horizon)", ")"), UNJUDGED),
        ("test_a_run_is_returned_a_margin_after_its_own_end_and_not_before",),
    ),
    Mutation(
        "lamclosed",
        (UNJUDGED,),
        ("test_a_fresh_lease_of_the_same_run_is_not_ended_by_the_one_before",),
    ),
    cut(
        "lamclosed",
        "services/minute_walk.py",
        "if minute == moved and not found and self._closed(minute, times.judged):",
        "if minute == moved and not found:",
        "test_the_cursor_of_leases_passes_a_minute_only_when_it_is_closed",
    ),
    cut(
        "lamreread",
        "services/minute_walk.py",
        "while marks[net] < end and self._closed(marks[net], times.judged - after):",
        "while False:",
        "test_closed_minutes_of_leases_are_read_again",
    ),
    Mutation(
        "lamsweep",
        (Edit("services/sweep.py", "if run.lease_ends_at is not None:", "if False:"), UNJUDGED),
        ("test_the_daily_sweep_leaves_a_function_its_run_until_its_end",),
    ),
    cut(
        "lamsweep",
        "services/sweep.py",
        "elif self._give_back(run, session, now) and",
        "elif False and",
        "test_the_daily_sweep_returns_a_run_whose_lease_has_ended",
    ),
)
