"""The web console: parts of lists without the store, and fifty operators who leave it open.

`python -m bench.web URL` serves a console over a metered store for the second measurement: it
prints its address, and at each line of standard input what it has used since the line before.
"""

from __future__ import annotations

import argparse
import http.client
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from urllib.parse import urlsplit

from bench.crowd import fill
from bench.options import Options, say
from bench.processes import ROOT
from bench.report import Figure, percentile
from bench.stores import fresh
from dynsched.bootstrap import Base, open_base
from dynsched.domain.access import Access
from dynsched.storage.metering import MeteringEngine
from dynsched.storage.sqlite import SqliteEngine
from dynsched_web.app import create_app
from dynsched_web.config import WebConfig
from dynsched_web.desk import NAME
from dynsched_web.serve import Typed, open_server

PART_MOST_MS = 50.0
ROUNDS = 200
OPERATORS = 50
REFRESH_S = 5.0
SPAN_S = 60.0
AUDITED = 100  # verbs, so that the audit has a page
PART = {"HX-Request": "true"}
SEEN = "X-Seen"
ACCESS = Access(actor="bench", via="web")
LISTS = ("/runs?q=state:dead", "/jobs", "/dlq", "/dlq?by=entries", "/tenants", "/audit")
PAGES = (*LISTS, "/", "/workers", "/runs", "/replays")


def _parts(base: Base, rounds: int) -> list[Figure]:
    """Measure parts whose rows are there already: what is left is the console's own work."""
    config = WebConfig(access=ACCESS, fresh=timedelta(days=1))
    app = create_app(base, config)
    client = app.test_client()
    figures = []
    for path in LISTS:
        took = []
        for _ in range(rounds + 1):
            began = time.perf_counter()
            answer = client.get(path, headers=PART)
            took.append((time.perf_counter() - began) * 1_000)
            assert answer.status_code == 200, answer.text
        size_kb = len(answer.data) / 1_000
        figures.append(
            Figure(
                f"{path}: p95 without the store",
                percentile(took[1:], 0.95),
                "ms",
                most=PART_MOST_MS,
                note=f"{size_kb:.0f} KB; the first, with the store, {took[0]:.0f} ms",
            )
        )
    app.extensions[NAME].reading.close()
    return figures


@dataclass(slots=True)
class _Seen:
    """What an operator has seen: how long each answer took, how many had news, what failed."""

    took_ms: list[float] = field(default_factory=list)
    news: int = 0
    faults: list[str] = field(default_factory=list)


def _operate(address: str, path: str, start_s: float, end: float, seen: _Seen) -> None:
    """Leave a page open that refreshes itself, as its script does it."""
    parts = urlsplit(address)
    line = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    time.sleep(start_s)
    mark = ""
    while time.monotonic() < end:
        began = time.perf_counter()
        line.request("GET", path, headers={**PART, SEEN: mark})
        answer = line.getresponse()
        answer.read()
        took_s = time.perf_counter() - began
        if answer.status not in (200, 204):
            seen.faults.append(f"{path}: {answer.status}")
        mark = answer.headers.get(SEEN, "")
        seen.took_ms.append(took_s * 1_000)
        seen.news += answer.status == 200
        time.sleep(max(REFRESH_S - took_s, 0.0))
    line.close()


def _operators(url: str, span_s: float) -> list[Figure]:
    """Measure what fifty operators cost a console in a process of its own."""
    with subprocess.Popen(
        [sys.executable, "-m", "bench.web", url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        cwd=ROOT,
    ) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        _visits(address, REFRESH_S)  # what is loaded once
        _used(server)
        took, news = _visits(address, span_s)
        used = _used(server)
        assert server.stdin is not None
        server.stdin.close()
    return _figures(took, news, used)


def _used(server: subprocess.Popen[str]) -> dict[str, float]:
    """Return what a console has used since it was last asked."""
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write("\n")
    server.stdin.flush()
    used: dict[str, float] = json.loads(server.stdout.readline())
    return used


def _visits(address: str, span_s: float) -> tuple[list[float], int]:
    """Let operators look for a while; return how long the answers took, and how many had news."""
    end, rng = time.monotonic() + span_s, Random(5)
    seen = [_Seen() for _ in range(OPERATORS)]
    threads = [
        threading.Thread(
            target=_operate,
            args=(address, PAGES[n % len(PAGES)], rng.random() * REFRESH_S, end, seen[n]),
        )
        for n in range(OPERATORS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    faults = [one for each in seen for one in each.faults]
    assert not faults, faults
    took = [one for each in seen for one in each.took_ms]
    return took, sum(each.news for each in seen)


def _figures(took: Sequence[float], news: int, used: dict[str, float]) -> list[Figure]:
    span_s = used["span_s"]
    minute = 60.0 / span_s
    return [
        Figure("operators: answers a second", len(took) / span_s, "", note=f"{news} had news"),
        Figure("operators: an answer, p50", percentile(took, 0.5), "ms", note="with the store"),
        Figure("operators: an answer, p95", percentile(took, 0.95), "ms", note="with the store"),
        Figure("operators: CPU of the console", used["cpu_s"] / span_s * 100, "% of a core"),
        Figure("operators: requests to the store", used["requests"] * minute, "a minute"),
        Figure(
            "operators: read units",
            used["read"] * minute,
            "a minute",
            note="by DynamoDB's published rules",
        ),
    ]


def measure(options: Options) -> list[Figure]:
    """Measure a console over a store with dead runs in forty groups."""
    dead = 1_000 if options.quick else 5_000
    rounds, span_s = (50, 20.0) if options.quick else (ROUNDS, SPAN_S)
    say(f"web: {dead:,} dead runs; {OPERATORS} operators for {span_s:g} s")
    opened = fresh(options.folder, "web")
    fill(base=opened.base, dead=dead)
    for number in range(AUDITED):
        opened.job(f"made-{number}")
    figures = _parts(opened.base, rounds)
    figures += _operators(opened.url, span_s)
    opened.close()
    return figures


def main() -> None:
    """Serve a console over a metered store, and tell what it uses."""
    parser = argparse.ArgumentParser(prog="python -m bench.web", description=__doc__)
    parser.add_argument("url", help="the store, a SQLite file")
    path = urlsplit(parser.parse_args().url).path.removeprefix("/")
    logging.basicConfig(level=logging.CRITICAL)
    meter = MeteringEngine(SqliteEngine(path))
    base = open_base(engine=meter, environment={})
    base.store.refresh()
    server = open_server(base, ACCESS, Typed(port=0, environment={}))
    thread = threading.Thread(target=server.run)
    thread.start()
    print(server.url, flush=True)
    cpu_s, began = time.process_time(), time.monotonic()
    for _ in sys.stdin:
        now = (time.process_time(), time.monotonic())
        counted = meter.report().values()
        used = {
            "cpu_s": now[0] - cpu_s,
            "span_s": now[1] - began,
            "requests": sum(sum(one["requests"].values()) for one in counted),
            "read": sum(one["read"] for one in counted),
        }
        print(json.dumps(used), flush=True)
        meter.reset()
        cpu_s, began = now
    server.stop()
    thread.join()


if __name__ == "__main__":
    main()
