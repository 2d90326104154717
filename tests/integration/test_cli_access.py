"""Who acts on the command line: roles, read-only mode, reasons, the audit, and what is masked."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from dynsched.cli.runtime import login
from tests.integration.program import APP, Program
from tests.integration.test_cli_help import LEAVES, ids

SECRET = "hush-4711"  # noqa: S105  # of nothing
READING = {
    "audit", "dlq list", "dlq show", "groups", "handoff list", "health", "job list", "job show",
    "next", "replay entries", "replay list", "replay status", "run list", "run show", "stats",
    "tenant list", "token list", "tui", "web", "why",
    "web-user",  # it writes a file beside the store, and nothing in it
}  # fmt: skip
CHANGING: dict[str, tuple[str, ...]] = {
    "dispatcher": ("--once",),
    "dlq discard": ("DEAD",),
    "dlq replay": ("DEAD",),
    "dlq restore": ("DEAD",),
    "handoff off": ("mail",),
    "handoff set": ("main", "high", "https://sqs.eu-west-1.amazonaws.com/1/high"),
    "import crontab": ("CRONTAB",),
    "init": (),
    "job add": ("other", "--manual", "--handler", "echo"),
    "job delete": ("calls",),
    "job edit": ("calls", "--queue", "slow"),
    "job pause": ("calls", "--reason", "x"),
    "job resume": ("held",),
    "job run-now": ("calls",),
    "reaper": ("--once",),
    "replay abort": ("DRAFT",),
    "replay as-new": ("DEAD",),
    "replay confirm": ("DRAFT", "--reason", "x"),
    "replay edit": ("DEAD", "--payload", "{}", "--reason", "x"),
    "replay pace": ("DRAFT", "5"),
    "replay pause": ("DRAFT",),
    "replay preview": ("state:dead",),
    "replay rest": ("DRAFT",),
    "replay resume": ("DRAFT",),
    "resize": ("--lanes", "4"),
    "run cancel": ("READY",),
    "run complete": ("READY",),
    "run fail": ("READY", "--message", "lost"),
    "tenant set": ("acme", "--max-running", "3"),
    "token create": ("ci",),
    "token revoke": ("graphs",),
    "up": ("--for", "1s"),
    "worker": ("--once", "--app", APP),
}
"""A call of every command that changes something; a word in capitals stands for a thing made."""


class Secretive:
    """A store in which a secret lies wherever people put one."""

    def __init__(self, folder: Path) -> None:
        self.program = Program(folder)
        crontab = folder / "mine.cron"
        crontab.write_text(f"0 3 * * * PGPASSWORD={SECRET} pg_dump db\n")
        url = f"https://example.org/x?token={SECRET}"
        self("job", "add", "calls", "--manual", "--http", url, "--payload", self.payload("a"),
             "--header", f"Authorization: Bearer {SECRET}")  # fmt: skip
        self("job", "add", "shells", "--manual", "--command", f"login --password {SECRET}",
             "--env", f"DB_PASSWORD={SECRET}", "--stdin", f"secret={SECRET}")  # fmt: skip
        self("job", "add", "held", "--manual", "--handler", "echo")
        self("job", "pause", "held", "--reason", "holiday")
        self("job", "add", "fails", "--manual", "--handler", "boom", "--max-attempts", "1")
        self("job", "add", "works", "--manual", "--handler", "echo")
        self("job", "run-now", "fails", "--payload", f'"no entry: Bearer {SECRET}"')
        self("job", "run-now", "works", "--payload", self.payload("b"))
        self.logged = self("worker", "--once", "--app", APP, "--log-level", "debug").err
        self("job", "run-now", "works", "--payload", self.payload("c"))
        dead = self.program.json("dlq", "list")[0]["run_id"]
        waiting = self.program.json("run", "list", "state:ready")[0]["run_id"]
        done = self.program.json("run", "list", "state:done")[0]["run_id"]
        self("token", "create", "graphs")
        self("handoff", "set", "mail", "bulk", "https://sqs.eu-west-1.amazonaws.com/1/mail")
        draft = self.program.json("replay", "preview", f"id:{dead}")["batch_id"]
        self.things = {
            "CRONTAB": str(crontab),
            "DEAD": dead,
            "DONE": done,
            "DRAFT": draft,
            "READY": waiting,
        }

    def __call__(self, *arguments: str, code: int | None = 0) -> Any:
        """Call the program."""
        return self.program(*arguments, code=code)

    def payload(self, order: str) -> str:
        """Return a payload with a secret beside what may be seen."""
        return json.dumps({"order": order, "api_key": SECRET})

    def words(self, command: str, *options: str) -> tuple[str, ...]:
        """Return the call of a command that changes something."""
        given = (self.things.get(word, word) for word in CHANGING[command])
        return (*command.split(), *given, *options)

    def everything(self) -> str:
        """Return all that the file holds, the audit too."""
        connection = sqlite3.connect(self.program.file)
        try:
            return "\n".join(connection.iterdump())
        finally:
            connection.close()


@pytest.fixture(scope="module")
def secretive(tmp_path_factory: pytest.TempPathFactory) -> Secretive:
    """Return a store that no test of the module changes."""
    return Secretive(tmp_path_factory.mktemp("secretive"))


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Return the program with a store."""
    return Program(tmp_path)


