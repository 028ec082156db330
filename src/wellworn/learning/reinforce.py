"""What outcomes do to the entries themselves: use is counted, success makes surer, failure less sure.

    usage += 1                             for each cited entry (`Tx.count_use`)
    confidence = min(c + 0.05, 0.95)       after success, never lowering what was surer already
    confidence = max(c - 0.10, 0.05)       after failure

`reliability`, the factor of the `reasoningbank` profile, follows from both: min(confidence · sqrt(usage / 10), 1).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from wellworn.core.values import Entry

SUCCESS_STEP, SUREST = 0.05, 0.95
FAILURE_STEP, LEAST_SURE = 0.10, 0.05


def judged(entry: Entry, success: bool, now: datetime, *, step: float = FAILURE_STEP) -> Entry:
    """An entry that was part of a success or a failure; `step` is what a failure costs."""
    if success:
        surer = max(entry.confidence, min(SUREST, round(entry.confidence + SUCCESS_STEP, 6)))
        entry = replace(entry, confidence=surer, success_count=entry.success_count + 1)
    else:
        doubted = min(entry.confidence, max(LEAST_SURE, round(entry.confidence - step, 6)))
        entry = replace(entry, confidence=doubted, failure_count=entry.failure_count + 1)
    return replace(entry, updated_at=max(now, entry.updated_at))
