"""Practice: questions made from a scope's own entries, whose answers are known, so that learning does not start blind.

A question is made of an entry and one that it names by title or is linked to by hand, or of two titles to compare. Every
way of searching is tried on each; the rewards are what a policy begins with. They count little and decide nothing
alone, since such questions are simpler than those people ask. Nothing is logged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from wellworn.core.values import Entry, Scope
from wellworn.ingest.hashing import hash64
from wellworn.ingest.terms import words
from wellworn.learning.guard import Evidence
from wellworn.search.filters import Filters
from wellworn.search.pipeline import Searcher
from wellworn.search.steps.router import Recursion, Shape, shape_of
from wellworn.search.steps.search import StepSearch
from wellworn.search.steps.trainer import CHOICES, PRACTICE, SearchOutcome, SearchPolicy, SearchTrainer, reward_of
from wellworn.store.port import Selection, Store

MOST_ENTRIES = 2000
K = 5
_TELLING, _SHORTEST = 4, 4
"""Words of an entry that a question has, and letters of such a word."""

Linked = Callable[[str], Sequence[str]]
"""Ids of the entries that one is linked to by hand."""


@dataclass(frozen=True, kw_only=True)
class PracticeQuestion:
    """A question with its right entries."""

    query: str
    shape: Shape
    right: frozenset[str]


def practise(store: Store, searcher: Searcher, trainer: SearchTrainer, *, scope: Scope, count: int) -> int:
    """Practise on what a scope sees, by rules; returns how many questions there were. Only once for each home.

    `searcher` is one that logs nothing.
    """
    home = scope.home()
    if trainer.begun(home).rewards:
        return 0
    steps = StepSearch(searcher, Recursion(), access=None, trainer=None)
    found = store.select(scope.partitions(), Selection(states=["active"]), limit=MOST_ENTRIES)

    def linked(id: str) -> list[str]:
        edges = [link for link in store.links([id]) if not link.automatic]
        return [edge.target if edge.source == id else edge.source for edge in edges]

    questions = questions_from([entry for _, entry in found], linked, count=count, seed=hash64(str(home)))
    policy = SearchPolicy()
    for one in questions:
        for choice in CHOICES:
            recall, tokens = steps.attempt(one.query, one.shape, choice, scope=scope, k=K, filters=Filters())
            share = len(one.right & {hit.entry.id for hit in recall.hits}) / min(len(one.right), K)
            outcome = SearchOutcome(kind="used", quality=share) if share else SearchOutcome(kind="ignored")
            reward = reward_of(outcome, tokens)
            policy = policy.plus(one.shape, choice, Evidence(n=1.0, total=reward, squares=reward * reward))
    begun = SearchPolicy()
    for shape, seen in policy.rewards.items():
        for choice, evidence in seen.items():
            begun = begun.plus(shape, choice, evidence, PRACTICE)
    if questions:
        trainer.begin(home, begun)
    return len(questions)


def questions_from(entries: Sequence[Entry], linked: Linked, *, count: int, seed: int) -> list[PracticeQuestion]:
    """At most `count` questions, of both sorts in turn; the same for a seed."""
    pool = sorted(entries, key=lambda entry: (hash64(f"{seed}:{entry.id}"), entry.id))
    sorts = [_bridges(pool, linked), _pairs(pool)]
    found: dict[str, PracticeQuestion] = {}
    while sorts and len(found) < count:
        for sort in [*sorts]:
            one = next(sort, None)
            if one is None:
                sorts.remove(sort)
            elif len(found) < count:
                query, right = one
                found.setdefault(query, PracticeQuestion(query=query, shape=shape_of(query), right=frozenset(right)))
    return [*found.values()]


def _bridges(pool: Sequence[Entry], linked: Linked) -> Iterator[tuple[str, set[str]]]:
    titled = {f" {' '.join(words(entry.title))} ": entry for entry in pool if entry.title.strip()}
    by_id = {entry.id: entry for entry in pool}
    for entry in pool:
        flat = f" {' '.join(words(entry.text))} "
        ends = [by_id[id] for id in linked(entry.id) if id in by_id]
        ends += [other for title, other in titled.items() if title in flat and other.id != entry.id]
        for other in ends[:1]:
            hidden = {*words(other.title)}
            here = _telling(entry, hidden | {*words(other.text)})
            there = _telling(other, hidden | {*words(entry.text)})
            if here and there:
                yield f"What of {' '.join(there[:2])} has the one that is in {' '.join(here)}?", {entry.id, other.id}


def _pairs(pool: Sequence[Entry]) -> Iterator[tuple[str, set[str]]]:
    titled = [entry for entry in pool if entry.title[:1].isupper()]
    for one, two in zip(titled[::2], titled[1::2], strict=False):
        yield f"What is the difference between {one.title} and {two.title}?", {one.id, two.id}


def _telling(entry: Entry, known: set[str]) -> list[str]:
    """Words of an entry that are not known, in their order: its longest, since long words are rare ones."""
    own = [word for word in dict.fromkeys(words(entry.text)) if word not in known and len(word) >= _SHORTEST]
    kept = sorted(own, key=lambda word: (-len(word), word))[:_TELLING]
    return [word for word in own if word in kept]
