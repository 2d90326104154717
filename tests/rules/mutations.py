"""All mutations: each rule of the protocol, taken out."""

from __future__ import annotations

from tests.rules.mutations_callbacks import CALLBACKS
from tests.rules.mutations_functions import FUNCTIONS
from tests.rules.mutations_leases import LEASES
from tests.rules.mutations_losses import LOSSES
from tests.rules.mutations_messages import MESSAGES
from tests.rules.mutations_occurrences import OCCURRENCES
from tests.rules.mutations_permits import PERMITS
from tests.rules.mutations_scanning import SCANNING
from tests.rules.mutations_sessions import SESSIONS

MUTATIONS = (
    *OCCURRENCES, *SESSIONS, *LOSSES, *PERMITS, *SCANNING, *LEASES, *MESSAGES, *FUNCTIONS,
    *CALLBACKS,
)  # fmt: skip
