"""Replay batches: previewed, confirmed once, and looked at."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dynsched.domain.access import Access, Role
from dynsched.domain.batch import BatchState, check_options
from dynsched.domain.job import Priority
from dynsched.errors import Conflict, FilterError, Forbidden, InvalidInput
from dynsched.services.views import AuditQuery
from tests.replay.ward import SECOND, Ward


@pytest.fixture
def ward() -> Ward:
    """Return an empty ward."""
    return Ward()


# preview


def test_a_batch_moves_what_was_previewed_and_ends(ward: Ward) -> None:
    """Runs come back as ready runs of priority bulk that name the batch; the work is done then."""
    dead = ward.die(7)
    batch = ward.started()
    report = ward.step()
    assert (report.moved, report.ended) == (7, 1)
    runs = [ward.run(run) for run in dead]
    assert {(run.state.value, run.priority, run.batch, run.replays) for run in runs} == {
        ("ready", Priority.BULK, batch.batch_id, 1)
    }
    found = ward.batch(batch)
    assert (found.state, found.moved, found.left) == (BatchState.FINISHED, 7, 0)
    ward.work(broken=False)
    assert set(ward.states(dead)) == {"done"}
    detail = ward.views.batch(batch.batch_id)
    assert (detail.sampled, detail.done_again, detail.dead_again) == (7, 7, 0)


def test_what_dies_after_the_preview_is_not_replayed(ward: Ward) -> None:
    """Neither before the confirm nor after it; and the batch says how many there are."""
    early = ward.die(2)
    draft = ward.operations.preview_replay("", rate=None)
    ward.clock.step(SECOND)
    late = ward.die(3)
    ward.operations.confirm_replay(draft.batch_id, reason="r")
    late += ward.die(1)
    ward.step()
    assert ward.states(early) == ["ready"] * 2
    assert ward.states(late) == ["dead"] * 4
    assert ward.views.batch(draft.batch_id).newer.count == 4


def test_what_died_again_after_the_preview_is_not_replayed(ward: Ward) -> None:
    """The preview showed another death of it: somebody replayed it in between, in vain."""
    (run,) = ward.die(1)
    draft = ward.operations.preview_replay("")
    ward.operations.replay(run.run_id)
    ward.clock.step(SECOND)
    ward.work()
    ward.operations.confirm_replay(draft.batch_id)
    ward.step()
    assert ward.states([run]) == ["dead"]
    assert ward.run(run).replays == 1
    assert ward.batch(draft).skipped == {"replayed by somebody else, and dead again": 1}


def test_a_preview_counts_by_job_tenant_and_group(ward: Ward) -> None:
    """So that whoever confirms sees whom it touches."""
    ward.die(3, "a")
    ward.die(2, "b", tenant="acme")
    draft = ward.operations.preview_replay("")
    a, b = ward.job("a").job_id, ward.job("b", tenant="acme").job_id
    assert draft.planned == 5
    assert draft.counts["job"] == {a: 3, b: 2}
    assert draft.counts["tenant"] == {"default": 3, "acme": 2}
    assert sum(draft.counts["group"].values()) == 5
    assert draft.newest is not None
    assert draft.oldest is not None
    assert draft.newest - draft.oldest == SECOND


def test_a_preview_chooses_by_the_filter_language(ward: Ward) -> None:
    """The same words as in every list; a mistake is an error that shows its place."""
    ward.die(3, "a")
    ward.die(2, "b", tenant="acme")
    assert ward.operations.preview_replay("tenant:acme").planned == 2
    assert ward.operations.preview_replay("job:a").filter == "state:dead job:a"
    with pytest.raises(FilterError):
        ward.operations.preview_replay("tenent:acme")
    with pytest.raises(InvalidInput, match="no dead run"):
        ward.operations.preview_replay("tenant:nobody")


def test_a_preview_tells_what_will_not_be_replayed_and_why(ward: Ward) -> None:
    """Named runs that are not dead any more, and those of jobs that are gone or held."""
    (mended,) = ward.die(1, "mended")
    held, gone = ward.die(2, "held"), ward.die(3, "gone")
    (good,) = ward.die(1, "good")
    ward.operations.replay(mended.run_id)
    ward.operations.pause(ward.job("held").job_id, reason="r", hold=True)
    ward.operations.delete(ward.job("gone").job_id)
    ids = [run.run_id for run in (mended, *held, *gone, good)]
    draft = ward.operations.preview_replay(f"id:{','.join(ids)}")
    assert draft.planned == 1
    assert draft.skipped_expected == {
        "not dead any more: it is ready": 1,
        "its job is paused with hold": 2,
        "its job is deleted": 3,
    }


def test_a_preview_warns_of_what_nobody_can_run(ward: Ward) -> None:
    """It will be moved, as a worker may come; but it would wait."""
    (run,) = ward.die(1)
    ward.clock.step(timedelta(minutes=5))  # the worker's session is over
    draft = ward.operations.preview_replay(f"id:{run.run_id}")
    assert draft.warned == {"no living worker serves queue main": 1}


def test_a_preview_keeps_the_earliest_instants_under_a_limit(ward: Ward) -> None:
    """Work that builds on earlier work finds it done."""
    early, late = ward.die(2), ward.die(2)
    draft = ward.operations.preview_replay("", limit=3)
    entries = ward.views.batch_entries(draft.batch_id).items
    assert [entry.run_id for entry in entries] == [run.run_id for run in (*early, late[0])]
    assert draft.notes == ("1 more were found and are left out by the limit",)


def test_a_preview_is_bounded_and_says_so() -> None:
    """A batch that cannot be read is no preview."""
    ward = Ward(batch_runs=3)
    ward.die(5)
    draft = ward.operations.preview_replay("")
    assert draft.planned == 3
    assert "not all were looked at" in draft.notes[0]


def test_a_draft_expires_by_itself(ward: Ward) -> None:
    """It is shown as expired, and cannot be confirmed."""
    ward.die(1)
    draft = ward.operations.preview_replay("")
    ward.clock.step(timedelta(minutes=15))
    assert ward.batch(draft).state is BatchState.EXPIRED
    with pytest.raises(Conflict, match="preview it again"):
        ward.operations.confirm_replay(draft.batch_id)
    assert not ward.step().running


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"rate": 0}, "rate"),
        ({"rate": -1.0}, "rate"),
        ({"canary": -1}, "canary"),
        ({"canary": 101}, "canary"),
        ({"breaker": 0}, "breaker"),
        ({"breaker": 1.5}, "breaker"),
        ({"limit": 0}, "limit"),
    ],
)
def test_an_option_out_of_range_is_refused_by_its_name(
    ward: Ward, options: dict[str, float], field: str
) -> None:
    """Nothing is written but the audit."""
    ward.die(1)
    with pytest.raises(InvalidInput) as caught:
        ward.operations.preview_replay("", **options)  # type: ignore[arg-type]
    assert caught.value.field == field


def test_a_rate_that_would_take_longer_than_the_runs_live_is_refused() -> None:
    """The mend names one that is fast enough."""
    with pytest.raises(InvalidInput, match="longer than 30 days") as caught:
        check_options(0.001, 0, 0.5, 3_000)
    assert caught.value.mend == "give at least 0.0012"


# confirm


def test_a_second_confirm_is_told_who_was_first(ward: Ward) -> None:
    """One draft starts one batch."""
    ward.die(1)
    batch = ward.started()
    with pytest.raises(Conflict, match="confirmed by ada at 2026-03-01T12:00:01"):
        ward.operations.confirm_replay(batch.batch_id, reason="again")


def test_one_run_needs_no_reason_and_two_do(ward: Ward) -> None:
    """The reason may also come with the preview."""
    one, two = ward.die(1)[0], ward.die(2)
    single = ward.operations.preview_replay(f"id:{one.run_id}")
    assert ward.operations.confirm_replay(single.batch_id).state is BatchState.RUNNING
    text = f"id:{two[0].run_id},{two[1].run_id}"
    double = ward.operations.preview_replay(text)
    with pytest.raises(InvalidInput, match="reason"):
        ward.operations.confirm_replay(double.batch_id, reason=" ")
    with_reason = ward.operations.preview_replay(text, reason="bug 71 is fixed")
    running = ward.operations.confirm_replay(with_reason.batch_id)
    assert running.reason == "bug 71 is fixed"


@pytest.mark.parametrize("count", [None, 99, 101])
def test_a_hundred_runs_need_their_number(ward: Ward, count: int | None) -> None:
    """Whoever cannot type it has not seen it."""
    ward.die(100)
    draft = ward.operations.preview_replay("")
    with pytest.raises(InvalidInput, match="count"):
        ward.operations.confirm_replay(draft.batch_id, reason="r", count=count)
    ward.operations.confirm_replay(draft.batch_id, reason="r", count=100)


def test_two_tenants_need_the_number_too(ward: Ward) -> None:
    """A batch across tenants is rarely meant."""
    ward.die(1, "a")
    ward.die(1, "b", tenant="acme")
    draft = ward.operations.preview_replay("")
    with pytest.raises(InvalidInput, match="give 2, the number of runs"):
        ward.operations.confirm_replay(draft.batch_id, reason="r")


def test_an_operator_confirms_no_more_than_the_limit(ward: Ward) -> None:
    """Somebody else with the right to it confirms the same draft."""
    ward.die(3)
    bob = ward.as_(Access(actor="bob", role=Role.OPERATOR, replay_limit=2))
    draft = bob.preview_replay("", reason="r")
    with pytest.raises(Forbidden, match="an admin can confirm batch"):
        bob.confirm_replay(draft.batch_id)
    assert ward.operations.confirm_replay(draft.batch_id).confirmed_by == "ada"


def test_an_actor_of_one_tenant_replays_only_its_own(ward: Ward) -> None:
    """A preview without a tenant is its own; a batch of several is nobody's."""
    ward.die(2, "a")
    acme = ward.die(2, "b", tenant="acme")
    tom = ward.as_(Access(actor="tom", tenant="acme"))
    draft = tom.preview_replay("", reason="r", rate=None)
    assert draft.counts["tenant"] == {"acme": 2}
    with pytest.raises(Forbidden):
        tom.preview_replay("tenant:default")
    whole = ward.operations.preview_replay("", reason="r")
    with pytest.raises(Forbidden):
        tom.confirm_replay(whole.batch_id, count=4)
    tom.confirm_replay(draft.batch_id)
    ward.step()
    assert ward.states(acme) == ["ready"] * 2


