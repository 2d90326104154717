"""Every page for people who see little or hear it: axe finds nothing, in any theme and width."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser.conftest import Open, Site

WIDTHS, THEMES = (1280, 390), ("light", "dark")
PAGES = (
    "/", "/runs", "/runs?q=sate:dead", "/jobs", "/jobs/new", "/dlq", "/dlq?by=entries", "/replays",
    "/tenants", "/workers", "/audit", "/system", "/help", "/login", "/nowhere",
    "RUN", "JOB", "EDIT", "DRAFT", "REPLAY",
)  # fmt: skip


OPENED = """() => {
  for (const one of document.querySelectorAll("main details:not(.act):not(.menu)")) one.open = true;
}"""


def address(site: Site, name: str) -> str:
    """Return the address of a page; of one about a thing, of some such thing."""
    views = site.stage.app.extensions["dynsched"].views
    if not name.isupper():
        return f"{site.url}{name}"
    if name == "RUN":
        return f"{site.url}/runs/{views.find_runs('state:dead bounced script').items[0].run_id}"
    if name in ("JOB", "EDIT"):
        job_id = views.find_jobs("name:hourly").items[0].job_id
        return f"{site.url}/jobs/{job_id}{'/edit' if name == 'EDIT' else ''}"
    drafts = {one.state.value == "draft": one.batch_id for one in views.batches().items}
    return f"{site.url}/replays/{drafts[name == 'DRAFT']}"


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_on_a_page(shown: Site, visit: Open, name: str) -> None:
    """In light and dark, wide and narrow, with its menus and forms open; nothing is cut off."""
    page = visit(address(shown, name))
    page.evaluate(OPENED)
    found = []
    for theme in THEMES:
        page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            results = Axe().run(page)
            if results.violations_count:
                found.append(f"{theme} {width}: {results.generate_report()[:3000]}")
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{wide} pixels at {width}"
    assert found == []
    visit.faults[:] = [one for one in visit.faults if "404" not in one]  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_nothing_in_an_open_menu_and_an_open_act(
    shown: Site, visit: Open, width: int
) -> None:
    """What is opened by a click is as readable as the page."""
    page = visit(address(shown, "RUN"), viewport={"width": width, "height": 900})
    for name in ("Edit and replay…", "Discard…"):
        page.get_by_text(name, exact=True).click()
        results = Axe().run(page)
        assert results.violations_count == 0, results.generate_report()[:3000]
    page.locator(".live .menu summary").click()
    results = Axe().run(page)
    assert results.violations_count == 0, results.generate_report()[:3000]