def test_every_command_either_reads_or_is_called_here() -> None:
    """A new command that changes something must be refused below."""
    names = {" ".join(path) for path, _ in LEAVES}
    assert names == READING | set(CHANGING)


@pytest.mark.parametrize("command", sorted(CHANGING))
@pytest.mark.parametrize("options", [("--read-only",), ("--role", "viewer")], ids=" ".join)
def test_every_command_that_changes_something_is_refused(
    secretive: Secretive, command: str, options: tuple[str, ...]
) -> None:
    """In read-only mode, and to a viewer: exit code 7, one line, no row that is not the audit's."""
    before, everything = secretive.program.dump(), secretive.everything()
    answer = secretive(*secretive.words(command, *options), code=7)
    assert answer.err.startswith("error: ")
    assert " is refused: " in answer.err
    assert secretive.program.dump() == before
    if options == ("--read-only",):
        assert secretive.everything() == everything


@pytest.mark.parametrize("path", [path for path, _ in LEAVES], ids=ids)
def test_every_command_that_changes_a_thing_takes_a_reason(path: tuple[str, ...]) -> None:
    """But those that run the machinery, and `init`, before which there is no audit."""
    machinery = {"init", "up", "dispatcher", "worker", "reaper"}
    takes = any("--reason" in param.opts for param in dict(LEAVES)[path].params)
    name = " ".join(path)
    assert takes == (name in CHANGING.keys() - machinery or name == "run show")


