"""What users' tests need: a scheduler in virtual time, a store in memory, faults on demand.

Start with `ManualScheduler`. Nothing here is for production.
"""

from dynsched.testing.clock import SettableClock
from dynsched.testing.faults import CountingEngine, Crash, Fault, FaultyEngine, LaggingEngine
from dynsched.testing.manual import ManualScheduler, memory_store

__all__ = [
    "CountingEngine",
    "Crash",
    "Fault",
    "FaultyEngine",
    "LaggingEngine",
    "ManualScheduler",
    "SettableClock",
    "memory_store",
]
