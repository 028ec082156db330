"""How much the bank holds, and how tasks went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wellworn.core.errors import InvalidInput
from wellworn.core.values import Entry, Scope
from wellworn.memory import Memory
from wellworn.tasks.consolidation.stages import Stages
from wellworn.tasks.domains import domain_of
from wellworn.tasks.items import ITEM_KINDS, bank_partition
from wellworn.tasks.tasks import Tasks

MOST_TASKS = 10_000
_ORDERS: dict[str, Callable[[Entry], float]] = {
    "confidence": lambda entry: entry.confidence,
    "usage": lambda entry: entry.usage_count,
    "created": lambda entry: entry.created_at.timestamp(),
}
SORTS = tuple(_ORDERS)


@dataclass(frozen=True, kw_only=True)
class BankStats:
    """Counts of what a scope sees of the bank, and of the tasks on its own partition."""

    items: int
    by_kind: dict[str, int]
    by_stage: dict[str, int]
    by_domain: dict[str, int]
    mean_confidence: float
    uses: int
    """How often items were put before an agent."""
    tasks: int
    by_state: dict[str, int]
    successes: int
    failures: int
    runs: int

    @property
    def success_rate(self) -> float | None:
        """Of the tasks that were judged; None when none was."""
        judged = self.successes + self.failures
        return self.successes / judged if judged else None


def stats_of(memory: Memory, tasks: Tasks, scope: Scope, stages: Stages) -> BankStats:
    """Counted anew."""
    entries = memory.entries(scope=scope, kind=ITEM_KINDS, limit=2**31)
    live = [entry for entry in entries if entry.state in ("active", "flagged")]
    made = tasks.all(bank_partition(scope), limit=MOST_TASKS)
    verdicts = [task.verdict.success for task in made if task.verdict is not None]
    return BankStats(
        items=len(live),
        by_kind=dict(Counter(entry.kind for entry in live)),
        by_stage=dict(Counter(stages.of(entry) for entry in entries)),
        by_domain=dict(Counter(domain_of(entry.tags) or "(none)" for entry in live)),
        mean_confidence=sum(entry.confidence for entry in live) / len(live) if live else 0.0,
        uses=sum(entry.usage_count for entry in live),
        tasks=len(made),
        by_state=dict(Counter(task.state for task in made)),
        successes=sum(verdicts),
        failures=len(verdicts) - sum(verdicts),
        runs=len(tasks.runs(bank_partition(scope), limit=MOST_TASKS)),
    )


def sorted_items(entries: Sequence[Entry], sort: str) -> list[Entry]:
    """By falling value; those that tie, the newer first."""
    if sort not in _ORDERS:
        raise InvalidInput("sort", f"{sort!r} is no order", f"use one of {', '.join(SORTS)}")
    return sorted(entries, key=lambda entry: (_ORDERS[sort](entry), entry.created_at), reverse=True)
