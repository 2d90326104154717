"""Jobs in the browser: the form, the preview of times, pause, run now, delete."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from dynsched.services.specs import CronSpec
from dynsched_web.job_form import preview
from tests.web.stage import Stage, staged

NEW = {
    "name": "report",
    "tenant": "acme",
    "queue": "main",
    "priority": "default",
    "kind": "cron",
    "expr": "30 2 * * *",
    "tz": "Europe/Berlin",
    "dst": "vixie",
    "does": "handler",
    "handler": "mail",
    "payload": '{"who": "x", "password": "hunter2"}',
    "timeout": "10m",
    "max_attempts": "4",
    "catch_up": "latest",
    "overlap": "skip",
    "tags": "team=mail",
}


def fields_on(page: str) -> dict[str, str]:
    """Return what the fields of a form hold, as a browser would send them."""
    found = dict(re.findall(r'<input name="(\w+)" id="f-\w+" value="([^"]*)"', page))
    found |= dict(re.findall(r'<input type="hidden" name="(name|tenant)" value="([^"]*)"', page))
    for name, body in re.findall(r'<textarea name="(\w+)"[^>]*>(.*?)</textarea>', page, re.DOTALL):
        found[name] = body.replace("&#34;", '"')
    for name, body in re.findall(
        r'<select name="(\w+)" id="f[^>]*>(.*?)</select>', page, re.DOTALL
    ):
        found[name] = next(iter(re.findall(r"<option selected>(\w+)", body)), "")
    for name, value in re.findall(r'type="radio" name="(\w+)" value="(\w+)" checked', page):
        found[name] = value
    return found


def made(stage: Stage, **changes: str) -> str:
    """Make a job by the form; return its id."""
    answer = stage.visitor().post("/jobs", **{**NEW, **changes})
    assert answer.status_code == 303, answer.text
    return answer.headers["Location"].rpartition("/")[2]


def test_a_job_is_made_as_the_form_says() -> None:
    """Every field arrives where it belongs."""
    with staged() as stage:
        job = stage.operations.get_job(made(stage))
        assert (job.name, job.tenant, dict(job.tags)) == ("report", "acme", {"team": "mail"})
        assert job.policies.retry.max_attempts == 4
        assert job.policies.timeout is not None
        assert job.policies.timeout.total_seconds() == 600
        assert job.schedule is not None
        assert "Europe/Berlin" in job.schedule.describe()


def test_a_form_that_is_wrong_comes_back_as_it_was_typed() -> None:
    """The fault names its field, and nothing that was typed is lost."""
    with staged() as stage:
        answer = stage.visitor().post("/jobs", **{**NEW, "expr": "61 * * * *"})
        assert answer.status_code == 422
        assert 'value="61 * * * *"' in answer.text
        assert 'role="alert"' in answer.text
        assert stage.operations.find_id("acme", "report") is None


@pytest.mark.parametrize("text", ["9" * 5_000, "-1", "²", "1e3", "1.5", "1000000001"])
def test_what_is_no_whole_number_is_told_at_its_field(text: str) -> None:
    """However it is written, and however long, the form comes back with the fault."""
    with staged() as stage:
        answer = stage.visitor().post("/jobs", **{**NEW, "max_attempts": text})
        assert answer.status_code == 422
        assert "is no whole number" in answer.text


def test_what_is_not_touched_in_the_form_stays_secrets_too() -> None:
    """The form shows *** for a secret; sending it back changes neither it nor the schedule."""
    with staged() as stage:
        job_id = made(stage)
        before = stage.operations.get_job(job_id)
        fields = fields_on(stage.visitor().get(f"/jobs/{job_id}/edit").text)
        assert "hunter2" not in fields["payload"]
        answer = stage.visitor().post(f"/jobs/{job_id}/edit", **{**fields, "queue": "slow"})
        assert answer.status_code == 303, answer.text
        after = stage.operations.get_job(job_id)
        assert after.queue == "slow"
        assert after.generations == before.generations
        assert "hunter2" in (after.payload or "")


@pytest.mark.parametrize(
    "wrong", [{"queue": "no queue"}, {"tags": f"team={'x' * 5_000}"}, {"max_attempts": "0"}]
)
def test_a_form_that_is_refused_changes_nothing_of_the_job(wrong: dict[str, str]) -> None:
    """Its schedule neither, though that was good: the form comes back, and says what is wrong."""
    with staged() as stage:
        job_id = made(stage)
        before = stage.operations.get_job(job_id)
        fields = fields_on(stage.visitor().get(f"/jobs/{job_id}/edit").text)
        fields |= {"expr": "0 4 * * *", **wrong}
        assert stage.visitor().post(f"/jobs/{job_id}/edit", **fields).status_code == 422
        assert stage.operations.get_job(job_id) == before


@pytest.mark.parametrize("nothing", ["", "null"])
def test_a_payload_is_not_said_to_be_gone_while_it_stays(nothing: str) -> None:
    """An edit cannot take it away, so the form says what to give instead."""
    with staged() as stage:
        job_id = made(stage)
        fields = fields_on(stage.visitor().get(f"/jobs/{job_id}/edit").text)
        answer = stage.visitor().post(f"/jobs/{job_id}/edit", **{**fields, "payload": nothing})
        assert answer.status_code == 422
        assert "give {} for an empty one" in answer.text


def test_a_changed_schedule_makes_one_new_generation() -> None:
    """The edit goes through the verb that loses and doubles nothing."""
    with staged() as stage:
        job_id = made(stage)
        fields = fields_on(stage.visitor().get(f"/jobs/{job_id}/edit").text)
        answer = stage.visitor().post(f"/jobs/{job_id}/edit", **{**fields, "expr": "0 4 * * *"})
        assert answer.status_code == 303, answer.text
        after = stage.operations.get_job(job_id)
        assert len(after.generations) == 2
        assert after.schedule is not None
        assert "04:00" in after.schedule.describe() or "4" in after.schedule.describe()


def test_the_preview_says_where_the_clocks_change() -> None:
    """Ten times in the schedule's own zone, with the change between the two it lies between."""
    now = datetime(2026, 3, 26, tzinfo=UTC)
    found = preview(CronSpec(expr="0 12 * * *", tz="Europe/Berlin"), "", now)
    assert len(found.coming) == 10
    assert [one.local.day for one in found.coming if one.change] == [29]
    (change,) = [one.change for one in found.coming if one.change]
    assert change == "the clocks go forward by 60 minutes before this"


