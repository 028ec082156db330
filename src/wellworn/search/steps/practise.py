"""Practice: questions made from a scope's own entries, whose answers are known, so that learning does not start blind.

A question is made of an entry and one that it names by title or is linked to by hand. Every way of searching is tried on
it, and the rewards are what a policy begins with. They count little and decide nothing alone, since such questions are
simpler than those people ask. Nothing is logged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wellworn.core.values import Entry, Scope
from wellworn.ingest.hashing import hash64
from wellworn.ingest.terms import words
from wellworn.learning.guard import Evidence
from wellworn.search.filters import Filters
from wellworn.search.pipeline import Searcher
from wellworn.search.steps.router import Recursion, shape_of
from wellworn.search.steps.search import StepSearch
from wellworn.search.steps.trainer import CHOICES, TRIES, SearchOutcome, SearchPolicy, SearchTrainer, reward_of
from wellworn.store.port import Selection, Store

MOST_ENTRIES = 2000
COUNTS_AS = TRIES - 1
"""Practice counts as at most this many outcomes for each way: too few for a verdict."""
_TELLING, _SHORTEST = 4, 4
"""Words of an entry that a question has, and letters of such a word."""


def practise(store: Store, searcher: Searcher, trainer: SearchTrainer, *, scope: Scope, count: int) -> int:
    """Practise on what a scope sees, by rules; returns how many questions there were. Only once for each home.

    `searcher` is one that logs nothing.
    """
    home, policy = scope.home(), SearchPolicy()
    if trainer.begun(home).rewards:
        return 0
    steps = StepSearch(searcher, Recursion(), access=None, trainer=None)
    found = store.select(scope.partitions(), Selection(states=["active"]), limit=MOST_ENTRIES)
    pool = sorted((entry for _, entry in found), key=lambda entry: (hash64(f"{home}:{entry.id}"), entry.id))
    questions = dict(pair for pair, _ in zip(_questions(pool, store), range(count), strict=False))
    for query, right in questions.items():
        for choice in CHOICES:
            recall, tokens = steps.attempt(query, shape_of(query), choice, scope=scope, k=5, filters=Filters())
            share = len(right & {hit.entry.id for hit in recall.hits}) / len(right)
            outcome = SearchOutcome(kind="used", quality=share) if share else SearchOutcome(kind="ignored")
            policy = policy.plus(shape_of(query), choice, reward_of(outcome, tokens))
    if questions:
        rewards = {
            shape: {choice: Evidence().plus(seen, COUNTS_AS) for choice, seen in by_choice.items()}
            for shape, by_choice in policy.rewards.items()
        }
        trainer.begin(home, SearchPolicy(rewards=rewards))
    return len(questions)


def _questions(pool: Sequence[Entry], store: Store) -> Iterator[tuple[str, set[str]]]:
    """Questions with the ids of their right entries."""
    titled = {f" {' '.join(words(entry.title))} ": entry for entry in pool if entry.title.strip()}
    by_id = {entry.id: entry for entry in pool}
    for entry in pool:
        flat = f" {' '.join(words(entry.text))} "
        links = [link for link in store.links([entry.id]) if not link.automatic]
        ends = [by_id[end] for link in links for end in (link.source, link.target) if end in by_id and end != entry.id]
        ends += [other for title, other in titled.items() if title in flat and other.id != entry.id]
        for other in ends[:1]:
            hidden = {*words(other.title)}
            here = _telling(entry, hidden | {*words(other.text)})
            there = _telling(other, hidden | {*words(entry.text)})
            if here and there:
                yield f"What of {' '.join(there[:2])} has the one that is in {' '.join(here)}?", {entry.id, other.id}


def _telling(entry: Entry, known: set[str]) -> list[str]:
    """Words of an entry that are not known, in their order: its longest, since long words are rare ones."""
    own = [word for word in dict.fromkeys(words(entry.text)) if word not in known and len(word) >= _SHORTEST]
    kept = sorted(own, key=lambda word: (-len(word), word))[:_TELLING]
    return [word for word in own if word in kept]
