"""Search: pages of runs that are bounded, honest and complete."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from dynsched.bootstrap import build_worker
from dynsched.domain.filters import GROUPS, RUNS, FilterError, parse
from dynsched.domain.run import Run, RunKey, RunKind, RunState
from dynsched.errors import InvalidInput
from dynsched.services import search_sources
from dynsched.services.search import Cursor
from dynsched.testing import CountingEngine, memory_store
from tests.contract.dynamo_backends import BACKENDS as DYNAMO
from tests.unit.many_runs import DISK, EXPECTED, HOUR, START, ManyRuns, expected, pages
from tests.unit.test_views import House, NoSlots, doomed


@pytest.fixture
def house() -> House:
    """Return an empty house."""
    return House()


@pytest.fixture(scope="module", params=[1, 2])
def many(request: pytest.FixtureRequest) -> ManyRuns:
    """Return a store with runs in every state and place."""
    return ManyRuns(memory_store(), request.param, 400)


@pytest.fixture(scope="module")
def few() -> ManyRuns:
    """Return a smaller store of that kind."""
    return ManyRuns(memory_store(), 3, 100)


# completeness


@pytest.mark.parametrize("text", EXPECTED)
def test_a_filter_finds_what_looking_at_every_run_finds(many: ManyRuns, text: str) -> None:
    """On one page, in order; each filter but the impossible one finds something."""
    wanted = expected(many, text)
    assert bool(wanted) is (text != "state:ready state:dead")
    assert pages(many, text, limit=1_000) == wanted


@pytest.mark.parametrize(("limit", "examine"), [(1, 2_000), (7, 11), (50, 3)])
@pytest.mark.parametrize("text", EXPECTED)
def test_pages_together_are_the_whole_list(
    few: ManyRuns, text: str, limit: int, examine: int
) -> None:
    """Whatever ends a page, each run is on exactly one of them, in order."""
    assert pages(few, text, limit=limit, examine=examine) == expected(few, text)


@pytest.mark.parametrize("text", EXPECTED)
def test_pages_that_end_for_their_cost_are_the_whole_list_too(
    few: ManyRuns, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that may cost three queries, in small portions, still goes on where it ended."""
    for name, value in (
        ("QUERIES_MAX", 3),
        ("CHUNK_MAX", 4),
        ("CHUNK_MIN", 2),
        ("FIRST_CHUNK", 2),
        ("PEEK", 2),
    ):
        monkeypatch.setattr(search_sources, name, value)
    assert pages(few, text, limit=1_000) == expected(few, text)


@pytest.mark.parametrize("text", ["", "state:dead", "job:nightly", "state:ready", "-ended:<-5h"])
def test_runs_that_come_between_pages_neither_repeat_nor_hide_old_ones(text: str) -> None:
    """The clock goes on as well: what counted as recent on the first page does so on the last."""
    many = ManyRuns(memory_store(), 4, 100)
    wanted = expected(many, text)
    others = iter(ManyRuns(memory_store(), 5, 100).runs)
    ids: list[str] = []
    cursor: str | None = None
    while True:
        found = many.views.find_runs(text, limit=3, cursor=cursor)
        ids += [run.run_id for run in found.items]
        cursor = found.cursor
        if cursor is None:
            break
        many.clock.step(minutes=7)
        many.add([_moved(next(others), many)])
    assert len(set(ids)) == len(ids)
    assert [run_id for run_id in ids if run_id in set(wanted)] == wanted


def _moved(run: Run, many: ManyRuns) -> Run:
    """Return a run of another store as one of this store's jobs."""
    job = many.jobs[0]
    return run.changed(key=replace(run.key, job_id=job.job_id), tenant=job.tenant, share=job.tenant)


def test_pages_on_dynamodb_are_the_whole_list_too() -> None:
    """The same keys and cursors, on an emulator."""
    with DYNAMO["moto"]() as engine:
        many = ManyRuns(engine, 6, 60)
        for text in ("", "state:dead", f"group:{DISK}", "job:nightly", "state:ready tenant:acme"):
            assert pages(many, text, limit=8, examine=15) == expected(many, text)


# cost


def put_dead(many: ManyRuns, count: int, groups: int) -> None:
    """Add dead runs in groups of errors."""
    job = many.jobs[0]
    many.add(
        [
            Run(
                key=RunKey(job.job_id, START - timedelta(seconds=number), RunKind.CRON),
                tenant=job.tenant,
                queue="main",
                priority=job.priority,
                share=job.tenant,
                state=RunState.DEAD,
                available_at=START - timedelta(seconds=number),
                needs=job.needs,
                limit=1,
                error="ValueError: x",
                signature=f"{number % groups:012x}",
                created_at=START,
                ended_at=START - timedelta(seconds=number),
                version=1,
            )
            for number in range(count)
        ]
    )


