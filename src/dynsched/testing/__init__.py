"""What users' tests need: a scheduler in virtual time, a store in memory, faults on demand.

Start with `ManualScheduler`. Nothing here is for production.
"""

from dynsched.testing.checker import check_history
from dynsched.testing.clock import SettableClock
from dynsched.testing.faults import CountingEngine, Crash, Fault, FaultyEngine, LaggingEngine
from dynsched.testing.history import History, RecordingEngine
from dynsched.testing.manual import ManualScheduler, memory_store

__all__ = [
    "CountingEngine",
    "Crash",
    "Fault",
    "FaultyEngine",
    "History",
    "LaggingEngine",
    "ManualScheduler",
    "RecordingEngine",
    "SettableClock",
    "check_history",
    "memory_store",
]
