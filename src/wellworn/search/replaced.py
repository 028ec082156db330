"""Which earlier statements a new one replaces, and which later ones replace it: found when it is written."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime

import numpy as np

from wellworn.core.clock import to_micros
from wellworn.core.values import KINDS, READ_BY_RULES, Entry, Partition
from wellworn.ingest.replaces import LONGEST_CHARS, MAYBE, SURE, may_replace, probability
from wellworn.ingest.statement import read, told_by
from wellworn.ingest.terms import Trait
from wellworn.ingest.utterance import corrects
from wellworn.models.port import Matrix
from wellworn.search.arms import Scores
from wellworn.search.bank import Bank, Mask, Rows
from wellworn.search.context import highest
from wellworn.search.partition import NONE, SUPERSEDED
from wellworn.search.ram import Ram
from wellworn.store.port import NewEntry

FEW_TEXTS, NEAREST, NEAREST_OF_MANY = 8, 10, 6
"""Earlier statements that are compared with a new one: fewer where more than a few texts are given at once. What is surely
replaced was among the first six in every life of `evals life`; 24 found no more than 10, and cost twice as much."""
LARGEST_BANK = 20_000
"""Entries of a partition beyond which it is not loaded only to compare; then reflection does it."""
AT_ONCE = 2_000_000
"""Cosines that are computed together."""
MOST_RIVALS = 4
SAME_SPEAKER = 0.21
"""What two vectors are closer because both are of texts that begin with one person's name."""
SILENT = int(Trait.ASKS | Trait.REACTS | Trait.ASSISTANT)
"""What a turn is like that states nothing."""
_COMPARED = frozenset({"episode", "fact", "preference", "note"})
_COMPARED_CODES = [KINDS.index(kind) for kind in sorted(_COMPARED)]


