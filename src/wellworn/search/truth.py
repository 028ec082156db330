"""What holds now: which statements a new one replaces, and how a ranking treats what was replaced.

`Truth.replaced` runs when something is written. `newer_first` and `settle` run at each recall: what replaced a candidate takes over its
relevance and stands above it; asked about the past, the replaced one comes first. What was replaced stays, marked.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wellworn.core.values import KINDS, Entry, Partition
from wellworn.ingest.replaces import LONGEST_CHARS, MAYBE, SURE, probability
from wellworn.ingest.terms import Trait
from wellworn.search.bank import Bank
from wellworn.search.context import SearchContext
from wellworn.search.partition import SUPERSEDED
from wellworn.search.ram import Ram
from wellworn.search.score import Ranked
from wellworn.store.port import NewEntry

NEAREST = 24
"""Earlier statements that are compared with a new one."""
LARGEST_BANK = 20_000
"""Entries of a partition beyond which it is not loaded only to compare; then reflection does it."""
MOST_RIVALS = 4
NEAR, LIKELY, LEAST_SHARE = 0.5, 0.4, 0.05
"""A newer candidate that may contradict an older one is put above it if it has this share of its score: less the likelier
it is, from `NEAR` down to `LEAST_SHARE` where the chance is `LIKELY`."""
LONGEST_LINE = 64
"""Replacements of replacements that are followed."""
RIVAL_ROWS = 15
"""Best candidates among which such pairs are looked for."""
SAME_TOPIC, SAME_TOPIC_SHARE, CLOSE_SHARE = 0.4, 0.5, 0.85
"""Entries this alike are about the same thing. Then an entry of a more specific layer needs half the other's score to
stand above it, else nearly all of it."""
TIE = 1e-3
_COMPARED = frozenset({"episode", "fact", "preference", "note"})
_COMPARED_CODES = [KINDS.index(kind) for kind in sorted(_COMPARED)]
_SILENT = int(Trait.ASKS | Trait.REACTS | Trait.ASSISTANT)


class Truth:
    """Finds what a new statement replaces, among what a partition holds."""

    def __init__(self, ram: Ram, *, decides: bool) -> None:
        """`decides` is false where a model reads each session at its end: until then nothing counts as replaced."""
        self._ram = ram
        self._most = 1.0 if decides else SURE - 0.01

    def replaced(self, partition: Partition, records: Sequence[NewEntry]) -> list[list[tuple[Entry, float]]]:
        """For each record the earlier entries that it may replace, with the probability of each."""
        states = [_states(record) for record in records]
        if not any(states) or not self._ram.may_load(partition, LARGEST_BANK):
            return [[] for _ in records]
        with self._ram.bank([partition]) as (bank, there):
            near = [
                self._near(bank, record) if there and one else [] for record, one in zip(records, states, strict=True)
            ]
        found: list[list[tuple[Entry, float]]] = []
        for number, record in enumerate(records):
            if not states[number]:
                found.append([])
                continue
            before = [other.entry for other, one in zip(records[:number], states, strict=False) if one]
            olds = [entry for entry in (*near[number], *before) if _comparable(entry, record.entry)]
            rivals = [(old, min(self._most, _chance(old, record.entry))) for old in olds]
            found.append(sorted([r for r in rivals if r[1] >= MAYBE], key=lambda r: -r[1])[:MOST_RIVALS])
        return found

    @staticmethod
    def _among_people(bank: Bank, record: NewEntry) -> bool:
        """Whether a turn is of a dialogue in which someone else than an assistant answers: people talk about much
        that replaces nothing, so reflection reads such a dialogue at its end."""
        if record.entry.thread is None:
            return False
        rows = np.flatnonzero(bank.column("thread", slice(None)) == record.entry.thread)
        others = bank.column("speaker", rows) != record.index.speaker
        others &= (bank.column("traits", rows) & np.uint8(Trait.ASSISTANT)) == 0
        return bool(others.any())

    def _near(self, bank: Bank, record: NewEntry) -> list[Entry]:
        """The statements nearest to a record that hold now."""
        if record.vector is None:
            return []
        everything = slice(None)
        if self._among_people(bank, record):
            return []
        fits = (bank.column("traits", everything) & np.uint8(_SILENT)) == 0
        fits &= bank.column("alive", everything) & (bank.column("state", everything) != SUPERSEDED)
        fits &= np.isin(bank.column("kind", everything), _COMPARED_CODES)
        fits &= bank.column("chars", everything) <= LONGEST_CHARS
        rows = np.flatnonzero(fits)
        if not len(rows):
            return []
        cosine = bank.vectors(rows) @ record.vector
        rows = rows[np.argsort(-cosine, kind="stable")[:NEAREST]]
        nos, seqs = bank.named(rows)
        entries = self._ram.entries.read(nos, seqs)
        return [entries[no] for no in nos if no in entries]


def _states(record: NewEntry) -> bool:
    """Whether a record is a short statement of someone else than the assistant."""
    entry = record.entry
    return entry.kind in _COMPARED and len(entry.text) <= LONGEST_CHARS and not record.index.traits & _SILENT


def _comparable(old: Entry, new: Entry) -> bool:
    """Whether one can replace the other: the same speaker and title, both about now, not the same words, and not older."""
    same = (old.speaker, old.title) == (new.speaker, new.title) and old.text != new.text
    same = same and old.at <= new.at and old.id != new.id
    return same and old.valid_to is None and new.valid_to is None and old.trust == new.trust


def _chance(old: Entry, new: Entry) -> float:
    """The probability that one replaces the other."""
    return probability(old.text, new.text, spoken=old.kind == new.kind == "episode")


def settle(ranked: Ranked, context: SearchContext) -> Ranked:
    """The ranking with what holds now above what it replaced."""
    bank, margin = context.bank, context.bounds.profile.margin
    old = np.flatnonzero(bank.column("state", ranked.rows) == SUPERSEDED)
    if not len(old) or not margin:
        return ranked
    nos = bank.column("no", ranked.rows[old]).tolist()
    ends = _successors(context, nos)
    ranked = context.with_rows(ranked, np.array(sorted({row for rows in ends.values() for row in rows}), dtype=np.intp))
    place = {row: number for number, row in enumerate(ranked.rows.tolist())}
    scores = ranked.scores
    lift = np.zeros(len(scores))
    for no, where in sorted(zip(nos, old.tolist(), strict=True), key=lambda pair: -scores[pair[1]]):
        for row in ends.get(no, ()):
            new = place.get(row)
            if new is None:
                continue
            if context.view.question.about_past:
                lift[where] = max(lift[where], max(scores[new], scores[where]) + margin - scores[where])
            elif not _asks_for(context, int(ranked.rows[where]), row):
                lift[new] = max(lift[new], scores[where] + margin - scores[new])
    return ranked.with_factor("holds", lift, 1.0)


def newer_first(ranked: Ranked, context: SearchContext) -> Ranked:
    """Of two good candidates that may contradict each other, the newer above the older."""
    margin = context.bounds.profile.margin
    question = context.view.question
    if question.about_past or question.dates or not margin:
        return ranked
    bank, scores = context.bank, ranked.scores
    best = np.argsort(-scores, kind="stable")[:RIVAL_ROWS].tolist()
    nos = bank.column("no", ranked.rows[best]).tolist()
    place = dict(zip(nos, best, strict=True))
    lift, at = np.zeros(len(scores)), bank.column("at", ranked.rows)
    for new, old, _, chance in context.store.edges(nos, types=["contradicts"]):
        if new in place and old in place:
            a, b = sorted((place[new], place[old]), key=lambda where: -at[where])
            if (
                scores[a] + lift[a] < scores[b]
                and scores[a] >= max(LEAST_SHARE, NEAR * (1 - chance / LIKELY)) * scores[b]
                and scores[b] > 0
                and not _asks_for(context, int(ranked.rows[b]), int(ranked.rows[a]))
            ):
                lift[a] = scores[b] + margin - scores[a]
    return ranked.with_factor("holds", lift, 1.0) if lift.any() else ranked


def specific_first(ranked: Ranked, context: SearchContext) -> Ranked:
    """Of two good candidates about the same thing, the one of the more specific layer above the other."""
    bank, margin = context.bank, context.bounds.profile.margin
    if len(bank.filled) < 2 or not len(ranked.rows) or not margin:
        return ranked
    scores = ranked.scores
    best = np.argsort(-scores, kind="stable")[:RIVAL_ROWS]
    owner, vectors = bank.owner(ranked.rows[best]), bank.vectors(ranked.rows[best])
    alike = vectors @ vectors.T
    lift = np.zeros(len(scores))
    for general, theirs in enumerate(best.tolist()):
        for special, own in enumerate(best.tolist()):
            if owner[special] >= owner[general] or scores[theirs] <= 0:
                continue
            share = SAME_TOPIC_SHARE if alike[special, general] >= SAME_TOPIC else CLOSE_SHARE
            if share * scores[theirs] <= scores[own] < scores[theirs] - TIE:
                lift[own] = max(lift[own], scores[theirs] + margin - scores[own])
    return ranked.with_factor("layer", lift, 1.0) if lift.any() else ranked


def _successors(context: SearchContext, nos: Sequence[int]) -> dict[int, frozenset[int]]:
    """For each replaced entry the rows of those at the end of its line of replacements."""
    after: dict[int, set[int]] = {}
    ahead, seen = set(nos), set(nos)
    for _ in range(LONGEST_LINE):
        if not ahead:
            break
        found = context.store.edges(sorted(ahead), types=["supersedes"])
        pairs = [(new, old) for new, old, _, _ in found if old in ahead]
        for new, old in pairs:
            after.setdefault(old, set()).add(new)
        ahead = {new for new, _ in pairs} - seen
        seen |= ahead
    rows = {no: row for no in seen - after.keys() for row in context.bank.rows_of([no])}
    ends: dict[int, frozenset[int]] = {}

    def end_of(no: int) -> frozenset[int]:
        if no not in ends:
            ends[no] = frozenset()  # a ring, which a damaged file may have, ends here
            own = frozenset({rows[no]}) if no in rows else frozenset()
            ends[no] = frozenset().union(*map(end_of, after[no])) if no in after else own
        return ends[no]

    return {no: end_of(no) for no in nos}


def _asks_for(context: SearchContext, old: int, new: int) -> bool:
    """Whether the question names something that only the replaced entry names: then it asks for that one."""
    bank = context.bank
    for term in context.view.question.named:
        having = {start + int(row) for part, start in bank.filled for row in part.postings.find(term)[0]}
        if old in having and new not in having:
            return True
    return False
