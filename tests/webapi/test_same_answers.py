"""The API and the command line: one filter chooses the same, and shows it in the same words."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from click.testing import CliRunner

from dynsched.cli.main import main
from dynsched.cli.runtime import Runtime
from dynsched.domain.vocabulary import RUNS
from tests.webapi.stage import Stage

FILTERS = {
    "runs": ["", "state:dead", "-state:dead", "job:active kind:manual", "err:boom tenant:acme",
             "payload.n:1", "is:discarded", "attempt:>0 prio:default", "boom", "due:>+1h",
             *(f"@{name}" for name in RUNS.named)],
    "jobs": ["", "state:paused", "-state:paused tenant:acme", "name:active", "next:<+2d"],
    "dlq": ["", "err:boom", "dead:>-1h", "is:discarded"],
    "groups": ["", "tenant:acme", "err:nothing"],
    "audit": ["", "action:job.create", "actor:program outcome:done"],
}  # fmt: skip
COMMANDS = {
    "runs": ("run", "list"),
    "jobs": ("job", "list"),
    "dlq": ("dlq", "list"),
    "groups": ("groups",),
    "audit": ("audit",),
    "replays": ("replay", "list"),
    "tenants": ("tenant", "list"),
}
CASES = [(noun, text) for noun, texts in FILTERS.items() for text in texts]


@pytest.fixture(scope="module")
def stage() -> Stage:
    """Return a stage on which nothing is changed."""
    return Stage()


def command(stage: Stage, *words: str) -> Any:
    """Return what a command prints with `--json`."""
    runtime = Runtime(environment={}, base=stage.scene.base)
    at = words.index("--") if "--" in words else len(words)
    result = CliRunner().invoke(main, [*words[:at], "--json", *words[at:]], obj=runtime)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize(("noun", "text"), CASES)
def test_the_same_filter_gives_the_same_documents_in_the_same_order(
    stage: Stage, noun: str, text: str
) -> None:
    """Down to each field; so a script may go from one to the other."""
    by_api = stage.get(f"/{noun}", filter=text)["items"]
    by_command = command(stage, *COMMANDS[noun], "--", *([text] if text else []))
    assert by_api == by_command


@pytest.mark.parametrize("noun", ["replays", "tenants"])
def test_a_list_without_a_filter_is_the_same_too(stage: Stage, noun: str) -> None:
    """They have one document each."""
    assert stage.get(f"/{noun}")["items"] == command(stage, *COMMANDS[noun])


def test_some_of_these_filters_find_something(stage: Stage) -> None:
    """Equal empty lists would prove nothing."""
    found = [stage.get(f"/{noun}", filter=text)["matched"] for noun, text in CASES]
    assert sum(count > 0 for count in found) > len(found) / 2


def test_one_thing_is_the_same_document_by_both(stage: Stage) -> None:
    """A run, a job, a batch, an explanation."""
    scene = stage.scene
    run, batch = scene.dead.run_id, scene.running.batch_id
    assert stage.get(f"/runs/{run}") == command(stage, "run", "show", run)
    job = stage.get("/jobs/active", tenant="acme")
    assert job == command(stage, "job", "show", "active", "--tenant", "acme")
    assert stage.get(f"/replays/{batch}") == command(stage, "replay", "status", batch)
    assert stage.get(f"/runs/{run}/why") == command(stage, "why", run)


@pytest.mark.parametrize("who", ["admin", "own"])
@pytest.mark.parametrize("noun", ["runs", "jobs", "audit", "replays", "groups"])
def test_pages_of_any_size_have_together_what_one_page_has(
    stage: Stage, noun: str, who: str
) -> None:
    """Nothing twice, nothing lost, whatever the bearer may see."""
    whole = stage.get(f"/{noun}", who=who)
    assert whole["cursor"] is None
    for limit in (1, 2, 3):
        items: list[Any] = []
        cursor: str | None = None
        while True:
            query: dict[str, Any] = {"limit": limit} | ({"cursor": cursor} if cursor else {})
            page = stage.get(f"/{noun}", who=who, **query)
            assert page["matched"] == len(page["items"]) <= limit
            items += page["items"]
            cursor = page["cursor"]
            if cursor is None:
                break
            assert re.fullmatch(r"[\w-]+", cursor)
        assert items == whole["items"]


def test_the_next_times_of_a_job_are_in_its_zone(stage: Stage) -> None:
    """Across a change of the clock, by the job's own rules."""
    fresh = Stage()
    fresh.call("create_job")
    times = fresh.get("/jobs/new/next", tenant="acme", count=2, after="2026-03-28T12:00:00Z")
    assert [one["local"] for one in times["items"]] == [
        "2026-03-29T04:00:00+03:00",
        "2026-03-30T04:00:00+03:00",
    ]
    assert times["items"][0]["at"] == "2026-03-29T01:00:00.000Z"
    paused = stage.get("/jobs/paused/next", tenant="acme")
    assert (paused["items"], paused["notes"]) == ([], ["the job is paused"])