def test_a_page_costs_by_what_it_shows_and_not_by_what_the_store_holds() -> None:
    """One query for each shard of a group; for all groups at most three for each of them."""
    engine = CountingEngine(memory_store())
    many = ManyRuns(engine, 1, 0)
    put_dead(many, 5_000, 40)
    many.views.find_runs("state:dead", limit=1)
    engine.reset()
    found = many.views.find_runs(f"group:{7:012x}", limit=50)
    assert (found.matched, found.examined) == (50, 50)
    assert (found.indexed, found.tested) == (("group",), ())
    assert engine.by_method() == {"query": 2}
    assert engine.rows["", "query"] == 102
    engine.reset()
    found = many.views.find_runs("state:dead", limit=200)
    assert (found.matched, found.examined) == (200, 200)
    assert sum(engine.by_method().values()) <= 3 * 2 * 40
    assert engine.rows["", "query"] <= 1_200


def test_what_a_filter_does_not_need_is_not_read() -> None:
    """Jobs are read once each, and only for runs that the cheaper terms let through."""
    engine = CountingEngine(memory_store())
    many = ManyRuns(engine, 1, 300)
    many.views.find_runs("state:dead")
    engine.reset()
    many.views.find_runs("state:dead attempt:>0")
    assert engine.by_method()["get_many"] == 0
    many.views.find_runs("state:dead attempt:>0 tag:team")
    assert engine.rows["", "get_many"] == len(many.jobs)
    engine.reset()
    many.views.find_runs("state:dead attempt:>9 tag:team")
    assert engine.by_method()["get_many"] == 0


# cursors and words


def test_a_page_says_what_it_read_and_how() -> None:
    """Only of what was looked at, never of what there may be."""
    many = ManyRuns(memory_store(), 1, 300)
    found = many.views.find_runs("state:dead err:disk", limit=3)
    assert (found.indexed, found.tested) == (("state",), ("err",))
    assert found.matched == 3 < found.examined
    assert found.words() == f"matched 3, examined {found.examined}; more"
    whole = many.views.find_runs("state:dead err:disk")
    assert whole.words() == f"matched {whole.matched}, examined {whole.examined}"


def test_a_cursor_goes_on_with_its_own_filter_only(few: ManyRuns) -> None:
    """Another filter, however alike, and what is no cursor are refused."""
    cursor = few.views.find_runs("state:dead", limit=1).cursor
    assert cursor is not None
    assert few.views.find_runs(" state:dead ", limit=1, cursor=cursor).items
    with pytest.raises(InvalidInput, match="cursor: it belongs to another filter"):
        few.views.find_runs("state:dead,done", cursor=cursor)
    with pytest.raises(InvalidInput, match="cursor: it belongs to another filter"):
        few.views.find_runs(parse("state:dead", GROUPS), cursor=cursor)
    with pytest.raises(InvalidInput, match="cursor: it belongs to another filter"):
        few.views.find_jobs("", cursor=cursor)
    job_cursor = few.views.find_jobs("", limit=1).cursor
    assert job_cursor is not None
    forged = Cursor(START, ("0", "j@x")).text(parse("state:dead", RUNS))
    for text in ("", "x", "é", "[]", cursor[:-4], "W10", job_cursor * 2, forged):
        with pytest.raises(InvalidInput, match="cursor: it is none of a search"):
            few.views.find_runs("state:dead", cursor=text)


def test_a_job_that_is_not_there_is_an_error_at_its_place(few: ManyRuns) -> None:
    """With the name that was probably meant, in the tenant that was named."""
    with pytest.raises(FilterError) as caught:
        few.views.find_runs("state:dead  job:nigthly")
    assert str(caught.value) == "filter: there is no job 'nigthly' (did you mean nightly?)"
    assert caught.value.column == 16
    with pytest.raises(FilterError, match="no job 'mail' in tenant beta"):
        few.views.find_runs("tenant:beta -job:mail")


def test_a_worker_that_is_not_there_is_said_to_be_none(few: ManyRuns) -> None:
    """Its session's row may have been removed since."""
    found = few.views.find_runs("worker:gone")
    assert (found.items, found.notes) == ((), ("no worker session or host is called gone",))


