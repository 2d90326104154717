"""The same commands on DynamoDB: only the URL changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.dynamo_backends import REGION, dummy_credentials, fresh_prefix, ministack_url
from tests.integration.program import Program


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """Return the program with tables still to be made."""
    with dummy_credentials():
        program = Program(tmp_path, made=False)
        program.url = f"dynamodb://{fresh_prefix()}?region={REGION}&endpoint_url={ministack_url()}"
        yield program


def test_jobs_run_and_die_and_come_back_on_dynamodb(program: Program) -> None:
    """From `init` to a replay, and what people see in between."""
    assert "dynsched init" in program("job", "list", code=2).err
    assert program("init").out.endswith(": made\n")
    program("job", "add", "good", "--now", "--handler", "echo")
    program("job", "add", "bad", "--now", "--handler", "boom", "--max-attempts", "1")
    assert program("dispatcher", "--once").out.startswith("one tick: ")
    assert program.run_all() == "2 runs claimed, 2 started, 2 ended\n"
    states = {run["job_name"]: run["state"] for run in program.json("run", "list")}
    assert states == {"good": "done", "bad": "dead"}
    (dead,) = program.json("dlq", "list")
    program("dlq", "replay", dead["run_id"])
    stats = program.json("stats")
    assert (stats["runs"]["ready"]["count"], stats["runs"]["dead"]["count"]) == (1, 0)
    assert [job["name"] for job in program.json("job", "list")] == ["bad", "good"]


def test_an_endpoint_that_does_not_answer_is_told_after_some_tries(program: Program) -> None:
    """Exit code 6: the store failed, and nothing was wrong with the call."""
    url = f"dynamodb://x?region={REGION}&endpoint_url=http://127.0.0.1:1"
    answer = program("job", "list", "--store", url, code=6)
    assert "gave up after 6 attempts" in answer.err.splitlines()[-1]
