"""Access: who acts, through which door, and what that role may do.

One table says which role each change needs. `dynsched.services.gate` asks it before every change,
so a console that forgets to hide a key changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from dynsched.errors import Forbidden

REPLAY_LIMIT = 1_000


class Role(StrEnum):
    """What an actor is trusted with; each role may do all that the ones before it may."""

    VIEWER = "viewer"  # looks, changes nothing
    OPERATOR = "operator"  # pauses, cancels, runs, replays up to a limit
    ADMIN = "admin"  # defines jobs, discards, edits payloads, sets caps, sees what is masked


class Action(StrEnum):
    """Everything that changes a store, and the one look that is a right of its own."""

    JOB_CREATE = "job.create"
    JOB_EDIT = "job.edit"
    JOB_DELETE = "job.delete"
    JOB_PAUSE = "job.pause"
    JOB_RESUME = "job.resume"
    JOB_RUN = "job.run"
    RUN_ENQUEUE = "run.enqueue"
    RUN_CANCEL = "run.cancel"
    RUN_ANSWER = "run.answer"  # by the token of its attempt
    RUN_END = "run.end"  # by hand
    RUN_REPLAY = "run.replay"
    RUN_REPLAY_AS_NEW = "run.replay-as-new"
    RUN_REPLAY_EDITED = "run.replay-edited"
    RUN_DISCARD = "run.discard"
    RUN_RESTORE = "run.restore"
    BATCH_PREVIEW = "batch.preview"
    BATCH_CONFIRM = "batch.confirm"
    BATCH_PAUSE = "batch.pause"
    BATCH_RESUME = "batch.resume"
    BATCH_ABORT = "batch.abort"
    BATCH_PACE = "batch.pace"
    BATCH_FINISH = "batch.finish"  # by the stepper, for whom the batch was confirmed by
    STORE_INIT = "store.init"
    STORE_RESIZE = "store.resize"
    STORE_HANDOFF = "store.handoff"
    STORE_SERVE = "store.serve"
    TENANT_SET = "tenant.set"
    PAYLOAD_UNMASK = "payload.unmask"
    TOKEN_CREATE = "token.create"  # noqa: S105  # a name, no password
    TOKEN_REVOKE = "token.revoke"  # noqa: S105


ADMIN_ONLY = frozenset(
    {
        Action.JOB_CREATE,
        Action.JOB_EDIT,
        Action.JOB_DELETE,
        Action.RUN_DISCARD,
        Action.RUN_REPLAY_AS_NEW,
        Action.RUN_REPLAY_EDITED,
        Action.STORE_INIT,
        Action.STORE_RESIZE,
        Action.STORE_HANDOFF,
        Action.TENANT_SET,
        Action.PAYLOAD_UNMASK,
        Action.TOKEN_CREATE,
        Action.TOKEN_REVOKE,
    }
)
WHOLE_STORE = frozenset(
    {
        Action.STORE_INIT,
        Action.STORE_RESIZE,
        Action.STORE_HANDOFF,
        Action.STORE_SERVE,
        Action.TENANT_SET,
        Action.TOKEN_CREATE,
        Action.TOKEN_REVOKE,
    }
)
"""What concerns the neighbours too: no actor of one tenant only may do it, its own cap included."""
NEEDED: Mapping[Action, Role] = {
    action: Role.ADMIN if action in ADMIN_ONLY else Role.OPERATOR for action in Action
}
"""The role that each change needs."""
RANK = {role: rank for rank, role in enumerate(Role)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Who acts, and what that actor may do.

    Attributes:
        actor: who, as the audit shall name it.
        role: what the actor is trusted with.
        read_only: refuse every change whatever the role; a mode of the whole program.
        via: the door: `program`, `cli`, `tui`, `web`, `api`.
        replay_limit: runs that one batch of an operator may hold; an admin has no limit.
        tenant: the one tenant that the actor may see and change; None is all.
    """

    actor: str
    role: Role = Role.ADMIN
    read_only: bool = False
    via: str = "program"
    replay_limit: int = REPLAY_LIMIT
    tenant: str | None = None

    def why_not(self, action: Action, *, tenant: str | None = None, count: int = 1) -> str:
        """Return why this actor may not do something; empty if it may.

        Args:
            action: what.
            tenant: whose job or run it is; None if that is not known or it is the store's own.
            count: runs that it replays.
        """
        if self.read_only:
            return "this is read-only mode"
        needed = NEEDED[action]
        if RANK[self.role] < RANK[needed]:
            return f"{self.actor} is {self.role.value}, and {action.value} needs {needed.value}"
        if self.tenant is not None and (tenant != self.tenant or action in WHOLE_STORE):
            return f"{self.actor} may change tenant {self.tenant} only"
        if self.role is not Role.ADMIN and count > self.replay_limit:
            return (
                f"{count:,} runs are more than the limit of {self.replay_limit:,} for {self.actor}"
            )
        return ""

    def of_any_tenant(self) -> Access:
        """Return the same actor without the bound to one tenant, for what is asked before it."""
        return replace(self, tenant=None)

    def check(self, action: Action, *, tenant: str | None = None, count: int = 1) -> None:
        """Refuse what this actor may not do.

        Raises:
            Forbidden: the role, the limit, the tenant or read-only mode forbids it.
        """
        refusal = self.why_not(action, tenant=tenant, count=count)
        if refusal:
            raise Forbidden(f"{action.value} is refused: {refusal}")
