"""From what was found to what it names, hop by hop, and an order by what each entry adds.

A source p is a hit that was read; its path are the entries that led to it, and itself. For any row r:

    rare(r)       = Σ idf(t)³ over the question's terms in r / Σ idf(t)³ over all its terms that are found
    asked(r)      = 1 if the question mentions r's subject
    shares(p, r)  = 2 (1 - exp(-½ Σ rarity(n))) over names n of both that the question does not have
    only(p, r)    = shares(p, r) / Σ shares(p, ·): 1 where p leads nowhere else
    named(p, r)   = share of r's subject that is new to the question, if p's text mentions that subject
    covered(p, r) = Σ idf(t) over the question's terms in p's path and in r / Σ idf(t) over all its terms that are found
    gain(r)       = 4 rare + 3 asked + max_p  3 shares + 10 only + 4 named - 8 covered - ½ (score(p₀) - score(p))

A name is a word that few rows have; its rarity is 1 in two rows and falls to 0 with the logarithm of their number. The
subject of an entry is its title, or else the name that its text begins with. Subjects count min(Σ idf / 6, 1), since those of common words are mentioned by chance. `covered`
takes from r what its path says already (terms weigh 8 in the score).

An entry scores less than the one that led to it, and the best stays where it is. The best rows that sources led to are
the sources of the next hop. A question whose words one entry has needs no other: then nothing changes. Rows of one thread
are no bridges.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from wellworn.core.dataclass import dataclass
from wellworn.core.lazy import cached_property, regex
from wellworn.core.values import Entry
from wellworn.ingest.terms import record_of, terms, words
from wellworn.search.bank import Bank, Mask, Rows
from wellworn.search.context import Check, SearchContext
from wellworn.search.partition import NONE
from wellworn.search.score import Ranked

WEIGHTS = {"rare": 4.0, "asked": 3.0, "shares": 3.0, "named": 4.0, "only": 10.0, "covered": -8.0, "detour": -0.5}
FEW = (16, 3)
"""In how many rows a name may be: if it is written like one, and if not."""
MOST_NAMES = 200
"""Names of one source that are followed."""
BROUGHT_IN = 40
"""Rows outside the candidates that sources may bring in."""
READ = 40
"""Rows whose subjects and texts are compared with those of the sources."""
WHOLE = 0.9
"""A question of whose weight one entry has this share is whole."""
_MOST_SHARED, _SURE, _LINK_VALUE = 2.0, 6.0, 1.0
_UNFOLLOWED = ("contradicts", "supersedes")
_ASIDE = regex(r"\s*\([^)]*\)")
_LEADING, _SMALL = 8, 3
"""Words that a subject may have, and letters of one that may stand inside without a capital ("of", "van")."""
_NAMES_A_CHECK = 20

Values = npt.NDArray[np.float64]


class Reading:
    """What is compared of an entry, each computed once."""

    def __init__(self, entry: Entry, bank: Bank, asked: frozenset[int]) -> None:
        self.entry = entry
        self._bank = bank
        self._asked = asked

    @cached_property
    def text(self) -> str:
        return _flat(self.entry.text)

    @cached_property
    def subject(self) -> str:
        return _flat(subject_of(self.entry))

    @cached_property
    def _idfs(self) -> dict[int, float]:
        own = np.array([*dict.fromkeys(terms(self.subject))], dtype=np.uint64)
        counts = _spread(self._bank, own).tolist()
        return {term: _idf(self._bank.size, count) for term, count in zip(own.tolist(), counts, strict=True)}

    @cached_property
    def new(self) -> float:
        """How telling the subject is, times the share of it that the question does not have; 0 … 1."""
        total = sum(self._idfs.values())
        new = sum(idf for term, idf in self._idfs.items() if term not in self._asked)
        return min(total / _SURE, 1.0) * new / total if total else 0.0

    @cached_property
    def asked(self) -> float:
        """How telling the subject is, if the question has all of it."""
        whole = bool(self._idfs) and self._asked.issuperset(self._idfs)
        return min(sum(self._idfs.values()) / _SURE, 1.0) if whole else 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Source:
    """A hit that was read, with what it shares with which rows, and the rows it is linked to by hand."""

    row: int
    read: Reading
    score: float
    path: tuple[int, ...]
    """Rows from the first hit to this one."""
    shares: dict[int, float]
    links: frozenset[int]


class Bridges:
    """The sources of one search, and where they lead. `check` may stop it."""

    def __init__(self, context: SearchContext, check: Check) -> None:
        self._context = context
        self._bank = context.bank
        self._asked = frozenset(context.view.question.terms)
        self._check = check
        self._found = [(idf, having) for idf, having in context.view.lexical.found if len(having)]
        self._weights = np.array([idf for idf, _ in self._found])
        self._read: dict[int, Reading] = {}
        self.sources: list[Source] = []

    def read(self, rows: Rows) -> int:
        """Read the entries of rows; returns how many tokens the new ones have."""
        new = [row for row in rows.tolist() if row not in self._read]
        entries = self._context.read(np.array(new, dtype=np.intp))
        self._read.update({row: Reading(entry, self._bank, self._asked) for row, entry in entries.items()})
        return sum(entry.token_count for entry in entries.values())

    def entry(self, row: int) -> Entry | None:
        return self._read[row].entry if row in self._read else None

    def whole(self, row: int) -> bool:
        """Whether a row has the words of the question, so that no other is needed."""
        return not self._found or float(self._has([row])[0] @ self._weights) >= WHOLE * float(self._weights.sum())

    def with_rare(self, ranked: Ranked) -> Ranked:
        """The ranking with the factor `rare`."""
        weights = self._weights**3
        return ranked.with_factor("rare", self._has(ranked.rows) @ weights / weights.sum(), WEIGHTS["rare"])

    def follow(self, row: int, score: float, path: Sequence[int]) -> None:
        """Make a row that was read a source: follow its names and links."""
        if (read := self._read.get(row)) is None:
            return
        rarities: dict[int, float] = {}
        thread = self._thread(row)
        for number, having in enumerate(self._names(read.entry)):
            if number % _NAMES_A_CHECK == 0:
                self._check()
            rarity = _rarity(self._bank.size, len(having))
            for other in having.tolist():
                if other != row and (thread[1] == NONE or self._thread(other) != thread):
                    rarities[other] = rarities.get(other, 0.0) + rarity
        links = {
            target if source == row else source
            for source, target, type_, _ in self._context.linked(np.array([row], dtype=np.intp))
            if type_ not in _UNFOLLOWED
        }
        shares = {other: _MOST_SHARED * (1 - math.exp(-total / _MOST_SHARED)) for other, total in rarities.items()}
        links.discard(row)
        self.sources.append(
            Source(row=row, read=read, score=score, path=(*path, row), shares=shares, links=frozenset(links))
        )

    def brought_in(self) -> Rows:
        """The rows that share most with a source, or are linked to it."""
        best: dict[int, float] = {}
        for source in self.sources:
            for row, value in source.shares.items():
                best[row] = max(best.get(row, 0.0), value)
            best.update(dict.fromkeys(source.links, math.inf))
        return np.array(sorted(best, key=lambda row: (-best[row], row))[:BROUGHT_IN], dtype=np.intp)

    def worth_reading(self, ranked: Ranked) -> Rows:
        """The rows that are worth reading, as far as can be told without their texts."""
        shares, only = self._shares(ranked.rows)
        gains = WEIGHTS["shares"] * shares + WEIGHTS["only"] * only + WEIGHTS["covered"] * self._covered(ranked.rows)
        return ranked.rows[np.argsort(-(ranked.scores + gains.max(axis=1)), kind="stable")[:READ]]

    def ordered(self, ranked: Ranked) -> tuple[Ranked, dict[int, Source]]:
        """The ranking with the factors above, and the source that led to each row that one led to."""
        rows, base, every = ranked.rows, ranked.scores, np.arange(len(ranked.rows))
        place = {row: number for number, row in enumerate(rows.tolist())}
        own = np.array([source.score for source in self.sources])
        shares, only = self._shares(rows)
        named = self._named(rows)
        bridged = (shares > 0) | (named > 0)
        parts = {
            "shares": shares,
            "named": named,
            "only": only,
            "covered": self._covered(rows) * bridged.any(),
            "detour": (own.max() - own) * np.ones(shares.shape) * bridged.any(),
        }
        gain = sum((WEIGHTS[name] * values for name, values in parts.items()), np.zeros(shares.shape))
        for column, source in enumerate(self.sources):
            gain[[place[row] for row in source.path], column] = -np.inf  # nothing is its own bridge
        chosen, first = gain.argmax(axis=1), place[self.sources[int(own.argmax())].row]
        for name, values in parts.items():
            picked = values[every, chosen]
            picked[first] = 0.0
            ranked = ranked.with_factor(name, picked, WEIGHTS[name])
        led = bridged[every, chosen]
        led[first] = False
        ranked = ranked.with_factor("below", _below(base, ranked.scores, own[chosen], led), 1.0)
        asked = [self._read[row].asked if row in self._read else 0.0 for row in rows.tolist()]
        ranked = ranked.with_factor("asked", np.array(asked), WEIGHTS["asked"])
        return ranked, {int(rows[number]): self.sources[chosen[number]] for number in np.flatnonzero(led).tolist()}

    def _names(self, entry: Entry) -> Iterator[Rows]:
        """For each uncommon name of an entry that the question does not have, the rows that have it."""
        own = record_of(entry).terms
        own = own[~np.isin(own, np.array([*self._asked], dtype=np.uint64))]
        counts = _spread(self._bank, own)
        like = np.array(
            [term for word in f"{entry.title}. {entry.text}".split() if _is_name(word) for term in terms(word)],
            dtype=np.uint64,
        )
        most = np.where(np.isin(own, like), *FEW)
        for term in own[(counts > 1) & (counts <= most)][:MOST_NAMES].tolist():
            yield rows_with(self._bank, term)

    def _shares(self, rows: Rows) -> tuple[Values, Values]:
        """`shares` plus links, and `only`; each of shape (rows, sources)."""
        shares, only = np.zeros((len(rows), len(self.sources))), np.zeros((len(rows), len(self.sources)))
        place = {row: number for number, row in enumerate(rows.tolist())}
        for column, source in enumerate(self.sources):
            total = sum(source.shares.values())
            for row in source.shares.keys() & place.keys():
                shares[place[row], column] = source.shares[row]
                only[place[row], column] = source.shares[row] / total if total else 0.0
            for row in source.links & place.keys():
                shares[place[row], column] += _LINK_VALUE
        return shares, only

    def _has(self, rows: Sequence[int] | Rows) -> Values:
        """Whether each row has each of the question's terms that are found, shape (rows, terms)."""
        rows = np.asarray(rows, dtype=np.intp)
        flags, has = np.zeros(len(self._bank), dtype=bool), np.zeros((len(rows), len(self._found)))
        for column, (_, having) in enumerate(self._found):
            flags[having] = True
            has[:, column] = flags[rows]
            flags[having] = False
        return has

    def _covered(self, rows: Rows) -> Values:
        """`covered`, shape (rows, sources)."""
        has = self._has(rows) * self._weights / (self._weights.sum() or 1.0)
        paths = np.array([self._has(source.path).max(axis=0) for source in self.sources])
        covered: Values = has @ paths.T
        return covered

    def _named(self, rows: Rows) -> Values:
        """`named` for the rows whose entries were read, shape (rows, sources)."""
        named = np.zeros((len(rows), len(self.sources)))
        for place, row in enumerate(rows.tolist()):
            read = self._read.get(row)
            if read is None or not read.new:
                continue
            self._check()
            for column, source in enumerate(self.sources):
                thread = source.read.entry.thread
                if (thread is None or thread != read.entry.thread) and read.subject in source.read.text:
                    named[place, column] = read.new
        return named

    def _thread(self, row: int) -> tuple[int, int]:
        """The row's partition and its thread there."""
        at = np.array([row])
        return int(self._bank.owner(at)[0]), int(self._bank.thread[at][0])


