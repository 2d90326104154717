"""Threads of which exactly one runs at a time, and a seed decides which: the baton.

An actor is a thread of a simulated process. It runs until it pauses; then the next one is chosen
by chance among those that may run. Time passes by pauses only. So one seed is one history.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from dynsched.testing.faults import Crash

Condition = Callable[[], bool]


class Killed(BaseException):  # a process that dies runs no handler of exceptions
    """The actor's process is dead."""


@dataclass(eq=False, slots=True)
class Life:
    """A simulated process: it lives, it may be frozen, and it dies.

    Attributes:
        frozen_until_s: none of its actors runs before.
        dead: all of its actors end where they are.
    """

    name: str
    frozen_until_s: float = 0.0
    dead: bool = False


@dataclass(eq=False, slots=True)
class Actor:
    """One thread.

    Attributes:
        wake_s: when it may go on.
        until: it may go on earlier once this is true.
        gate: locked while it does not run.
    """

    life: Life
    wake_s: float
    until: Condition | None = None
    gate: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))


class Baton:
    """Hands the right to run from actor to actor.

    Attributes:
        now_s: simulated seconds since the beginning.
        failures: what actors raised that none should raise.
    """

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.now_s = 0.0
        self.failures: list[str] = []
        self._end_s = 0.0
        self._actors: list[Actor] = []
        self._current: Actor | None = None
        self._main = threading.Semaphore(0)

    def spawn(self, life: Life, work: Callable[[], None], *, at_once: bool = False) -> None:
        """Make an actor; `at_once` lets it run before the one that makes it goes on."""
        actor = Actor(life, self.now_s)
        self._actors.append(actor)
        threading.Thread(target=self._live, args=(actor, work), daemon=True).start()
        if at_once:
            self._hand_to(actor)

    def pause(self, seconds: float = 0.0, until: Condition | None = None) -> None:
        """Let others run, for so many seconds at least, or until something is true.

        Raises:
            Killed: the actor's process died meanwhile.
        """
        me = self._current
        assert me is not None, "only actors pause"
        me.wake_s, me.until = self.now_s + seconds, until
        self._hand_to(self._next())

    def run(self, seconds: float) -> None:
        """Let actors run for so long; called from outside of them."""
        self._end_s = self.now_s + seconds
        following = self._next()
        if following is not None:
            self._current = following
            following.gate.release()
            self._main.acquire()

    def kill(self, life: Life) -> None:
        """Let a process die; each of its actors ends at its next step."""
        life.dead = True

    def end(self) -> None:
        """Let every process die, and wait until all actors have ended."""
        for actor in self._actors:
            actor.life.dead = True
        self.run(1.0)

    def _live(self, actor: Actor, work: Callable[[], None]) -> None:
        actor.gate.acquire()
        try:
            if not actor.life.dead:
                work()
        except (Killed, Crash):
            pass
        except BaseException as error:  # noqa: BLE001  the simulation reports it with its seed
            self.failures.append(f"{actor.life.name} raised {error!r}")
        self._actors.remove(actor)
        self._hand_to(self._next(), leaving=True)

    def _hand_to(self, following: Actor | None, *, leaving: bool = False) -> None:
        me = self._current
        if following is not me or leaving:
            self._current = following
            (self._main if following is None else following.gate).release()
            if leaving:
                return
            assert me is not None
            me.gate.acquire()
        if me is not None and me.life.dead:
            raise Killed

    def _next(self) -> Actor | None:
        """Choose who runs next, None if it is the time to stop; time passes if nobody may run."""
        while self._actors:
            ready = [actor for actor in self._actors if self._may_run(actor)]
            if ready:
                return self.rng.choice(ready)
            wake_s = min(max(actor.wake_s, actor.life.frozen_until_s) for actor in self._actors)
            if wake_s >= self._end_s:
                self.now_s = self._end_s
                return None
            self.now_s = wake_s
        return None

    def _may_run(self, actor: Actor) -> bool:
        if actor.life.dead:
            return True
        if actor.life.frozen_until_s > self.now_s:
            return False
        return actor.wake_s <= self.now_s or (actor.until is not None and actor.until())
