"""The operator's own settings: a TOML file of keys, a theme, saved filters; and what is remembered.

The file is `$XDG_CONFIG_HOME/dynsched/console.toml`; filter history lies under `$XDG_STATE_HOME`.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dynsched.errors import InvalidInput
from dynsched_console.themes import THEMES

HISTORY_MAX = 50  # filters of one screen that are remembered


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What an operator has set.

    Attributes:
        keys: other keys by the id of their binding; several are separated by commas.
        theme: dark, light or ansi; empty for the default.
        filters: saved filters by name, each as `:` takes it: a screen and its filter.
    """

    keys: Mapping[str, str] = field(default_factory=dict)
    theme: str = ""
    filters: Mapping[str, str] = field(default_factory=dict)


def config_file(environment: Mapping[str, str]) -> Path:
    """Return where the settings lie, there or not."""
    home = environment.get("XDG_CONFIG_HOME") or Path(environment.get("HOME", "~"), ".config")
    return Path(home, "dynsched", "console.toml").expanduser()


def state_folder(environment: Mapping[str, str]) -> Path:
    """Return where the console remembers things, there or not."""
    home = environment.get("XDG_STATE_HOME") or Path(environment.get("HOME", "~"), ".local/state")
    return Path(home, "dynsched").expanduser()


def load_config(path: Path, known: frozenset[str]) -> Config:
    """Return the settings of a file; the usual ones if there is none.

    Args:
        path: the file.
        known: the ids of all bindings.

    Raises:
        InvalidInput: the file is no TOML, or names what does not exist.
    """
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return Config()
    except (OSError, ValueError) as error:
        raise InvalidInput(str(path), f"it cannot be read: {error}") from None
    for name in document:
        if name not in ("keys", "theme", "filters"):
            raise InvalidInput(f"{path}: {name}", "unknown", "known: keys, theme, filters")
    theme = document.get("theme", "")
    if theme and theme not in THEMES:
        raise InvalidInput(f"{path}: theme", f"{theme!r} is unknown", f"use {', '.join(THEMES)}")
    keys = _texts(path, "keys", document.get("keys", {}))
    for name in keys:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            mend = f"did you mean {near[0]}?" if near else "docs/console.md lists them"
            raise InvalidInput(f"{path}: keys.{name}", "there is no such key binding", mend)
    filters = _texts(path, "filters", document.get("filters", {}))
    return Config(keys=keys, theme=theme, filters=filters)


def _texts(path: Path, name: str, value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
        raise InvalidInput(f"{path}: {name}", "it is no table of texts", 'write name = "text"')
    return dict(value)


class History:
    """Filters that were used before, by screen; the newest last.

    Args:
        path: the file that keeps them; None keeps them as long as the program runs.

    A file that cannot be read or written is no reason to bother anybody: it is left alone.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lines: dict[str, list[str]] = {}
        if path is not None:
            try:
                found = json.loads(path.read_text("utf-8"))
                self._lines = {str(name): [*map(str, lines)] for name, lines in found.items()}
            except (OSError, ValueError, AttributeError, TypeError):
                self._lines = {}

    def of(self, screen: str) -> list[str]:
        """Return a screen's filters, the newest last."""
        return list(self._lines.get(screen, []))

    def add(self, screen: str, text: str) -> None:
        """Remember a filter; one that was there moves to the end."""
        if not text.strip():
            return
        lines = [one for one in self._lines.get(screen, []) if one != text]
        self._lines[screen] = [*lines, text][-HISTORY_MAX:]
        self._save()

    def _save(self) -> None:
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            beside = self._path.with_suffix(".new")
            beside.write_text(json.dumps(self._lines, indent=1), "utf-8")
            beside.replace(self._path)
        except OSError:
            return
