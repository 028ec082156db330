"""Practice: questions made from a tenant's own entries, whose answers are known, so that a cold start is sane.

| shape     | made from                                                        | right entries |
|-----------|------------------------------------------------------------------|---------------|
| `bridge`  | an entry, and one that it names by title or is linked to by hand | both          |
| `compare` | two entries with titles                                          | both          |
| `gather`  | a tag of several entries                                         | all of them   |

Every choice is tried on every question, and the rewards are where a policy begins. They count little and decide
nothing alone: such questions are simpler than those that people ask. Nothing is logged and nobody is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from wellworn.core.values import Entry, Recall, Scope
from wellworn.ingest.hashing import hash64
from wellworn.ingest.terms import words
from wellworn.learning.guard import Evidence
from wellworn.search.pipeline import Searcher
from wellworn.search.steps.choices import Choice, choices_for
from wellworn.search.steps.cues import Shape, shape_of
from wellworn.search.steps.plans import RulePlanner
from wellworn.search.steps.recall import Recursion, Router
from wellworn.search.steps.reward import Became, reward_of
from wellworn.search.steps.searches import Chosen, Searches
from wellworn.search.steps.trainer import Practice
from wellworn.store.port import Selection, Store

MOST_ENTRIES = 2000
"""Entries that tasks are made from."""
K = 5
_TELLING = 4
"""Words of an entry that a question has."""
_SHORTEST = 4
"""Letters of a word that may be told; shorter ones say little."""

Attempt = Callable[[str, Shape, Choice], tuple[Recall, int]]
"""A search by a choice, and the tokens it used."""
Linked = Callable[[str], Sequence[str]]
"""Ids of the entries that one is linked to by hand."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """A question with its right entries."""

    query: str
    shape: Shape
    right: frozenset[str]


def tasks_from(entries: Sequence[Entry], linked: Linked, *, count: int, seed: int) -> list[Task]:
    """At most `count` tasks, of every shape as many as of the others where there are enough; the same for a seed."""
    pool = sorted(entries, key=lambda entry: (hash64(f"{seed}:{entry.id}"), entry.id))
    sorts = [_bridges(pool, linked), _pairs(pool), _groups(pool)]
    tasks: dict[str, Task] = {}
    while sorts and len(tasks) < count:
        for sort in [*sorts]:
            task = next(sort, None)
            if task is None:
                sorts.remove(sort)
            elif len(tasks) < count and shape_of(task.query) == task.shape:
                tasks.setdefault(task.query, task)
    return list(tasks.values())


def practised(tasks: Sequence[Task], attempt: Attempt) -> Practice:
    """The rewards of every choice on every task, by shape."""
    rewards: dict[Shape, dict[Choice, Evidence]] = {}
    for task in tasks:
        found = rewards.setdefault(task.shape, {})
        for choice in choices_for(task.shape, RulePlanner()):
            recall, tokens = attempt(task.query, task.shape, choice)
            share = len(task.right & {hit.entry.id for hit in recall.hits}) / min(len(task.right), K)
            became = Became(kind="used", quality=min(share, 1.0)) if share else Became(kind="ignored")
            reward = reward_of(became, tokens)
            one = Evidence(n=1.0, total=reward, squares=reward * reward)
            found[choice] = found.get(choice, Evidence()).plus(one)
    return rewards


def practise(
    store: Store, searcher: Searcher, recursion: Recursion, searches: Searches, *, scope: Scope, count: int
) -> int:
    """Practise on what a scope sees, by rules whatever the planner; returns how many tasks there were.

    `searcher` is one that logs nothing. Nothing happens where it was practised before.
    """
    policy = searches.policy(scope.home())
    if policy.bootstrapped:
        return 0
    found = store.select(scope.partitions(), Selection(states=["active"]), limit=MOST_ENTRIES)
    router = Router(searcher, replace(recursion, planner=RulePlanner()))

    def linked(id: str) -> list[str]:
        edges = [link for link in store.links([id]) if not link.automatic]
        return [edge.target if edge.source == id else edge.source for edge in edges]

    def attempt(query: str, shape: Shape, choice: Choice) -> tuple[Recall, int]:
        return router.attempt(query, Chosen(shape=shape, choice=choice), scope=scope, k=K)

    tasks = tasks_from([entry for _, entry in found], linked, count=count, seed=policy.seed)
    rewards = practised(tasks, attempt)
    if tasks:
        searches.begin(scope.home(), rewards, len(tasks))
    return len(tasks)


def _bridges(pool: Sequence[Entry], linked: Linked) -> Iterator[Task]:
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
                query = f"What of {' '.join(there[:2])} has the one that is in {' '.join(here)}?"
                yield Task(query=query, shape=shape_of(query), right=frozenset({entry.id, other.id}))


def _pairs(pool: Sequence[Entry]) -> Iterator[Task]:
    titled = [entry for entry in pool if entry.title[:1].isupper()]
    for one, two in zip(titled[::2], titled[1::2], strict=False):
        yield Task(
            query=f"What is the difference between {one.title} and {two.title}?",
            shape="compare",
            right=frozenset({one.id, two.id}),
        )


def _groups(pool: Sequence[Entry]) -> Iterator[Task]:
    groups: dict[str, set[str]] = {}
    for entry in pool:
        for tag in entry.tags:
            groups.setdefault(tag, set()).add(entry.id)
    for tag, ids in groups.items():
        if len(ids) > 1:
            yield Task(query=f"List all of {tag}", shape="gather", right=frozenset(ids))


def _telling(entry: Entry, known: set[str]) -> list[str]:
    """Words of an entry that are not known, in their order: its longest, since long words are rare ones."""
    own = [word for word in dict.fromkeys(words(entry.text)) if word not in known and len(word) >= _SHORTEST]
    kept = sorted(own, key=lambda word: (-len(word), word))[:_TELLING]
    return [word for word in own if word in kept]
