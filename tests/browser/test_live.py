"""Pages that refresh themselves: what must survive, what must be said, what must rest."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.conftest import Open, Site, served
from tests.web.stage import PASSWORD, people

POLLS = 10
# A refresh that the page began by itself may be under way: only the end of one that began after the
# asking counts.
REFRESH = """() => new Promise((done) => {
  const rows = document.querySelector("[data-live=rows]");
  let begun = false;
  const ask = () => {
    rows.addEventListener("htmx:before:request", () => { begun = true; }, { once: true });
    const ended = () => (begun ? setTimeout(done, 30) : ask());
    rows.addEventListener("htmx:finally:request", ended, { once: true });
    htmx.trigger(rows, "refresh");
  };
  ask();
})"""


def poll(site: Site, page: Page, times: int = POLLS) -> None:
    """Let the rows refresh, with some time between, so that each answer differs."""
    for _ in range(times):
        site.stage.clock.step(seconds=5)
        page.evaluate(REFRESH)


def test_a_tick_the_focus_and_the_place_survive_ten_polls(shown: Site, visit: Open) -> None:
    """Whatever comes in: a hand on the page is not disturbed."""
    page = visit(f"{shown.url}/dlq?by=entries", viewport={"width": 1280, "height": 500})
    boxes = page.locator("input[name=run]")
    ticked = boxes.nth(20)
    name = ticked.get_attribute("id")
    ticked.scroll_into_view_if_needed()
    ticked.check()
    ticked.focus()
    before = page.evaluate("window.scrollY")
    assert before > 0
    first = page.locator("tbody tr").first.inner_text()
    poll(shown, page)
    assert page.locator("tbody tr").first.inner_text() != first
    assert page.evaluate("window.scrollY") == before
    assert page.evaluate("document.activeElement.id") == name
    assert [one.get_attribute("id") for one in page.locator("input[name=run]:checked").all()] == [
        name
    ]
    expect(page.locator("#age")).to_have_text("rows rest while some are ticked")


def test_a_row_that_comes_in_takes_its_place_without_a_reload(site: Site, visit: Open) -> None:
    """The next refresh shows it, and the page's own marks stay."""
    page = visit(f"{site.url}/dlq?by=entries")
    page.evaluate("window.mine = 1")
    assert page.locator("tbody tr").count() == 5
    site.stage.run("bad@")
    poll(site, page, 1)
    assert page.locator("tbody tr").count() == 6
    assert page.evaluate("window.mine") == 1


def test_a_lost_session_never_replaces_a_table(tmp_path: Path, visit: Open) -> None:
    """The rows stay, and a banner says what happened."""
    with served(login=True, people=people(tmp_path)) as site:
        site.stage.run("bad@")
        page = visit(f"{site.url}/dlq?by=entries")
        page.get_by_label("Name").fill("ada")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Log in").click()
        expect(page.locator("tbody tr")).to_have_count(1)
        page.context.clear_cookies()
        page.evaluate(REFRESH)
        expect(page.locator("#trouble")).to_contain_text("Your session is over")
        expect(page.locator("tbody tr")).to_have_count(1)
        expect(page.locator("h1")).to_have_text("Dead letters")
        page.close()
    visit.faults[:] = [one for one in visit.faults if "401" not in one]  # type: ignore[attr-defined]


def test_a_stopped_store_leaves_the_table_with_a_banner(site: Site, visit: Open) -> None:
    """What cannot be read anew stays, and is said to be old."""
    page = visit(f"{site.url}/dlq?by=entries&q=tenant:default")
    site.stage.engine.stopped = True
    site.stage.clock.step(hours=1)
    page.evaluate(REFRESH)
    expect(page.locator("#trouble")).to_contain_text("The console answered with 503")
    expect(page.locator("h1")).to_have_text("Dead letters")
    site.stage.engine.stopped = False
    poll(site, page, 1)
    expect(page.locator("#trouble")).to_be_hidden()
    visit.faults[:] = [one for one in visit.faults if "503" not in one]  # type: ignore[attr-defined]


def test_a_pause_is_one_key_and_lasts_for_the_tab(shown: Site, visit: Open) -> None:
    """Paused is said, survives a reload, and ends by the same key."""
    page = visit(f"{shown.url}/runs")
    page.keyboard.press("p")
    expect(page.locator("#age")).to_have_text("paused")
    page.reload()
    expect(page.locator("#age")).to_have_text("paused")
    page.keyboard.press("p")
    expect(page.locator("#age")).not_to_have_text("paused")


def test_keys_rest_in_fields_and_where_they_are_switched_off(shown: Site, visit: Open) -> None:
    """A word that is typed is a word."""
    page = visit(f"{shown.url}/runs")
    page.keyboard.press("/")
    page.keyboard.type("gdjxp?")
    assert page.locator("#q").input_value() == "gdjxp?"
    expect(page.locator("#age")).not_to_have_text("paused")
    page.context.add_cookies([{"name": "dynsched_keys", "value": "off", "url": shown.url}])
    page.reload()
    page.keyboard.press("p")
    expect(page.locator("#age")).not_to_have_text("paused")


def test_the_next_times_of_a_form_follow_what_is_typed(shown: Site, visit: Open) -> None:
    """No button is needed where there is a script, and no field is lost."""
    page = visit(f"{shown.url}/jobs/new")
    page.get_by_label("Name", exact=True).fill("report")
    page.locator("#f-expr").fill("30 2 * * *")
    page.locator("#f-tz").fill("Europe/Berlin")
    page.keyboard.press("Tab")
    expect(page.locator("#preview tbody tr")).to_have_count(10)
    assert page.get_by_label("Name", exact=True).input_value() == "report"


def test_pages_are_whole_without_javascript(shown: Site, visit: Open) -> None:
    """Rows, filters, menus and forms; a banner says what is missing."""
    page = visit(f"{shown.url}/dlq", java_script_enabled=False)
    expect(page.locator("noscript p")).to_be_visible()
    expect(page.locator("#pause")).to_be_hidden()
    page.get_by_role("searchbox").fill("tenant:acme")
    page.get_by_role("button", name="Filter").click()
    page.get_by_role("button", name="Preview the replay").first.click()
    expect(page.get_by_role("heading", name="Preview of a replay")).to_be_visible()


def test_what_can_be_done_follows_the_state_unless_a_hand_is_on_it(site: Site, visit: Open) -> None:
    """A replay that has ended offers no pause; an open form is left alone, and told of."""
    page = visit(f"{site.url}/replays/{site.stage.draft()}")
    page.locator(".confirm input[name=reason]").fill("mended")
    page.get_by_role("button", name="Replay 5 runs").click()
    expect(page.get_by_text("Pause…")).to_be_visible()
    page.evaluate("window.mine = 1")
    page.get_by_text("Abort…").click()
    site.stage.step()
    site.stage.step()
    page.evaluate(REFRESH.replace("rows", "page"))
    expect(page.locator("#trouble")).to_contain_text("The state has changed")
    expect(page.get_by_text("Abort…")).to_be_visible()
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    expect(page.get_by_text("Abort…")).to_have_count(0)
    expect(page.locator("#trouble")).to_be_hidden()
    assert page.evaluate("window.mine") == 1
