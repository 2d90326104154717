"""The hand-off by Amazon SQS.

What cannot be sent is logged, once in a while, and forgotten: the rows are there, and the reaper
sends old ones again. So an outage of SQS costs each writer little time, and no run.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from dynsched.aws_client import make_client
from dynsched.domain.instants import Clock
from dynsched.domain.message import encode_message
from dynsched.errors import InvalidInput, StoreError, Throttled, Unavailable
from dynsched.storage.handoff import DELAY_MAX, MessageQueue, Notice

if TYPE_CHECKING:
    from types_boto3_sqs.client import SQSClient
    from types_boto3_sqs.type_defs import SendMessageBatchRequestEntryTypeDef

AttributeName: TypeAlias = Literal[
    "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"
]

log = logging.getLogger("dynsched.handoff")

BATCH: Final = 10
"""Messages of one call: SQS's limit."""
GROUP_MAX: Final = 128
POSTPONE_MAX_S: Final = 12 * 3_600 - 1_000
"""SQS hides a message for twelve hours in all since it was received, and a function may have had it
for a quarter of an hour already."""
SECOND: Final = timedelta(seconds=1)
CONNECT_TIMEOUT_S: Final = 1.0
READ_TIMEOUT_S: Final = 2.0
DEPTH: Final[tuple[AttributeName, ...]] = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
)
TRIES: Final = 2
"""How often an entry of a batch is sent that SQS could not take, of its own fault."""
FAILURES_MAX: Final = 3
"""Calls in a row that failed before the transport counts as down."""
DOWN_S: Final = 10.0
"""Seconds for which nothing is sent then, so that no writer waits for each of its messages."""
LOG_S: Final = 60.0
"""Seconds between two lines of the log about what was not sent."""

_REGION: Final = re.compile(
    r"(?:^|\.)(?:sqs(?:-fips)?\.([a-z0-9-]+)\.|([a-z0-9-]+)\.queue\.amazonaws\.)"
)
_AWS_HOST: Final = re.compile(r"\.(amazonaws\.com(\.cn)?|api\.aws)$")
_THROTTLES: Final = frozenset(
    {"RequestThrottled", "Throttling", "ThrottlingException", "OverLimit", "KmsThrottled"}
)
_ABSENT: Final = frozenset(
    {"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist", "NonExistentQueue"}
)

Failure = BotoCoreError | ClientError