# looks


def test_a_batch_that_nobody_moves_is_told_apart_from_a_slow_one(ward: Ward) -> None:
    """Where neither `up` nor `reaper` runs, waiting would never end."""
    ward.die(5)
    batch = ward.started(rate=0.1)
    ward.clock.step(timedelta(seconds=16))
    assert ward.views.batch(batch.batch_id).unattended
    for _ in range(20):
        ward.step()
        assert not ward.views.batch(batch.batch_id, sample=0).unattended
    ward.operations.pause_replay(batch.batch_id)
    ward.clock.step(timedelta(minutes=5))
    assert not ward.views.batch(batch.batch_id).unattended


def test_what_people_say_about_a_batch_is_masked_where_it_is_shown(ward: Ward) -> None:
    """A filter, a reason or a note may quote an error with a secret in it.

    Source: the audit told the password that the run's own page hid.
    """
    (run, _) = ward.die(2)
    batch = ward.started('-err:"password=hush"', reason="the host said token=hush")
    ward.operations.pause_replay(batch.batch_id, reason="again token=hush")
    ward.operations.discard(run.run_id, reason="pin: hush")
    views = ward.views
    shown = [views.batch(batch.batch_id), *views.batches().items, *views.audit().items]
    shown += [*views.audit_of(f"run:{run.run_id}"), views.why_run(run.run_id)]
    assert "***" in repr(shown)
    assert "hush" not in repr(shown)
    assert views.audit(AuditQuery(filter="hush")).items == ()


