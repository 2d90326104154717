"""Placement: under which keys and in which index partition each row lies.

Minute buckets are sharded by job, ready rows lie in lanes by run. The counts are data with a
from-minute (`Topology`), so that they can be changed while the system runs: writers use the entry
of the minute, readers the largest count under which entries may still lie.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from dynsched.domain.instants import minute_of, to_text
from dynsched.domain.job import Job, Priority
from dynsched.domain.names import bucket_of
from dynsched.domain.run import FIXED_SESSION, Run, RunState
from dynsched.storage.engine import Key, Table
from dynsched.storage.handoff import MessageQueue

IndexEntry = tuple[str, str]
JOB_SORT = "job"
NAMES = "name#"
SESSIONS = "sessions"
CURSORS = "cursors"
TENANTS = "tenants"
QUEUES = "queues"
MINUTES = "minutes"
BEATS = "beats"
BATCHES = "batches"
STEPPING = "stepping"
TOKENS = "tokens"
REMIND_SORT = "remind"  # behind the attempts' numbers and the progress
REMINDERS = "~"
"""What a reminder's index key begins with: it sorts behind every instant, so behind all retries."""


@dataclass(frozen=True, slots=True)
class MapEntry:
    """Counts in force from a minute on.

    Attributes:
        from_minute: first minute bucket that is written under these counts.
        shards: parts of each minute bucket (`due`, `retry`, and `leased` where a lease has a fixed
            end), of `dead` and of `ended`.
        lanes: parts of each queue's ready rows.
        spread: base partitions for the runs of one job that are not cron runs.
    """

    from_minute: int
    shards: int = 1
    lanes: int = 2
    spread: int = 1


@dataclass(frozen=True, slots=True)
class Topology:
    """The shard and lane map, and the settings that all processes of a store must share.

    Attributes:
        entries: oldest first; entries that nothing lies under any more are gone.
        look_ahead: how far ahead occurrences get their rows.
        keep_ended: runs that ended otherwise than dead are found by time too (1 unit a run).
        version: the stored version of the map row.
        message_queues: where messages about ready runs go; none if all runs are pulled.
    """

    entries: tuple[MapEntry, ...] = (MapEntry(0),)
    look_ahead: timedelta = timedelta(seconds=30)
    keep_ended: bool = True
    version: int = 0
    message_queues: tuple[MessageQueue, ...] = ()

    def writing(self, minute: int) -> MapEntry:
        """Return the counts to write a minute's entries under."""
        for entry in reversed(self.entries):
            if entry.from_minute <= minute:
                return entry
        return self.entries[0]

    def newest(self) -> Topology:
        """Return the map with its newest entry only: how everything is written from now on."""
        return replace(self, entries=self.entries[-1:])

    def message_queue(self, queue: str, priority: Priority) -> MessageQueue | None:
        """Return where messages about a queue's runs of a priority go; None if they are pulled."""
        for one in self.message_queues:
            if one.queue == queue and one.priority is priority:
                return one
        return None

    @property
    def shards(self) -> int:
        """Return how many shards a reader must look at."""
        return max(entry.shards for entry in self.entries)

    @property
    def lanes(self) -> int:
        """Return how many lanes a reader must look at."""
        return max(entry.lanes for entry in self.entries)

    @property
    def spread(self) -> int:
        """Return how many spread partitions of a job a reader must look at."""
        return max(entry.spread for entry in self.entries)


def job_key(job_id: str) -> Key:
    """Return where a job's row lies."""
    return Key(Table.JOBS, job_id, JOB_SORT)


def part_key(job_id: str, digest: str) -> Key:
    """Return where a large payload or target of a job lies; its address is its hash."""
    return Key(Table.JOBS, job_id, f"part#{digest}")


def span_key(job_id: str, last: datetime) -> Key:
    """Return where a skipped span that left the job row lies."""
    return Key(Table.JOBS, job_id, f"span#{to_text(last)}")


def generation_key(job_id: str, effective_from: datetime) -> Key:
    """Return where a generation that left the job row lies."""
    return Key(Table.JOBS, job_id, f"gen#{to_text(effective_from)}")


def name_key(tenant: str, name: str) -> Key:
    """Return where the guard of a job's name lies."""
    return Key(Table.JOBS, f"{NAMES}{tenant}", name)


def attempts_partition(run_id: str) -> str:
    """Return the partition of a run's attempt rows."""
    return f"attempts#{run_id}"


def session_key(session: str) -> Key:
    """Return where a worker session lies; all sessions share a partition, read strongly."""
    return Key(Table.CONTROL, SESSIONS, session)


def cursor_key(kind: str, shard: int) -> Key:
    """Return where a dispatcher's cursor over minutes lies."""
    return Key(Table.CONTROL, CURSORS, f"{kind}#{shard:04}")


def map_key() -> Key:
    """Return where the shard and lane map lies."""
    return Key(Table.CONTROL, "map", "current")


def tenant_key(tenant: str) -> Key:
    """Return where a tenant's settings lie."""
    return Key(Table.CONTROL, TENANTS, tenant)


def queue_key(queue: str) -> Key:
    """Return where it is noted that a queue is in use."""
    return Key(Table.CONTROL, QUEUES, queue)


def submission_key(job_id: str, key: str) -> Key:
    """Return where an enqueue's own idempotency key is guarded."""
    return Key(Table.CONTROL, f"submit#{job_id}", key)


def overlap_permit_key(job_id: str) -> Key:
    """Return where the one permit of a job that forbids overlap lies."""
    return Key(Table.CONTROL, f"permit#j:{job_id}", "0000")


def tenant_permit_key(tenant: str, number: int) -> Key:
    """Return where one of a capped tenant's permits lies."""
    return Key(Table.CONTROL, f"permit#t:{tenant}", f"{number:04}")


