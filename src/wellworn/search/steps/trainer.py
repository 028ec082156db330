"""Learns from outcomes which way of searching serves a person. Off unless `Recursion(learns=True)`.

    reward  = 1.0 · success + 0.3 · (1 - min(tokens / 100,000, 1)), within ±1
    success = the quality, when the result was used; 0.3 when the question was refined; -0.5 when it was ignored

Every search in several steps is recorded as a trajectory, under its recall's id. The policy is computed from the last
200 trajectories of a partition and what practice put before them, so there is no other state to keep, and what is
forgotten is gone from it too. The planner's plan serves until another way has a higher mean reward by a bound and is not
below plain search. Feedback counts only while the learner trusts the person.

Practice (`practise`) makes questions of an entry and one that it names by title or is linked to by hand, and tries every
way of searching on them. It counts little and decides nothing alone: such questions are simpler than those people ask.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import islice
from typing import get_args

from wellworn.core.clock import Clock
from wellworn.core.dataclass import dataclass
from wellworn.core.errors import WellwornError
from wellworn.core.hashes import hash64
from wellworn.core.plain import from_plain, to_plain
from wellworn.core.values import Entry, Partition, Recall, Scope, SearchStep
from wellworn.ingest.terms import words
from wellworn.learning.guard import Evidence
from wellworn.learning.learner import Learner
from wellworn.learning.records import MaySee, OutcomeInput
from wellworn.search.filters import Filters
from wellworn.search.pipeline import Searcher
from wellworn.search.steps.actions import Choice
from wellworn.search.steps.router import Recursion
from wellworn.search.steps.search import StepSearch
from wellworn.store.port import Record, RecordFilter, Selection, Store

KIND, BEGUN = "search", "search_policy"
"""Kinds of records: a trajectory, and what a partition's policy begins with."""
CHOICES: tuple[Choice, ...] = get_args(Choice)
SUCCESS_WEIGHT, EFFICIENCY_WEIGHT, MOST_TOKENS = 1.0, 0.3, 100_000
REFINED, IGNORED = 0.3, -0.5
ENOUGH_CITED = 2
"""Citations for full quality: what is searched in several steps needs more than one entry."""
TRIES, Z = 4, 1.25
"""Outcomes of a way before any verdict on it, and the standard errors by which it must be better."""
MOST_KEPT = 200
MOST_ENTRIES = 2000
PRACTICE = TRIES - 1
"""Practice counts as at most this many outcomes for each way: too few for a verdict."""
_TELLING = 4
"""Words of an entry that a practice question has."""

_logger = logging.getLogger(__name__)


def success_of(outcome: OutcomeInput) -> float:
    """Cited hits are a quality; none cited counts as ignored, and so does work that failed."""
    if outcome.kind == "cited" and outcome.places:
        return min(len(outcome.places) / ENOUGH_CITED, 1.0)
    if outcome.kind == "used":
        return float(outcome.value["quality"])
    if outcome.kind == "verdict" and outcome.value["success"]:
        return 1.0
    return REFINED if outcome.kind == "refined" else IGNORED


def reward_of(success: float, tokens: int) -> float:
    """The reward of a search that used so many tokens."""
    efficiency = 1.0 - min(tokens / MOST_TOKENS, 1.0)
    return max(-1.0, min(1.0, SUCCESS_WEIGHT * success + EFFICIENCY_WEIGHT * efficiency))


@dataclass(frozen=True, kw_only=True)
class SearchTrajectory:
    """One search in several steps: what was asked and done, what it cost, what became of it."""

    query: str
    choice: str
    steps: tuple[SearchStep, ...] = ()
    tokens: int = 0
    success: float | None = None
    """None until an outcome is reported."""
    reward: float | None = None


