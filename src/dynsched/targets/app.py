"""The app: which Python functions a worker can run, and how a worker finds them."""

from __future__ import annotations

import difflib
import importlib
import inspect
import os
import pkgutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import partial
from types import MappingProxyType, ModuleType
from typing import Any, TypedDict, TypeVar, Unpack, cast

from dynsched.domain.job import CatchUp, Overlap, Priority
from dynsched.domain.names import check_name
from dynsched.domain.recurrence import Cron
from dynsched.domain.retry import RetryPolicy
from dynsched.domain.target import HandlerTarget
from dynsched.domain.zone_changes import zone_clock
from dynsched.errors import InvalidInput
from dynsched.targets.context import AnyContext

Handler = Callable[..., Any]
"""A handler: sync or async, with the context as its only parameter or with none."""
H = TypeVar("H", bound=Handler)

_LISTED_MAX = 8


class JobDefaults(TypedDict, total=False):
    """What a handler's declaration may say about the jobs that name it; all optional.

    A job that is made from the handler takes these where it does not say otherwise.
    """

    queue: str
    priority: str
    tenant: str
    max_attempts: int
    timeout: timedelta
    retry: RetryPolicy
    overlap: str
    catch_up: str
    start_deadline: timedelta
    cron: str
    every: timedelta
    tz: str
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A registered handler.

    Attributes:
        name: what jobs call it.
        function: the function as it was declared.
        takes_context: whether it wants the context, or nothing.
        defaults: what its declaration says about jobs.
    """

    name: str
    function: Handler
    takes_context: bool
    defaults: JobDefaults

    def arguments(self, context: AnyContext) -> tuple[AnyContext, ...]:
        """Return what the function is to be called with."""
        return (context,) if self.takes_context else ()


class App:
    """A registry of handlers.

    >>> app = App()
    >>> @app.job("greet", max_attempts=3)
    ... def greet(ctx):
    ...     return f"hello {ctx.payload}"
    >>> sorted(app.handlers)
    ['greet']
    """

    def __init__(self) -> None:
        self._handlers: dict[str, Registration] = {}

    @property
    def handlers(self) -> Mapping[str, Registration]:
        """The registered handlers by name; a view that cannot be changed."""
        return MappingProxyType(self._handlers)

    def get(self, name: str) -> Registration:
        """Return the handler of that name.

        Raises:
            InvalidInput: there is none.
        """
        try:
            return self._handlers[name]
        except KeyError:
            raise InvalidInput("handler", *self.unknown(name)) from None

    def unknown(self, name: str) -> tuple[str, str]:
        """Return what is wrong with a name that no handler has, and what to do about it."""
        return f"the app has no handler {name!r}", _suggestion(name, self._handlers)

    def job(self, name: str, /, **defaults: Unpack[JobDefaults]) -> Callable[[H], H]:
        """Declare a function as the handler of jobs that name it; the function stays as it is.

        Args:
            name: letters, digits, `_ . : -`.
            defaults: see `JobDefaults`.

        Raises:
            InvalidInput: the name is malformed or taken, a default is unknown, of the
                wrong type or of no use, or the function does not have the context as its only
                parameter, or none.
        """
        HandlerTarget(name)
        checked = _checked_defaults(name, defaults)

        def register(function: H) -> H:
            if name in self._handlers:
                raise InvalidInput(
                    "handler", f"{name!r} is registered already", "choose another name"
                )
            self._handlers[name] = Registration(
                name=name,
                function=function,
                takes_context=_takes_context(name, function),
                defaults=checked,
            )
            return function

        return register


def load_app(path: str) -> App:
    """Import the app that `module:attribute` names; the working directory is searched as well.

    Raises:
        InvalidInput: the text is malformed, the module is missing or fails when imported, or the
            attribute is missing or is no `App`.
    """
    module_name, colon, attribute = path.partition(":")
    if not colon or not all(part.isidentifier() for part in module_name.split(".")):
        raise InvalidInput("--app", f"{path!r} is not module:attribute", "for example tasks:app")
    if not attribute.isidentifier():
        raise InvalidInput(
            "--app", f"{path!r} names no attribute", f"for example {module_name}:app"
        )
    module = _import(module_name)
    found = sorted(name for name, value in vars(module).items() if isinstance(value, App))
    if not hasattr(module, attribute):
        raise InvalidInput(
            "--app", f"the module {module_name} has no {attribute!r}", _apps(module_name, found)
        )
    app = getattr(module, attribute)
    if not isinstance(app, App):
        problem = f"{path} is a {type(app).__name__}, not a dynsched App"
        raise InvalidInput("--app", problem, _apps(module_name, found))
    return app


def _import(name: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _failing(name, error) from error
        modules = [module.name for module in pkgutil.iter_modules([here])]
        problem = f"there is no module {error.name!r} in {here} or on the Python path"
        raise InvalidInput("--app", problem, _suggestion(error.name, modules)) from None
    except (Exception, SystemExit) as error:
        raise _failing(name, error) from error


def _failing(name: str, error: BaseException) -> InvalidInput:
    problem = f"importing {name} failed: {type(error).__name__}: {error}"
    return InvalidInput("--app", problem, f"try: python -c 'import {name}'")


def _apps(module_name: str, found: list[str]) -> str:
    if not found:
        return "it holds no App at all"
    return "it has " + ", ".join(f"{module_name}:{name}" for name in found[:_LISTED_MAX])


def _suggestion(name: str, known: Mapping[str, object] | list[str]) -> str:
    """Return the names that were probably meant, else the first few there are."""
    close = difflib.get_close_matches(name, known, n=3)
    if close:
        return f"did you mean {' or '.join(close)}?"
    listed = sorted(known)[:_LISTED_MAX]
    more = f" and {len(known) - len(listed)} more" if len(known) > len(listed) else ""
    return f"it has {', '.join(listed)}{more}" if listed else "it has none"


def _checked_defaults(name: str, defaults: Mapping[str, object]) -> JobDefaults:
    known = JobDefaults.__annotations__
    for key, value in defaults.items():
        if key not in known:
            problem = f"the handler {name!r} has an unknown default"
            raise InvalidInput(key, problem, _suggestion(key, list(known)))
        if key in ("timeout", "every", "start_deadline") and not isinstance(value, timedelta):
            raise InvalidInput(key, f"{value!r} is no timedelta", "timedelta(seconds=30)")
        if isinstance(value, timedelta) and value <= timedelta(0):
            raise InvalidInput(key, f"{value} is not positive", "give a longer one")
        if key == "retry" and not isinstance(value, RetryPolicy):
            raise InvalidInput(key, f"{value!r} is no RetryPolicy", "RetryPolicy(max_attempts=3)")
    _check_values(name, defaults)
    return cast("JobDefaults", dict(defaults))


_CHOICES: Mapping[str, type[StrEnum]] = MappingProxyType(
    {"overlap": Overlap, "catch_up": CatchUp, "priority": Priority}
)


def _check_values(name: str, defaults: Mapping[str, Any]) -> None:
    """Check what a declaration says of jobs where it is read, and not when a job is made of it.

    Raises:
        InvalidInput: a value is wrong; the error names the handler and the default.
    """
    if "cron" in defaults and "every" in defaults:
        raise InvalidInput("every", f"handler {name!r} has cron and every", "give one of them")
    checks: dict[str, Callable[[Any], object]] = {
        "tz": zone_clock,
        "cron": lambda expr: Cron.parse(expr, zone=defaults.get("tz", "UTC"), key=name),
        "max_attempts": lambda count: RetryPolicy(max_attempts=count),
        "queue": lambda text: check_name(text, "queue"),
        "tenant": lambda text: check_name(text, "tenant"),
        **{field: partial(_choose, choices) for field, choices in _CHOICES.items()},
    }
    for field, check in checks.items():
        if field not in defaults:
            continue
        value = defaults[field]
        try:
            _check_type(field, value)
            check(value)
        except InvalidInput as error:
            raise InvalidInput(field, f"handler {name!r}: {error.problem}", error.mend) from None


def _check_type(field: str, value: object) -> None:
    wanted: type = int if field == "max_attempts" else str
    if not isinstance(value, wanted) or isinstance(value, bool):
        problem = f"{value!r} is {'no whole number' if wanted is int else 'no text'}"
        raise InvalidInput(field, problem)


def _choose(choices: type[StrEnum], text: str) -> StrEnum:
    try:
        return choices(text)
    except ValueError:
        known = ", ".join(item.value for item in choices)
        raise InvalidInput("", f"{text!r} is unknown", known) from None


def _takes_context(name: str, function: Handler) -> bool:
    """Tell whether the function wants the context; refuse one that could not be called."""
    mend = "write def handler(ctx) or def handler()"
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidInput("handler", f"{name!r} is a generator: calling it would do nothing", mend)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise InvalidInput("handler", f"{name!r} is not a function", mend) from None
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(parameters) > 1 or len(positional) != len(parameters):
        listed = ", ".join(str(parameter) for parameter in parameters)
        raise InvalidInput("handler", f"{name!r} has the parameters ({listed})", mend)
    return bool(positional)
