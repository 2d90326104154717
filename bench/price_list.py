"""AWS's public list prices that the arithmetic of `docs/capacity.md` uses.

Nobody read them off a bill: each is the price of us-east-1 as public texts quoted it in the month
that is named. Before you rely on one, look at its page.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

REGION: Final = "us-east-1"
MILLION: Final = 1_000_000
_SITE: Final = "aws.amazon.com/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """One list price.

    Attributes:
        what: what is sold.
        usd: US dollars for `per` of it.
        per: how much that is.
        unit: what is counted.
        page: where to check it, below the provider's site.
        known: the month in which it was quoted so.
        free: how much of it an account has free each month.
    """

    what: str
    usd: float
    per: int
    unit: str
    page: str
    known: str
    free: int = 0

    def of(self, amount: float) -> float:
        """Return US dollars for so many units."""
        return amount * self.usd / self.per

    @property
    def url(self) -> str:
        """Return the address of the price page."""
        return f"https://{_SITE}{self.page}/pricing/"


def _price(what: str, usd: float, unit: str, where: str, *, per: int = 1, free: int = 0) -> Price:
    page, _, known = where.partition(" ")
    return Price(what=what, usd=usd, per=per, unit=unit, page=page, known=known, free=free)


PRICES: Final = MappingProxyType({
    "write": _price("DynamoDB, on demand", 0.625, "write units", "dynamodb 2024-11", per=MILLION),
    "read": _price("DynamoDB, on demand", 0.125, "read units", "dynamodb 2024-11", per=MILLION),
    "storage": _price("DynamoDB storage", 0.25, "GB and month", "dynamodb 2024-11", free=25),
    "pitr": _price("DynamoDB point-in-time recovery", 0.20, "GB and month", "dynamodb 2024-11"),
    "sqs": _price("SQS", 0.40, "requests", "sqs 2026-03", per=MILLION, free=MILLION),
    "fair": _price(
        "SQS, on top where messages have a group", 0.10, "requests", "sqs 2026-03", per=MILLION
    ),
    "invoke": _price("Lambda", 0.20, "requests", "lambda 2026-05", per=MILLION, free=MILLION),
    "arm": _price("Lambda, arm64", 0.0000133334, "GB-seconds", "lambda 2026-05", free=400_000),
    "schedule": _price(
        "EventBridge Scheduler", 1.00, "invocations", "eventbridge 2026-03",
        per=MILLION, free=14 * MILLION,
    ),
    "transition": _price(
        "Step Functions Standard", 25.00, "state transitions", "step-functions 2026-03",
        per=MILLION, free=4_000,
    ),
    "express": _price(
        "Step Functions Express", 1.00, "requests", "step-functions 2026-03", per=MILLION
    ),
    "express_s": _price(
        "Step Functions Express", 0.00001667, "GB-seconds", "step-functions 2026-03"
    ),
    "metric": _price("CloudWatch custom metrics", 0.30, "metrics and month",
                     "cloudwatch 2026-02", free=10),
    "alarm": _price("CloudWatch alarms", 0.10, "metrics watched and month",
                    "cloudwatch 2026-02", free=10),
    "dashboard": _price("CloudWatch dashboards", 3.00, "dashboards and month",
                        "cloudwatch 2026-02", free=3),
    "logs": _price("CloudWatch Logs, taken in", 0.50, "GB", "cloudwatch 2026-02", free=5),
    "key": _price("KMS key of your own", 1.00, "keys and month", "kms 2026-03"),
    "vcpu": _price("Fargate, x86", 0.04048, "vCPU-hours", "fargate 2026-06"),
    "gb_hour": _price("Fargate, x86", 0.004445, "GB-hours", "fargate 2026-06"),
})  # fmt: skip
