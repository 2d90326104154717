"""What machines ask: alive, ready, figures; and the script that the build fetches."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
from pathlib import Path

import pytest

import dynsched_web
from dynsched_web.charts import Series, bar_chart, line_chart, nice_top
from tests.web.stage import staged

ROOT = Path(__file__).resolve().parents[2]
VENDOR = Path(dynsched_web.__file__).parent / "static" / "vendor"
METRIC = re.compile(
    r'(?:# (?:HELP|TYPE) dynsched_\w+ .+|dynsched_\w+(?:\{\w+="[^"]*"\})? -?[\d.e+]+)'
)


def test_the_figures_are_in_the_format_that_prometheus_reads() -> None:
    """Every line is a comment or a value, and the dead runs are counted."""
    with staged() as stage:
        stage.run("bad@")
        text = stage.visitor().get("/metrics").text
        assert [line for line in text.splitlines() if not METRIC.fullmatch(line)] == []
        assert 'dynsched_runs{state="dead"} 1' in text


def test_the_probes_tell_a_stopped_store_from_a_stopped_console() -> None:
    """Alive is about the process, ready about the store."""
    with staged() as stage:
        ada = stage.visitor()
        assert (ada.get("/healthz").status_code, ada.get("/readyz").status_code) == (200, 200)
    with staged() as stage:
        stage.engine.stopped = True
        ada = stage.visitor()
        assert (ada.get("/healthz").status_code, ada.get("/readyz").status_code) == (200, 503)


def test_the_refreshing_script_is_the_pinned_one() -> None:
    """What the build has fetched has the hash that it wrote down, of the version that is pinned."""
    if not VENDOR.is_dir() and not os.environ.get("DYNSCHED_REQUIRE_ALL"):
        pytest.skip("htmx was not fetched: npm was missing when dynsched was installed")
    spec = importlib.util.spec_from_file_location("fetch_htmx", ROOT / "tools" / "fetch_htmx.py")
    assert spec is not None
    assert spec.loader is not None
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    digest = hashlib.sha512(hook.SHA512.encode())
    for name in hook.FILES.values():
        digest.update((VENDOR / name).read_bytes())
    assert (VENDOR / hook.STAMP).read_text() == digest.hexdigest()
    assert hook.VERSION in (VENDOR / "htmx.min.js").read_text("utf-8")


def test_a_chart_leaves_a_gap_where_nothing_was_measured() -> None:
    """A minute without a start is not a delay of nothing."""
    series = (Series(name="p95", tone="c0", values=[1.0, 2.0, None, 3.0]),)
    svg = line_chart("Delay", "some", series, ["a", "b", "c", "d"])
    assert svg.count("<polyline") == 2
    assert 'aria-label="Delay: some"' in svg


def test_a_chart_of_nothing_is_a_chart() -> None:
    """A new store has no figures and still a page."""
    assert "<svg" in bar_chart("Depth", "none", (), [])
    assert nice_top(0.0) == 1.0


def test_a_chart_escapes_what_it_is_given() -> None:
    """Labels may be names of priorities, one day of tenants."""
    svg = bar_chart('<b>"', "x", (Series(name="n", tone="c1", values=[1.0]),), ["<i>"])
    assert "<b>" not in svg
    assert "<i>" not in svg
