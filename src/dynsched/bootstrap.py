"""Bootstrap: the only place that constructs. It turns a store URL and settings into services."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from random import Random, SystemRandom
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from dynsched.clock import ScaledClock, SystemClock
from dynsched.domain.instants import Clock
from dynsched.domain.names import check_name, new_id
from dynsched.errors import InvalidInput
from dynsched.services.session import SessionLocks
from dynsched.settings import Settings, settings_from
from dynsched.storage.engine import Engine
from dynsched.storage.handoff import HandOff, LazyHandOff, MessageQueue, check_message_queues
from dynsched.storage.placement import MapEntry, Topology
from dynsched.storage.steady import SteadyEngine
from dynsched.storage.store import Store

if TYPE_CHECKING:
    from dynsched.domain.access import Access
    from dynsched.services.dispatcher import Dispatcher
    from dynsched.services.exits import Slots
    from dynsched.services.health_reader import HealthReader
    from dynsched.services.message_worker import MessageWorker
    from dynsched.services.operations import Operations
    from dynsched.services.reaper import Reaper
    from dynsched.services.session import Identity, SessionKeeper
    from dynsched.services.stepper import BatchStepper
    from dynsched.services.views import Views
    from dynsched.services.workbench import Figures
    from dynsched.services.worker import Worker
    from dynsched.targets.app import App
    from dynsched.targets.aws import AwsClients
    from dynsched.targets.runner import TargetRunner

# Each `build_…` imports what it builds, and nobody waits for what he does not use: a function on
# AWS is imported anew for each process that it gets.

DEFAULT_STORE = "sqlite:///dynsched.db"
STORE_VARIABLE = "DYNSCHED_STORE"
CLOCK_VARIABLE = "DYNSCHED_REHEARSAL_CLOCK"
# Shorter than a heartbeat's pause even when each of the steady engine's attempts takes as long.
BUSY_S = 1.5
STORE_FORMS = "sqlite:///path.db or dynamodb://PREFIX?region=eu-west-1"


@dataclass(frozen=True, slots=True)
class Base:
    """What all services of a process share.

    Attributes:
        region: where the store is, if that is on AWS and its URL says so.
    """

    store: Store
    clock: Clock
    rng: Random
    settings: Settings
    locks: SessionLocks
    region: str | None = None


@dataclass(frozen=True, slots=True)
class WorkerParts:
    """A worker with what its loop needs."""

    worker: Worker
    keeper: SessionKeeper
    runner: TargetRunner


def clock_from(environment: Mapping[str, str]) -> Clock:
    """Return the system's clock, or a faster one for rehearsals.

    `DYNSCHED_REHEARSAL_CLOCK=FACTOR@EPOCH_SECONDS` makes every process of a store run FACTOR
    times as fast since that second.
    """
    text = environment.get(CLOCK_VARIABLE)
    if not text:
        return SystemClock()
    factor, _, since = text.partition("@")
    try:
        return ScaledClock(float(factor), float(since))
    except ValueError:
        raise InvalidInput(CLOCK_VARIABLE, f"{text!r} is not FACTOR@EPOCH_SECONDS") from None


def open_engine(url: str) -> tuple[Engine, Path | None]:
    """Return the engine that a store URL names, and the folder for lock files beside it.

    Raises:
        InvalidInput: the URL is malformed or its file cannot be opened.
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise InvalidInput("--store", f"{url!r}: {error}", f"use {STORE_FORMS}") from None
    options = _options(url, parts.query)
    if parts.scheme == "sqlite":
        return _open_sqlite(url, parts.netloc, parts.path, options)
    if parts.scheme == "dynamodb":
        return _open_dynamodb(parts.netloc, options)
    raise InvalidInput("--store", f"{url!r} is no store URL", f"use {STORE_FORMS}")


