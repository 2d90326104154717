"""`dynsched why` as people type it, on SQLite and on DynamoDB's stand-in."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from dynsched.bootstrap import build_operations, build_views, build_worker, init_store, open_base
from dynsched.domain.explanation import Cause
from dynsched.domain.job import Overlap
from dynsched.domain.target import HandlerTarget
from dynsched.services.specs import CronSpec, JobSpec
from dynsched.storage.engine import Engine
from dynsched.targets.app import App
from dynsched.testing.manual import LostSlots
from tests.integration.program import Program


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Return the program with a store."""
    return Program(tmp_path)


def dead(program: Program, *options: str) -> str:
    """Return the id of a run that has died."""
    program(
        "job", "add", "j", "--now", "--handler", "boom", "--payload", '"no disk"',
        "--max-attempts", "1", *options,
    )  # fmt: skip
    program.run_all()
    (run,) = program.json("dlq", "list")
    return str(run["run_id"])


def test_people_read_the_cause_first_and_what_to_type_last(program: Program) -> None:
    """Headline, support, timeline, commands; then the code."""
    run_id = dead(program)
    out = program("why", run_id).out
    lines = out.splitlines()
    assert lines[0].startswith("j is dead since ")
    assert "failed, the last with ValueError: no disk." in lines[0]
    assert f"  dynsched dlq replay {run_id}" in lines[lines.index("try") :]
    assert lines[-1].startswith("cause: spent (")
    assert lines[-1].endswith(" rows read)")


def test_scripts_read_the_cause_as_a_code(program: Program) -> None:
    """One document, with what happened when."""
    run_id = dead(program)
    document = program.json("why", run_id)
    assert (document["cause"], document["run_id"], document["alarm"]) == ("spent", run_id, False)
    assert [item["what"] for item in document["timeline"]][-1] == "dead (attempts spent)"
    assert document["hints"][0] == f"dynsched dlq replay {run_id}"


def test_an_instant_of_a_job_is_asked_for_by_name_and_tenant(program: Program) -> None:
    """Every form that `--at` takes; the answer's hints can be typed as they are."""
    program("job", "add", "j", "--cron", "0 * * * *", "--handler", "echo", "--tenant", "acme")
    answer = program.json("why", "j", "2150-01-01T00:30:00+02:00", "--tenant", "acme")
    assert answer["cause"] == "never_named"
    hint = answer["hints"][0]
    assert hint == "dynsched why j 2149-12-31T22:00:00Z --tenant acme"
    assert program.json(*hint.split()[1:])["cause"] == "ahead"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("j",), "INSTANT: 'j' is no run id, and a job needs an instant too"),
        (("j@nonsense",), "is not a run id"),
        (("j", "yesterday"), "INSTANT: 'yesterday' is not an ISO instant"),
        (("j", "2026-03-01T09:00:00"), "INSTANT: the datetime has no zone"),
        (
            ("j1@2026-01-02T03:04:05.000Z-c", "2026-03-01T09:00:00Z"),
            "INSTANT: a run id has its instant already",
        ),
    ],
)
def test_a_question_in_another_form_is_told_the_right_one(
    program: Program, arguments: tuple[str, ...], message: str
) -> None:
    """One line that names the argument and the mend."""
    program("job", "add", "j", "--cron", "0 * * * *", "--handler", "echo")
    assert message in program.error("why", *arguments)


def test_what_does_not_exist_is_told_where_to_look(program: Program) -> None:
    """Exit code 3, as for every command."""
    assert "no job 'k'" in program.error("why", "k", "2026-03-01T09:00:00Z", code=3)
    missing = "0000000000000@2026-01-02T03:04:05.000Z-c"
    assert "its retention is over" in program.error("why", missing, code=3)


def test_nothing_that_an_error_holds_reaches_the_terminal(program: Program) -> None:
    """A handler's message may hold escape sequences."""
    program(
        "job", "add", "j", "--now", "--handler", "boom", "--payload", '"\\u001b[31mred"',
        "--max-attempts", "1",
    )  # fmt: skip
    program.run_all()
    (run,) = program.json("dlq", "list")
    assert "\x1b" not in program("why", run["run_id"]).out


def test_secrets_in_errors_are_masked_for_whoever_asks_why(program: Program) -> None:
    """As everywhere that people look."""
    program(
        "job", "add", "j", "--now", "--handler", "boom", "--payload", '"password=hunter2"',
        "--max-attempts", "1",
    )  # fmt: skip
    program.run_all()
    (run,) = program.json("dlq", "list")
    out = program("why", run["run_id"]).out
    assert "hunter2" not in out
    assert "password=***" in out


def test_asking_why_changes_nothing(program: Program) -> None:
    """It only reads."""
    run_id = dead(program)
    before = program.dump()
    program("why", run_id)
    program("why", "j", "2150-01-01T00:00:00Z")
    assert program.dump() == before


def test_runs_and_instants_are_explained_on_dynamodb(moto_engine: Engine) -> None:
    """Permits, sessions, ready rows and cursors read the same there."""
    base = open_base(engine=moto_engine, environment={})
    init_store(base)
    operations, views = build_operations(base), build_views(base)
    schedule = CronSpec(expr="0 0 1 1 *")
    spec = JobSpec(name="j", target=HandlerTarget("ok"), tenant="acme", schedule=schedule)
    job = operations.create(spec)
    operations.edit(job.job_id, policies={"overlap": Overlap.ALLOW})
    operations.set_tenant("acme", max_running=1)
    runs = [operations.enqueue(job.job_id) for _ in range(2)]
    assert views.why_run(runs[0].run_id).cause is Cause.NO_WORKER
    app = App()
    app.job("ok")(lambda: None)
    parts = build_worker(base, app, slots=LostSlots())
    parts.worker.poll()
    causes = {views.why_run(run.run_id).cause for run in runs}
    assert causes == {Cause.RUNNING, Cause.AT_CAP}
    instant = datetime(2150, 6, 1, tzinfo=UTC)
    assert views.why_instant("j", instant, "acme").cause is Cause.NEVER_NAMED
    parts.runner.close()


def test_a_job_that_one_tenant_has_needs_no_tenant_to_be_looked_at(program: Program) -> None:
    """Looking asks for no more than it takes; changing still asks whose job is meant."""
    program("job", "add", "j", "--cron", "0 9 * * *", "--handler", "echo", "--tenant", "acme")
    assert "tenant acme" in program("why", "j", "2020-01-01T09:00:00Z").out
    assert program.json("job", "show", "j")["tenant"] == "acme"
    assert program.json("run", "list", "--job", "j") == []
    assert program.json("audit", "--of", "job:j")[0]["tenant"] == "acme"
    assert "--tenant acme" in program.error("job", "pause", "j", "--reason", "x", code=3)


def test_a_job_that_two_tenants_have_needs_a_tenant(program: Program) -> None:
    """Nothing is guessed."""
    for tenant in ("acme", "globex"):
        program("job", "add", "j", "--manual", "--handler", "echo", "--tenant", tenant)
    assert "tenants acme, globex have one" in program.error("job", "show", "j", code=3)
    program("job", "show", "j", "--tenant", "globex")


def test_an_instant_is_found_as_lists_show_it(program: Program) -> None:
    """Lists show whole seconds, an interval's instants have parts of them."""
    program("job", "add", "j", "--now", "--handler", "echo")
    program.run_all()
    (run,) = program.json("run", "list", "--job", "j")
    seen = run["scheduled_for"][:19] + "Z"
    assert program.json("why", "j", seen)["run_id"] == run["run_id"]