def freed_mark_key(tenant: str) -> Key:
    """Return where the hint lies which of a tenant's permits was freed last."""
    return Key(Table.CONTROL, f"permit#t:{tenant}", "freed")


def batch_key(batch_id: str) -> Key:
    """Return where a replay batch's row lies; ids sort by the time of their making."""
    return Key(Table.CONTROL, BATCHES, batch_id)


def stepping_key(name: str) -> Key:
    """Return where it is noted that a batch has something for the stepper to do."""
    return Key(Table.CONTROL, STEPPING, name)


def entries_key(batch_id: str, chunk: int) -> Key:
    """Return where a chunk of a batch's frozen entries lies.

    Each has a partition of its own: a large batch is written faster than one partition takes it.
    """
    return Key(Table.CONTROL, f"batch#{batch_id}#{chunk:04}", "entries")


def marks_partition(batch_id: str) -> str:
    """Return the partition of a batch's marks, one row for each chunk."""
    return f"batch#{batch_id}"


def marks_key(batch_id: str, chunk: int) -> Key:
    """Return where the marks of a chunk lie."""
    return Key(Table.CONTROL, marks_partition(batch_id), f"{chunk:04}")


def due_partition(minute: int, shard: int) -> str:
    """Return the index partition of jobs due in a minute."""
    return f"due#{minute}#{shard}"


def retry_partition(minute: int, shard: int) -> str:
    """Return the index partition of failed runs whose back-off ends in a minute."""
    return f"retry#{minute}#{shard}"


def ready_partition(queue: str, priority: Priority, lane: int) -> str:
    """Return the index partition of claimable runs."""
    return f"ready#{queue}#{priority.value}#{lane}"


def leased_partition(session: str) -> str:
    """Return the index partition of the runs that a session holds."""
    return f"leased#{session}"


def fixed_partition(minute: int, shard: int) -> str:
    """Return the index partition of the runs whose leases have a fixed end, in a minute."""
    return leased_partition(f"{FIXED_SESSION}{minute}#{shard}")


def dead_partition(shard: int) -> str:
    """Return the index partition of dead runs."""
    return f"dead#{shard}"


def hidden_partition(shard: int) -> str:
    """Return the index partition of discarded dead runs."""
    return f"discarded#{shard}"


def ended_partition(hour: int, shard: int) -> str:
    """Return the index partition of runs that ended in an hour otherwise than dead."""
    return f"ended#{hour}#{shard}"


def job_index(job: Job, topology: Topology) -> IndexEntry | None:
    """Return a job's index entry: in its next occurrence's minute, while it is due."""
    if not job.due or job.next_at is None:
        return None
    minute = minute_of(job.next_at)
    shard = bucket_of(job.job_id, topology.writing(minute).shards)
    return due_partition(minute, shard), f"{to_text(job.next_at)}#{job.job_id}"


def run_index(run: Run, topology: Topology) -> IndexEntry | None:
    """Return a run's index entry, by its state."""
    run_id = run.run_id
    if run.state is RunState.LEASED:
        return _leased_index(run, topology, run_id)
    if run.state is RunState.READY:
        minute = minute_of(run.available_at)
        lane = bucket_of(run_id, topology.writing(minute).lanes)
        return ready_partition(run.queue, run.priority, lane), ready_sort(run)
    if run.state is RunState.FAILED:
        minute = minute_of(run.available_at)
        shard = bucket_of(run.job_id, topology.writing(minute).shards)
        return retry_partition(minute, shard), f"{to_text(run.available_at)}#{run_id}"
    return _ended_index(run, topology, run_id)


def _leased_index(run: Run, topology: Topology, run_id: str) -> IndexEntry:
    """Return where a leased run lies: under its session, or in the minute in which its lease ends.

    There they sort by their ends, so that looking for those that are over reads no others.
    """
    if run.lease_ends_at is None:
        return leased_partition(run.session or ""), run_id
    minute = minute_of(run.lease_ends_at)
    shard = bucket_of(run_id, topology.writing(minute).shards)
    return fixed_partition(minute, shard), f"{to_text(run.lease_ends_at)}#{run_id}"


def ready_sort(run: Run) -> str:
    """Return a ready run's sort key: its share key, then its time."""
    return f"{run.share}#{to_text(run.available_at)}#{run.run_id}"


def _ended_index(run: Run, topology: Topology, run_id: str) -> IndexEntry | None:
    if run.ended_at is None:
        return None
    minute = minute_of(run.ended_at)
    shard = bucket_of(run_id, topology.writing(minute).shards)
    if run.state is RunState.DEAD:
        partition = hidden_partition(shard) if run.hidden else dead_partition(shard)
        return partition, f"{run.signature or '0' * 16}#{to_text(run.ended_at)}#{run_id}"
    if not topology.keep_ended:
        return None
    return ended_partition(minute // 60, shard), f"{to_text(run.ended_at)}#{run_id}"


def after_share(share: str) -> str:
    """Return a sort key behind all rows of one share key, before the next share key's rows.

    >>> "acme#2026" < after_share("acme") < "acme+job#2026" < "acme-eu#2026"
    True
    """
    return share + "$"


def after_tenant(share: str) -> str:
    """Return a sort key behind all rows of a share key's tenant, its shared jobs included.

    >>> "acme+job#2026" < after_tenant("acme+job") < "acme-eu#2026"
    True
    """
    return share.partition("+")[0] + ","


def history_partitions(job_id: str, topology: Topology) -> Iterable[str]:
    """Return the base partitions in which a job's runs may lie."""
    yield job_id
    for number in range(topology.spread):
        yield f"{job_id}#{number}"
