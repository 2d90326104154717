"""The gate: what holds for every verb that changes a store, found by reflection."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from dynsched.domain.access import ADMIN_ONLY, WHOLE_STORE, Access, Role
from dynsched.domain.audit import REASON_MAX, AuditOutcome
from dynsched.errors import DynschedError, Forbidden, InvalidInput, StoreError, Unavailable
from dynsched.services.gate import note
from dynsched.storage.engine import Replace
from dynsched.testing.faults import Call as EngineCall
from dynsched.testing.faults import Crash, Fault, FaultyEngine
from tests.unit.verb_calls import CALLS, LOOKS, REASON, TENANT, Scene, verbs

ADMIN = Access(actor="ann", via="cli")
OPERATOR = Access(actor="bob", role=Role.OPERATOR, via="web")
AUDITED = sorted(name for name, verb in verbs().items() if getattr(verb, "audited", True))
FAILING = sorted(name for name in AUDITED if CALLS[name].fail is not None)

each_verb = pytest.mark.parametrize("name", sorted(CALLS))
each_audited = pytest.mark.parametrize("name", AUDITED)


@pytest.fixture
def scene() -> Scene:
    """Return a store with something for every verb."""
    return Scene()


def begins(call: EngineCall) -> bool:
    """Return whether a call to the engine begins an audit entry."""
    return _audits(call) and not completes(call)


def completes(call: EngineCall) -> bool:
    """Return whether a call to the engine completes an audit entry."""
    return _audits(call) and any(isinstance(write, Replace) for write in call.writes)


def _audits(call: EngineCall) -> bool:
    return any(write.key.pk.startswith("audit#") for write in call.writes)


def fault_at(which: Callable[[EngineCall], bool], fault: Fault) -> Callable[[EngineCall], Fault]:
    """Return a plan that fails at each call of a kind."""
    return lambda call: fault if which(call) else Fault.NONE


def refused(scene: Scene, name: str, access: Access) -> None:
    """Check that a verb is refused and writes nothing but, out of read-only mode, its refusal."""
    before, audit = scene.rows(), len(scene.audit())
    with pytest.raises(Forbidden):
        CALLS[name].make(scene.operations(access), scene)
    assert scene.rows() == before
    if access.read_only or name not in AUDITED:
        assert len(scene.audit()) == audit
        return
    entry = scene.audit()[0]
    assert len(scene.audit()) == audit + 1
    assert (entry.outcome, entry.actor) == (AuditOutcome.REFUSED, access.actor)
    assert access.actor in entry.note


def test_every_public_method_is_a_marked_verb_or_a_known_reader() -> None:
    """A new verb that is not marked, or has no call here, fails this test."""
    found = verbs()
    assert sorted(found) == sorted(CALLS)
    assert [name for name, verb in found.items() if not hasattr(verb, "action")] == []


@each_verb
def test_every_verb_is_refused_in_read_only_mode(scene: Scene, name: str) -> None:
    """Whatever the role; not even the refusal is written."""
    refused(scene, name, Access(actor="ann", read_only=True))


@each_verb
def test_every_verb_is_refused_to_a_viewer(scene: Scene, name: str) -> None:
    """A viewer looks and changes nothing."""
    refused(scene, name, Access(actor="vic", role=Role.VIEWER))


@each_verb
def test_what_needs_an_admin_is_refused_to_an_operator_and_the_rest_is_not(
    scene: Scene, name: str
) -> None:
    """By the one table of the domain."""
    if verbs()[name].action in ADMIN_ONLY:
        refused(scene, name, OPERATOR)
    else:
        CALLS[name].make(scene.operations(OPERATOR), scene)


@each_verb
def test_every_verb_is_refused_across_tenants(scene: Scene, name: str) -> None:
    """An admin of one tenant has no hand in another's jobs and runs."""
    refused(scene, name, Access(actor="tom", tenant="globex"))


@each_verb
def test_an_actor_of_one_tenant_may_change_what_is_its_own_only(scene: Scene, name: str) -> None:
    """Caps and counts concern the neighbours, so they are nobody's own."""
    access = Access(actor="tom", tenant=TENANT)
    if verbs()[name].action in WHOLE_STORE:
        refused(scene, name, access)
    else:
        CALLS[name].make(scene.operations(access), scene)


@each_audited
def test_every_change_has_an_entry_that_says_who_what_why_and_how_it_ended(
    scene: Scene, name: str
) -> None:
    """It is found by its day and by its target."""
    answer = CALLS[name].make(scene.operations(ADMIN), scene)
    entry = scene.audit()[0]
    target = CALLS[name].target(scene, answer)
    assert (entry.actor, entry.role, entry.via) == ("ann", Role.ADMIN, "cli")
    assert (entry.action, entry.target) == (verbs()[name].action, target)
    assert (entry.reason, entry.outcome) == (REASON, AuditOutcome.DONE)
    assert entry.tenant == ("" if target == "store" or target.startswith("token:") else TENANT)
    assert entry.note
    assert scene.audit_of(target)[0] == entry


