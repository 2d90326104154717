"""A console at a real port: opened, taken, closed; and the commands for it and for its people."""

from __future__ import annotations

import http.client
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

from dynsched.cli.main import main
from dynsched.domain.access import Access, Role
from dynsched.errors import InvalidInput
from dynsched_web.people import People
from dynsched_web.serve import Server, Typed, open_server
from tests.web.stage import PASSWORD, staged

ACCESS = Access(actor="ada")


def ask(server: Server, path: str) -> tuple[int, bytes]:
    """Return the status and body of a page at a port."""
    address = urlsplit(server.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=10)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


@contextmanager
def running(server: Server) -> Iterator[Server]:
    """Let a console answer, and see it end when it is told to."""
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert ask(server, "/healthz") == (200, b"ok\n")
        yield server
    finally:
        server.stop()
        thread.join(10)
    assert not thread.is_alive()


def test_a_console_answers_at_its_port_until_it_is_stopped() -> None:
    """The address that is printed is the one that works."""
    with staged() as stage:
        with running(open_server(stage.base, ACCESS, Typed(port=0, environment={}))) as server:
            status, page = ask(server, "/")
        assert status == 200
        assert b"dynsched" in page


def test_a_taken_port_is_told_or_another_one_is_taken() -> None:
    """A port that was named is meant; the usual one is only a wish."""
    with staged() as stage:
        first = open_server(stage.base, ACCESS, Typed(port=0, environment={}))
        taken = urlsplit(first.url).port or 0
        with pytest.raises(InvalidInput, match="cannot be opened"):
            open_server(stage.base, ACCESS, Typed(port=taken, environment={}))
        wish = Typed(port=taken, any_port=True, environment={})
        other = open_server(stage.base, ACCESS, wish)
        assert urlsplit(other.url).port not in (taken, 0)
        with running(first), running(other):
            assert ask(other, "/healthz") == ask(first, "/healthz")


def test_a_person_is_written_into_the_password_file_by_a_command(tmp_path: Path) -> None:
    """The file is the owner's only, holds no password, and lets the person in."""
    path = tmp_path / "people"
    for role in ("viewer", "operator"):
        arguments = ["web-user", "ann", "--as", role, "--tenant", "acme", "--password-stdin"]
        answer = CliRunner().invoke(
            main, [*arguments, "--password-file", str(path)], input=f"{PASSWORD}\n"
        )
        assert answer.exit_code == 0, answer.output
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert PASSWORD not in path.read_text()
    person = People(path).check("ann", PASSWORD)
    assert person is not None
    assert (person.role, person.tenant) == (Role.OPERATOR, "acme")


def test_a_console_for_others_without_a_login_is_not_started(tmp_path: Path) -> None:
    """The command says what is missing, and opens no port."""
    store = f"sqlite:///{tmp_path / 'x.db'}"
    CliRunner().invoke(main, ["init", "--store", store])
    answer = CliRunner().invoke(main, ["web", "--host", "0.0.0.0", "--store", store])  # noqa: S104
    assert answer.exit_code == 2
    assert "nobody has to log in" in answer.output
