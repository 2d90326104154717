"""Views mask by default, verbs do not: what people see, and what programs of the owner get."""

from __future__ import annotations

import json

import pytest

from dynsched.bootstrap import build_views
from dynsched.domain.masking import Masker
from dynsched.domain.payload import Json
from dynsched.domain.target import CommandTarget, HttpTarget, Target
from dynsched.errors import InvalidInput
from dynsched.services.masked import masked_target
from dynsched.services.specs import JobSpec
from tests.test_tidy import CODE
from tests.unit.verb_calls import TENANT, Scene

LARGE = {"text": "x" * 400, "password": "hush"}  # lies apart from its row


@pytest.fixture
def scene() -> Scene:
    """Return a store with a job that carries a password."""
    return Scene()


def add(scene: Scene, payload: Json, target: Target | None = None) -> str:
    """Add a job to the scene; return its id."""
    target = target or scene.active.target
    assert target is not None
    spec = JobSpec(name="extra", tenant=TENANT, target=target, payload=payload)
    return scene.owner.create(spec).job_id


@pytest.mark.parametrize("payload", [{"password": "hush"}, LARGE], ids=["inline", "apart"])
def test_payloads_of_jobs_and_runs_are_masked_wherever_they_lie(
    scene: Scene, payload: dict[str, str]
) -> None:
    """In lists and in details; the verbs give them as they are."""
    job_id = add(scene, payload)
    run = scene.owner.run_now(job_id, payload=payload)
    views = build_views(scene.base)
    shown = views.show_run(run.run_id)
    for text in (shown.payload, views.show_job(views.find_job(job_id)).payload):
        assert json.loads(text or "") == {**payload, "password": "***"}
    rows = [*views.find_jobs("").items, *views.find_runs("").items]
    assert "hush" not in repr(rows) + repr(shown)
    raw = scene.owner.unmask_run(run.run_id, "a test")
    assert json.loads(raw.payload or "") == payload
    detail = views.show_job(views.find_job(job_id), unmask=True)
    assert json.loads(detail.payload or "") == payload


def test_the_reason_of_a_pause_is_masked_where_it_is_shown(scene: Scene) -> None:
    """In lists, details and explanations."""
    job_id = add(scene, None)
    run = scene.owner.enqueue(job_id)
    scene.owner.pause(job_id, reason="the host said token=hush", hold=True)
    views = build_views(scene.base)
    job = views.find_job(job_id)
    shown = [*views.find_jobs("").items, views.show_job(job), views.why_run(run.run_id)]
    assert "token=***" in repr(shown)
    assert "hush" not in repr(shown)


def test_nobody_finds_a_masked_value_by_guessing_at_it(scene: Scene) -> None:
    """A filter sees what people see."""
    run = scene.owner.run_now(scene.active.job_id, payload={"password": "hush", "n": 5})
    views = build_views(scene.base)
    assert views.find_runs("payload.password:hush").items == ()
    assert [one.run_id for one in views.find_runs("payload.n:5").items] == [run.run_id]


def test_a_masked_target_is_shown_even_if_it_could_not_be_made_so() -> None:
    """A template that masking leaves as no JSON is no reason to fail a page."""
    target = HttpTarget("https://example.org", body='{"pin": 1234, "id": {payload.id}}')
    shown = masked_target(Masker(), target)
    assert isinstance(shown, HttpTarget)
    assert shown.body == '{"pin": ***, "id": {payload.id}}'


def test_a_large_target_is_masked_too_and_edits_see_it_whole(scene: Scene) -> None:
    """Headers of a job that lie apart from its row."""
    long = {f"X-Header-{number}": "v" * 40 for number in range(10)}
    target = HttpTarget("https://example.org", headers={**long, "Authorization": "Bearer hush"})
    job_id = add(scene, None, target)
    views = build_views(scene.base)
    assert "hush" not in repr(views.show_job(views.find_job(job_id)))
    assert scene.owner.target_of(scene.owner.get_job(job_id)) == target


def test_a_masked_payload_that_comes_back_keeps_its_secret(scene: Scene) -> None:
    """An edit of what was shown changes what was edited only."""
    job_id = add(scene, {"password": "hush", "n": 1})
    scene.owner.edit(job_id, payload={"password": "***", "n": 2})
    assert json.loads(scene.owner.get_job(job_id).payload or "") == {"password": "hush", "n": 2}


def test_a_mask_that_stands_for_nothing_known_is_refused(scene: Scene) -> None:
    """In a new job, in a manual run, in a target, and where the payload has no such secret."""
    job_id, masked = scene.active.job_id, {"token": "***"}
    with pytest.raises(InvalidInput, match="payload"):
        scene.owner.edit(job_id, payload=masked)
    with pytest.raises(InvalidInput, match="payload"):
        scene.owner.run_now(job_id, payload=masked)
    with pytest.raises(InvalidInput, match="payload"):
        add(scene, masked)
    with pytest.raises(InvalidInput, match="target"):
        scene.owner.edit(job_id, target=CommandTarget("login --password ***"))


def test_no_entry_point_asks_a_view_to_unmask() -> None:
    """Only the verb does, which asks who may see it and writes that down."""
    asking = [
        source.path
        for source in CODE
        if any("unmask=True" in line for line in source.lines)
        and not source.path.endswith("services/unmask_verbs.py")
    ]
    assert asking == []