def _options(url: str, query: str) -> dict[str, str]:
    """Return the options of a store URL; a file's name with # or ? is not cut short silently."""
    if "#" in url:
        raise InvalidInput("--store", f"{url!r} has a #", f"use {STORE_FORMS}, without #")
    options = {name: values[-1] for name, values in parse_qs(query, keep_blank_values=True).items()}
    if ("?" in url and not options) or "" in options.values():
        raise InvalidInput(
            "--store",
            f"{url!r} has a ? without NAME=VALUE behind it",
            "give an option its value; a file's name has no ?",
        )
    return options


def _open_sqlite(
    url: str, host: str, path: str, options: dict[str, str]
) -> tuple[Engine, Path | None]:
    from dynsched.storage.sqlite import SqliteEngine  # noqa: PLC0415

    if host:
        raise InvalidInput("--store", f"{url!r} names a host", "use three slashes: sqlite:///x.db")
    _only(options, "durability")
    durability: Any = options.get("durability", "power")
    if durability not in ("power", "process"):
        raise InvalidInput(
            "--store", f"durability={durability!r} is unknown", "use power or process"
        )
    name = path.removeprefix("/")
    if name in ("", ":memory:"):
        return SqliteEngine(None), None
    file = Path(name)
    engine = SqliteEngine(str(file), durability=durability, busy_timeout_s=BUSY_S)
    return engine, Path(f"{file}.sessions")


def _open_dynamodb(prefix: str, options: dict[str, str]) -> tuple[Engine, Path | None]:
    # Imported here: botocore takes a quarter of a second, and a SQLite store does not need it.
    from dynsched.storage.dynamodb import DynamoEngine  # noqa: PLC0415

    check_name(prefix, "--store prefix")
    _only(options, "region", "endpoint_url")
    engine = DynamoEngine(
        prefix, region=options.get("region"), endpoint_url=options.get("endpoint_url")
    )
    folder = Path(tempfile.gettempdir()) / f"dynsched-{os.getuid()}" / prefix
    return engine, folder


def _only(options: Mapping[str, str], *known: str) -> None:
    for name in options:
        if name not in known:
            raise InvalidInput("--store", f"unknown option {name!r}", f"known: {', '.join(known)}")


def open_base(
    url: str | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    engine: Engine | None = None,
    handoff: HandOff | None = None,
    clock: Clock | None = None,
    rng: Random | None = None,
    settings: Settings | None = None,
) -> Base:
    """Open a store and what its services share.

    Args:
        url: the store; None takes `DYNSCHED_STORE`, else a file in the working directory.
        environment: where settings come from; None is the process's.
        engine: use this one instead of the URL's.
        handoff: use this one instead of SQS, for the queues of messages that the map names.
        clock: use this one instead of the system's.
        rng: source of ids and jitter; None is the operating system's.
        settings: use these instead of the environment's.

    Raises:
        InvalidInput: the URL or a setting is wrong.
    """
    environment = os.environ if environment is None else environment
    clock = clock or clock_from(environment)
    rng = rng or SystemRandom()
    settings = settings or settings_from(environment)
    folder: Path | None = None
    url = url or environment.get(STORE_VARIABLE) or DEFAULT_STORE
    if engine is None:
        engine, folder = open_engine(url)
    steady = SteadyEngine(engine, clock=clock, rng=rng)
    store = Store(steady, rng=rng, handoff=handoff or _handoff_of(url, clock))
    return Base(store, clock, rng, settings, SessionLocks(folder), _region_of(url))


def _region_of(url: str) -> str | None:
    """Return the AWS region that a store URL names."""
    parts = urlsplit(url)
    return _options(url, parts.query).get("region") if parts.scheme == "dynamodb" else None