class Truth:
    """Finds what a new statement replaces, among what a partition holds."""

    def __init__(self, ram: Ram, *, decides: bool, fitted: bool) -> None:
        """`decides` is false where a model reads each session at its end: until then nothing counts as replaced. `fitted`
        says that the store's vectors are of a model that the judge was fitted for."""
        self._ram = ram
        self._fitted = fitted
        self._most = 1.0 if decides else SURE - 0.01

    def replaced(self, partition: Partition, records: Sequence[NewEntry]) -> list[list[tuple[Entry, float]]]:
        """For each record the earlier entries that it may replace, and the later ones that may replace it if it is told
        late, with the probability of each."""
        stating = [number for number, record in enumerate(records) if _states(record)]
        asked = [number for number in stating if _may_replace(records[number])]
        dated = any(records[number].entry.at != records[number].entry.updated_at for number in stating)
        found: list[list[tuple[Entry, float]]] = [[] for _ in records]
        if not (asked or dated) or not self._ram.may_load(partition, LARGEST_BANK):
            return found
        late = self._late(partition, records, stating) if dated else set[int]()
        count = NEAREST if len(records) <= FEW_TEXTS else NEAREST_OF_MANY
        near: dict[int, list[tuple[float, Entry]]] = {}
        for numbers, ended in (([n for n in asked if n not in late], False), (sorted(late), True)):
            if numbers:
                several = self._near(partition, [records[number] for number in numbers], count, ended=ended)
                near.update(zip(numbers, several, strict=True))
        vectors = _stacked([records[number].vector for number in stating])
        for number, stored in sorted(near.items()):
            new, place = records[number].entry, bisect_left(stating, number)
            given = [records[other].entry for other in stating[:place]]
            if new.thread is not None and corrects(new.text):
                said = [*self._said_before(partition, records[number]), *given]
                before = [one for one in said if one.thread == new.thread][-1:]
                found[number] = [(one, self._most) for one in before if _comparable(one, new)]
                continue
            cosines = vectors[:place] @ vectors[place]
            best = [(float(cosines[other]), given[other]) for other in np.argsort(-cosines, kind="stable")[:count]]
            nearest = sorted([*stored, *best], key=lambda pair: -pair[0])[:count]
            pairs = [(cosine, one, (one, new) if one.at <= new.at else (new, one)) for cosine, one in nearest]
            rivals = [
                (one, min(self._most, _chance(old, by, cosine if self._fitted else None)))
                for cosine, one, (old, by) in pairs
                if _comparable(old, by)
            ]
            found[number] = sorted([r for r in rivals if r[1] >= MAYBE], key=lambda r: -r[1])[:MOST_RIVALS]
        return found

    def _late(self, partition: Partition, records: Sequence[NewEntry], numbers: Sequence[int]) -> set[int]:
        """Those of these records that are older than something stored or given before them."""
        with self._ram.bank([partition]) as (bank, _):
            newest, late = int(bank.at.max()) if len(bank) else None, set[int]()
        for number in numbers:
            at = to_micros(records[number].entry.at)
            if newest is not None and at < newest:
                late.add(number)
            newest = at if newest is None else max(at, newest)
        return late

    @staticmethod
    def _among_people(bank: Bank, thread: int | None, speaker: int) -> bool:
        """Whether a turn is of a dialogue in which someone else than an assistant answers: people talk about much
        that replaces nothing, so reflection reads such a dialogue at its end."""
        if thread is None:
            return False
        rows = np.flatnonzero(bank.thread == thread)
        others = bank.speaker[rows] != speaker
        others &= ~bank.has_trait(Trait.ASSISTANT, rows)
        return bool(others.any())

    def _may_rival(self, bank: Bank, row: int, at: datetime) -> bool:
        """Whether a row is not newer, or may replace what is older."""
        thread, speaker, said = (int(bank.column(name, slice(row, row + 1))[0]) for name in ("thread", "speaker", "at"))
        return said <= to_micros(at) or thread == NONE or not self._among_people(bank, thread, speaker)

    def _said_before(self, partition: Partition, record: NewEntry) -> list[Entry]:
        """The last statement of its thread that is stored, if there is one."""
        with self._ram.bank([partition]) as (bank, _):
            if self._among_people(bank, record.entry.thread, record.index.speaker):
                return []
            rows = np.flatnonzero(_fit(bank) & (bank.thread == record.entry.thread))
            last = rows[np.lexsort((bank.no[rows], bank.at[rows]))][-1:]
            nos, seqs = bank.named(last)
        return [*self._ram.entries.read(nos, seqs).values()]

    def _near(
        self, partition: Partition, records: Sequence[NewEntry], count: int, *, ended: bool
    ) -> list[list[tuple[float, Entry]]]:
        """For each record the statements nearest to it that hold now, or `ended` ones too, with their cosines."""
        near: list[tuple[list[int], list[float]]] = [([], []) for _ in records]
        fits = self._ram.fits()
        with self._ram.bank([partition]) as (bank, _):
            asked = [
                n
                for n, one in enumerate(records)
                if len(bank) and not self._among_people(bank, one.entry.thread, one.index.speaker)
            ]
            vectors = [vector for n in asked if (vector := records[n].vector) is not None]
            if not vectors or not fits:
                return [[] for _ in records]
            found = _nearest(bank, np.stack(vectors), _fit(bank, ended=ended), count)
            for n, (rows, cosines) in zip(asked, found, strict=True):
                if ended:
                    kept = [self._may_rival(bank, row, records[n].entry.at) for row in rows]
                    rows, cosines = rows[kept], cosines[kept]
                near[n] = bank.named(rows)[0], cosines.tolist()
            nos, seqs = bank.named(np.flatnonzero(np.bincount(np.concatenate([rows for rows, _ in found]))))
        entries = self._ram.entries.read(nos, seqs)
        return [[(cosine, entries[no]) for no, cosine in zip(*one, strict=True) if no in entries] for one in near]


