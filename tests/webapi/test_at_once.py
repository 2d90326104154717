"""Requests at the same moment: what may be done once is done once, whoever asks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

from flask import Flask

from dynsched.bootstrap import build_operations, init_store, open_base
from dynsched.domain.access import Role
from dynsched_web.api import api_blueprint
from dynsched_web.api.blueprint import ROOT
from tests.webapi.stage import EXAMPLES

THREADS = 6


def test_what_several_send_at_once_is_made_once(tmp_path: Path) -> None:
    """One job of a name, and one run of a key, in a file that all threads share."""
    base = open_base(f"sqlite:///{tmp_path / 'jobs.db'}", environment={})
    init_store(base)
    headers = {
        "Authorization": f"Bearer {build_operations(base).create_token('t', role=Role.ADMIN).text}"
    }
    app, gate = Flask("stage"), Barrier(THREADS)
    app.register_blueprint(api_blueprint(base))

    def send(_: int) -> tuple[int, str]:
        client = app.test_client()
        gate.wait()
        made = client.post(f"{ROOT}/jobs", json=EXAMPLES["create_job"].body, headers=headers)
        gate.wait()
        run = client.post(
            f"{ROOT}/jobs/new/runs?tenant=acme",
            json={"payload": 1},
            headers={**headers, "Idempotency-Key": "7"},
        )
        assert run.json is not None
        return made.status_code, run.json["run_id"]

    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(send, range(THREADS)))
    base.store.engine.close()
    assert sorted(status for status, _ in answers) == [201] + [409] * (THREADS - 1)
    assert len({run_id for _, run_id in answers}) == 1