def subject_of(entry: Entry) -> str:
    """What an entry is about: its title without what stands in brackets, or the name that its text begins with."""
    if entry.title:
        return _ASIDE.sub("", entry.title)
    found: list[str] = []
    for word in entry.text.lstrip("\"“'‘.… ").split()[:_LEADING]:
        core = word.strip("\"“”'‘’.,;:()")
        if not (_is_name(word) or (found and core.isalpha() and len(core) <= _SMALL)) or "(" in word:
            break
        found.append(core)
        if word[-1] in ',;:)"”' or (word[-1] == "." and len(core) > _SMALL) or core.endswith(("'s", "’s")):
            break
    while found and not _is_name(found[-1]):
        found.pop()
    return " ".join(found).removesuffix("'s").removesuffix("’s")


def rows_with(bank: Bank, term: int) -> Rows:
    """All rows that have a term."""
    found = [partition.postings.find(term)[0].astype(np.intp) + start for partition, start in bank.filled]
    return np.concatenate([np.empty(0, dtype=np.intp), *found])


def _below(base: Values, scores: Values, limit: Values, led: Mask) -> Values:
    """What is taken from rows that sources led to, so that each stays below its source, in the order it had."""
    floor = np.maximum(limit - 1.0, base)
    room, over = limit - floor, scores - floor
    squeezed = led & (room > 0) & (over > 0)
    safe = np.where(squeezed, room + over, 1.0)
    return np.where(squeezed, room * over / safe - over, 0.0)


def _is_name(word: str) -> bool:
    core = word.lstrip("\"“'‘(")
    return core[:1].isupper() or core[:1].isdigit()


def _flat(text: str) -> str:
    """Words with a space on either side of each, so that a phrase is found at word ends only."""
    return f" {' '.join(words(text))} "


def _spread(bank: Bank, own: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """In how many rows each of these terms is."""
    return sum((partition.postings.spread(own) for partition in bank.partitions), np.zeros(len(own), dtype=np.int64))


def _idf(size: int, count: int) -> float:
    return math.log(1 + (max(size - count, 0) + 0.5) / (count + 0.5))


def _rarity(size: int, count: int) -> float:
    return max(math.log(size / count) / math.log(size / 2), 0.0) if size > 2 and count < size else 0.0
