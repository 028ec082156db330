"""What learning looks at beside the base score: named features of each candidate, on fixed scales.

| feature    | scale | value                                                                                         |
|------------|-------|-----------------------------------------------------------------------------------------------|
| `month`    | 1     | the query names the month (and year, if it names one) that the entry is of                      |
| `day`      | 1     | and the day too                                                                               |
| `own`      | 8     | the entry's own words, as a share of the best attainable; names of speakers left out           |
| `before`   | 8     | the same of the turn before                                                                   |
| `after`    | 8     | the same of the turn after                                                                    |
| `coverage` | 4     | share of the query's weight found in the entry or a direct neighbour                          |
| `meaning`  | 10    | the vector arm with its neighbourhood, as in the base                                          |
| `when`     | 1     | the query asks when, and the text tells a time                                                 |
| `session`  | 0.2   | the best base score in the entry's thread, minus the best of all                               |
| `recency`  | 1     | as in the base                                                                                |
| `rare`     | 3     | share of the entry's distinct terms that few entries have: rare / (distinct + 1)               |
| `repeated` | 4     | helped with similar questions of this person, or was passed over (`learning.repeats`)           |

Chosen by forward selection among 68 on held-out conversations (docs/learning.md). Computed for candidates only, from
what is in memory.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from wellworn.ingest.terms import Trait
from wellworn.learning.repeats import RepeatedQuestions
from wellworn.search.dates import of_named_dates
from wellworn.search.features import FEATURES, View
from wellworn.search.partition import NONE

EVIDENCE = (
    "month",
    "day",
    "own",
    "before",
    "after",
    "coverage",
    "meaning",
    "when",
    "session",
    "recency",
    "rare",
    "repeated",
)
MONTH, DAY, OWN, BEFORE, AFTER, COVERAGE, MEANING, WHEN, SESSION, RECENCY, RARE, REPEATED = range(len(EVIDENCE))
_SCALES = np.array([1, 1, 8, 8, 8, 4, 10, 1, 0.2, 1, 3, 4], dtype=np.float64)

Column = npt.NDArray[np.floating]


def evidence(
    view: View, base: npt.NDArray[np.float64], repeated: RepeatedQuestions | None = None, recency: Column | None = None
) -> npt.NDArray[np.float64]:
    """Shape (rows, features) for the rows of the view, whose base scores are given; so is `recency` where known."""
    rows, plain = view.rows, view.lexical.plain
    found = np.zeros((len(rows), len(EVIDENCE)))
    if view.question.dates:
        found[:, MONTH], found[:, DAY] = of_named_dates(view.question, view.bank, rows)
    found[:, OWN] = plain[rows]
    if view.bank.threaded:
        before, after = view.bank.beside("before", rows), view.bank.beside("after", rows)
        found[:, BEFORE], found[:, AFTER] = _of(plain, before), _of(plain, after)
        found[:, COVERAGE] = _coverage(view, before, after)
    else:
        found[:, COVERAGE] = _own_coverage(view)
    found[:, MEANING] = view.meaning[rows]
    if view.question.asks_when:
        found[:, WHEN] = view.bank.column("traits", rows).astype(np.int64) & int(Trait.TIMED) != 0
    found[:, SESSION] = _session(view, base)
    found[:, RECENCY] = FEATURES["recency"](view) if recency is None else recency
    rare, distinct = (view.bank.column(name, rows).astype(np.float64) for name in ("rare", "distinct"))
    found[:, RARE] = rare / (distinct + 1)
    past = {} if repeated is None else repeated.values(view.question.terms)
    if past:
        found[:, REPEATED] = [past.get(no, 0.0) for no in view.bank.column("no", rows).tolist()]
    found *= _SCALES
    return found


def _of(values: npt.NDArray[np.float32], rows: npt.NDArray[np.intp]) -> Column:
    """Values of neighbouring rows; 0 where there is none (-1)."""
    return np.where(rows >= 0, values[np.maximum(rows, 0)], np.float32(0))


def _own_coverage(view: View) -> Column:
    """`coverage` where no row has a neighbour."""
    if not view.lexical.found:
        return np.zeros(len(view.rows))
    idfs, having = zip(*view.lexical.found, strict=True)
    covered = np.zeros(len(view.bank))
    np.add.at(covered, np.concatenate(having), np.array(idfs).repeat([len(rows) for rows in having]))
    share: Column = covered[view.rows] / (sum(idfs) or 1.0)
    return share


def _coverage(view: View, before: npt.NDArray[np.intp], after: npt.NDArray[np.intp]) -> Column:
    total = sum(idf for idf, _ in view.lexical.found)
    covered = np.zeros(len(view.rows))
    has = np.zeros(len(view.bank) + 1, dtype=bool)  # the last place stands for "no neighbour" (-1)
    for idf, rows in view.lexical.found:
        has[rows] = True
        covered += idf * (has[view.rows] | has[before] | has[after])
        has[rows] = False
    return covered / total if total else covered


def _session(view: View, base: npt.NDArray[np.float64]) -> Column:
    top = float(base.max(initial=-np.inf))
    if not view.bank.in_threads:
        return base - top
    thread = view.bank.column("thread", view.rows).astype(np.int64)
    order = np.argsort(thread, kind="stable")
    first = np.ones(len(thread), dtype=np.bool_)
    np.not_equal(thread[order[1:]], thread[order[:-1]], out=first[1:])
    best = np.empty(len(thread))
    if len(thread):
        best[order] = np.maximum.reduceat(base[order], np.flatnonzero(first))[np.cumsum(first) - 1]
    return np.where(thread == NONE, base, best) - top