def test_who_acts_may_be_said_before_the_command_after_it_or_in_the_environment(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with --store; the option goes before the variable."""
    add = ("job", "add", "--manual", "--handler", "echo")
    program(*add, "one")
    program("--actor", "ann", *add, "two")
    program(*add, "three", "--actor", "ann", "--reason", "a reason")
    monkeypatch.setenv("DYNSCHED_ACTOR", "env")
    program(*add, "four")
    program(*add, "five", "--actor", "ann")
    entries = program.json("audit")
    assert [one["actor"] for one in entries] == ["ann", "env", "ann", "ann", login()]
    assert [one["reason"] for one in entries] == ["", "", "a reason", "", ""]
    assert {one["via"] for one in entries} == {"cli"}


@pytest.mark.parametrize(
    ("variable", "value", "code"),
    [
        ("DYNSCHED_READ_ONLY", "1", 7),
        ("DYNSCHED_READ_ONLY", "no", 0),
        ("DYNSCHED_READ_ONLY", "maybe", 2),
        ("DYNSCHED_ROLE", "viewer", 7),
        ("DYNSCHED_ROLE", "operator", 0),
        ("DYNSCHED_ROLE", "king", 2),
    ],
)
def test_the_environment_sets_role_and_read_only_mode(
    program: Program, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, code: int
) -> None:
    """A value that is not understood changes nothing: it is no permission."""
    program("job", "add", "j", "--manual", "--handler", "echo")
    monkeypatch.setenv(variable, value)
    answer = program("job", "run-now", "j", code=code)
    if code == 2:
        assert variable in answer.err


def test_the_audit_is_asked_by_filter_and_by_target(program: Program) -> None:
    """`--of` takes a run's id as it stands."""
    program("job", "add", "j", "--manual", "--handler", "echo", "--actor", "ann")
    run_id = program("job", "run-now", "j", "--actor", "bob").out.split()[-1]
    program("run", "cancel", run_id, "--reason", "wrong order", "--actor", "bob")
    actions = [one["action"] for one in program.json("audit", "actor:bob")]
    assert actions == ["run.cancel", "job.run"]
    (cancelled, made) = program.json("audit", "--of", run_id)
    assert (cancelled["note"], cancelled["reason"]) == ("ready -> cancelled", "wrong order")
    assert made["outcome"] == "done"
    shown = program("audit", "action:run.cancel", "--since", "1h").out
    assert "ready -> cancelled; reason: wrong order" in shown
    assert "names nothing" in program("audit", "--of", "elsewhere", code=2).err
    assert "no entries" in program("audit", "actor:eve").out


SHOWN = (
    ("job", "list"), ("job", "show", "calls"), ("job", "show", "shells"), ("job", "show", "works"),
    ("run", "list"), ("run", "show", "DEAD"), ("run", "show", "READY"), ("run", "show", "DONE"),
    ("dlq", "list"), ("dlq", "show", "DEAD"), ("audit",), ("stats",),
    ("groups",), ("health",), ("why", "DEAD"), ("why", "DONE"),
    ("replay", "list"), ("replay", "status", "DRAFT"), ("replay", "entries", "DRAFT"),
    ("import", "crontab", "CRONTAB", "--dry-run"),
)  # fmt: skip


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize("words", SHOWN, ids=ids)
def test_no_command_shows_a_secret(
    secretive: Secretive, words: tuple[str, ...], as_json: bool
) -> None:
    """Wherever it was put: address, header, variable, command, input, payload, error, output."""
    given = [secretive.things.get(word, word) for word in words]
    answer = secretive(*given, *(["--json"] if as_json else []), code=None)
    assert answer.out
    assert SECRET not in answer.out + answer.err


def test_what_changes_a_job_does_not_show_its_secrets_either(tmp_path: Path) -> None:
    """The answers of verbs are shown as views are."""
    secretive = Secretive(tmp_path)
    assert SECRET in secretive.everything()
    for command in ("job add", "job edit", "job pause", "job resume", "job delete", "dlq replay",
                    "dlq discard", "dlq restore", "run cancel", "import crontab"):  # fmt: skip
        for option in ("--json", "--json"):
            answer = secretive.program(*secretive.words(command, option), code=None)
            assert SECRET not in answer.out + answer.err
    header = ("--header", f"X-Token: {SECRET}")
    for words in (("add", "new", "--manual", "--http", "https://example.org"), ("edit", "new")):
        assert SECRET not in secretive("job", *words, *header, "--json").out


def test_no_log_shows_a_secret(secretive: Secretive) -> None:
    """Errors quote what they were given."""
    assert "no entry: Bearer ***" in secretive.logged
    assert SECRET not in secretive.logged


def test_a_run_is_unmasked_for_a_reason_and_that_is_written_down(secretive: Secretive) -> None:
    """By an admin, in the text and in the document."""
    dead, done = secretive.things["DEAD"], secretive.things["DONE"]
    assert "needs admin" in secretive("run", "show", dead, "--unmask", "--reason", "x",
                                      "--role", "operator", code=7).err  # fmt: skip
    assert "--reason" in secretive("run", "show", dead, "--unmask", code=2).err
    assert "--unmask" in secretive("run", "show", dead, "--reason", "x", code=2).err
    shown = secretive("run", "show", dead, "--unmask", "--reason", "order 7 is missing").out
    assert f"Bearer {SECRET}" in shown
    found = secretive.program.json("run", "show", done, "--unmask", "--reason", "order 8")
    assert found["payload"] == {"order": "b", "api_key": SECRET}
    (entry,) = secretive.program.json("audit", "action:payload.unmask", "outcome:done", done)
    assert entry["reason"] == "order 8"


def test_masked_keys_can_be_added(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the one setting, for every command."""
    program("job", "add", "j", "--manual", "--handler", "echo", "--payload", '{"plate": "B-X 1"}')
    assert program.json("job", "show", "j")["payload"] == {"plate": "B-X 1"}
    monkeypatch.setenv("DYNSCHED_MASK_KEYS", "plate, colour")
    assert program.json("job", "show", "j")["payload"] == {"plate": "***"}
    monkeypatch.setenv("DYNSCHED_MASK_KEYS", "a b?")
    assert "mask_keys" in program("job", "show", "j", code=2).err


def test_an_edit_keeps_the_secrets_that_it_does_not_name(program: Program) -> None:
    """What people see is masked; what the job keeps is not."""
    program("job", "add", "j", "--manual", "--http", "https://example.org/a?token=t1",
            "--header", f"Authorization: Bearer {SECRET}", "--payload",
            json.dumps({"n": 1, "password": SECRET}))  # fmt: skip
    shown = program.json("job", "show", "j")
    program("job", "edit", "j", "--method", "PUT")
    program("job", "edit", "j", "--payload", json.dumps({**shown["payload"], "n": 2}))
    text = program.dump()
    assert "PUT" in text
    assert f"Bearer {SECRET}" in text
    assert f'"password":"{SECRET}"' in text.replace('\\"', '"')


def test_what_was_shown_masked_is_not_taken_for_the_secret(program: Program) -> None:
    """A copied document would otherwise make a job whose calls are all refused."""
    add = ("job", "add", "k", "--manual")
    error = program.error(*add, "--http", "https://example.org", "--header", "Authorization: ***")
    assert "in the place of a secret" in error
    assert "payload" in program.error(*add, "--handler", "echo", "--payload", '{"token": "***"}')
    program(*add, "--handler", "echo", "--payload", '{"title": "*** sale ***"}')


def test_a_cap_for_a_tenant_that_nobody_has_is_noted(program: Program) -> None:
    """A slip in the name would cap nobody, and nobody would know."""
    program("job", "add", "j", "--manual", "--handler", "echo", "--tenant", "acme")
    assert program("tenant", "set", "acme", "--max-running", "1").err == ""
    assert "no job of tenant acm" in program("tenant", "set", "acm", "--max-running", "1").err