def _handoff_of(url: str, clock: Clock) -> HandOff:
    """Return the hand-off by SQS of a store; nothing of it is loaded before it is used."""

    def make() -> HandOff:
        # Imported here: botocore takes a quarter of a second; a store that is pulled needs none.
        from dynsched.storage.sqs import SqsHandOff  # noqa: PLC0415

        parts = urlsplit(url)
        options = _options(url, parts.query) if parts.scheme == "dynamodb" else {}
        return SqsHandOff(
            clock=clock, region=options.get("region"), endpoint_url=options.get("endpoint_url")
        )

    return LazyHandOff(make)


def init_store(
    base: Base,
    *,
    look_ahead: timedelta = timedelta(seconds=30),
    shards: int = 1,
    lanes: int = 2,
    spread: int = 1,
    keep_ended: bool = True,
) -> bool:
    """Make the tables, the map and the first cursors; True if anything was made."""
    entry = MapEntry(0, shards, lanes, spread)
    return base.store.init(Topology((entry,), look_ahead, keep_ended), base.clock)


def prepare_store(
    base: Base,
    *,
    look_ahead: timedelta,
    shards: int,
    lanes: int,
    message_queues: Sequence[MessageQueue],
) -> bool:
    """Prepare a store whose tables a deployment has made; True if anything changed.

    It makes the map and the first cursors. In a map that is there already look-ahead and queues
    of messages follow the deployment; shards and lanes do not, as an operator may have changed
    them. Tables are neither made nor altered.

    Raises:
        InvalidInput: a queue of messages is wrong.
        NotInitialised: the tables are missing.
        Conflict: the map kept changing.
    """
    queues = check_message_queues(message_queues, "message_queues")
    topology = Topology((MapEntry(0, shards, lanes),), look_ahead, message_queues=queues)
    return base.store.prepare(topology, base.clock)


def build_operations(base: Base, access: Access | None = None) -> Operations:
    """Return the one door for people.

    Args:
        base: the store.
        access: who acts; None is a program of the owner's, which may do everything.
    """
    from dynsched.domain.access import Access  # noqa: PLC0415
    from dynsched.services.operations import Operations  # noqa: PLC0415

    return Operations(
        base.store,
        clock=base.clock,
        rng=base.rng,
        settings=base.settings,
        access=access or Access(actor=f"program on {socket.gethostname()[:40]}"),
    )


def build_views(base: Base, *, read_only: bool = False) -> Views:
    """Return all that can be read.

    Args:
        base: the store.
        read_only: write nothing at all, so look at the store's health without sharing the look.
    """
    from dynsched.domain.masking import Masker  # noqa: PLC0415
    from dynsched.services.views import Views  # noqa: PLC0415

    views = Views(base.store, clock=base.clock, masker=Masker(base.settings.mask_keys))
    views.settings, views.shares = base.settings, not read_only
    return views


def build_dispatcher(base: Base, *, name: str | None = None) -> Dispatcher:
    """Return a dispatcher replica, with a name of its own unless one is given."""
    from dynsched.services.dispatcher import Dispatcher  # noqa: PLC0415

    return Dispatcher(
        base.store,
        clock=base.clock,
        settings=base.settings,
        name=name or _replica_name(base),
    )


def build_reaper(base: Base, *, name: str | None = None) -> Reaper:
    """Return a reaper replica, with a name of its own unless one is given."""
    from dynsched.services.reaper import Reaper  # noqa: PLC0415

    # Not of the random source: a worker has a reaper too, and its name says nothing to anybody.
    name = name or f"{socket.gethostname()[:40]}-{os.getpid()}-{base.store.token()}"
    return Reaper(
        base.store,
        clock=base.clock,
        rng=base.rng,
        settings=base.settings,
        locks=base.locks,
        name=name,
    )


def build_health(base: Base) -> HealthReader:
    """Return a reader of the store's health, for a process that shows nothing else of it."""
    from dynsched.services.health_reader import HealthReader  # noqa: PLC0415

    return HealthReader(base.store, clock=base.clock, settings=base.settings)


