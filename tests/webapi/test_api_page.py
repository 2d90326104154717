"""docs/api.md: each of its requests does what the page says, in the order of the page."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from dynsched.bootstrap import build_stepper
from dynsched_web.api.blueprint import ROOT, ROUTES
from dynsched_web.api.route import Route
from tests.webapi.stage import Stage

PAGE = Path(__file__).resolve().parents[2] / "docs" / "api.md"
BASE = f"http://127.0.0.1:8420{ROOT}"


def commands() -> list[str]:
    """Return the requests of the page as they are typed."""
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    found = [line for block in blocks for line in re.split(r"\n(?=curl|export)", block)]
    assert found[0].strip() == f"export API={BASE}"
    return [line.strip() for line in found[1:]]


class Curl:
    """As much of curl as the page uses: -s -G -X -H -d --data-urlencode URL."""

    def __init__(self, typed: str, variables: dict[str, str]) -> None:
        for name, value in sorted(variables.items(), reverse=True):  # RUNTOKEN before RUN
            typed = typed.replace(f"${name}", value)
        assert "$" not in typed, typed
        words = iter(shlex.split(typed))
        assert next(words) == "curl"
        self.headers: dict[str, str] = {}
        data: list[str] = []
        method, get, url = "", False, ""
        for word in words:
            if word == "-X":
                method = next(words)
            elif word == "-H":
                name, _, value = next(words).partition(": ")
                self.headers[name] = value
            elif word == "-d":
                data.append(next(words))
            elif word == "--data-urlencode":
                name, _, value = next(words).partition("=")
                data.append(urlencode({name: value}))
            elif word == "-G":
                get = True
            elif word != "-s":
                url = word
        parts = urlsplit(url)
        self.path = parts.path.removeprefix(ROOT)
        self.query = "&".join([*([parts.query] if parts.query else []), *(data if get else [])])
        self.body = None if get or not data else "&".join(data)
        self.method = method or ("POST" if self.body is not None else "GET")

    @property
    def route(self) -> Route:
        """Return the one that it calls."""
        fitting = [one for one in ROUTES if one.pattern.fullmatch(self.path)]
        return next(one for one in fitting if one.method == self.method)


def test_every_request_on_the_page_succeeds_in_its_order_and_most_routes_are_there() -> None:
    """Whoever copies a line gets what it is for."""
    stage, called = Stage(), set()
    scene = stage.scene
    variables = {"API": BASE, "TOKEN": stage.tokens["admin"], "RUN": scene.dead.run_id}
    variables |= {"HANDED": scene.handed.run_id, "RUNTOKEN": scene.handed_token}
    for typed in commands():
        curl = Curl(typed, variables)
        answer = stage(
            curl.method, curl.path, who=None, query_string=curl.query, data=curl.body,
            headers=curl.headers,
        )  # fmt: skip
        assert answer.status_code == curl.route.status, f"{typed}: {answer.text}"
        called.add(curl.route.name)
        if curl.route.name == "cancel_run":
            stage.call("restore_run")  # so that there is a dead run to be replayed
        if curl.route.name == "abort_replay":
            build_stepper(scene.base).step()  # settles it, as a running store does
        if answer.json is not None and "batch_id" in answer.json:
            variables["BATCH"] = answer.json["batch_id"]
    alike = {"discard_run", "restore_run", "replay_run_as_new", "replay_run_edited"}
    assert {route.name for route in ROUTES} - called == alike | {"get_group", "list_replays"}