@dataclass(frozen=True, kw_only=True)
class SearchPolicy:
    """The rewards of each way of searching."""

    rewards: Mapping[str, Evidence] = field(default_factory=dict)

    def seen(self, choice: Choice) -> Evidence:
        return self.rewards.get(choice, Evidence())

    def plus(self, choice: str, reward: float) -> SearchPolicy:
        """With one more reward."""
        one = Evidence(n=1.0, total=reward, squares=reward * reward)
        return SearchPolicy(rewards={**self.rewards, choice: self.rewards.get(choice, Evidence()).plus(one)})

    def serves(self) -> Choice:
        """The planner's way, unless another is proven better and is not below plain search."""
        plain, planner = self.seen("plain"), self.seen("planner")

        def better(seen: Evidence) -> bool:
            known = min(seen.n, planner.n) >= TRIES and (plain.n < TRIES or seen.mean >= plain.mean)
            return known and seen.mean - planner.mean > Z * math.hypot(seen.error, planner.error)

        proven = [choice for choice in CHOICES if better(self.seen(choice))]  # the planner's is not better than itself
        return max(proven, key=lambda choice: self.seen(choice).mean, default="planner")

    def choose(self, *, dice: int, explore: float) -> Choice:
        """The way for a question, in a share `explore` of them a try; equal dice give equal choices.

        Plain search is tried first, since nothing may be worse; then what may be best for all that is known.
        """
        serves = self.serves()
        if dice % 10_000 >= 10_000 * explore:
            return serves

        def hope(choice: Choice) -> tuple[bool, float, int]:
            seen = self.seen(choice)
            may_be = seen.mean + 1 / math.sqrt(seen.n) if seen.n else math.inf
            return choice == "plain" and seen.n < TRIES, may_be, hash64(f"{dice}:{choice}")

        return max((choice for choice in CHOICES if choice != serves), key=hope)


class CombinedMemoryTrainer:
    """Both halves of learning: which entries are worth showing (the `Learner`), and by which way to search for them."""

    def __init__(self, store: Store, learner: Learner, recursion: Recursion, *, clock: Clock) -> None:
        self._store = store
        self._learner = learner
        self._explore = recursion.explore
        self._clock = clock

    def choose(self, query: str, home: Partition) -> Choice:
        """How to search. Nothing is tried on people who report no outcomes."""
        if self._learner.mode != "on":
            return "planner"
        status = self._learner.status(home)
        explore = self._explore if status.outcomes and not status.distrust else 0.0
        return self.policy(home).choose(dice=hash64(f"{home}:{status.outcomes}:{query}"), explore=explore)

    def record(self, found: Recall, home: Partition, choice: Choice, tokens: int) -> None:
        """Write down how a recall was searched, and drop the oldest search that is too many."""
        one = SearchTrajectory(query=found.query, choice=choice, steps=found.trace, tokens=tokens)
        now, shown = self._clock(), tuple(dict.fromkeys(hit.entry.id for hit in found.hits))
        record = Record(  # it is forgotten with any entry that was shown
            partition=home, kind=KIND, key=found.id, body=to_plain(one), names=shown, created_at=now, updated_at=now
        )
        try:
            if self._store.heads([home]) == [None]:  # a record must not bring back a partition that is forgotten
                return
            with self._store.transact() as tx:
                tx.put_records([record])
                held = tx.records(RecordFilter(partition=home, kinds=[KIND], limit=MOST_KEPT + 1))
                if len(held) > MOST_KEPT:
                    tx.drop_records(RecordFilter(partition=home, kinds=[KIND], keys=[held[-1].key]))
        except WellwornError as error:  # a search that cannot be recorded must not stop the agent
            _logger.warning("a search is not recorded: %s", type(error).__name__)

    def outcome(self, recall_id: str, outcome: OutcomeInput, *, may_see: MaySee) -> bool:
        """Learn from an outcome; False when one of this kind was reported before. A search has its first one."""
        if not self._learner.outcome(recall_id, outcome, may_see=may_see):
            return False
        for record in self._store.records(RecordFilter(kinds=[KIND], keys=[recall_id])):
            search = from_plain(SearchTrajectory, record.body)
            if search.reward is None:
                success = success_of(outcome)
                ended = replace(search, success=success, reward=reward_of(success, search.tokens))
                with self._store.transact() as tx:
                    tx.put_records([replace(record, body=to_plain(ended))])
        return True

    def trajectories(self, home: Partition) -> dict[str, SearchTrajectory]:
        """The recorded searches of a home by recall id, newest first."""
        kept = self._store.records(RecordFilter(partition=home, kinds=[KIND], limit=MOST_KEPT))
        return {one.key: from_plain(SearchTrajectory, one.body) for one in kept}

    def policy(self, home: Partition) -> SearchPolicy:
        """What serves a home: what it began with, and the rewards of its searches."""
        policy = self.begun(home)
        if self._learner.status(home).trusted:
            for one in self.trajectories(home).values():
                policy = policy if one.reward is None else policy.plus(one.choice, one.reward)
        return policy

    def begun(self, home: Partition) -> SearchPolicy:
        """What practice said; nothing where another release wrote it."""
        record = self._store.record(home, BEGUN, BEGUN)
        try:
            return SearchPolicy() if record is None else from_plain(SearchPolicy, record.body)
        except ValueError:
            return SearchPolicy()

    def begin(self, home: Partition, policy: SearchPolicy) -> None:
        """Begin with this evidence, in the place of what the policy began with before."""
        now, body = self._clock(), to_plain(policy)
        with self._store.transact() as tx:
            tx.put_records([Record(partition=home, kind=BEGUN, key=BEGUN, body=body, created_at=now, updated_at=now)])


