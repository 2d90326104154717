"""Bad input to verbs, settings and store URLs is told as such, before anything is written."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from dynsched.bootstrap import open_engine
from dynsched.domain.instants import to_utc
from dynsched.domain.payload import Json
from dynsched.domain.target import HttpTarget, Target
from dynsched.errors import InvalidInput, NotFound
from dynsched.services.specs import JobSpec
from dynsched.settings import Settings, settings_from
from dynsched.targets.app import App
from dynsched.testing import ManualScheduler

END = datetime(9999, 12, 31, tzinfo=UTC)
PADDING = "x" * 300
TEMPLATES = ['{"id": {payload.id}}', '{"id": {payload.id}, "more": "' + PADDING + '"}']


@pytest.fixture
def manual() -> Iterator[ManualScheduler]:
    """A store with one handler."""
    app = App()
    app.job("h")(lambda: None)
    with ManualScheduler(app) as scheduler:
        yield scheduler


def hook(template: str) -> Target:
    """Return a request whose body names a field of the payload."""
    return HttpTarget(url="https://example.org/hook", body=template)


@pytest.mark.parametrize("payload", [1, PADDING])
def test_a_run_may_be_for_the_last_day_of_the_calendar(
    manual: ManualScheduler, payload: Json
) -> None:
    """What is kept for it expires later than any datetime."""
    job = manual.operations.get_run(manual.enqueue("h").run_id).job_id
    run = manual.operations.enqueue(job, payload, at=END, key="k")
    assert manual.operations.enqueue(job, payload, at=END, key="k").run_id == run.run_id


def test_a_delay_beyond_the_calendar_is_bad_input(manual: ManualScheduler) -> None:
    """Nobody can act on an arithmetic error."""
    job = manual.enqueue("h").job_id
    with pytest.raises(InvalidInput, match="delay: "):
        manual.operations.enqueue(job, delay=timedelta.max)


@pytest.mark.parametrize("key", ["", "ä" * 257, "a\nb", "\ud800"])
def test_a_malformed_key_is_refused(manual: ManualScheduler, key: str) -> None:
    """It becomes part of a row's address."""
    job = manual.enqueue("h").job_id
    with pytest.raises(InvalidInput, match="key: "):
        manual.operations.enqueue(job, key=key)


def test_an_instant_outside_the_calendar_in_utc_is_bad_input() -> None:
    """It has a zone, but no day in UTC."""
    with pytest.raises(InvalidInput, match="at: "):
        to_utc(datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))), "at")


@pytest.mark.parametrize("text", ["inf", "1e20", "31622401", "nan"])
def test_a_setting_that_is_no_sensible_duration_is_refused(text: str) -> None:
    """At most 366 days, and a number."""
    with pytest.raises(InvalidInput, match=r"(?i)lease"):
        settings_from({"DYNSCHED_LEASE_S": text}, Settings())


@pytest.mark.parametrize(
    "tail", ["a#b.db", "a#", "c?d.db", "c?", "c?durability=", "c?durability=power&x"]
)
def test_a_store_url_that_would_be_cut_short_is_refused(tmp_path: Path, tail: str) -> None:
    """Else it would silently open another file."""
    with pytest.raises(InvalidInput, match="--store"):
        open_engine(f"sqlite:///{tmp_path}/{tail}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["default", "ended"])
def test_a_key_of_another_row_is_no_job(manual: ManualScheduler, suffix: str) -> None:
    """Only ids that have an id's form are looked up as such."""
    manual.enqueue("h")
    with pytest.raises(NotFound):
        manual.operations.find(f"name#{suffix}")


def test_a_job_is_found_by_its_id(manual: ManualScheduler) -> None:
    """As well as by its name."""
    job_id = manual.enqueue("h").job_id
    assert manual.operations.find(job_id).job_id == job_id


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("given", [{"other": 1}, {"other": PADDING}])
def test_a_payload_that_lacks_what_the_target_names_is_refused(
    manual: ManualScheduler, template: str, given: Json
) -> None:
    """By an edit and by an enqueue, as by the creation, and also where parts lie apart."""
    spec = JobSpec(name="a", target=hook(template), payload={"id": 1})
    job_id, operations = manual.operations.create(spec).job_id, manual.operations
    for refused in (
        lambda: operations.edit(job_id, payload=given),
        lambda: operations.enqueue(job_id, given),
        lambda: operations.enqueue_many(job_id, [{"id": 2}, given]),
    ):
        with pytest.raises(InvalidInput, match=r"payload.*id"):
            refused()


@pytest.mark.parametrize("payload", [{"id": 1}, {"id": PADDING}])
def test_a_target_that_names_what_the_payload_lacks_is_refused(
    manual: ManualScheduler, payload: Json
) -> None:
    """An edit of the target alone is judged by the payload that stays."""
    spec = JobSpec(name="a", target=hook(TEMPLATES[0]), payload=payload)
    job_id = manual.operations.create(spec).job_id
    with pytest.raises(InvalidInput, match=r"payload.*name"):
        manual.operations.edit(job_id, target=hook('{"name": {payload.name}}'))
    manual.operations.edit(job_id, target=hook('{"name": {payload.name}}'), payload={"name": "n"})
