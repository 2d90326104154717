"""Asking why in tests: each answer is checked for what every answer must have."""

from __future__ import annotations

import shlex
from datetime import datetime

import click

from dynsched.bootstrap import build_views
from dynsched.cli.main import main
from dynsched.domain.explanation import Explanation
from dynsched.domain.job import Job
from dynsched.domain.run import Run
from tests.rules.small_world import World


def why(world: World, run: Run) -> Explanation:
    """Explain a run as it is stored now."""
    return checked(build_views(world.people.base).why_run(run.run_id))


def why_at(world: World, job: Job, instant: datetime) -> Explanation:
    """Explain an instant of a job."""
    return checked(build_views(world.people.base).why_instant(job.job_id, instant))


def said(explained: Explanation) -> str:
    """Return all that people would read."""
    return " ".join((explained.headline, *explained.sentences, *explained.hints))


def checked(explained: Explanation) -> Explanation:
    """Return an explanation that has one headline, ordered events and hints that can be typed."""
    assert explained.headline.endswith(".")
    moments = [at for at, _ in explained.timeline]
    assert moments == sorted(moments)
    for hint in explained.hints:
        check_command(hint)
    return explained


def check_command(line: str) -> None:
    """Parse a command line as the program would, without running it."""
    program, *words = shlex.split(line)
    assert program == "dynsched"
    command: click.Command = main
    while isinstance(command, click.Group):
        name = words.pop(0)
        command = command.commands[name]
    command.make_context(line, words)