def drop_searches(store: Store, tenant: str) -> None:
    """Remove the trajectories and policies of a tenant."""
    with store.transact() as tx:
        tx.drop_records(RecordFilter(tenant=tenant, kinds=[KIND, BEGUN]))


# -- practice ---------------------------------------------------------------------------------------------------------


def practise(store: Store, searcher: Searcher, trainer: CombinedMemoryTrainer, *, scope: Scope, count: int) -> int:
    """Practise on what a scope sees, by rules; returns how many questions there were. Only once for each home.

    `searcher` is one that logs nothing.
    """
    home, policy = scope.home(), SearchPolicy()
    if trainer.begun(home).rewards:
        return 0
    steps = StepSearch(searcher, Recursion(), access=None, trainer=None)
    found = store.select(scope.partitions(), Selection(states=["active"]), limit=MOST_ENTRIES)
    pool = sorted((entry for _, entry in found), key=lambda entry: (hash64(f"{home}:{entry.id}"), entry.id))
    questions = dict(islice(_questions(pool, store), count))
    for query, right in questions.items():
        for choice in CHOICES:
            recall, tokens = steps.attempt(query, choice, scope=scope, k=5, filters=Filters())
            share = len(right & {hit.entry.id for hit in recall.hits}) / len(right)
            policy = policy.plus(choice, reward_of(share or IGNORED, tokens))
    if questions:
        rewards = {choice: Evidence().plus(seen, PRACTICE) for choice, seen in policy.rewards.items()}
        trainer.begin(home, SearchPolicy(rewards=rewards))
    return len(questions)


def _questions(pool: Sequence[Entry], store: Store) -> Iterator[tuple[str, set[str]]]:
    """Questions with the ids of their right entries."""
    titled = {f" {' '.join(words(entry.title))} ": entry for entry in pool if entry.title.strip()}
    by_id = {entry.id: entry for entry in pool}
    for entry in pool:
        flat = f" {' '.join(words(entry.text))} "
        links = [link for link in store.links([entry.id]) if not link.automatic]
        ends = [by_id[end] for link in links for end in (link.source, link.target) if end in by_id]
        ends += [other for title, other in titled.items() if title in flat]
        for other in [one for one in ends if one.id != entry.id][:1]:
            here, there = (_telling(one, two, other.title) for one, two in ((entry, other), (other, entry)))
            if here and there:
                yield f"What of {' '.join(there[:2])} has the one that is in {' '.join(here)}?", {entry.id, other.id}


def _telling(entry: Entry, other: Entry, title: str) -> list[str]:
    """The longest words that only the first of two entries has: long words are rare ones."""
    own = {*words(entry.text)} - {*words(other.text), *words(title)}
    return sorted(own, key=lambda word: (-len(word), word))[:_TELLING]
