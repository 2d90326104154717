"""The rules of the worker's function, each taken out."""

from __future__ import annotations

from tests.rules.mutation import cut

FUNCTIONS = (
    cut(
        "lamend",
        "services/fixed_lease.py",
        "        return left > 2 * self.margin\n",
        "        return True\n",
        "test_a_sandbox_that_was_frozen_past_its_end_starts_nothing",
    ),
    cut(
        "lamend",
        "services/fixed_lease.py",
        "        return min(self.ends_at - clock.now(), by_mono)\n",
        "        return by_mono\n",
        "test_the_wall_clock_ends_a_lease",
    ),
    cut(
        "lamend",
        "services/fixed_lease.py",
        "        return min(self.ends_at - clock.now(), by_mono)\n",
        "        return self.ends_at - clock.now()\n",
        "test_the_monotonic_clock_ends_a_lease",
    ),
    cut(
        "lamend",
        "services/fixed_lease.py",
        "            return left > limit\n",
        "            return left > timedelta(0)\n",
        "test_a_lease_that_its_time_limit_has_shortened_must_still_hold_all_of_it",
    ),
    cut(
        "lamid",
        "services/fixed_lease.py",
        'session=f"{FIXED_SESSION}{invocation}-{nonce}",',
        'session=f"{FIXED_SESSION}{invocation}",',
        "test_an_invocation_takes_no_lease_of_another_for_its_own[a]",
        "test_a_repeated_invocation_hands_nothing_back_that_is_anothers",
    ),
    cut(
        "lamid",
        "services/claims.py",
        "                and (current.session, current.fence) == (session, move.after.fence)\n",
        "                and current.fence == move.after.fence\n",
        "test_an_invocation_takes_no_lease_of_another_for_its_own[b]",
    ),
    cut(
        "sqsearly",
        "services/message_worker.py",
        "            visit.keep(message, again_at(run.available_at, visit.now), why)\n",
        "            visit.drop(message, why)\n",
        "test_an_early_message_comes_again_when_its_run_is_due",
    ),
    cut(
        "onemessage",
        "services/message_worker.py",
        "            visit.keep(message, self._after_step_back(item.run, one, now),"
        " item.run.reason)\n",
        "            visit.drop(message, item.run.reason)\n",
        "test_a_run_at_its_cap_starts_by_the_message_that_came_too_soon",
    ),
)