class SqsHandOff:
    """A `HandOff` by standard queues, a client for each region that their URLs name.

    Args:
        clock: the source of time.
        region: for URLs that name none; None takes it from the environment.
        endpoint_url: another endpoint than AWS's, as of an emulator that is the store too. One of
            AWS's own is the store's alone, so it does not count here.
        client: a ready-made client for all queues, whatever their URLs name.
        max_workers: how many batches are in flight at once.

    Concurrency: any number of threads.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        region: str | None = None,
        endpoint_url: str | None = None,
        client: SQSClient | None = None,
        max_workers: int = 16,
    ) -> None:
        host = urlsplit(endpoint_url).hostname if endpoint_url else None
        self._clock = clock
        self._region = region
        self._endpoint_url = None if host and _AWS_HOST.search(host) else endpoint_url
        self._max_workers = max_workers
        self._client = client
        self._clients: dict[str | None, SQSClient] = {}
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self._outages: dict[str, Outage] = {}

    def reach(self) -> datetime:
        """Return the latest instant for which a message can be sent now: 15 minutes ahead."""
        return self._clock.now() + DELAY_MAX

    def send(self, queue: MessageQueue, notices: Sequence[Notice]) -> None:
        """Send a message for each notice, by tens; what fails is logged and not raised.

        Cost: a request for each ten.
        """
        batches = [notices[start : start + BATCH] for start in range(0, len(notices), BATCH)]
        if len(batches) == 1:
            self._send_batch(queue, batches[0])
        elif batches:
            list(self._threads().map(lambda batch: self._send_batch(queue, batch), batches))

    def depth(self, queue: MessageQueue) -> int:
        """Return about how many messages of a queue are visible or in flight. Cost: one request.

        Raises:
            StoreError: SQS did not answer, or refused.
        """
        answer = self._ask(
            queue.url,
            lambda sqs: sqs.get_queue_attributes(QueueUrl=queue.url, AttributeNames=[*DEPTH]),
        )
        found = answer.get("Attributes", {})
        return sum(int(found.get(name, 0)) for name in DEPTH)

    def postpone(self, queue_url: str, receipt: str, seconds: int) -> None:
        """Let a message that was received be visible again so many seconds from now.

        Raises:
            StoreError: SQS did not answer, or refused; the message comes back by itself.
        """
        timeout = min(max(seconds, 0), POSTPONE_MAX_S)
        self._ask(
            queue_url,
            lambda sqs: sqs.change_message_visibility(
                QueueUrl=queue_url, ReceiptHandle=receipt, VisibilityTimeout=timeout
            ),
        )

    def _send_batch(self, queue: MessageQueue, notices: Sequence[Notice]) -> None:
        outage = self._outage(queue.url)
        if not outage.may_try():
            outage.lost(len(notices), "SQS did not answer a moment ago")
            return
        now = self._clock.now()
        entries = [_entry(number, notice, now) for number, notice in enumerate(notices)]
        hopeless: list[Mapping[str, Any]] = []
        try:
            for _ in range(TRIES):
                refused = self._try_batch(queue.url, entries)
                hopeless += [entry for entry in refused if entry["SenderFault"]]
                again = {entry["Id"] for entry in refused if not entry["SenderFault"]}
                entries = [entry for entry in entries if entry["Id"] in again]
                if not entries:
                    break
        except (BotoCoreError, ClientError, StoreError, InvalidInput) as error:
            outage.failed(for_a_while=_mends_itself(error))
            outage.lost(len(entries) + len(hopeless), str(error))
            return
        outage.answered()
        if refused or hopeless:
            one = (hopeless or refused)[0]
            why = f"SQS refused them ({one['Code']}: {one.get('Message', '')})"
            outage.lost(len(entries) + len(hopeless), why)

    def _outage(self, url: str) -> Outage:
        with self._lock:
            if url not in self._outages:
                self._outages[url] = Outage(self._clock, url)
            return self._outages[url]

    def _try_batch(
        self, url: str, entries: list[SendMessageBatchRequestEntryTypeDef]
    ) -> list[Mapping[str, Any]]:
        """Send one batch; return the entries of it that were refused."""
        answer = self._client_of(url).send_message_batch(QueueUrl=url, Entries=entries)
        return list(answer.get("Failed", ()))

    def _ask(self, url: str, call: Callable[[SQSClient], Any]) -> Mapping[str, Any]:
        try:
            answer: Mapping[str, Any] = call(self._client_of(url))
        except (BotoCoreError, ClientError) as error:
            raise _refusal(url, error) from error
        except InvalidInput as error:
            # No fault of the caller's: a reaper whose environment names no region sweeps all else.
            raise StoreError(f"SQS cannot be asked for {url}: {error}") from error
        return answer or {}

    def _client_of(self, url: str) -> SQSClient:
        if self._client is not None:
            return self._client
        region = region_of(url) or self._region
        with self._lock:
            if region not in self._clients:
                self._clients[region] = _make_client(
                    region, self._endpoint_url, 2 * self._max_workers
                )
            return self._clients[region]

    def _threads(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._max_workers, "dynsched-sqs")
            return self._pool


class Outage:
    """What is known of a queue that fails: whether to try at all, and what was not sent.

    Args:
        clock: its monotonic seconds count.
        url: the queue's.
    """

    def __init__(self, clock: Clock, url: str) -> None:
        self._clock = clock
        self._url = url
        self._lock = threading.Lock()
        self._failures = 0
        self._closed_until = 0.0
        self._lost = 0
        self._told_at: float | None = None

    def may_try(self) -> bool:
        """Return whether a call is worth its time; while it is down, one now and then is."""
        with self._lock:
            if self._failures < FAILURES_MAX:
                return True
            now = self._clock.monotonic()
            if now < self._closed_until:
                return False
            self._closed_until = now + DOWN_S  # this caller tries; the others wait for it
            return True

    def failed(self, *, for_a_while: bool) -> None:
        """Note that a call failed; what is refused at once costs no writer any time."""
        with self._lock:
            self._failures = self._failures + 1 if for_a_while else 0
            self._closed_until = self._clock.monotonic() + DOWN_S

    def answered(self) -> None:
        """Note that a call was answered."""
        with self._lock:
            self._failures = 0

    def lost(self, count: int, why: str) -> None:
        """Count messages that were not sent, and say so once in a while."""
        with self._lock:
            self._lost += count
            now = self._clock.monotonic()
            if self._told_at is not None and now - self._told_at < LOG_S:
                return
            self._told_at, total, self._lost = now, self._lost, 0
        log.warning(
            "%d messages were not sent to %s: %s; their runs are ready, can be pulled, and the"
            " reaper sends their messages again",
            total,
            self._url,
            why,
        )


def region_of(url: str) -> str | None:
    """Return the region that a queue's URL names, if it does.

    >>> region_of("https://sqs.eu-west-1.amazonaws.com/123456789012/jobs")
    'eu-west-1'
    >>> region_of("http://127.0.0.1:4566/000000000000/jobs")
    """
    found = _REGION.search(urlsplit(url).hostname or "")
    return None if found is None else found[1] or found[2]


def group_of(share: str) -> str:
    """Return the message group of a share key, in the characters and the length that SQS allows.

    >>> group_of("acme+0123456789abc"), group_of("a b"), len(group_of("a" * 500)), group_of("")
    ('acme+0123456789abc', 'a_b', 128, '-')
    """
    return "".join([letter if "!" <= letter <= "~" else "_" for letter in share[:GROUP_MAX]]) or "-"


def _entry(number: int, notice: Notice, now: datetime) -> SendMessageBatchRequestEntryTypeDef:
    wait = min(max(notice.available_at - now, timedelta(0)), DELAY_MAX)
    return {
        "Id": str(number),
        "MessageBody": encode_message(notice.run_id),
        "DelaySeconds": -(-wait // SECOND),  # rounded up: an early message is a visit for nothing
        "MessageGroupId": group_of(notice.share),
    }


def _make_client(region: str | None, endpoint_url: str | None, pool: int) -> SQSClient:
    client: SQSClient = make_client(
        "sqs",
        region,
        endpoint_url,
        Config(
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=READ_TIMEOUT_S,
            # A doubled message does no harm, so the SDK may repeat what was not answered.
            retries={"mode": "standard", "total_max_attempts": 2},
            max_pool_connections=pool,
        ),
    )
    return client


def _mends_itself(error: Exception) -> bool:
    """Return whether a call failed by an outage, so that the next one will wait in vain too."""
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return status >= 500 or error.response.get("Error", {}).get("Code", "") in _THROTTLES
    return isinstance(error, BotoCoreError)


def _refusal(url: str, error: Failure) -> StoreError:
    """Return what a failed call means."""
    if not isinstance(error, ClientError):
        return Unavailable(f"SQS did not answer for {url}: {error}")
    code = error.response.get("Error", {}).get("Code", "")
    if code in _THROTTLES:
        return Throttled(f"SQS throttled {url}: {error}")
    if code in _ABSENT:
        return StoreError(f"there is no queue {url}: `dynsched handoff list` shows what is used")
    if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= 500:
        return Unavailable(f"SQS failed for {url}: {error}")
    return StoreError(f"SQS refused a call for {url}: {error}")
