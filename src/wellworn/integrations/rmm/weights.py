"""What a person's reranker has learned, kept in a `BaseStore`: the state that `learning.residual` describes, in base64.

Every turn is written, an unfinished batch too, so that a crash loses none. Where the store cannot be reached, learning
goes on in memory, and what it came to is written when the store is back.
"""

from __future__ import annotations

import base64
from collections import OrderedDict
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b
from typing import Any

from wellworn.core.locks import ForkLock
from wellworn.integrations.rmm.faults import Faults
from wellworn.integrations.rmm.records import MemoryRecords
from wellworn.learning.residual import Residual

_KIND, _KEY = "weights", "reranker"
_MOST_UNSAVED = 256


_MEMORY = 50
"""Turns over which the mean reward looks back."""


@dataclass(frozen=True, kw_only=True)
class Learned:
    """W_q and W_m of a person, and the mean reward of what was shown, which a reward is compared with."""

    residual: Residual
    mean: float = 0.0
    turns: int = 0

    def rewarded(self, rewards: float) -> Learned:
        """With the mean reward of one more turn."""
        turns = self.turns + 1
        return replace(self, mean=self.mean + (rewards - self.mean) / min(turns, _MEMORY), turns=turns)


class Weights:
    """States by label. Safe between threads; who reads, learns and writes does so under a lock of the label's."""

    def __init__(self, records: MemoryRecords, faults: Faults, *, width: int) -> None:
        self._records = records
        self._faults = faults
        self._width = width
        self._lock = ForkLock()
        self._unsaved: OrderedDict[str, Learned] = OrderedDict()

    def load(self, label: str) -> Learned:
        """The state that serves a person; a fresh one where nothing of this width was learned yet."""
        with self._lock:
            kept = self._unsaved.get(label)
        if kept is not None:
            return kept
        state: Learned | None = None
        with self._faults.guarded("weights"):
            state = _read(self._records.note(label, _KIND, _KEY))
        return state if state is not None and state.residual.width == self._width else self._fresh(label)

    def save(self, label: str, state: Learned, now: datetime) -> None:
        with self._lock:
            self._unsaved[label] = state
            while len(self._unsaved) > _MOST_UNSAVED:
                self._unsaved.popitem(last=False)
        with self._faults.guarded("weights"):
            text = base64.b64encode(state.residual.to_bytes()).decode("ascii")
            value = {
                "format": 1,
                "kind": "residual",
                "state": text,
                "mean": state.mean,
                "turns": state.turns,
                "updated_at": now.isoformat(),
            }
            self._records.put_note(label, _KIND, _KEY, value)
            with self._lock:
                if self._unsaved.get(label) is state:
                    del self._unsaved[label]

    def _fresh(self, label: str) -> Learned:
        seed = int.from_bytes(blake2b(label.encode(), digest_size=4).digest(), "little")
        return Learned(residual=Residual.fresh(self._width, seed=seed))


def _read(value: dict[str, Any]) -> Learned | None:
    if not isinstance(value.get("state"), str):
        return None
    try:
        residual = Residual.from_bytes(base64.b64decode(value["state"]))
        return Learned(residual=residual, mean=float(value.get("mean", 0.0)), turns=int(value.get("turns", 0)))
    except (TypeError, ValueError):  # damaged: begin anew
        return None