def test_a_discarded_run_is_found_by_its_id(few: ManyRuns) -> None:
    """As is one that ended long ago: an id needs no window."""
    hidden = next(run for run in few.runs if run.hidden)
    old = next(run for run in few.runs if run.ended_at and run.ended_at < START - 9 * HOUR)
    found = few.views.find_runs(f"{hidden.run_id},{old.run_id}")
    assert {run.run_id for run in found.items} == {hidden.run_id, old.run_id}
    assert (found.indexed, found.notes) == (("id",), ())


def test_a_page_of_jobs_goes_on_in_the_middle_of_a_tenant(few: ManyRuns) -> None:
    """By tenant and name, each job on one page."""
    names: list[tuple[str, str]] = []
    cursor: str | None = None
    for _ in range(5):
        found = few.views.find_jobs("-name:mail", limit=1, cursor=cursor)
        names += [(job.tenant, job.name) for job in found.items]
        cursor = found.cursor
        if cursor is None:
            break
    assert names == [("acme", "nightly"), ("acme", "report"), ("beta", "nightly")]


@pytest.mark.parametrize(
    ("text", "wanted", "examined"),
    [
        ("name:nightly", ["acme", "beta"], 2),
        ("name:nightly tenant:beta", ["beta"], 1),
        ("tag:team=dev target:ok is:manual", ["acme", "acme-eu"], 4),
        ("MAIL", ["acme-eu"], 4),
        ("is:scheduled", [], 4),
        ("next:>now", [], 4),
        ("prio:default queue:main -tenant:acme", ["acme-eu", "beta"], 4),
    ],
)
def test_jobs_are_found_by_what_holds_of_them(
    few: ManyRuns, text: str, wanted: list[str], examined: int
) -> None:
    """A name leads straight to its jobs."""
    found = few.views.find_jobs(text)
    assert [job.tenant for job in found.items] == wanted
    assert found.examined == examined


def test_a_job_is_found_by_its_id(few: ManyRuns) -> None:
    """Without looking at others."""
    job = few.jobs[2]
    found = few.views.find_jobs(f"id:{job.job_id}")
    assert (found.items, found.examined, found.indexed) == ((job,), 1, ("id",))


def test_a_lane_of_more_tenants_than_a_page_merges_says_so(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is left out in silence; the tenant leads there."""
    for name in ("GROUPS_MAX", "FIRST_CHUNK"):
        monkeypatch.setattr(search_sources, name, 20)
    for number in range(100):
        house.enqueue(house.job("j", tenant=f"t{number:03}"))
    found = house.views.find_runs("state:ready", limit=5)
    assert "lie by tenant first" in found.notes[0]
    assert len(house.listed("state:ready tenant:t000,t099")) == 2


# what else holds of a run


def test_runs_that_wait_too_long_are_late_overdue_and_perhaps_stuck(house: House) -> None:
    """Overdue after seconds, late after a minute, stuck if no living worker can run it."""
    house.work()
    able = house.enqueue(house.job("able")).run_id
    unable = house.enqueue(house.job("unable", queue="other")).run_id
    assert house.listed("is:overdue,late,stuck") == []
    house.clock.step(seconds=6)
    assert set(house.listed("is:overdue")) == {able, unable}
    assert house.listed("@stuck") == [unable]
    house.clock.step(minutes=1)
    assert set(house.listed("@late")) == {able, unable}
    assert set(house.listed("delay:>1m delay:<67s")) == {able, unable}
    house.work()
    assert house.listed("@late") == [unable]
    assert house.listed("is:late state:done") == [able]


def test_runs_are_found_by_what_people_did_to_them(house: House) -> None:
    """Asked to stop, brought back, tried again, made to run beside others."""
    held = house.enqueue(house.job("held"))
    build_worker(house.base, house.app, slots=NoSlots()).worker.poll()
    assert house.listed("is:asked") == []
    house.operations.cancel(held.run_id)
    assert house.listed("is:asked") == [held.run_id]
    dead = house.kill(doomed(house))
    house.operations.replay(dead.run_id)
    house.work()
    assert house.listed("@dead-again") == house.listed("is:retried state:dead") == [dead.run_id]
    forced = house.operations.run_now(house.job("j").job_id, force=True)
    assert house.listed("is:forced") == [forced.run_id]


def test_a_run_is_found_by_its_key_kind_reason_and_time(house: House) -> None:
    """The smaller qualifiers."""
    dead = house.kill(doomed(house))
    for text in (
        f"key:{dead.idempotency_key}",
        'kind:manual reason:"SPENT"',
        "sched:2026-03-01 started:2026-03-01T12:00Z dead:>=2026-03-01T12:00:00.000Z",
        "replays:0 attempt:1 err:valueerror -batch:b1",
    ):
        assert house.listed(text) == [dead.run_id], text
    assert house.listed("key:0") == house.listed("kind:backfill") == []
