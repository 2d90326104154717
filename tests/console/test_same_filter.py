"""One filter language: the console and the command line find the same for the same text."""

from __future__ import annotations

import json

import pytest

from bench.crowd import fill
from dynsched.bootstrap import build_operations, open_base
from dynsched.domain.access import Access
from dynsched_console.app import Options
from dynsched_console.screens.listing import ListScreen
from dynsched_console.sheet import Link
from dynsched_console.source import Source
from tests.console.stage import Player, play_on
from tests.integration.program import Program

RUNS = (
    "", "state:dead", "state:ready", "state:dead tenant:acme", "-tenant:acme state:dead",
    "state:dead err:refused", "state:dead err:\"did not answer\" -prio:bulk",
    "prio:high state:dead",
    "state:dead ended:>-3h", "state:dead ended:<-3h ended:>-12h", "dead:>-6h is:replayed",
    "@dead-last-hour", "@dead-again", "@late", "state:dead replays:>0", "attempt:>4 dead:>-2h",
    "state:dead tag:team=ops", "billing dead:>-8h", "state:dead job:billing-0000",
    "state:dead delay:>1m tenant:globex,initech", "queue:main state:dead kind:manual sched:>-5h",
    "state:dead \"<script>\"", "state:dead flipped", "state:dead -err:x -is:replayed dead:>-4h",
)  # fmt: skip
JOBS = (
    "", "tenant:acme", "-tenant:acme", "billing", "state:paused", "is:manual", "is:scheduled",
    "name:billing-0000,mailer-0001", "tag:team", "queue:main prio:default", "-state:active",
    "target:note tenant:globex", "next:<+1h",
)  # fmt: skip
GROUPS = ("", "tenant:acme", "err:refused", "dead:>-2h", "prio:high -tenant:acme", "@dead-again")
AUDIT = (
    "", "action:job.pause", "outcome:done", "-outcome:done", "actor:ada@desk", "tenant:acme",
    "disk", "at:>-1h", "via:tui action:tenant.set,job.pause", "actor:nobody",
)  # fmt: skip
LISTS = {
    "runs": (RUNS, ("run", "list"), "run_id"),
    "dead": (tuple(one for one in RUNS if "ready" not in one and one != "@late"),
             ("dlq", "list"), "run_id"),
    "jobs": (JOBS, ("job", "list"), "job_id"),
    "dlq": (GROUPS, ("groups",), "signature"),
    "audit": (AUDIT, ("audit",), "entry_id"),
}  # fmt: skip
LIMIT = "200"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """Return the command line on a store full of dead runs, where people have done things."""
    made = Program(tmp_path_factory.mktemp("same"))
    crowd = fill(made.url, dead=300, groups=12, jobs=24)
    operations = build_operations(
        open_base(made.url, environment={}), Access(actor="ada@desk", via="tui")
    )
    for job in crowd.jobs[:3]:
        operations.edit(job.job_id, tags={"team": "ops"}, reason="who owns it")
        operations.pause(job.job_id, reason="the disk is full")
    operations.set_tenant("acme", max_running=3, reason="too loud")
    operations.enqueue(crowd.jobs[5].job_id)
    return made


@pytest.mark.parametrize("place", LISTS)
def test_the_same_filter_finds_the_same_in_the_console_and_on_the_command_line(
    program: Program, place: str
) -> None:
    """What was found on a screen can be handed on as a command, and comes out the same."""
    filters, command, name = LISTS[place]
    base = open_base(program.url, environment={})
    source = Source(base, Access(actor="ada@desk", via="tui"), url=program.url)

    async def act(player: Player) -> None:
        link = Link(place=place, subject="") if place == "dead" else Link(place=place)
        player.console.visit(link)
        await player.settle()
        screen = player.console.front
        assert isinstance(screen, ListScreen)
        sizes = set()
        for text in filters:
            screen.apply_filter(text)
            await player.settle()
            assert screen.failure == ""
            here = [screen.key(item) for item in screen.window.rows()]
            out = program(*command, "--limit", LIMIT, "--json", "--", text).out
            there = [one[name] for one in json.loads(out)]
            assert here == there, text
            sizes.add(len(here))
        assert len(sizes) > 3, "filters that all find the same prove nothing"

    play_on(source, act, options=Options(refresh=None))
