"""The whole story of a dead-letter queue in a browser: by mouse, by keyboard, by two at once."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from dynsched.domain.access import Action
from tests.browser.conftest import Open, Site

REFRESH = """() => new Promise((done) => {
  const part = document.querySelector("[data-live]");
  part.addEventListener("htmx:finally:request", () => setTimeout(done, 30), { once: true });
  htmx.trigger(part, "refresh");
})"""


def finish(site: Site, page: Page) -> None:
    """Let the replay end, and see that the page tells so without being loaded again."""
    page.evaluate("window.mine = 1")
    for _ in range(3):
        site.stage.step()
        page.evaluate(REFRESH)
    expect(page.locator("#progress-h")).to_contain_text("finished")
    expect(page.get_by_role("group", name="Counts")).to_contain_text("5 moved")
    assert page.evaluate("window.mine") == 1


def test_the_story_of_a_group_by_mouse(site: Site, visit: Open) -> None:
    """Overview, group, preview, confirm, progress, result; each by a click."""
    page = visit(f"{site.url}/")
    page.get_by_role("link", name="Dead letters", exact=True).click()
    page.get_by_role("button", name="Preview the replay of 5 runs").click()
    expect(page.get_by_role("heading", name="Replay 5 runs of 1 tenant?")).to_be_visible()
    page.get_by_role("textbox", name="Reason", exact=True).fill("the address book is mended")
    page.get_by_role("button", name="Replay 5 runs").click()
    expect(page.get_by_text("the replay of 5 runs has begun")).to_be_visible()
    finish(site, page)
    page.get_by_role("link", name="Audit", exact=True).click()
    expect(page.get_by_text("the address book is mended").first).to_be_visible()


def test_the_story_of_a_group_by_keyboard_only(site: Site, visit: Open) -> None:
    """The same with single letters, Tab and Enter; the default of the question is not to."""
    page = visit(f"{site.url}/")
    page.keyboard.press("g")
    page.keyboard.press("d")
    page.wait_for_url("**/dlq")
    page.keyboard.press("j")
    page.keyboard.press("e")
    expect(page.get_by_role("heading", name="Replay 5 runs of 1 tenant?")).to_be_visible()
    expect(page.get_by_role("link", name="Not now")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.type("the address book is mended")
    page.keyboard.press("Tab")
    expect(page.locator("#confirm")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("the replay of 5 runs has begun")).to_be_visible()
    finish(site, page)


def test_ticked_rows_are_previewed_by_keyboard(site: Site, visit: Open) -> None:
    """Tick one, tick to another, preview what is ticked."""
    page = visit(f"{site.url}/dlq?by=entries")
    for key in ("j", "x", "j", "j", "X", "e"):
        page.keyboard.press(key)
    expect(page.get_by_role("heading", name="Replay 3 runs of 1 tenant?")).to_be_visible()


def test_two_browsers_that_confirm_at_once_start_one_batch(site: Site, visit: Open) -> None:
    """One goes on to the progress, the other is told who was first."""
    draft = site.stage.draft()
    pages = [visit(f"{site.url}/replays/{draft}") for _ in range(2)]
    for page in pages:
        page.evaluate(
            "setTimeout(() => document.querySelector('#confirm').form.requestSubmit(), 50)"
        )
    told = re.compile("has begun|was confirmed by")
    for page in pages:
        expect(page.locator("body")).to_contain_text(told)
    heads = sorted(page.locator("h1").inner_text() for page in pages)
    assert heads == [f"Replay {draft}", "Somebody was first"]
    for _ in range(3):
        site.stage.step()
    detail = site.stage.app.extensions["dynsched"].views.batch(draft)
    assert (detail.batch.state.value, detail.batch.moved) == ("finished", 5)
    audit = site.stage.app.extensions["dynsched"].views.audit_of(f"batch:{draft}")
    confirms = sorted(one.outcome.value for one in audit if one.action is Action.BATCH_CONFIRM)
    assert confirms == ["done", "failed"]
    visit.faults[:] = [one for one in visit.faults if "409" not in one]  # type: ignore[attr-defined]
