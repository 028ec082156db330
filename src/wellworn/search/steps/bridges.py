"""From what was found to what it names: rare words that two entries share, and titles that one text mentions.

For a source p (a hit that was read) and any row r:

    shares(p, r) = Σ idf(t) / 10     over terms t of both, not of the question, that few rows have
    named(p, r)  = share of the weight of r's title that is new to the question, if p's text mentions that title
    names(p, r)  = 1, if r's text mentions p's title

the last two times min(Σ idf(title) / 6, 1), since a title of common words is mentioned by chance. Rows of one thread
are no bridge for each other: they are neighbours anyway. Terms are found along the index, so that no bank is too large;
titles are compared for the rows that are worth reading.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wellworn.core.values import Entry
from wellworn.ingest.terms import record_of, terms, words
from wellworn.search.bank import Bank
from wellworn.search.context import Check, Rows, SearchContext
from wellworn.search.partition import NONE

FEW = 3
"""In how many rows a shared term may be: with 8 the gain halves, common words are no bridge."""
MOST_TERMS = 200
"""Rare terms of one source that are followed; a longer text names more than a question can be about."""
_SURE_TITLE = 6.0
_LINK_VALUE = 1.0
_ASIDE = re.compile(r"\s*\([^)]*\)")

Values = npt.NDArray[np.float64]
_TERMS_A_CHECK = 20


def _go_on() -> None:
    """A check that stops nothing."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Source:
    """A hit that was read, with what it shares with which rows."""

    row: int
    entry: Entry
    shares: dict[int, float]
    links: dict[int, str]
    """Rows it is linked to by hand, and how."""


def source_of(
    context: SearchContext, row: int, entry: Entry, *, walk_links: bool = True, check: Check = _go_on
) -> Source:
    """Follow the rare terms and the links of one entry; `check` may stop it on the way."""
    bank = context.bank
    own = record_of(entry).terms
    own = own[~np.isin(own, np.array(context.view.question.terms, dtype=np.uint64))]
    held_by = sum((partition.postings.spread(own) for partition in bank.partitions), np.zeros(len(own), dtype=np.int64))
    rare = np.flatnonzero((held_by > 1) & (held_by <= FEW))[:MOST_TERMS]
    thread, shares = _thread(bank, row), dict[int, float]()
    check()
    for number, (term, count) in enumerate(zip(own[rare].tolist(), held_by[rare].tolist(), strict=True)):
        if number % _TERMS_A_CHECK == 0:
            check()
        weight = _idf(bank.size, count) / 10
        for other in _rows_with(bank, term):
            if other != row and (thread[1] == NONE or _thread(bank, other) != thread):
                shares[other] = shares.get(other, 0.0) + weight
    links = _links(context, row) if walk_links else {}
    return Source(row=row, entry=entry, shares=shares, links=links)


def matrix(sources: list[Source], rows: Rows) -> Values:
    """`shares` plus links, shape (rows, sources)."""
    found = np.zeros((len(rows), len(sources)))
    for column, source in enumerate(sources):
        links = source.links
        found[:, column] = [
            source.shares.get(row, 0.0) + (_LINK_VALUE if row in links else 0.0) for row in rows.tolist()
        ]
    return found


def mentions(
    context: SearchContext, sources: list[Source], entries: dict[int, Entry], rows: Rows, check: Check = _go_on
) -> tuple[Values, Values]:
    """`named` and `names` for the rows whose entries were read, each of shape (rows, sources)."""
    named, names = np.zeros((len(rows), len(sources))), np.zeros((len(rows), len(sources)))
    known = set(context.view.question.terms)
    texts = [_flat(source.entry.text) for source in sources]
    titles = [_ASIDE.sub("", source.entry.title).strip().lower() for source in sources]
    weights = [_title_weights(context.bank, source.entry, set())[0] for source in sources]
    for place, row in enumerate(rows.tolist()):
        entry = entries.get(row)
        if entry is None:
            continue
        check()
        text, title = entry.text.lower(), _title(entry)
        for column, source in enumerate(sources):
            if source.row == row or (source.entry.thread is not None and source.entry.thread == entry.thread):
                continue
            if title and title in texts[column]:
                sure, new = _title_weights(context.bank, entry, known)
                named[place, column] = sure * new
            if titles[column] and titles[column] in text and _title(source.entry) in _flat(text):
                names[place, column] = weights[column]  # most texts fail the first look, which is the cheap one
    return named, names


def _links(context: SearchContext, row: int) -> dict[int, str]:
    found: dict[int, str] = {}
    for source, target, type_, _ in context.linked(np.array([row], dtype=np.intp)):
        other = target if source == row else source
        if other != row and type_ not in ("contradicts", "supersedes"):
            found[other] = type_
    return found


def _title(entry: Entry) -> str:
    """The title as it would be mentioned: without what stands in brackets; empty when it has no word to speak of."""
    flat = _flat(_ASIDE.sub("", entry.title)) if entry.title else ""
    return flat if len(flat) > len(" x ") else ""


def _flat(text: str) -> str:
    """Words with a space on either side of each, so that a phrase is found at word ends only."""
    return f" {' '.join(words(text))} " if text else ""


def _title_weights(bank: Bank, entry: Entry, known: set[int]) -> tuple[float, float]:
    """How telling a title is, and which share of it is not known; both 0 … 1."""
    weights = {term: _idf(bank.size, _spread(bank, term)) for term in terms(_ASIDE.sub("", entry.title))}
    total = sum(weights.values())
    if not total:
        return 0.0, 0.0
    return min(total / _SURE_TITLE, 1.0), sum(w for term, w in weights.items() if term not in known) / total


def _spread(bank: Bank, term: int) -> int:
    one = np.array([term], dtype=np.uint64)
    return sum(int(partition.postings.spread(one)[0]) for partition in bank.partitions)


def _rows_with(bank: Bank, term: int) -> list[int]:
    return [
        int(start) + row
        for partition, start in zip(bank.partitions, bank.starts, strict=False)
        for row in partition.postings.find(term)[0].tolist()
    ]


def _thread(bank: Bank, row: int) -> tuple[int, int]:
    """The row's partition and its thread there."""
    owner = int(np.searchsorted(bank.starts, row, side="right")) - 1
    return owner, int(bank.partitions[owner].thread[row - int(bank.starts[owner])])


def _idf(size: int, count: int) -> float:
    return math.log(1 + (max(size - count, 0) + 0.5) / (count + 0.5))
