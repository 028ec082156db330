"""Chooses and orders entries for a prompt within a token budget, so that together they say as much as possible.

For candidates with relevance ρ (score / best score), the question's terms Q and all terms T, a chosen set S has

    value(S) = Σ v(t) over t in T that S has  +  Σ ρ(e) / Σ ρ over e in S        v = 0.1 w + 0.1 u

w and u each add up to 1; w(t) is the idf among the candidates for t in Q, u(t) the idf times the best ρ of an entry that
has t. Both sums are coverage, so value is monotone and submodular. A greedy pass takes the entry that adds most per
fourth root of its tokens: per token, tiny entries would win; by value alone, long ones. What is outdated waits for what is
more relevant: what replaced it. The order does not depend on the budget. A budget takes as many entries from its beginning
as fit, and cuts the next one if enough room is left; so a larger budget has everything that a smaller one has. Knows
neither stores nor how entries were found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput
from wellworn.core.fence import CLOSING, OPENING, fenced_block, fenced_lines
from wellworn.core.values import Entry, Hit, Recall, fence_item
from wellworn.core.wellformed import count_tokens
from wellworn.ingest.terms import read_question, record_of
from wellworn.ingest.validate import shown

ASKED, SAID, PER_TOKENS = 0.1, 0.1, 0.25
LEAST_NEW = 0.1
"""An entry adds nothing new if less than this share of its words, by weight, is new."""
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

    hits: tuple[Hit, ...]
    left_out: tuple[LeftOut, ...]
    text: str
    """The fenced block for a prompt, numbered from 0 as in `hits`; empty when nothing fits."""
    tokens: int
    max_tokens: int
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
        raise InvalidInput("max_tokens", f"{shown(max_tokens)} is not a whole number of at least 0")


def assemble(question: str, recalls: Sequence[Recall], *, max_tokens: int) -> Assembled:
    """A context from what recalls found."""
    checked_budget(max_tokens)
    order, rest = _greedy(question, _candidates(recalls))
    room = max_tokens - count_tokens(OPENING) - count_tokens(CLOSING)
    taken: list[_Candidate] = []
    for one in order:
        if one.cost > room:
            break
        room -= one.cost
        taken.append(one)
    hits, beyond = _in_order([one.hit for one in taken]), order[len(taken) :]
    if beyond and room >= LEAST_CUT:
        hits.append(beyond.pop(0).hit)
    left = [LeftOut(entry=one.hit.entry, why="budget") for one in beyond]
    left += [LeftOut(entry=one.hit.entry, why="nothing new") for one in rest]
    items = [fence_item(hit.entry, outdated=hit.outdated) for hit in hits]
    text = fenced_block(items, max_tokens=max_tokens)
    return Assembled(
        hits=tuple(hits),
        left_out=tuple(left),
        text=text,
        tokens=count_tokens(text),
        max_tokens=max_tokens,
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


def _weights(question: str, pool: Sequence[_Candidate]) -> dict[int, float]:
    """v of each term."""
    best: dict[int, float] = {}
    count: dict[int, int] = {}
    for one in pool:
        for term in sorted(one.terms):
            count[term] = count.get(term, 0) + 1
            best[term] = max(best.get(term, 0.0), one.relevance)
    idf = {term: math.log(1 + len(pool) / n) for term, n in count.items()}
    asked = {term: idf[term] for term in dict.fromkeys(read_question(question).terms) if term in idf}
    said = {term: idf[term] * best[term] for term in idf}
    all_asked, all_said = math.fsum(asked.values()) or 1.0, math.fsum(said.values()) or 1.0
    return {term: ASKED * asked.get(term, 0.0) / all_asked + SAID * said[term] / all_said for term in idf}


def _sum(weights: Mapping[int, float], terms: frozenset[int]) -> float:
    return math.fsum(weights[term] for term in terms)


def _greedy(question: str, pool: Sequence[_Candidate]) -> tuple[list[_Candidate], list[_Candidate]]:
    """The entries in the order they are taken, and those that add nothing new, best first."""
    weights, total = _weights(question, pool), sum(one.relevance for one in pool) or 1.0
    left, taken, has = list(pool), list[_Candidate](), frozenset[int]()
    while True:
        best, most = -1, -1.0
        for place, one in enumerate(left):
            more = _sum(weights, one.terms - has)
            if taken and more < LEAST_NEW * _sum(weights, one.terms):
                continue
            if one.hit.outdated and best >= 0:
                continue
            value = (more + one.relevance / total) / one.cost**PER_TOKENS
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
