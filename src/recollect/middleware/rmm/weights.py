"""What a person's reranker has learned, kept in a `BaseStore`: the state that `learning.residual` describes, in base64.

Every turn is written, an unfinished batch too, so that a crash loses none. Where the store cannot be reached, learning
goes on in memory, and what it came to is written when the store is back.
"""

from __future__ import annotations

import base64
from collections import OrderedDict
from datetime import datetime
from hashlib import blake2b

from recollect.learning.residual import Residual
from recollect.locks import ForkLock
from recollect.middleware.rmm.faults import Faults
from recollect.middleware.rmm.records import Records

_KIND, _KEY = "weights", "reranker"
_MOST_UNSAVED = 256


class Weights:
    """States by label. Safe between threads; who reads, learns and writes does so under a lock of the label's."""

    def __init__(self, records: Records, faults: Faults, *, width: int) -> None:
        self._records = records
        self._faults = faults
        self._width = width
        self._lock = ForkLock()
        self._unsaved: OrderedDict[str, Residual] = OrderedDict()

    def load(self, label: str) -> Residual:
        """The state that serves a person; a fresh one where nothing of this width was learned yet."""
        with self._lock:
            kept = self._unsaved.get(label)
        if kept is not None:
            return kept
        state: Residual | None = None
        with self._faults.guarded("weights"):
            state = _read(self._records.note(label, _KIND, _KEY).get("state"))
        return state if state is not None and state.width == self._width else self._fresh(label)

    def save(self, label: str, state: Residual, now: datetime) -> None:
        with self._lock:
            self._unsaved[label] = state
            while len(self._unsaved) > _MOST_UNSAVED:
                self._unsaved.popitem(last=False)
        with self._faults.guarded("weights"):
            text = base64.b64encode(state.to_bytes()).decode("ascii")
            value = {"format": 1, "kind": "residual", "state": text, "updated_at": now.isoformat()}
            self._records.put_note(label, _KIND, _KEY, value)
            with self._lock:
                if self._unsaved.get(label) is state:
                    del self._unsaved[label]

    def _fresh(self, label: str) -> Residual:
        seed = int.from_bytes(blake2b(label.encode(), digest_size=4).digest(), "little")
        return Residual.fresh(self._width, seed=seed)


def _read(text: object) -> Residual | None:
    if not isinstance(text, str):
        return None
    try:
        return Residual.from_bytes(base64.b64decode(text))
    except ValueError:  # damaged: begin anew
        return None
