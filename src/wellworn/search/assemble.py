"""Chooses and orders entries for a prompt within a token budget, so that together they say as much as possible.

For candidates with relevance ρ (score / best score), the question's terms Q and all terms T, a chosen set S has

    value(S) = 0.1 Σ w(t) over t in Q that S has  +  0.1 Σ u(t) over t in T that S has  +  Σ ρ(e) / Σ ρ over e in S

w and u each add up to 1; w(t) is the idf among the candidates, u(t) the idf times the best ρ of an entry that has t.
All three are coverage or sums, so value is monotone and submodular. A greedy pass takes the entry that adds most per
fourth root of its tokens: per token, tiny entries would win; by value alone, long ones. The order does not depend on the
budget. A budget takes as many entries from its beginning as fit, and cuts the next one if enough room is left; so a
larger budget has everything that a smaller one has. Knows neither stores nor how entries were found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from wellworn.core.errors import InvalidInput
from wellworn.core.fence import CLOSING, OPENING, fenced_lines
from wellworn.core.tokens import count_tokens
from wellworn.core.values import Entry, Hit, Recall, fence_item
from wellworn.ingest.terms import read_question, record_of

ASKED, SAID, PER_TOKENS = 0.1, 0.1, 0.25
LEAST_NEW = 0.1
"""An entry adds nothing new if less than this share of its words, by weight, is new and none of the question's is."""
LEAST_CUT = 20
"""An entry that does not fit is cut only if at least this many tokens are left."""
_ROOM = 10**9


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """An entry that is not in the context, and why: `budget`, or `nothing new` compared with what is there."""

    entry: Entry
    why: str


