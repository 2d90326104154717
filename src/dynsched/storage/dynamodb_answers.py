"""What DynamoDB's error answers mean in dynsched's errors.

Pure: works on the parsed answer of a request, so that each row of the mapping can be tested without
a client. A call without any answer is judged in `dynsched.storage.dynamodb`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dynsched.errors import (
    ClockSkewed,
    DynschedError,
    InvalidInput,
    NotInitialised,
    OutcomeUnknown,
    StoreError,
    Throttled,
    Unavailable,
)
from dynsched.storage.engine import Applied, Outcome

GUARD_CODES: Final = frozenset({"ConditionalCheckFailedException", "TransactionCanceledException"})
"""Refusals that are results: a guard failed, or a transaction was cancelled for its reasons."""
WRITE_VERBS: Final = frozenset({"put_item", "delete_item", "transact_write_items"})
"""The client's methods whose lost answer leaves a write unknown; table operations are repeated."""
INIT_MEND: Final = "run `dynsched init --store …` with this store's URL"

_THROTTLE_CODES: Final = frozenset(
    {
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "ReplicatedWriteConflictException",
        "RequestLimitExceeded",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        # A transaction holds the item for a moment; nothing of ours was written.
        "TransactionConflictException",
    }
)
_THROTTLE_REASONS: Final = frozenset(
    {"ProvisionedThroughputExceeded", "ThrottlingError", "TransactionConflict"}
)
_INPUT_REASONS: Final = frozenset({"ItemCollectionSizeLimitExceeded", "ValidationError"})
_SOON_CODES: Final = frozenset({"ContinuousBackupsUnavailableException"})
"""Of a table that was made a moment ago: the same call is taken a little later."""
_ACCESS_CODES: Final = frozenset(
    {
        "AccessDeniedException",
        "ExpiredTokenException",
        "IncompleteSignatureException",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
        "OptInRequired",
        "UnrecognizedClientException",
    }
)
_SCHEMA_MESSAGE: Final = re.compile(
    r"specified index|does not match the schema|missing the key|key schema element", re.IGNORECASE
)
_CLOCK_MESSAGE: Final = re.compile(r"signature (expired|not yet current)", re.IGNORECASE)


def error_code(answer: Mapping[str, Any]) -> str:
    """Return the error code of an answer, "" if it has none."""
    return str(answer.get("Error", {}).get("Code", ""))


def target(verb: str, request: Mapping[str, Any]) -> str:
    """Return a call in words: operation and tables.

    >>> target("put_item", {"TableName": "prod-runs"})
    'PutItem on prod-runs'
    """
    operation = verb.title().replace("_", "")
    return f"{operation} on {', '.join(table_names(request))}"


def table_names(request: Mapping[str, Any]) -> list[str]:
    """Return the names of the tables that a request is about, each once."""
    if "TableName" in request:
        return [request["TableName"]]
    if "RequestItems" in request:
        return list(request["RequestItems"])
    actions = [body for action in request["TransactItems"] for body in action.values()]
    return list(dict.fromkeys(body["TableName"] for body in actions))


def refusal(verb: str, request: Mapping[str, Any], answer: Mapping[str, Any]) -> DynschedError:
    """Return the error for an answer that is no result.

    Args:
        verb: the client's method.
        request: what it was given.
        answer: the parsed answer, with its Error and ResponseMetadata.
    """
    code = error_code(answer)
    where = target(verb, request)
    message = str(answer.get("Error", {}).get("Message", "")) or "without a message"
    if code in _THROTTLE_CODES:
        return Throttled(f"DynamoDB throttled {where}, nothing was written ({code}: {message})")
    if code == "ResourceNotFoundException":
        tables = ", ".join(table_names(request))
        return NotInitialised(f"DynamoDB has no table {tables} in this region: {INIT_MEND}")
    if code in _ACCESS_CODES:
        return _access_refusal(where, code, message)
    if code in {"ValidationException", "SerializationException"}:
        return _input_refusal(where, message)
    status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if status >= 500 or code in _SOON_CODES:
        return lost(verb, request, f"it answered {code}: {message}")
    return StoreError(f"DynamoDB refused {where} ({code}: {message})")


def lost(verb: str, request: Mapping[str, Any], reason: str) -> StoreError:
    """Return the error for a call that may have been carried out although it brought no result."""
    where = target(verb, request)
    if verb in WRITE_VERBS:
        return OutcomeUnknown(f"{where} may or may not have been applied: {reason}")
    return Unavailable(f"{where} brought no answer: {reason}")


def _access_refusal(where: str, code: str, message: str) -> StoreError:
    if _CLOCK_MESSAGE.search(message):
        return ClockSkewed(f"AWS refused {where}: this machine's clock is wrong ({message})")
    operation = where.split(maxsplit=1)[0]
    return StoreError(
        f"AWS refused {where} ({code}: {message}); use valid credentials of a role that allows"
        f" dynamodb:{operation} on the tables and their indexes"
    )


def _input_refusal(where: str, message: str) -> DynschedError:
    if "backfilling" in message:
        return Unavailable(f"{where} must wait until the index is built ({message})")
    if _SCHEMA_MESSAGE.search(message):
        return NotInitialised(
            f"{where} does not fit the table's keys ({message}): {INIT_MEND}, it names the"
            " difference"
        )
    return InvalidInput("request", f"DynamoDB refused {where}: {message}")


def cancellation(answer: Mapping[str, Any]) -> DynschedError:
    """Return the error for a transaction that was cancelled for another reason than a guard."""
    reasons = answer.get("CancellationReasons", [])
    codes = {reason.get("Code") for reason in reasons}
    texts = [f"{r.get('Code')}: {r['Message']}" for r in reasons if r.get("Message")]
    problem = "; ".join(dict.fromkeys(texts)) or str(answer.get("Error", {}).get("Message", ""))
    if not _THROTTLE_REASONS.isdisjoint(codes):
        return Throttled(f"DynamoDB cancelled a transaction, nothing was written ({problem})")
    if not _INPUT_REASONS.isdisjoint(codes):
        return InvalidInput("writes", f"DynamoDB refused the transaction: {problem}")
    return StoreError(f"DynamoDB cancelled a transaction, nothing was written ({problem})")


def settled(answers: Sequence[Outcome | DynschedError]) -> list[Outcome]:
    """Return the outcomes of independent writes, or raise the one error that is true of all.

    Raises:
        OutcomeUnknown: a write failed, and another was applied or may have been.
        DynschedError: writes failed and none was applied: the first failure that a repetition
            would not mend, else the first.
    """
    errors = [answer for answer in answers if isinstance(answer, DynschedError)]
    outcomes = [answer for answer in answers if not isinstance(answer, DynschedError)]
    if not errors:
        return outcomes
    written = any(isinstance(outcome, Applied) for outcome in outcomes)
    if written or any(isinstance(error, OutcomeUnknown) for error in errors):
        raise OutcomeUnknown(
            f"{len(errors)} of {len(answers)} writes failed, the others were answered: {errors[0]}"
        ) from errors[0]
    # False sorts first: what no repetition mends.
    raise min(errors, key=lambda error: isinstance(error, Throttled | Unavailable))
