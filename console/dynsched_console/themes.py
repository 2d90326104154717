"""Themes: dark, light, and one of the terminal's own sixteen colours.

Colours have roles, few of them: `bad`, `warn`, `good`, `busy` say a state that a letter and a word
say too; `muted` is what is there but not asked for; `strong` is a title.
"""

from __future__ import annotations

from enum import StrEnum

from textual.theme import Theme


class Tone(StrEnum):
    """What a piece of text is, for its colour; never the only carrier of a meaning."""

    PLAIN = "plain"
    STRONG = "strong"
    MUTED = "muted"
    GOOD = "good"
    BUSY = "busy"
    WARN = "warn"
    BAD = "bad"


DARK = Theme(
    name="dark",
    primary="#7aa2c9",
    secondary="#5f7d9c",
    accent="#d7a65f",
    foreground="#d5d8dc",
    background="#15181c",
    surface="#15181c",
    panel="#20252b",
    boost="#2a3038",
    success="#83b78a",
    warning="#d7a65f",
    error="#e07a7a",
    dark=True,
    variables={
        "muted": "#8d959e",
        "busy": "#7fb4c4",
        "block-cursor-background": "#2f3d4d",
        "block-cursor-foreground": "#ffffff",
        "block-cursor-text-style": "none",
        "border": "#39414a",
        "border-blurred": "#39414a",
        "footer-key-foreground": "#7aa2c9",
        "scrollbar": "#39414a",
        "scrollbar-hover": "#4a545f",
        "scrollbar-background": "#15181c",
        "scrollbar-background-hover": "#15181c",
    },
)
LIGHT = Theme(
    name="light",
    primary="#1f5f99",
    secondary="#4d7297",
    accent="#8a5a00",
    foreground="#22262b",
    background="#fbfbf9",
    surface="#fbfbf9",
    panel="#eeeeea",
    boost="#e4e4df",
    success="#25703a",
    warning="#8a5a00",
    error="#b3261e",
    dark=False,
    variables={
        "muted": "#666d75",
        "busy": "#176b80",
        "block-cursor-background": "#cfe0f0",
        "block-cursor-foreground": "#101418",
        "block-cursor-text-style": "none",
        "border": "#c9c9c2",
        "border-blurred": "#c9c9c2",
        "footer-key-foreground": "#1f5f99",
        "scrollbar": "#c9c9c2",
        "scrollbar-hover": "#b0b0a8",
        "scrollbar-background": "#fbfbf9",
        "scrollbar-background-hover": "#fbfbf9",
    },
)
ANSI = Theme(
    name="ansi",
    ansi=True,
    primary="ansi_blue",
    secondary="ansi_cyan",
    accent="ansi_yellow",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_default",
    boost="ansi_default",
    success="ansi_green",
    warning="ansi_yellow",
    error="ansi_red",
    dark=True,
    variables={
        "muted": "ansi_default",
        "busy": "ansi_cyan",
        "ansi-background": "ansi_black",
        "ansi-foreground": "ansi_white",
        "block-cursor-background": "ansi_blue",
        "block-cursor-foreground": "ansi_bright_white",
        "block-cursor-text-style": "none",
        "border": "ansi_default",
        "border-blurred": "ansi_default",
        "footer-key-foreground": "ansi_blue",
        "input-cursor-background": "ansi_white",
        "input-cursor-foreground": "ansi_black",
        "input-cursor-text-style": "none",
        "input-selection-background": "ansi_cyan",
        "input-selection-foreground": "ansi_black",
        "screen-selection-background": "ansi_cyan",
        "screen-selection-foreground": "ansi_black",
    },
)
THEMES = {theme.name: theme for theme in (DARK, LIGHT, ANSI)}

VARIABLES = {
    Tone.MUTED: "muted",
    Tone.GOOD: "success",
    Tone.BUSY: "busy",
    Tone.WARN: "warning",
    Tone.BAD: "error",
}


def style_of(tone: Tone, theme: str) -> str:
    """Return a tone as a style of Rich, in a theme of ours.

    >>> style_of(Tone.BAD, "dark"), style_of(Tone.MUTED, "ansi")
    ('#e07a7a', 'dim')
    """
    if tone is Tone.PLAIN:
        return ""
    if tone is Tone.STRONG:
        return "bold"
    if theme == ANSI.name and tone is Tone.MUTED:
        return "dim"
    found = THEMES.get(theme, DARK)
    name = VARIABLES[tone]
    colour = found.variables.get(name) or getattr(found, name)
    return str(colour).removeprefix("ansi_")
