"""How what was found is ordered: by what it adds, not by how well each fits alone. Only named factors are added.

`combine`, for the question's terms with their idf, sources p (the best is p₀), and base scores b:

    covered(p, r) = Σ idf(t) over the question's terms in p and r  /  Σ idf(t) over all that are found at all
    gain(r) = max_p  3 shares + 4 named + 1 names - 8 covered - 0.5 (b(p₀) - b(p))

r goes with the source that it adds most to; to what no source leads, `covered` counts half, and where nothing leads to
anything the order stays. Terms weigh 8 in the base score, so with `covered` a row gets nothing for
what the source says already; the best row of all stays as it is.

`summarize` takes 1 off for each better row within two places of the same thread (`apart`): neighbours lift each other
in the base score, and without that they fill the first places with one talk about one of the things asked for.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from wellworn.core.values import Entry
from wellworn.search.context import Check, Rows, SearchContext
from wellworn.search.partition import NONE
from wellworn.search.score import Ranked
from wellworn.search.steps.bridges import Source, Values, matrix, mentions

SHARES, NAMED, NAMES, COVERED, DETOUR = 3.0, 4.0, 1.0, -8.0, -0.5
_WEIGHTS = {"shares": SHARES, "named": NAMED, "names": NAMES, "covered": COVERED, "detour": DETOUR}
UNBRIDGED = 0.5
"""Share of `covered` for rows that no source leads to: they fit the question, and must stay before what fits nothing.
With 1 the sets gain 2.5 points more, and a bank of notes about one thing loses its second-best notes to strangers."""
APART = -1.0
BROUGHT_IN = 40
"""Rows outside the candidates that a source may bring in."""
READ = 40
"""Rows whose titles and texts are compared with the sources'."""
NEAR = 2
ORDERED = 40
"""Places that are put apart; nobody looks further down."""


def brought_in(sources: list[Source]) -> Rows:
    """The rows that share most with a source, or are linked to it."""
    best: dict[int, float] = {}
    for source in sources:
        for row, value in source.shares.items():
            best[row] = max(best.get(row, 0.0), value)
        best.update(dict.fromkeys(source.links, np.inf))
    rows = sorted(best, key=lambda row: (-best[row], row))[:BROUGHT_IN]
    return np.array(rows, dtype=np.intp)


def coverage(context: SearchContext, rows: Rows, others: Rows) -> Values:
    """`covered`, shape (rows, others)."""
    found = [(idf, having) for idf, having in context.view.lexical.found if len(having)]
    if not found:
        return np.zeros((len(rows), len(others)))
    weights = np.array([idf for idf, _ in found])
    here, there = _has(context, rows, found), _has(context, others, found)
    shared: Values = (here * weights) @ there.T / weights.sum()
    return shared


def _has(context: SearchContext, rows: Rows, found: list[tuple[float, Rows]]) -> Values:
    """Which row has which term, shape (rows, terms)."""
    flags = np.zeros(len(context.bank), dtype=bool)
    has = np.zeros((len(rows), len(found)))
    for column, (_, having) in enumerate(found):
        flags[having] = True
        has[:, column] = flags[rows]
        flags[having] = False
    return has


def to_read(ranked: Ranked, context: SearchContext, sources: list[Source]) -> Rows:
    """The rows that are worth reading: the best as far as can be told without their texts."""
    gains = SHARES * matrix(sources, ranked.rows) + COVERED * coverage(context, ranked.rows, _rows(sources))
    best = np.argsort(-(ranked.scores + gains.max(axis=1)), kind="stable")[:READ]
    return ranked.rows[best]


def combined(
    ranked: Ranked, context: SearchContext, sources: list[Source], read: dict[int, Entry], *, check: Check
) -> tuple[Ranked, list[int]]:
    """The ranking with the factors of `combine`, and for each row the source it goes with (-1: none)."""
    base, rows = ranked.scores, ranked.rows
    place = {row: number for number, row in enumerate(rows.tolist())}
    own = np.array([base[place[source.row]] for source in sources])
    named, names = mentions(context, sources, read, rows, check)
    shares = matrix(sources, rows)
    bridged = (shares > 0) | (named > 0) | (names > 0)
    if not bridged.any():
        return _unchanged(ranked), [-1] * len(rows)
    parts = {
        "shares": (SHARES, shares),
        "named": (NAMED, named),
        "names": (NAMES, names),
        "covered": (COVERED, np.where(bridged, 1.0, UNBRIDGED) * coverage(context, rows, _rows(sources))),
        "detour": (DETOUR, np.broadcast_to(own.max() - own, (len(rows), len(sources)))),
    }
    gain = sum((weight * values for weight, values in parts.values()), np.zeros((len(rows), len(sources))))
    for column, source in enumerate(sources):
        gain[place[source.row], column] = -np.inf  # nothing is its own bridge
    chosen = gain.argmax(axis=1)
    first = place[sources[int(own.argmax())].row]
    for name, (weight, values) in parts.items():
        picked = values[np.arange(len(rows)), chosen].copy()
        picked[first] = 0.0
        ranked = ranked.with_factor(name, picked, weight)
    via = chosen.tolist()
    via[first] = -1
    return ranked, via


def _unchanged(ranked: Ranked) -> Ranked:
    """No row leads to another: what fits best alone stays first."""
    for name in _WEIGHTS:
        ranked = ranked.with_factor(name, np.zeros(len(ranked.rows)), _WEIGHTS[name])
    return ranked


def _rows(sources: list[Source]) -> Rows:
    return np.array([source.row for source in sources], dtype=np.intp)


def summarized(ranked: Ranked, context: SearchContext, *, places: int = ORDERED) -> Ranked:
    """The ranking with the factors of `summarize`, of which so many of the first places are right."""
    return ranked.with_factor("apart", _near_better(ranked, context, places), APART)


def _near_better(ranked: Ranked, context: SearchContext, places: int) -> Values:
    """For each row how many rows chosen before it are within two places of it in its thread."""
    thread = context.bank.column("thread", ranked.rows).astype(np.int64)
    position = context.bank.column("position", ranked.rows).astype(np.int64)
    owner = context.bank.owner(ranked.rows)
    scores, near = ranked.scores, np.zeros(len(ranked.rows))
    left = np.ones(len(ranked.rows), dtype=bool)
    for _ in range(min(places, len(ranked.rows))):
        best = int(np.argmax(np.where(left, scores + APART * near, -np.inf)))
        left[best] = False
        if thread[best] != NONE:
            beside = (thread == thread[best]) & (owner == owner[best]) & (np.abs(position - position[best]) <= NEAR)
            near[beside & left] += 1
    return near


def lifted(ranked: Ranked, scores: dict[int, float], share: float) -> Ranked:
    """The ranking with what other queries found lifted to a share of the score it had there (`found`)."""
    target: npt.NDArray[np.float64] = np.array([scores.get(row, -np.inf) for row in ranked.rows.tolist()])
    return ranked.with_factor("found", np.maximum(share * target - ranked.scores, 0.0), 1.0)
