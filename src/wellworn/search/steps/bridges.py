"""From what was found to what it names, and an order by what each entry adds.

For a source p (a hit that was read) and any row r:

    shares(p, r)  = Σ idf(t) / 10 over terms t of both that the question does not have and at most three rows have
    named(p, r)   = share of r's title that is new to the question, if p's text mentions that title
    names(p, r)   = share of p's title that is new to the question, if r's text mentions that title
    covered(p, r) = Σ idf(t) over the question's terms in p and r / Σ idf(t) over all its terms that are found
    gain(r)       = max_p  3 shares + 4 named + 1 names - 8 covered - 0.5 (score(p₀) - score(p))

`named` and `names` count min(Σ idf(title) / 6, 1), since titles of common words are mentioned by chance; a title the
question has already leads nowhere new. `covered` takes from r what its source says already (terms weigh 8 in the score);
it counts half for rows that no source leads to, and nothing changes where no source leads anywhere. The best row of all
stays where it is. Titles are no bridges between rows that have the same one, nor between rows of one thread.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wellworn.core.values import Entry
from wellworn.ingest.terms import record_of, terms, words
from wellworn.search.bank import Bank
from wellworn.search.context import Check, Rows, SearchContext
from wellworn.search.partition import NONE
from wellworn.search.score import Ranked

_WEIGHTS = {"shares": 3.0, "named": 4.0, "names": 1.0, "covered": -8.0, "detour": -0.5}
FEW = 3
"""In how many rows a shared term may be: with 8 the gain halves, common words are no bridge."""
MOST_TERMS = 200
"""Rare terms of one source that are followed."""
BROUGHT_IN = 40
"""Rows outside the candidates that sources may bring in."""
READ = 40
"""Rows whose titles and texts are compared with those of the sources."""
UNBRIDGED = 0.5
"""Share of `covered` for rows that no source leads to. With 1, a bank of notes about one thing loses its second-best
notes to strangers; with 0, HotpotQA loses 7 points."""
_SURE_TITLE = 6.0
_LINK_VALUE = 1.0
_UNFOLLOWED = ("contradicts", "supersedes")
_ASIDE = re.compile(r"\s*\([^)]*\)")
_TERMS_A_CHECK = 20

Values = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Source:
    """A hit that was read, with what it shares with which rows, and the rows it is linked to by hand."""

    row: int
    entry: Entry
    shares: dict[int, float]
    links: frozenset[int]


def source_of(context: SearchContext, row: int, entry: Entry, check: Check) -> Source:
    """Follow the rare terms and the links of one entry; `check` may stop it."""
    bank = context.bank
    own = record_of(entry).terms
    own = own[~np.isin(own, np.array(context.view.question.terms, dtype=np.uint64))]
    held_by = _spread(bank, own)
    rare = np.flatnonzero((held_by > 1) & (held_by <= FEW))[:MOST_TERMS]
    thread, shares = _thread(bank, row), dict[int, float]()
    for number, (term, count) in enumerate(zip(own[rare].tolist(), held_by[rare].tolist(), strict=True)):
        if number % _TERMS_A_CHECK == 0:
            check()
        for other in rows_with(bank, term).tolist():
            if other != row and (thread[1] == NONE or _thread(bank, other) != thread):
                shares[other] = shares.get(other, 0.0) + _idf(bank.size, count) / 10
    links = {
        target if source == row else source
        for source, target, type_, _ in context.linked(np.array([row], dtype=np.intp))
        if type_ not in _UNFOLLOWED
    }
    return Source(row=row, entry=entry, shares=shares, links=frozenset(links - {row}))


def brought_in(sources: Sequence[Source]) -> Rows:
    """The rows that share most with a source, or are linked to it."""
    best: dict[int, float] = {}
    for source in sources:
        for row, value in source.shares.items():
            best[row] = max(best.get(row, 0.0), value)
        best.update(dict.fromkeys(source.links, math.inf))
    return np.array(sorted(best, key=lambda row: (-best[row], row))[:BROUGHT_IN], dtype=np.intp)


def to_read(ranked: Ranked, context: SearchContext, sources: Sequence[Source]) -> Rows:
    """The rows that are worth reading, as far as can be told without their texts."""
    gains = _WEIGHTS["shares"] * _shares(sources, ranked.rows)
    gains += _WEIGHTS["covered"] * _covered(context, ranked.rows, sources)
    return ranked.rows[np.argsort(-(ranked.scores + gains.max(axis=1)), kind="stable")[:READ]]


def combined(
    ranked: Ranked, context: SearchContext, sources: Sequence[Source], read: dict[int, Entry], check: Check
) -> tuple[Ranked, dict[int, Source]]:
    """The ranking with the factors above, and the source that led to each row that one led to."""
    base, rows = ranked.scores, ranked.rows
    place = {row: number for number, row in enumerate(rows.tolist())}
    own = np.array([base[place[source.row]] for source in sources])
    shares = _shares(sources, rows)
    named, names = _mentions(context, sources, read, rows, check)
    bridged = (shares > 0) | (named > 0) | (names > 0)
    zeros = np.zeros(shares.shape)
    parts = {
        "shares": shares,
        "named": named,
        "names": names,
        "covered": np.where(bridged, 1.0, UNBRIDGED) * _covered(context, rows, sources) if bridged.any() else zeros,
        "detour": zeros + (own.max() - own) if bridged.any() else zeros,
    }
    gain = sum((_WEIGHTS[name] * values for name, values in parts.items()), zeros)
    for column, source in enumerate(sources):
        gain[place[source.row], column] = -np.inf  # nothing is its own bridge
    chosen = gain.argmax(axis=1)
    first = place[sources[int(own.argmax())].row]
    for name, values in parts.items():
        picked = values[np.arange(len(rows)), chosen]
        picked[first] = 0.0
        ranked = ranked.with_factor(name, picked, _WEIGHTS[name])
    led = [number for number in np.flatnonzero(bridged[np.arange(len(rows)), chosen]).tolist() if number != first]
    return ranked, {int(rows[number]): sources[chosen[number]] for number in led}


def rows_with(bank: Bank, term: int) -> Rows:
    """All rows that have a term."""
    found = [
        partition.postings.find(term)[0].astype(np.intp) + int(start)
        for partition, start in zip(bank.partitions, bank.starts, strict=False)
    ]
    return np.concatenate(found) if found else np.empty(0, dtype=np.intp)


def _shares(sources: Sequence[Source], rows: Rows) -> Values:
    """`shares` plus links, shape (rows, sources)."""
    found, place = np.zeros((len(rows), len(sources))), {row: number for number, row in enumerate(rows.tolist())}
    for column, source in enumerate(sources):
        for row in source.shares.keys() & place.keys():
            found[place[row], column] = source.shares[row]
        for row in source.links & place.keys():
            found[place[row], column] += _LINK_VALUE
    return found


def _covered(context: SearchContext, rows: Rows, sources: Sequence[Source]) -> Values:
    """`covered`, shape (rows, sources)."""
    found = [(idf, having) for idf, having in context.view.lexical.found if len(having)]
    if not found:
        return np.zeros((len(rows), len(sources)))
    weights = np.array([idf for idf, _ in found])
    every = np.concatenate([rows, np.array([source.row for source in sources], dtype=np.intp)])
    flags, has = np.zeros(len(context.bank), dtype=bool), np.zeros((len(every), len(found)))
    for column, (_, having) in enumerate(found):
        flags[having] = True
        has[:, column] = flags[every]
        flags[having] = False
    shared: Values = (has[: len(rows)] * weights) @ has[len(rows) :].T / weights.sum()
    return shared


def _mentions(
    context: SearchContext, sources: Sequence[Source], read: dict[int, Entry], rows: Rows, check: Check
) -> tuple[Values, Values]:
    """`named` and `names` for the rows whose entries were read, each of shape (rows, sources)."""
    named, names = np.zeros((len(rows), len(sources))), np.zeros((len(rows), len(sources)))
    texts = [_flat(source.entry.text) for source in sources]
    titles = [(_ASIDE.sub("", source.entry.title).strip().lower(), _title(source.entry)) for source in sources]
    weights = [_title_weight(context, source.entry) for source in sources]
    for place, row in enumerate(rows.tolist()):
        entry = read.get(row)
        if entry is None:
            continue
        check()
        title, text = _title(entry), entry.text.lower()
        for column, source in enumerate(sources):
            likely, own = titles[column]
            thread = source.entry.thread
            if source.row == row or (title and title == own) or (thread is not None and thread == entry.thread):
                continue
            if title and title in texts[column]:
                named[place, column] = _title_weight(context, entry)
            if own and likely in text and own in _flat(text):  # most texts fail the first look, which is the cheap one
                names[place, column] = weights[column]
    return named, names


def _title(entry: Entry) -> str:
    """The title as a text would mention it, without what stands in brackets; empty if it has no word."""
    flat = _flat(_ASIDE.sub("", entry.title)) if entry.title else ""
    return flat if len(flat) > len(" x ") else ""


def _flat(text: str) -> str:
    """Words with a space on either side of each, so that a phrase is found at word ends only."""
    return f" {' '.join(words(text))} "


def _title_weight(context: SearchContext, entry: Entry) -> float:
    """How telling a title is, times the share of it that the question does not have; 0 … 1."""
    own = np.array([*dict.fromkeys(terms(_ASIDE.sub("", entry.title)))], dtype=np.uint64)
    if not len(own):
        return 0.0
    weights = [_idf(context.bank.size, count) for count in _spread(context.bank, own).tolist()]
    known = np.isin(own, np.array(context.view.question.terms, dtype=np.uint64)).tolist()
    new = sum(weight for weight, old in zip(weights, known, strict=True) if not old)
    return min(sum(weights) / _SURE_TITLE, 1.0) * new / sum(weights)


def _spread(bank: Bank, own: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """In how many rows each of these terms is."""
    return sum((partition.postings.spread(own) for partition in bank.partitions), np.zeros(len(own), dtype=np.int64))


def _thread(bank: Bank, row: int) -> tuple[int, int]:
    """The row's partition and its thread there."""
    owner = int(np.searchsorted(bank.starts, row, side="right")) - 1
    return owner, int(bank.partitions[owner].thread[row - int(bank.starts[owner])])


def _idf(size: int, count: int) -> float:
    return math.log(1 + (max(size - count, 0) + 0.5) / (count + 0.5))
