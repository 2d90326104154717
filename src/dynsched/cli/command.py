"""Commands and groups: `--store` everywhere, one-line errors with their exit codes."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn, TextIO

import click

from dynsched.bootstrap import STORE_FORMS
from dynsched.cli.runtime import Runtime
from dynsched.cli.values import option_name
from dynsched.cli.visible import visible
from dynsched.domain.access import Role
from dynsched.errors import DynschedError, FilterError, InvalidInput, NotInitialised

INTERRUPTED = 130
SENTENCE = 200  # characters of a first sentence that a list of commands shows
NEGATED = re.compile(r"-(?:[A-Za-z][A-Za-z_-]*(?:\.[^\s:,\"]*)?:|[@\"]).*", re.DOTALL)

# Fields of the domain's errors that have another name on the command line.
NAMES: dict[str, tuple[str, ...]] = {
    "cron": ("cron", "expr"),
    "delay": ("after_delay",),
    "environment": ("env",),
    "filter": ("words",),
    "function": ("lambda_",),
    "headers": ("header",),
    "in": ("after_delay",),
    "job": ("name",),
    "permanent_statuses": ("permanent_status",),
    "queue_url": ("sqs",),
    "retry": ("retry",),
    "retry_statuses": ("retry_status",),
    "run": ("run_id", "run_ids"),
    "tags": ("tag",),
    "url": ("http",),
    "at": ("at", "after"),
}


# Advice of the domain that a command with this parameter gives by its option.
MENDS: dict[str, tuple[str, str]] = {
    "a leading seconds field must be declared": (
        "seconds",
        "--seconds if the first of them is seconds",
    ),
    "give a key": ("key", "give one with --key"),
}

UNMADE = (
    " (`dynsched up` does it by itself, a dispatcher that was just deployed within a minute), or"
    " name another one: --store or DYNSCHED_STORE"
)
SENTENCE = 200  # characters of a first sentence that a list of commands shows


def store_option() -> click.Option:
    """Return the option that names the store."""
    return click.Option(
        ["--store"],
        metavar="URL",
        expose_value=False,
        is_eager=True,
        callback=_note_store,
        help=f"Where everything lies: {STORE_FORMS} (or DYNSCHED_STORE; default "
        "sqlite:///dynsched.db).",
    )


def _note_store(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.ensure_object(Runtime).store_option = value


def access_options(*, hidden: bool = True) -> list[click.Option]:
    """Return the options that say who acts; the program's own help shows them for all commands."""
    return [
        click.Option(
            ["--actor"],
            metavar="NAME",
            expose_value=False,
            is_eager=True,
            hidden=hidden,
            callback=_note_access,
            help="Who acts, for the audit (or DYNSCHED_ACTOR; default your login and host).",
        ),
        click.Option(
            ["--role"],
            type=click.Choice([role.value for role in Role]),
            expose_value=False,
            is_eager=True,
            hidden=hidden,
            callback=_note_access,
            help="Act with no more than this role (or DYNSCHED_ROLE; default admin).",
        ),
        click.Option(
            ["--read-only"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            hidden=hidden,
            callback=_note_access,
            help="Refuse every change (or DYNSCHED_READ_ONLY=1).",
        ),
    ]


def _note_access(ctx: click.Context, param: click.Parameter, value: str | bool | None) -> None:
    if value:
        assert param.name is not None
        ctx.ensure_object(Runtime).access_options[param.name] = str(value)


class Command(click.Command):
    """A command that takes `--store` and names options in errors as people type them.

    Args:
        examples: command lines without `dynsched`, shown at the end of the help.
    """

    def __init__(self, *args: Any, examples: Sequence[str] = (), **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.examples = examples
        self.params += [store_option(), *access_options()]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; `-tenant:acme` is a word of a filter and no option."""
        if any(param.name == "words" for param in self.params) and "--" not in args:
            negated = [word for word in args if NEGATED.fullmatch(word)]
            if negated:
                args = [*(word for word in args if word not in negated), "--", *negated]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command.

        Raises:
            InvalidInput: a value is wrong; the field is the option.
        """
        try:
            return super().invoke(ctx)
        except InvalidInput as error:
            raise as_typed(error, self.params) from error

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        super().format_epilog(ctx, formatter)
        write_examples(self.examples, formatter)


class Group(click.Group):
    """A group whose commands and groups are of this module.

    Args:
        examples: command lines without `dynsched`, shown at the end of the help.
        sections: names of commands in the order in which the help tells them, by heading.
    """

    command_class = Command
    group_class = type
    outermost = False

    def __init__(
        self,
        *args: Any,
        examples: Sequence[str] = (),
        sections: Mapping[str, Sequence[str]] | None = None,
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **attributes)
        self.examples = examples
        self.sections = sections
        self.params += [store_option(), *access_options(hidden=not self.outermost)]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        super().format_epilog(ctx, formatter)
        write_examples(self.examples, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, each with the whole first sentence of its help."""
        for heading, names in (self.sections or {"Commands": self.list_commands(ctx)}).items():
            rows = [(name, self.commands[name].get_short_help_str(SENTENCE)) for name in names]
            with formatter.section(heading):
                formatter.write_dl(rows)


def write_examples(examples: Sequence[str], formatter: click.HelpFormatter) -> None:
    """Write command lines that can be copied, each on a line of its own."""
    if examples:
        formatter.write("\nExamples:\n")
        for example in examples:
            formatter.write(f"  dynsched {example}\n")


class Program(Group):
    """The outermost group: turns every failure into one line and an exit code."""

    outermost = True

    def main(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = "dynsched",
        **extra: Any,
    ) -> NoReturn:
        """Run the command that the arguments name, then exit.

        Exit codes: 0, or those of `dynsched.errors`; 2 for wrong usage, 130 for Ctrl-C.
        """
        extra.pop("standalone_mode", None)
        for stream in (sys.stdout, sys.stderr):
            _never_fail_to_encode(stream)
        try:
            # A reader that has left ends it here, quietly, with exit code 1: click sees to that.
            found = super().main(args, prog_name, standalone_mode=False, **extra)
        except (DynschedError, click.ClickException) as error:
            sys.exit(report(error))
        except click.Abort:
            sys.exit(INTERRUPTED)
        sys.exit(found if isinstance(found, int) else 0)


def as_typed(error: DynschedError, params: Sequence[click.Parameter]) -> DynschedError:
    """Return the error, the field of an `InvalidInput` as the option or argument people typed."""
    if not isinstance(error, InvalidInput) or isinstance(error, FilterError):
        return error  # a filter's fault is pointed at
    head = error.field
    for separator in ".[":
        head = head.partition(separator)[0]
    rest = error.field[len(head) :]
    flat = error.field.replace(".", "_")
    for wanted in (flat, *NAMES.get(head, ()), head):
        for param in params:
            if param.name == wanted:
                field = option_name(param) + (rest if wanted != flat else "")
                return InvalidInput(field, error.problem, _mend(error, params))
    if head == "store":
        return InvalidInput("--store", error.problem, error.mend)
    return error


def _mend(error: InvalidInput, params: Sequence[click.Parameter]) -> str:
    """Return the advice of an error by the option that follows it, if the command has that."""
    name, mend = MENDS.get(error.mend, ("", ""))
    return mend if any(param.name == name for param in params) else error.mend


def report(error: DynschedError | click.ClickException) -> int:
    """Write a failure as one line on standard error; return its exit code."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return error.exit_code
    if isinstance(error, click.ClickException):
        # Of a missing argument click lists the choices on lines of their own.
        message = " ".join(error.format_message().split()).rstrip(".")
        if isinstance(error, click.UsageError) and error.ctx is not None:
            message += f" (see `{error.ctx.command_path} --help`)"
        code = error.exit_code
    else:
        message, code = str(error), error.exit_code
        if isinstance(error, NotInitialised) and "dynsched init" in message:
            message += UNMADE
    print_error(message)
    if isinstance(error, FilterError):
        _print_pointer(error)
    return code


def _print_pointer(error: FilterError) -> None:
    """Write the filter with a caret below its fault."""
    with suppress(BrokenPipeError):
        for line in error.pointer():
            click.echo(f"  {visible(line)}", err=True)


def print_error(message: str) -> None:
    """Write `error: …` on one line of standard error."""
    with suppress(BrokenPipeError):
        click.echo(f"error: {visible(message)}", err=True)


def _never_fail_to_encode(stream: TextIO) -> None:
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None and stream.errors == "strict":
        reconfigure(errors="backslashreplace")
