"""Reading a crontab: its entries as job definitions, and what is wrong with the rest.

The reader follows the cron daemons (settings hold from their line on, `%` begins the standard
input, `CRON_TZ` sets the zone), but where a daemon drops a line silently or misreads it, it says
so: every line becomes an entry, a setting, or a problem with its number, field and reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from dynsched.domain.cron_fields import (
    DAY_OF_MONTH,
    FIELDS,
    Field,
    normalise,
    parse_fields,
    resolve_field,
    uses_hash,
)
from dynsched.domain.crontab_names import make_unique, suggest_name
from dynsched.domain.zone_changes import zone_clock
from dynsched.errors import InvalidInput

COMMENT_LENGTH_MAX = 200
"""Characters of a comment that are kept."""

_SETTING = re.compile(
    r"""(?:"(?P<double>[^"=]*)"|'(?P<single>[^'=]*)'|(?P<bare>[^\s="'][^\s=]*))\s*=\s*(?P<value>.*)""",
    re.DOTALL | re.ASCII,
)
_MACRO_LINE = re.compile(r"(?P<expr>@[^ \t]*)(?:[ \t]+(?P<rest>.*))?", re.DOTALL)
_FIELDS_LINE = re.compile(
    r"(?P<expr>(?:[^ \t]+[ \t]+){4}[^ \t]+)(?:[ \t]+(?P<rest>.*))?", re.DOTALL
)
_BLANKS = re.compile(r"[ \t]+")
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\$?")
_HEADER = re.compile(r"m(in(ute)?)?\s+h(our)?\b.*", re.IGNORECASE)
_DISABLED = re.compile(r"(?:[0-9*/,-]+[ \t]+){3}|@[a-z]+[ \t]")
_END = r"(?![0-9A-Za-z])"
_DEBIAN_ITEM = (
    rf"(?:(?:\*|[0-9A-Za-z]+-[0-9A-Za-z]+{_END})(?:/[0-9]+{_END})?|[0-9A-Za-z]+{_END}(?!-))"
)
_DEBIAN_PREFIX = re.compile(rf"(?P<read>{_DEBIAN_ITEM}(?:,{_DEBIAN_ITEM})*)(?=[^,/])")
"""Debian's cron reads a field as far as it makes sense and skips the rest up to the next blank."""
_BIG_STEP = re.compile(r"(?:^|,)\*/([0-9]+)")
_NO_EFFECT = {
    "MAILTO": "no mail is sent; the run keeps the outcome",
    "MAILFROM": "no mail is sent; the run keeps the outcome",
    "RANDOM_DELAY": "runs are not delayed at random; spread the job instead",
    "START_HOURS_RANGE": "catch-up is set on each job instead",
    "TZ": "it reaches the command only; CRON_TZ sets the zone of the schedule",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CrontabEntry:
    r"""A line that runs a command.

    Attributes:
        line: its number, from 1.
        expr: the schedule as written, with single blanks.
        zone: the zone that `CRON_TZ` set; None for the machine's own.
        user: who runs it; None in a user's crontab.
        command: what the shell gets: up to the first `%`, with each `\%` as `%`.
        stdin: what follows that `%`, each further `%` as a line break; None if there is none.
        environment: the settings in force at the line, without `CRON_TZ`.
        name: a job name drawn from the command, unique in the file.
        comment: the comment right above, on one line; empty if there is none.
    """

    line: int
    expr: str
    zone: str | None
    user: str | None
    command: str
    stdin: str | None
    environment: Mapping[str, str]
    name: str
    comment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CrontabNote:
    """Something to tell about a line.

    Attributes:
        line: its number, from 1.
        field: what it is about: a field's name, `schedule`, `user`, `command`, `setting`, `line`.
        reason: one clause.
    """

    line: int
    field: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CrontabFile:
    """A crontab that has been read.

    Attributes:
        filename: where it came from, for messages.
        entries: the lines that can be imported, in order.
        problems: the lines that cannot.
        warnings: lines that were read, but may not do what their author thinks.
    """

    filename: str
    entries: tuple[CrontabEntry, ...]
    problems: tuple[CrontabNote, ...]
    warnings: tuple[CrontabNote, ...]


def parse_crontab(text: str, *, system: bool, filename: str) -> CrontabFile:
    r"""Read a crontab.

    Args:
        text: its whole content.
        system: each line has a user before the command (`/etc/crontab`, `/etc/cron.d`).
        filename: where it came from.

    >>> file = parse_crontab("0 5 * * * /opt/bin/dump\n", system=False, filename="root")
    >>> file.entries[0].expr, file.entries[0].name
    ('0 5 * * *', 'dump')
    """
    reader = _Reader(system=system)
    lines = text.removeprefix("\ufeff").split("\n")
    if lines[-1]:
        reader.warn(len(lines), "line", "the last line has no line break; cron may not run it")
    else:
        lines.pop()
    if any(line.endswith("\r") for line in lines):
        number = next(n for n, line in enumerate(lines, 1) if line.endswith("\r"))
        reader.warn(number, "line", "lines end with a carriage return; cron would not drop it")
    for number, line in enumerate(lines, start=1):
        reader.read(number, line.removesuffix("\r").lstrip(" \t"))
    return CrontabFile(
        filename=filename,
        entries=tuple(reader.entries),
        problems=tuple(reader.problems),
        warnings=tuple(reader.warnings),
    )


def split_percent(text: str) -> tuple[str, str | None]:
    r"""Return the command and the standard input of a crontab command.

    A backslash protects a `%` and is dropped; before anything else it stays. The input ends with a
    line break, as cron sends it.

    >>> split_percent(r"date +\%F")
    ('date +%F', None)
    >>> split_percent("cat%one%two")
    ('cat', 'one\ntwo\n')
    """
    match = re.match(r"(?:[^%\\]|\\.|\\$)*", text, re.DOTALL)
    end = match.end() if match else 0
    command = re.sub(r"\\(.)", _keep_unless_percent, text[:end], flags=re.DOTALL)
    if end == len(text):
        return command, None
    sent = re.sub(r"\\%|%", lambda found: found[0][1:] or "\n", text[end + 1 :])
    return command, sent if not sent or sent.endswith("\n") else sent + "\n"


def _keep_unless_percent(found: re.Match[str]) -> str:
    return "%" if found[1] == "%" else found[0]


class _Refused(Exception):
    """A line cannot be imported; carries the field and the reason."""

    def __init__(self, field_name: str, reason: str) -> None:
        super().__init__(field_name, reason)
        self.field, self.reason = field_name, reason


@dataclass(slots=True, kw_only=True)
class _Reader:
    """The state of reading: the settings in force, and what was found so far."""

    system: bool
    entries: list[CrontabEntry] = field(default_factory=list)
    problems: list[CrontabNote] = field(default_factory=list)
    warnings: list[CrontabNote] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    zone: str | None = None
    bad_zone_line: int = 0
    comment: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def warn(self, line: int, about: str, reason: str) -> None:
        self.warnings.append(CrontabNote(line=line, field=about, reason=reason))

    def refuse(self, line: int, about: str, reason: str) -> None:
        self.problems.append(CrontabNote(line=line, field=about, reason=reason))

    def read(self, number: int, text: str) -> None:
        """Read one line, without leading blanks."""
        if text.startswith("#"):
            self._keep_comment(text.lstrip("#").strip())
            return
        comment = " ".join(self.comment)[:COMMENT_LENGTH_MAX]
        self.comment.clear()
        if not text.strip():
            return
        if "\0" in text:
            self.refuse(number, "line", "the line has a NUL byte")
            return
        try:
            if not self._read_setting(number, text):
                self._read_entry(number, text, comment)
        except _Refused as refused:
            self.refuse(number, refused.field, refused.reason)

    def _keep_comment(self, text: str) -> None:
        """Keep a comment line, unless it heads the columns or switches an entry off."""
        if text and not _HEADER.fullmatch(text) and not _DISABLED.match(text):
            self.comment.append(text)

    def _read_setting(self, number: int, text: str) -> bool:
        match = _SETTING.fullmatch(text)
        if match is None:
            return False
        name = match["double"] or match["single"] or match["bare"] or ""
        value = _unquoted(match["value"])
        if value is None:
            raise _Refused("setting", f"the quotes of {name} are not closed at the line's end")
        if not name:
            raise _Refused("setting", "the setting has no name")
        if name == "CRON_TZ":
            self._set_zone(number, value)
            return True
        self.environment[name] = value
        if name in _NO_EFFECT:
            self.warn(number, "setting", f"{name}: {_NO_EFFECT[name]}")
        return True

    def _set_zone(self, number: int, value: str) -> None:
        """Set the zone for the lines below; after a bad one they are refused, not guessed."""
        self.zone, self.bad_zone_line = None, 0
        if not value:
            return
        try:
            self.zone = zone_clock(value).name
        except InvalidInput as fault:
            self.bad_zone_line = number
            raise _Refused("CRON_TZ", _told(fault)) from None

    def _read_entry(self, number: int, text: str, comment: str) -> None:
        if text.startswith("-"):
            text = text[1:]
            self.warn(number, "schedule", "the leading - (do not log) has no effect")
        match = (_MACRO_LINE if text.startswith("@") else _FIELDS_LINE).fullmatch(text)
        if match is None:
            raise _Refused(
                "schedule", "the line is neither NAME=value nor five time fields and a command"
            )
        expr = " ".join(_BLANKS.split(match["expr"]))
        _check_schedule(expr)
        user, command = self._user_and_command(number, match["rest"] or "")
        if self.bad_zone_line:
            raise _Refused("CRON_TZ", f"line {self.bad_zone_line} sets no known zone")
        self._warn_of_surprises(number, expr)
        shell, stdin = split_percent(command)
        identity = "\n".join((expr, self.zone or "", user or "", command))
        entry = CrontabEntry(
            line=number,
            expr=expr,
            zone=self.zone,
            user=user,
            command=shell,
            stdin=stdin,
            environment=MappingProxyType(dict(self.environment)),
            name=make_unique(suggest_name(shell), identity, self.names),
            comment=comment,
        )
        self.entries.append(entry)

    def _user_and_command(self, number: int, rest: str) -> tuple[str | None, str]:
        user, command = None, rest
        if self.system:
            user, command = (*_BLANKS.split(rest, maxsplit=1), "")[:2]
            if user and not _USER.fullmatch(user):
                reason = f"{user!r} is no user name; a system crontab has one before the command"
                raise _Refused("user", reason)
        if command.startswith("*"):
            raise _Refused("command", "the command begins with *: there are six time fields")
        if not command.strip():
            lacking = "user and no command" if self.system and not user else "command"
            raise _Refused("command", f"the line has no {lacking}")
        if not self.system and command.startswith(("root ", "root\t")):
            self.warn(number, "command", "the command begins with root: is it a system crontab?")
        return user, command

    def _warn_of_surprises(self, number: int, expr: str) -> None:
        if expr.startswith("@"):
            return
        texts = expr.split()
        for each, text in zip(FIELDS, texts, strict=True):
            for step in _BIG_STEP.findall(text):
                if int(step) > each.high - each.low:
                    reason = f"{each.name} {text!r} steps past its end, so it means {each.low} only"
                    self.warn(number, each.name, reason)
        days, weekdays = texts[2], texts[4]
        if "*" in (days, weekdays):
            return
        both = days.startswith("*") or weekdays.startswith("*")
        how = "both day fields must match" if both else "either day field is enough"
        reason = f"day of month {days!r} and day of week {weekdays!r}: {how}"
        self.warn(number, DAY_OF_MONTH.name, reason)


def _check_schedule(expr: str) -> None:
    if expr.startswith("@reboot"):
        raise _Refused("schedule", "@reboot: there is no boot here; start a run by hand")
    about = "schedule"
    try:
        texts = normalise(expr).split()
        if not expr.startswith("@"):
            for each, text in zip(FIELDS, texts, strict=True):
                _check_field(each, text)
            about = DAY_OF_MONTH.name  # the only fault left is a date that never comes
        parse_fields(expr, seconds=False, key="")
    except InvalidInput as fault:
        raise _Refused(about, _told(fault)) from None


def _check_field(each: Field, text: str) -> None:
    if uses_hash(text):
        raise _Refused(each.name, f"{each.name} {text!r}: H is not crontab notation")
    try:
        resolve_field(each, text, "")
    except InvalidInput as fault:
        raise _Refused(each.name, _told(fault) + _debian_reading(each, text, fault)) from None


def _debian_reading(each: Field, text: str, fault: InvalidInput) -> str:
    """Return what Debian's cron makes of a field that is refused here, if it accepts it."""
    if "runs backwards" in fault.problem:
        return "; Debian cron accepts it and never runs the job"
    match = _DEBIAN_PREFIX.match(text)
    if match is None:
        return ""
    try:
        resolve_field(each, match["read"], "")
    except InvalidInput:
        return ""
    return f"; Debian cron silently reads {match['read']!r} only"


def _unquoted(value: str) -> str | None:
    """Return a setting's value without blanks at its end and without quotes; None if malformed."""
    value = value.rstrip(" \t")
    if value[:1] not in ("'", '"'):
        return value
    inner, quote, after = value[1:].partition(value[0])
    return inner if quote and not after else None


def _told(fault: InvalidInput) -> str:
    return fault.problem + (f" ({fault.mend})" if fault.mend else "")
