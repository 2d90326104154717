"""Wishes: how a visitor wants pages to look and behave, kept in cookies of the browser only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from flask import Request
from werkzeug.wrappers import Response

from dynsched.domain.zone_changes import zone_clock
from dynsched.errors import InvalidInput
from dynsched_web.config import WebConfig

REFRESHES = (0, 2, 5, 15, 60)
THEMES = ("system", "dark", "light")
YEAR_S = 365 * 86_400
PREFIX = "dynsched_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """How a visitor wants pages.

    Attributes:
        zone: the time zone of all times that are shown.
        theme: one of `THEMES`.
        refresh_s: pause between two refreshes; 0 is never.
        keys: single letters act, see the help of the pages.
    """

    zone: str = "UTC"
    theme: str = "system"
    refresh_s: int = 5
    keys: bool = True

    @property
    def info(self) -> ZoneInfo:
        """Return the zone's rules."""
        return zone_clock(self.zone).info

    def local(self, instant: datetime) -> datetime:
        """Return an instant as clocks of the zone show it, in UTC where no calendar has that."""
        try:
            return instant.astimezone(self.info)
        except OverflowError:  # the first hours of the year 1, the last of 9999
            return instant


def known_zone(name: str) -> str:
    """Return the name of a zone, UTC for one that does not exist."""
    try:
        return zone_clock(name).name
    except InvalidInput:
        return "UTC"


def wishes_of(request: Request) -> Wishes:
    """Return what a browser remembers; a link may name another zone."""
    jar = request.cookies
    refresh, theme = jar.get(f"{PREFIX}refresh", "5"), jar.get(f"{PREFIX}theme", "system")
    return Wishes(
        zone=known_zone(request.args.get("tz") or jar.get(f"{PREFIX}zone", "UTC")),
        theme=theme if theme in THEMES else "system",
        refresh_s=int(refresh) if refresh in map(str, REFRESHES) else 5,
        keys=jar.get(f"{PREFIX}keys", "on") != "off",
    )


def remember(response: Response, wishes: Wishes, config: WebConfig) -> None:
    """Let a browser remember what was wished for; the pages' own script may change it too."""
    for name, value in (
        ("zone", wishes.zone),
        ("theme", wishes.theme),
        ("refresh", str(wishes.refresh_s)),
        ("keys", "on" if wishes.keys else "off"),
    ):
        response.set_cookie(
            f"{PREFIX}{name}",
            value,
            max_age=YEAR_S,
            path=config.base_path or "/",
            secure=config.secure,
            samesite="Strict",
        )
