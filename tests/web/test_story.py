"""The whole story of a dead-letter queue in a browser without scripts: group to result."""

from __future__ import annotations

import re
from pathlib import Path

from dynsched_web.pages.replays import LIMIT
from tests.web.stage import Stage, Visitor, people, staged


def previewed(visitor: Visitor, **fields: str) -> str:
    """Preview a replay; return the address of its page."""
    answer = visitor.post("/replays", **fields)
    assert answer.status_code == 303, answer.text
    return answer.headers["Location"]


def dead(stage: Stage, count: int = 3) -> list[str]:
    """Let runs die; return their ids."""
    return [stage.run("bad@", tenant="acme") for _ in range(count)]


def test_a_group_is_previewed_confirmed_and_replayed_to_its_result() -> None:
    """Group, preview, confirm, progress, result: each a page, each leading to the next."""
    with staged() as stage:
        dead(stage)
        ada = stage.visitor()
        groups = ada.get("/dlq").text
        (only,) = re.findall(r'name="filter" value="([^"]+)"', groups)
        page = previewed(ada, filter=only, rate="none")
        preview = ada.get(page).text
        assert "Replay 3 runs of 1 tenant?" in preview
        assert "Nothing has been moved" in preview
        assert ada.post(f"{page}/confirm", reason="mended").headers["Location"] == page
        assert "the replay of 3 runs has begun" in ada.get(page).text
        for _ in range(3):
            stage.step()
        result = ada.get(page).text
        assert re.search(r"<b>3</b> moved", result)
        assert "finished" in result
        table = ada.get(f"{page}/entries.csv").text.splitlines()
        assert len(table) == 4
        assert table[0] == "run_id,died_at,outcome,why,state,error"


def test_what_dies_after_the_preview_is_not_replayed() -> None:
    """The count that was shown is the count that is done."""
    with staged() as stage:
        dead(stage, 2)
        ada = stage.visitor()
        page = previewed(ada, filter="state:dead", rate="none")
        dead(stage, 1)
        ada.post(f"{page}/confirm", reason="mended")
        for _ in range(3):
            stage.step()
        assert re.search(r"<b>2</b> moved", ada.get(page).text)


def test_the_second_of_two_who_confirm_is_shown_who_was_first() -> None:
    """Two browsers start one batch, once."""
    with staged() as stage:
        dead(stage)
        ada, otto = stage.visitor(), stage.visitor()
        page = previewed(ada, filter="state:dead", rate="none")
        tokens = [one.token() for one in (ada, otto)]
        first = ada.post(f"{page}/confirm", csrf=tokens[0], reason="mended")
        second = otto.post(f"{page}/confirm", csrf=tokens[1], reason="mended too")
        assert (first.status_code, second.status_code) == (303, 409)
        assert "was confirmed by ada@desk" in second.text
        assert len(stage.app.extensions["dynsched"].views.batches().items) == 1


def test_ticked_runs_alone_are_previewed_and_the_filter_is_not_asked() -> None:
    """Ticks go before the filter of the page."""
    with staged() as stage:
        first, *_ = dead(stage)
        page = previewed(stage.visitor(), filter="state:dead", run=first)
        assert "Replay 1 run of 1 tenant?" in stage.visitor().get(page).text


def test_a_replay_can_be_paused_paced_gone_on_with_and_aborted() -> None:
    """Each is a form on the batch's page, and says what it did."""
    with staged() as stage:
        dead(stage)
        ada = stage.visitor()
        page = previewed(ada, filter="state:dead", rate="0.01")
        ada.post(f"{page}/confirm", reason="mended")
        for act, fields, said in (
            ("pause", {}, "the replay is paused"),
            ("pace", {"rate": "5"}, "the rate is changed"),
            ("resume", {}, "the replay goes on"),
            ("abort", {"reason": "enough"}, "the replay is aborted"),
        ):
            assert ada.post(f"{page}/{act}", **fields).status_code == 303, act
            assert said in ada.get(page).text
        stage.step()
        rest = ada.post(f"{page}/rest")
        assert rest.status_code == 303
        assert rest.headers["Location"] != page


def test_a_filter_of_somebody_of_one_tenant_never_reaches_beyond() -> None:
    """The preview of all that match holds their own runs only."""
    from dynsched.domain.access import Access  # noqa: PLC0415

    with staged(access=Access(actor="tom", tenant="acme")) as stage:
        dead(stage, 2)
        stage.run("bad@", tenant="globex")
        page = previewed(stage.visitor(), filter="state:dead")
        assert "Replay 2 runs of 1 tenant?" in stage.visitor().get(page).text


def test_a_run_is_cancelled_replayed_discarded_and_restored_from_its_page() -> None:
    """What the buttons of a run do, each with its word afterwards."""
    with staged() as stage:
        ada, run_id, waits = stage.visitor(), *dead(stage, 1), stage.wait()
        for path, said in (
            (f"/runs/{waits}/cancel", "the run is cancelled"),
            (f"/runs/{run_id}/discard", "the run is discarded"),
            (f"/runs/{run_id}/restore", "dead-letter queue again"),
            (f"/runs/{run_id}/replay", "the run is ready again: replay 1"),
        ):
            answer = ada.post(path, reason="because")
            assert answer.status_code == 303, path
            assert said in ada.get(answer.headers["Location"]).text
        assert "via web" in ada.get(f"/runs/{run_id}").text or "web" in ada.get("/audit").text


def test_a_discard_that_stops_halfway_says_how_far_it_came() -> None:
    """One of the ticked runs is dead no more: those before it are gone, those behind it not."""
    with staged() as stage:
        first, lively, last = stage.run("bad@"), stage.run(), stage.run("bad@")
        answer = stage.visitor().post("/dlq/discard", run=[first, lively, last], count="3")
        assert answer.status_code == 409
        assert "1 of 3 runs are discarded, then it stopped" in answer.text
        hidden = [stage.operations.get_run(run_id).hidden for run_id in (first, lively, last)]
        assert hidden == [True, False, False]


def test_somebody_of_one_tenant_finds_replays_behind_a_page_of_others(tmp_path: Path) -> None:
    """However many others have made since, the list is not said to be empty."""
    with staged(login=True, people=people(tmp_path)) as stage:
        stage.run("bad@", tenant="acme")
        mine = stage.draft("tenant:acme")
        stage.run("bad@", tenant="globex")
        for _ in range(LIMIT + 1):
            stage.clock.step(seconds=1)
            stage.draft("tenant:globex")
        tom = stage.visitor()
        tom.log_in("tom")
        assert f"/replays/{mine}" in tom.get("/replays").text
