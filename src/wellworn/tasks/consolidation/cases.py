"""From a partition's rows to the cases to be decided: what concerns each other together, the rest one by one if due."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

import numpy as np

from wellworn.core.clock import to_micros
from wellworn.core.values import Partition
from wellworn.store.port import Store
from wellworn.tasks.consolidation.alike import Components, Found, Ints, compare
from wellworn.tasks.consolidation.rows import Rows
from wellworn.tasks.consolidation.settings import ConsolidationSettings
from wellworn.tasks.consolidation.settle import Case
from wellworn.tasks.consolidation.stance import contradiction

_READ_AT_ONCE = 1000


def find_cases(
    store: Store,
    partition: Partition,
    rows: Rows,
    *,
    now: datetime,
    settings: ConsolidationSettings,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[list[Case], int]:
    """The cases of a partition, and how many like pairs were left unread."""
    found = compare(
        rows.vectors,
        rows.realms,
        rows.groups,
        duplicate=settings.duplicate,
        related=settings.related,
        progress=progress,
    )
    pairs = list(_opposed(store, partition, rows, found))
    together = Components(len(rows))
    labels = found.duplicates.labels
    everyone = np.arange(len(rows), dtype=np.int64)
    together.join(everyone, labels)
    if pairs:
        ends = np.array([(a, b) for a, b, _ in pairs], dtype=np.int64)
        together.join(ends[:, 0], ends[:, 1])
    cases = list(_joined(rows, found, together, pairs))
    alone = np.bincount(together.labels, minlength=len(rows))[together.labels] == 1
    cases += [Case(ids=(rows.ids[row],)) for row in np.flatnonzero(alone & _due(rows, now, settings))]
    return cases, found.left_out


def _opposed(store: Store, partition: Partition, rows: Rows, found: Found) -> Iterator[tuple[int, int, float]]:
    """Those of the like pairs that contradict each other by what they say, read some at a time."""
    for start in range(0, len(found.pairs), _READ_AT_ONCE):
        part = found.pairs[start : start + _READ_AT_ONCE]
        ids = sorted({rows.ids[row] for a, b, _ in part for row in (a, b)})
        entries = store.get([partition], ids)
        for a, b, alike in part:
            one, other = entries.get(rows.ids[a]), entries.get(rows.ids[b])
            if one is not None and other is not None and contradiction(one, other):
                yield a, b, alike


def _joined(rows: Rows, found: Found, together: Components, pairs: list[tuple[int, int, float]]) -> Iterator[Case]:
    """One case a set of more than one."""
    groups: dict[int, list[tuple[str, ...]]] = {}
    for members in found.duplicates.sets():
        label = int(together.labels[members[0]])
        groups.setdefault(label, []).append(tuple(rows.ids[row] for row in members))
    opposed: dict[int, list[tuple[str, str, float]]] = {}
    for a, b, alike in pairs:
        opposed.setdefault(int(together.labels[a]), []).append((rows.ids[a], rows.ids[b], alike))
    for members in together.sets():
        label = int(together.labels[members[0]])
        yield Case(
            ids=tuple(rows.ids[row] for row in members),
            groups=tuple(groups.get(label, ())),
            pairs=tuple(opposed.get(label, ())),
        )


def _due(rows: Rows, now: datetime, settings: ConsolidationSettings) -> Ints:
    """1 for rows that something may become of by themselves; `settle` decides."""
    span = timedelta(days=settings.decay_days) / timedelta(microseconds=1)
    fades = (to_micros(now) - rows.updated >= span) & (settings.decay_rate < 1)
    old = to_micros(now) - rows.created > timedelta(days=settings.prune_days) / timedelta(microseconds=1)
    useless = old & (rows.usage == 0) & (rows.confidence < settings.prune_confidence)
    proven = (rows.usage > settings.promote_usage) & (rows.confidence > settings.promote_confidence)
    unsure = (rows.usage > settings.ask_usage) & (rows.confidence < settings.ask_confidence)
    due = fades | useless | (proven & (rows.promoted == 0)) | unsure
    return np.asarray(due, dtype=np.int64)