@dataclass(frozen=True, kw_only=True)
class Assembled:
    """A context: its entries in order, what was left out, and the recalls it came from."""

    question: str
    hits: tuple[Hit, ...]
    left_out: tuple[LeftOut, ...]
    text: str
    """The fenced block for a prompt, numbered from 0 as in `hits`; empty when nothing fits."""
    tokens: int
    max_tokens: int
    cut: bool
    """Whether the last entry is cut."""
    covered: float
    """The share of the question's words, by weight, that its uncut entries have."""
    recalls: tuple[Recall, ...]

    def __len__(self) -> int:
        return len(self.hits)

    def cited(self, numbers: Sequence[int]) -> dict[str, list[int]]:
        """Turn the numbers that an answer cites into places for `outcome`: recall id → places in its hits.

        Every recall is in it, with no places if none of its hits was cited.
        """
        for number in numbers:
            if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(self.hits):
                raise InvalidInput("cited", f"{number!r} is no place in the context", f"it has {len(self.hits)}")
        wanted = {self.hits[number].entry.id for number in numbers}
        return {
            recall.id: [place for place, hit in enumerate(recall.hits) if hit.entry.id in wanted]
            for recall in self.recalls
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class _Candidate:
    hit: Hit
    terms: frozenset[int]
    relevance: float
    cost: int


def checked_budget(max_tokens: object) -> None:
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 0:
        raise InvalidInput("max_tokens", f"{max_tokens!r} is not a whole number of at least 0")


def assemble(question: str, recalls: Sequence[Recall], *, max_tokens: int) -> Assembled:
    """A context from what recalls found."""
    checked_budget(max_tokens)
    pool = _candidates(recalls)
    asked = frozenset(read_question(question).terms)
    weights = _weights(pool, asked)
    order, rest = _greedy(pool, *weights)
    room = max_tokens - count_tokens(OPENING) - count_tokens(CLOSING)
    taken: list[_Candidate] = []
    for one in order:
        if one.cost > room:
            break
        room -= one.cost
        taken.append(one)
    hits, beyond = _in_order([one.hit for one in taken]), order[len(taken) :]
    cut = bool(beyond) and room >= LEAST_CUT
    if cut:
        hits.append(beyond[0].hit)
    left = [LeftOut(entry=one.hit.entry, why="budget") for one in beyond[int(cut) :]]
    left += [LeftOut(entry=one.hit.entry, why="nothing new") for one in rest]
    lines = (
        fenced_lines([fence_item(hit.entry, outdated=hit.outdated) for hit in hits], max_tokens=max_tokens)
        if hits
        else []
    )
    text = "\n".join([OPENING, *lines, CLOSING]) if lines else ""
    has = frozenset[int]().union(*(one.terms for one in taken)) if taken else frozenset[int]()
    return Assembled(
        question=question,
        hits=tuple(hits),
        left_out=tuple(left),
        text=text,
        tokens=count_tokens(text),
        max_tokens=max_tokens,
        cut=cut,
        covered=min(1.0, _sum(weights[0], has)),
        recalls=tuple(recalls),
    )


def _candidates(recalls: Sequence[Recall]) -> list[_Candidate]:
    """Each entry once, with its best relevance."""
    found: dict[str, _Candidate] = {}
    for recall in recalls:
        best = max((hit.score for hit in recall.hits), default=0.0)
        for hit in recall.hits:
            relevance = max(hit.score / best, 0.0) if best > 0 else 0.0
            known = found.get(hit.entry.id)
            if known is not None and known.relevance >= relevance:
                continue
            (line,) = fenced_lines([fence_item(hit.entry, outdated=hit.outdated)], max_tokens=_ROOM)
            found[hit.entry.id] = _Candidate(
                hit=hit,
                terms=frozenset(record_of(hit.entry).terms.tolist()),
                relevance=relevance,
                cost=count_tokens(line),
            )
    return sorted(found.values(), key=lambda one: (-one.relevance, one.hit.entry.id))


def _weights(pool: Sequence[_Candidate], asked: frozenset[int]) -> tuple[dict[int, float], dict[int, float], float]:
    """w, u and Σ ρ."""
    count: dict[int, int] = {}
    best: dict[int, float] = {}
    for one in pool:
        for term in one.terms:
            count[term] = count.get(term, 0) + 1
            best[term] = max(best.get(term, 0.0), one.relevance)
    idf = {term: math.log(1 + len(pool) / n) for term, n in count.items()}
    never = math.log(1 + 2 * max(len(pool), 1))  # asked for, and in no candidate
    return (
        _parts({term: idf.get(term, never) for term in sorted(asked)}),
        _parts({term: idf[term] * best[term] for term in sorted(idf)}),
        sum(one.relevance for one in pool),
    )


def _parts(values: dict[int, float]) -> dict[int, float]:
    total = sum(values.values())
    return {term: value / total for term, value in values.items()} if total else {}


def _sum(weights: dict[int, float], terms: frozenset[int]) -> float:
    return math.fsum(weights.get(term, 0.0) for term in terms)


def _greedy(
    pool: Sequence[_Candidate], asked: dict[int, float], said: dict[int, float], relevance: float
) -> tuple[list[_Candidate], list[_Candidate]]:
    """The entries in the order they are taken, and those that add nothing new, best first."""
    left, taken, has = list(pool), list[_Candidate](), frozenset[int]()
    while True:
        best, most = -1, -1.0
        for place, one in enumerate(left):
            new = one.terms - has
            wanted, more = _sum(asked, new), _sum(said, new)
            if not wanted and more < LEAST_NEW * _sum(said, one.terms):
                continue
            value = ASKED * wanted + SAID * more + (one.relevance / relevance if relevance else 0.0)
            value /= one.cost**PER_TOKENS
            if value > most:  # of equals the more relevant, which comes first
                best, most = place, value
        if best < 0:
            return taken, left
        taken.append(left.pop(best))
        has |= taken[-1].terms


def _in_order(hits: Sequence[Hit]) -> list[Hit]:
    """As taken, but parts of one thread are kept together, in their order, at the place of the first."""
    threads: dict[object, list[Hit]] = {}
    for hit in hits:
        entry = hit.entry
        key = entry.id if entry.thread is None else (entry.partition, entry.thread)
        threads.setdefault(key, []).append(hit)
    return [hit for group in threads.values() for hit in sorted(group, key=lambda hit: hit.entry.position or 0)]