def test_the_times_of_a_form_are_shown_with_and_without_a_script() -> None:
    """A script is given the part, anybody else the form again; nothing is written."""
    with staged() as stage:
        ada = stage.visitor()
        token = ada.token()
        stage.engine.written.clear()
        page = ada.post("/jobs/preview", csrf=token, **NEW).text
        assert 'value="30 2 * * *"' in page
        assert page.count("+0100") >= 9
        part = ada.client.post(
            "/jobs/preview", data={"csrf": token, **NEW}, headers={"HX-Request": "true"}
        ).text
        assert "<form" not in part
        assert part.count("+0100") >= 9
        assert stage.engine.written == []


def test_a_job_is_paused_resumed_run_and_deleted_from_its_page() -> None:
    """A pause needs its reason, a deletion the job's name."""
    with staged() as stage:
        ada, job_id = stage.visitor(), made(stage)
        assert ada.post(f"/jobs/{job_id}/pause", reason=" ").status_code == 422
        assert ada.post(f"/jobs/{job_id}/pause", reason="a fault").status_code == 303
        assert "a fault" in ada.get(f"/jobs/{job_id}").text
        assert ada.post(f"/jobs/{job_id}/resume").status_code == 303
        run = ada.post(f"/jobs/{job_id}/run", payload='"good"', reason="try it")
        assert run.headers["Location"].startswith(f"/runs/{job_id}@")
        assert ada.post(f"/jobs/{job_id}/delete", name="other").status_code == 422
        assert ada.post(f"/jobs/{job_id}/delete", name="report").status_code == 303
        assert "deleted" in ada.get(f"/jobs/{job_id}").text


def test_the_strip_of_a_job_shows_past_and_coming_occurrences() -> None:
    """Each box is a link: to its run, or to why it is still to come."""
    with staged() as stage:
        job_id = stage.job()
        stage.scheduler.advance(hours=3)
        stage.clock.step(seconds=2)
        page = stage.visitor().get(f"/jobs/{job_id}").text
        assert page.count('class="box s-') >= 3
        assert page.count('class="box coming"') >= 9
        (link, *_) = re.findall(r'class="box coming" href="([^"]+)"', page)
        assert stage.visitor().get(link.replace("&amp;", "&")).status_code == 200


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (
            {"does": "lambda", "function": "report", "invocation": "callback"},
            "lambda report (callback)",
        ),
        (
            {
                "does": "sqs",
                "queue_url": "https://sqs.eu-west-1.amazonaws.com/123456789012/orders.fifo",
                "group": "g",
                "body": "order {payload.who}",
            },
            "sqs orders.fifo",
        ),
    ],
)
def test_a_job_on_aws_is_made_by_the_form_and_stays_as_it_is(
    typed: dict[str, str], told: str
) -> None:
    """An edit of something else leaves all of its target."""
    with staged() as stage:
        job_id = made(stage, **typed)
        target = stage.operations.get_job(job_id).target
        assert target is not None
        assert target.describe() == told
        ada = stage.visitor()
        fields = fields_on(ada.get(f"/jobs/{job_id}/edit").text)
        assert ada.post(f"/jobs/{job_id}/edit", **{**fields, "queue": "slow"}).status_code == 303
        job = stage.operations.get_job(job_id)
        assert (job.queue, job.target) == ("slow", target)


def test_an_invocation_that_is_unknown_is_told_at_its_field() -> None:
    """Nobody can choose one, but anybody can send one."""
    with staged() as stage:
        wrong = {"does": "lambda", "function": "f", "invocation": "later"}
        answer = stage.visitor().post("/jobs", **{**NEW, **wrong})
        assert answer.status_code == 422
        assert "invocation:" in answer.text