def test_batches_are_listed_newest_first_page_by_page(ward: Ward) -> None:
    """Pages neither overlap nor lose one."""
    ward.die(1)
    made = []
    for _ in range(5):
        made.append(ward.operations.preview_replay("").batch_id)
        ward.clock.step(SECOND)
    first = ward.views.batches(limit=3)
    second = ward.views.batches(limit=3, cursor=first.cursor)
    assert [one.batch_id for one in (*first.items, *second.items)] == made[::-1]
    assert second.cursor is None


def test_entries_are_listed_by_outcome_page_by_page(ward: Ward) -> None:
    """Each once, in the order of their moving."""
    dead = ward.die(9)
    ward.operations.discard(dead[4].run_id)
    draft = ward.operations.preview_replay("", rate=None)
    ward.operations.discard(dead[6].run_id)
    ward.operations.confirm_replay(draft.batch_id, reason="r")
    ward.step()
    found, cursor = [], None
    while True:
        page = ward.views.batch_entries(draft.batch_id, limit=3, cursor=cursor)
        found += [entry.run_id for entry in page.items]
        cursor = page.cursor
        if cursor is None:
            break
    assert found == [run.run_id for run in dead if run is not dead[4]]
    with pytest.raises(InvalidInput, match="cursor"):
        ward.views.batch_entries(draft.batch_id, cursor="x")