def build_stepper(base: Base) -> BatchStepper:
    """Return a replica that moves replay batches, with a name of its own."""
    from dynsched.services.stepper import BatchStepper  # noqa: PLC0415

    return BatchStepper(
        base.store, clock=base.clock, settings=base.settings, name=_replica_name(base)
    )


def _replica_name(base: Base) -> str:
    return f"{socket.gethostname()[:40]}-{os.getpid()}-{new_id(base.rng, 4)}"


def build_worker(
    base: Base,
    app: App | None = None,
    *,
    queues: Sequence[str] = ("main",),
    allow_commands: bool = False,
    slots: Slots | None = None,
    aws: AwsClients | None = None,
) -> WorkerParts:
    """Return a worker; without `slots` its handlers run on threads.

    Args:
        base: the store.
        app: its handlers; None for none.
        queues: that it serves.
        allow_commands: whether it may run shell commands.
        slots: where handlers run.
        aws: clients for Lambda and SQS targets; None makes them when needed.
    """
    from dynsched.services.hand import Hand  # noqa: PLC0415
    from dynsched.services.session import SessionKeeper  # noqa: PLC0415
    from dynsched.services.slots import ThreadSlots  # noqa: PLC0415
    from dynsched.services.worker import Worker  # noqa: PLC0415

    for name in queues:
        check_name(name, "--queue")
    runner, hand = _runner(base, app, allow_commands=allow_commands, aws=aws), Hand()
    keeper = SessionKeeper(
        base.store,
        clock=base.clock,
        rng=base.rng,
        settings=base.settings,
        identity=_identity(base, app, queues, slots=slots, commands=allow_commands),
        locks=base.locks,
        on_mail=hand.ask_cancel,
    )
    worker = Worker(
        base.store,
        clock=base.clock,
        rng=base.rng,
        settings=base.settings,
        keeper=keeper,
        hand=hand,
        runner=runner,
        slots=slots or ThreadSlots(base.settings.slots),
        reaper=build_reaper(base),
        queues=queues,
    )
    return WorkerParts(worker, keeper, runner)


def _runner(
    base: Base, app: App | None, *, allow_commands: bool, aws: AwsClients | None
) -> TargetRunner:
    from dynsched.targets.runner import TargetRunner  # noqa: PLC0415

    return TargetRunner(
        app, allow_commands=allow_commands, clock=base.clock, aws=aws, region=base.region
    )


def _identity(
    base: Base, app: App | None, queues: Sequence[str], *, slots: Slots | None, commands: bool
) -> Identity:
    """Return what the session's row says of a worker."""
    from dynsched.services.session import this_process  # noqa: PLC0415
    from dynsched.services.slots import InlineSlots  # noqa: PLC0415

    return this_process(
        socket.gethostname(),
        slots=1 if isinstance(slots, InlineSlots) else base.settings.slots,
        queues=tuple(queues),
        handlers=app.handlers if app is not None else (),
        commands=commands,
    )


def build_message_worker(
    base: Base,
    app: App | None = None,
    *,
    allow_commands: bool = False,
    slots: Slots | None = None,
    figures: Figures | None = None,
    aws: AwsClients | None = None,
) -> MessageWorker:
    """Return a worker that is handed messages; without `slots` its handlers run on threads.

    Args:
        base: the store.
        app: the handlers; None for none.
        allow_commands: whether shell commands may be run.
        slots: where handlers run.
        figures: is told what the worker does, to count it.
        aws: clients for Lambda and SQS targets; None makes them when needed.
    """
    from dynsched.services.message_worker import MessageWorker  # noqa: PLC0415
    from dynsched.services.slots import ThreadSlots  # noqa: PLC0415

    return MessageWorker(
        base.store,
        clock=base.clock,
        rng=base.rng,
        settings=base.settings,
        runner=_runner(base, app, allow_commands=allow_commands, aws=aws),
        slots=slots or ThreadSlots(base.settings.slots),
        figures=figures,
    )