@pytest.mark.parametrize("name", FAILING)
def test_a_change_that_fails_has_an_entry_with_the_errors_sentence(scene: Scene, name: str) -> None:
    """What was tried is worth knowing; no other row was touched."""
    before, fail = scene.rows(), CALLS[name].fail
    assert fail is not None
    with pytest.raises(DynschedError) as caught:
        fail(scene.operations(ADMIN), scene)
    entry = scene.audit()[0]
    assert (entry.outcome, entry.note) == (AuditOutcome.FAILED, str(caught.value))
    assert scene.rows() == before


@each_audited
def test_a_crash_before_the_change_leaves_an_entry_that_says_begun(scene: Scene, name: str) -> None:
    """Whoever reads it looks whether the change was made; here it was not."""
    before = scene.rows()
    engine = FaultyEngine(scene.engine, fault_at(begins, Fault.CRASH_AFTER))
    with pytest.raises(Crash):
        CALLS[name].make(scene.operations(ADMIN, engine), scene)
    entry = scene.audit()[0]
    assert (entry.actor, entry.reason, entry.outcome) == ("ann", REASON, AuditOutcome.BEGUN)
    assert scene.rows() == before


@each_audited
def test_a_crash_after_the_change_leaves_an_entry_that_says_begun(scene: Scene, name: str) -> None:
    """The change is there and so is who made it."""
    before = scene.rows()
    engine = FaultyEngine(scene.engine, fault_at(completes, Fault.CRASH_BEFORE))
    with pytest.raises(Crash):
        CALLS[name].make(scene.operations(ADMIN, engine), scene)
    entry = scene.audit()[0]
    assert (entry.actor, entry.reason, entry.outcome) == ("ann", REASON, AuditOutcome.BEGUN)
    assert (scene.rows() == before) == (name in LOOKS)


@each_audited
def test_no_change_is_made_when_its_entry_cannot_be_written(scene: Scene, name: str) -> None:
    """The caller is told so in one sentence."""
    before = scene.rows(audit=True)
    engine = FaultyEngine(scene.engine, fault_at(begins, Fault.UNAVAILABLE))
    with pytest.raises(StoreError, match="nothing was changed, as the audit entry"):
        CALLS[name].make(scene.operations(ADMIN, engine), scene)
    assert scene.rows(audit=True) == before


def test_a_change_whose_entry_cannot_be_completed_stands_and_the_log_says_so(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    """An error would tell the caller that nothing was changed."""
    engine = FaultyEngine(scene.engine, fault_at(completes, Fault.UNAVAILABLE))
    with caplog.at_level(logging.ERROR, "dynsched.audit"):
        run = CALLS["cancel"].make(scene.operations(ADMIN, engine), scene)
    assert run.terminal
    assert scene.audit()[0].outcome is AuditOutcome.BEGUN
    assert "run.cancel" in caplog.text


def test_a_store_that_fails_under_a_verb_leaves_the_entry_as_begun(scene: Scene) -> None:
    """Nobody knows how much of the change was made, and the entry says that."""
    faulty = fault_at(lambda call: bool(call.writes) and not _audits(call), Fault.UNAVAILABLE)
    with pytest.raises(Unavailable):
        CALLS["cancel"].make(scene.operations(ADMIN, FaultyEngine(scene.engine, faulty)), scene)
    entry = scene.audit()[0]
    assert entry.outcome is AuditOutcome.BEGUN
    assert "may have been made or not" in entry.note


def test_programs_that_enqueue_leave_no_entries(scene: Scene) -> None:
    """The runs' rows are their record; an entry would cost as much again."""
    audit = scene.audit()
    CALLS["enqueue"].make(scene.operations(ADMIN), scene)
    CALLS["enqueue_many"].make(scene.operations(ADMIN), scene)
    assert scene.audit() == audit


@pytest.mark.parametrize("reason", ["a\nb", "a\x1b[31m", "\u202eabc", "x" * (REASON_MAX + 1)])
def test_a_reason_that_would_not_show_as_it_is_changes_nothing(scene: Scene, reason: str) -> None:
    """Neither the entry nor the run is written."""
    before = scene.rows(audit=True)
    with pytest.raises(InvalidInput, match="reason"):
        scene.owner.cancel(scene.ready.run_id, reason=reason)
    assert scene.rows(audit=True) == before


def test_an_actor_with_control_characters_is_written_down_without_them(scene: Scene) -> None:
    """Names come from headers and logins, and are shown on terminals."""
    scene.operations(Access(actor="ann\x1b[2J\nroot")).cancel(scene.ready.run_id)
    assert scene.audit()[0].actor == "ann?[2J root"


def test_what_a_failed_change_says_of_a_secret_is_masked(scene: Scene) -> None:
    """An error's sentence may quote what was typed."""
    with pytest.raises(InvalidInput):
        scene.owner.edit(scene.active.job_id, queue="password=hush")
    assert "hush" not in scene.audit()[0].note


def test_an_unknown_thing_is_refused_to_a_viewer_before_it_is_looked_for(scene: Scene) -> None:
    """A viewer's attempt on what is not there is written down under the store."""
    viewer = scene.operations(Access(actor="vic", role=Role.VIEWER))
    with pytest.raises(Forbidden):
        viewer.cancel("no run")
    assert scene.audit()[0].target == "store"


def test_a_note_outside_a_verb_is_dropped_without_an_error() -> None:
    """Code that verbs share may note what it does, whoever calls it."""
    note("nobody listens")
