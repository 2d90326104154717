"""Tenants, workers and outcomes of jobs: counted for those who look, bounded, by a filter."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dynsched.domain.health import Level
from dynsched.domain.run import RunState
from dynsched.errors import FilterError, InvalidInput
from dynsched.services.job_views import OUTCOMES_JOBS_MAX
from dynsched.services.specs import EverySpec
from dynsched.services.worker_views import worker_state
from tests.unit.test_views import House


def test_outcomes_are_the_newest_runs_without_those_to_come() -> None:
    """A run of the next minute has no outcome, and an old one would hide what happened last."""
    house = House()
    job = house.job("tick", schedule=EverySpec(every=timedelta(seconds=10)))
    other = house.job("other")
    made = [house.enqueue(other) for _ in range(3)]
    house.work()
    found = house.views.outcomes([job.job_id, other.job_id], each=2)
    assert found[job.job_id] == ()
    assert [run.state for run in found[other.job_id]] == [RunState.DONE] * 2
    assert {run.run_id for run in found[other.job_id]} < {run.run_id for run in made}


def test_outcomes_of_too_many_jobs_are_refused() -> None:
    """Each job costs queries; a console asks for what is seen."""
    house = House()
    with pytest.raises(InvalidInput, match="jobs"):
        house.views.outcomes([f"j{number}" for number in range(OUTCOMES_JOBS_MAX + 1)])


def test_a_tenant_is_told_with_its_cap_and_what_of_it_waits() -> None:
    """Whoever is held up by a cap sees both figures in one line."""
    house = House()
    job = house.job("a", tenant="acme")
    house.job("b", tenant="globex")
    house.operations.set_tenant("acme", max_running=2)
    for _ in range(3):
        house.enqueue(job)
    found = {one.tenant: one for one in house.views.find_tenants().items}
    assert found["acme"].cap == 2
    assert found["acme"].waiting == Level(3)
    assert not found["acme"].full
    assert found["globex"].waiting == Level(0)
    assert (found["globex"].running, found["globex"].share) == (0, 0.0)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ["acme", "globex", "initech"]),
        ("is:capped", ["acme", "globex"]),
        ("cap:>2", ["globex"]),
        ("-cap:>2", ["acme", "initech"]),
        ("is:waiting,hurt", ["initech"]),
        ("tenant:acme,initech", ["acme", "initech"]),
        ("lob", ["globex"]),
        ("is:full", []),
    ],
)
def test_tenants_are_found_by_a_filter(text: str, names: list[str]) -> None:
    """The language is that of all lists."""
    house = House()
    for name in ("acme", "globex", "initech"):
        house.job("a", tenant=name)
    house.operations.set_tenant("acme", max_running=2)
    house.operations.set_tenant("globex", max_running=5)
    house.enqueue(house.job("b", tenant="initech"))
    assert [one.tenant for one in house.views.find_tenants(text).items] == names


def test_pages_of_tenants_meet_and_do_not_overlap() -> None:
    """A cursor goes on behind the last name."""
    house = House()
    for number in range(7):
        house.operations.set_tenant(f"t{number}", max_running=1)
    names, cursor = [], None
    while True:
        page = house.views.find_tenants(limit=3, cursor=cursor)
        names += [one.tenant for one in page.items]
        cursor = page.cursor
        if cursor is None:
            break
    assert names == [f"t{number}" for number in range(7)]


def test_a_worker_that_was_not_heard_in_time_is_expired() -> None:
    """It is open and gone: the reaper will find it."""
    house = House()
    house.enqueue(house.job("a"))
    house.work()
    (line,) = house.views.find_workers("is:alive").items
    assert worker_state(line, house.clock.now()) == "alive"
    house.clock.step(minutes=5)
    (late,) = house.views.find_workers("is:expired is:idle").items
    assert late.session == line.session
    assert house.views.find_workers("is:alive").items == ()
    assert house.views.find_workers(f"-worker:{line.session}").items == ()
    with pytest.raises(FilterError, match="workers have no 'state:'"):
        house.views.find_workers("state:alive")