def _nearest(bank: Bank, vectors: Matrix, fits: Mask, count: int) -> list[tuple[Rows, Scores]]:
    """For each vector the nearest rows with their cosines, among those that fit."""
    (index, _), found = bank.filled[0], list[tuple[Rows, Scores]]()
    likely = [near for vector in vectors if (near := index.likely(vector, count, passing=fits)) is not None]
    if len(likely) == len(vectors):
        for vector, near in zip(vectors, likely, strict=True):
            rows = near[fits[near]]
            cosine = bank.vectors(rows) @ vector
            best = np.argsort(-cosine, kind="stable")[:count]
            found.append((rows[best], cosine[best]))
        return found
    unfit = ~fits
    count, together = min(count, len(fits) - int(np.count_nonzero(unfit))), max(1, AT_ONCE // len(index))
    if not count:
        return [(np.empty(0, dtype=np.intp), np.empty(0, dtype=np.float32))] * len(vectors)
    for start in range(0, len(vectors), together):
        for cosine in vectors[start : start + together] @ index.vectors.T:
            cosine[unfit] = -np.inf
            rows = np.sort(highest(cosine, count))
            found.append((rows, cosine[rows]))
    return found


def _fit(bank: Bank, *, ended: bool = False) -> Mask:
    """The rows of statements that hold now, or of `ended` ones too."""
    everything = slice(None)
    fits = ~bank.has_trait(SILENT, everything)
    fits &= bank.alive[everything] & (ended | (bank.state[everything] != SUPERSEDED))
    fits &= np.isin(bank.kind[everything], _COMPARED_CODES)
    fits &= bank.chars[everything] <= LONGEST_CHARS
    return fits


def _states(record: NewEntry) -> bool:
    """Whether a record is a short statement of someone else than the assistant."""
    entry = record.entry
    return entry.kind in _COMPARED and len(entry.text) <= LONGEST_CHARS and not record.index.traits & SILENT


def _stacked(vectors: Sequence[Matrix | None]) -> Matrix:
    """A row for each vector, of zeros where there is none."""
    size = next((len(vector) for vector in vectors if vector is not None), 1)
    return np.stack([np.zeros(size, dtype=np.float32) if vector is None else vector for vector in vectors])


def _may_replace(record: NewEntry) -> bool:
    return may_replace(record.entry.text, spoken=record.entry.kind == "episode")


def _comparable(old: Entry, new: Entry) -> bool:
    """Whether one can replace the other: the same speaker, as far as known, and title, neither with an end of its own, not
    the same words, not older, and not after the other ended."""
    speakers = {old.speaker, new.speaker} - {None}
    same = len(speakers) < 2 and old.title == new.title and old.text != new.text
    same = same and old.at <= new.at and old.id != new.id and (old.valid_to is None or old.valid_to > new.valid_from)
    return (
        same and old.trust == new.trust and all(one.valid_to is None or one.state == "superseded" for one in (old, new))
    )


def _chance(old: Entry, new: Entry, cosine: float | None) -> float:
    """The probability that one replaces the other."""
    name = old.speaker or new.speaker or ""
    before, after = (told_by(name, one.text) if one.speaker is None else one.text for one in (old, new))
    if old.speaker != new.speaker and read(before).of_speaker != read(after).of_speaker:
        return 0.0  # a note that is not about the one who speaks
    named = name and all(one.speaker or one.text.casefold().startswith(name.casefold()) for one in (old, new))
    nearness = cosine - SAME_SPEAKER if cosine is not None and named else cosine
    spoken, noted = old.kind == new.kind == "episode", all(_is_note(one) for one in (old, new))
    return probability(before, after, spoken=spoken, noted=noted, nearness=nearness)


def _is_note(entry: Entry) -> bool:
    """Whether someone wrote it down about somebody, not a rule in the words of a turn."""
    return entry.kind != "episode" and entry.source != READ_BY_RULES and not read(entry.text).speaks_of_itself
