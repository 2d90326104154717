"""What the commands of one call share: the store that was named, opened when it is first needed."""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property
from typing import TypeVar

import click

from dynsched import bootstrap
from dynsched.bootstrap import DEFAULT_STORE, STORE_VARIABLE, Base
from dynsched.domain.access import Access, Action, Role
from dynsched.domain.instants import Clock
from dynsched.domain.job import Job
from dynsched.errors import InvalidInput
from dynsched.services.operations import Operations
from dynsched.services.views import Views

ACTOR_VARIABLE = "DYNSCHED_ACTOR"
ROLE_VARIABLE = "DYNSCHED_ROLE"
READ_ONLY_VARIABLE = "DYNSCHED_READ_ONLY"
YES = frozenset({"1", "true", "yes", "on"})
NO = frozenset({"", "0", "false", "no", "off"})

F = TypeVar("F", bound=Callable[..., object])


def login() -> str:
    """Return who runs this process, as `name@host`; by its number where it has no name."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = f"uid-{os.getuid()}"
    return f"{name}@{socket.gethostname()}"


class Runtime:
    """One call of the program.

    Args:
        environment: where settings come from; None is the process's.
        clock: use this one instead of the system's.
        base: use this store instead of the one that is named.
    """

    def __init__(
        self,
        *,
        environment: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        base: Base | None = None,
    ) -> None:
        self.environment = os.environ if environment is None else environment
        self.store_option: str | None = None
        self.access_options: dict[str, str] = {}
        self._clock = clock
        self._given_base = base

    @property
    def url(self) -> str:
        """The store's URL: the option's, else the environment's, else the default."""
        return self.store_option or self.environment.get(STORE_VARIABLE) or DEFAULT_STORE

    @cached_property
    def access(self) -> Access:
        """Who acts in this call: as the options say, else the environment, else the login."""
        role = self._role()
        actor = self.access_options.get("actor") or self.environment.get(ACTOR_VARIABLE)
        read_only = "read_only" in self.access_options or self._says_read_only()
        return Access(actor=actor or login(), role=role, read_only=read_only, via="cli")

    def _role(self) -> Role:
        text = self.access_options.get("role") or self.environment.get(ROLE_VARIABLE)
        try:
            return Role(text.strip().lower()) if text else Role.ADMIN
        except ValueError:
            known = ", ".join(role.value for role in Role)
            raise InvalidInput(ROLE_VARIABLE, f"{text!r} is no role", f"give {known}") from None

    def _says_read_only(self) -> bool:
        text = self.environment.get(READ_ONLY_VARIABLE, "").strip().lower()
        if text not in YES | NO:
            raise InvalidInput(READ_ONLY_VARIABLE, f"{text!r} is unknown", "give 1 or 0")
        return text in YES

    def may(self, action: Action) -> None:
        """Ask for what is no verb of `Operations`, such as to make the store.

        Raises:
            Forbidden: the role or read-only mode forbids it.
        """
        self.access.check(action)

    @cached_property
    def base(self) -> Base:
        """The store and what its services share; closed when the call ends."""
        if self._given_base is not None:
            return self._given_base
        base = bootstrap.open_base(self.url, environment=self.environment, clock=self._clock)
        click.get_current_context().find_root().call_on_close(base.store.engine.close)
        return base

    @cached_property
    def operations(self) -> Operations:
        """The one door for changes."""
        return bootstrap.build_operations(self.base, self.access)

    @cached_property
    def views(self) -> Views:
        """All that can be read."""
        return bootstrap.build_views(self.base, read_only=self.access.read_only)

    @cached_property
    def clock(self) -> Clock:
        """The clock of this call; it needs no store."""
        if self._given_base is not None:
            return self._given_base.clock
        return self._clock or bootstrap.clock_from(self.environment)

    def now(self) -> datetime:
        """Return the present instant."""
        return self.clock.now()

    def find_job(self, name_or_id: str, tenant: str) -> Job:
        """Return a job by its name in a tenant, or by its id.

        Raises:
            NotFound: there is none.
        """
        return self.views.find_job(name_or_id, tenant)

    def find_any_job(self, name_or_id: str, tenant: str | None) -> Job:
        """Return a job to look at by its name, or by its id; by that also a deleted one.

        With no tenant a name finds the default tenant's job, else that of the one which has it.

        Raises:
            NotFound: there is none, or several tenants have one.
        """
        return self.views.find_job_of_any(name_or_id, tenant, deleted=True)


pass_runtime = click.make_pass_decorator(Runtime, ensure=True)
