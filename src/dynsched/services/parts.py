"""Large payloads and targets, read once: their address is their hash, so a copy is never stale."""

from __future__ import annotations

from collections import OrderedDict

from dynsched.storage.store import Store

PARTS_MAX = 256  # at most 256 KB each


class PartCache:
    """The parts that one worker has read lately."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._texts: OrderedDict[tuple[str, str], str] = OrderedDict()

    def text(self, job_id: str, digest: str) -> str | None:
        """Return a part's text, None if it is gone from the store."""
        key = (job_id, digest)
        text = self._texts.get(key)
        if text is None:
            text = self._store.jobs.part(job_id, digest)
            if text is None:
                return None
            self._texts[key] = text
            if len(self._texts) > PARTS_MAX:
                self._texts.popitem(last=False)
        self._texts.move_to_end(key)
        return text
