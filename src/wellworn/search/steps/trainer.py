"""Learns from outcomes which way of searching serves questions of each shape. Off unless `Recursion(learns=True)`.

    reward  = 1.0 · success + 0.3 · (1 - min(tokens / 100,000, 1)), within ±1
    success = the quality, when the result was used; 0.3 when the question was refined; -0.5 when it was ignored

Every search in several steps is recorded as a trajectory, under its recall's id. The policy is computed from the last
200 trajectories of a partition and what practice or an import put before them, so there is no other state to keep, and
what is forgotten is gone from it too. The planner's plan serves until another way has a higher mean reward by a bound
and is not below plain search. Feedback counts only while the learner trusts the person.

Practice (`practise`) makes questions of an entry and one that it names by title or is linked to by hand, and tries every
way of searching on them. It counts little and decides nothing alone: such questions are simpler than those people ask.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, get_args

from wellworn.core.clock import Clock
from wellworn.core.errors import InvalidInput, WellwornError
from wellworn.core.plain import from_plain, to_plain
from wellworn.core.values import Entry, LearningStatus, Partition, Recall, Scope, Searching, SearchStep
from wellworn.ingest.hashing import hash64
from wellworn.ingest.terms import words
from wellworn.learning.guard import Evidence
from wellworn.learning.learner import Learner
from wellworn.learning.outcome import OutcomeInput
from wellworn.learning.records import logged_recall
from wellworn.search.filters import Filters
from wellworn.search.pipeline import Searcher
from wellworn.search.steps.actions import Choice
from wellworn.search.steps.router import Recursion, Shape, shape_of
from wellworn.search.steps.search import StepSearch
from wellworn.store.port import Record, RecordFilter, Selection, Store

KIND, BEGUN = "search", "search_policy"
"""Kinds of records: a trajectory, and what a partition's policy begins with."""
CHOICES: tuple[Choice, ...] = get_args(Choice)
SUCCESS_WEIGHT, EFFICIENCY_WEIGHT, MOST_TOKENS = 1.0, 0.3, 100_000
SUCCESS = {"refined": 0.3, "ignored": -0.5, "none": 0.0}
ENOUGH_CITED = 2
"""Citations for full quality: what is searched in several steps needs more than one entry."""
TRIES, Z = 4, 1.25
"""Outcomes of a way before any verdict on it, and the standard errors by which it must be better."""
MOST_KEPT, TRIM_EVERY = 200, 32
MOST_ENTRIES = 2000
PRACTICE = TRIES - 1
"""Practice counts as at most this many outcomes for each way: too few for a verdict."""
_TELLING, _SHORTEST = 4, 4
"""Words of an entry that a practice question has, and letters of such a word."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class SearchOutcome:
    """What became of a search."""

    kind: Literal["used", "refined", "ignored", "none"]
    quality: float = 0.0
    """0 … 1, for `used` only."""


def outcome_of(reported: OutcomeInput) -> SearchOutcome:
    """Cited hits are a quality; none cited counts as ignored, and so does work that failed."""
    if reported.kind == "cited" and reported.places:
        return SearchOutcome(kind="used", quality=min(len(reported.places) / ENOUGH_CITED, 1.0))
    if reported.kind == "used":
        return SearchOutcome(kind="used", quality=float(reported.value["quality"]))
    if reported.kind == "verdict" and reported.value["success"]:
        return SearchOutcome(kind="used", quality=1.0)
    return SearchOutcome(kind="refined" if reported.kind == "refined" else "ignored")


def reward_of(outcome: SearchOutcome, tokens: int) -> float:
    """The reward of a search that used so many tokens."""
    success = SUCCESS.get(outcome.kind, outcome.quality)
    efficiency = 1.0 - min(tokens / MOST_TOKENS, 1.0)
    return max(-1.0, min(1.0, SUCCESS_WEIGHT * success + EFFICIENCY_WEIGHT * efficiency))


@dataclass(frozen=True, kw_only=True)
class SearchTrajectory:
    """One search in several steps: what was asked and done, what it cost, what became of it."""

    query: str
    shape: Shape
    choice: Choice
    tried: bool = False
    """Whether another way than the one that serves was tried."""
    steps: tuple[SearchStep, ...] = ()
    tokens: int = 0
    seconds: float = 0.0
    outcome: SearchOutcome | None = None
    reward: float | None = None


@dataclass(frozen=True, kw_only=True)
class SearchPolicy:
    """The rewards of each way of searching, for each shape of question."""

    rewards: Mapping[Shape, Mapping[Choice, Evidence]] = field(default_factory=dict)

    def seen(self, shape: Shape, choice: Choice) -> Evidence:
        return self.rewards.get(shape, {}).get(choice, Evidence())

    def plus(self, shape: Shape, choice: Choice, reward: float) -> SearchPolicy:
        """With one more reward."""
        one = Evidence(n=1.0, total=reward, squares=reward * reward)
        known = {**self.rewards.get(shape, {}), choice: self.seen(shape, choice).plus(one)}
        return SearchPolicy(rewards={**self.rewards, shape: known})

    def serves(self, shape: Shape) -> Choice:
        """The planner's way, unless another is proven better and is not below plain search."""
        plain = self.seen(shape, "plain")
        better = [
            choice
            for choice in CHOICES
            if self._beats_planner(shape, choice)
            and (choice == "plain" or plain.n < TRIES or self.seen(shape, choice).mean >= plain.mean)
        ]
        return max(better, key=lambda choice: self.seen(shape, choice).mean, default="planner")

    def _beats_planner(self, shape: Shape, choice: Choice) -> bool:
        one, two = self.seen(shape, choice), self.seen(shape, "planner")
        known = choice != "planner" and one.n >= TRIES and two.n >= TRIES
        return known and one.mean - two.mean > Z * math.hypot(one.error, two.error)

    def choose(self, shape: Shape, among: Sequence[Choice], *, dice: int, explore: float) -> tuple[Choice, bool]:
        """The way for a question, and whether it is a try; equal dice give equal choices.

        Plain search is tried first, since nothing may be worse; then what may be best for all that is known.
        """
        serves = self.serves(shape)
        if dice % 10_000 >= 10_000 * explore:
            return serves, False

        def hope(choice: Choice) -> tuple[bool, float, int]:
            seen = self.seen(shape, choice)
            may_be = seen.mean + 1 / math.sqrt(seen.n) if seen.n else math.inf
            return choice == "plain" and seen.n < TRIES, may_be, hash64(f"{dice}:{choice}")

        return max((choice for choice in among if choice != serves), key=hope), True


class SearchTrainer:
    """Chooses ways of searching, records searches, and computes policies from what became of them."""

    def __init__(self, store: Store, learner: Learner, recursion: Recursion, *, clock: Clock) -> None:
        self._store = store
        self._learner = learner
        self._explore = recursion.explore
        ruled = recursion.planner is None and recursion.models is None  # then their plan is no choice of its own
        self._among = [choice for choice in CHOICES if choice != "bridge" or not ruled]
        self._clock = clock
        self._written = 0

    def choose(self, query: str, shape: Shape, home: Partition) -> tuple[Choice, bool]:
        """How to search, and whether that is a try. Nothing is tried on people who report no outcomes."""
        if self._learner.mode != "on":
            return "planner", False
        status = self._learner.status(home)
        explore = self._explore if status.outcomes and not status.distrust else 0.0
        dice = hash64(f"{home}:{status.outcomes}:{query}")
        return self.policy(home).choose(shape, self._among, dice=dice, explore=explore)

    def record(self, found: Recall, home: Partition, shape: Shape, choice: Choice, tried: bool, tokens: int) -> None:
        """Write down how a recall was searched."""
        one = SearchTrajectory(
            query=found.query,
            shape=shape,
            choice=choice,
            tried=tried,
            steps=found.trace,
            tokens=tokens,
            seconds=found.cost.seconds,
        )
        self._write(found.id, home, one, self._clock(), [hit.entry.id for hit in found.hits])

    def end(self, recall_id: str, home: Partition, outcome: SearchOutcome) -> None:
        """Say what became of a search; the first report counts."""
        record = self._store.record(home, KIND, recall_id)
        before = None if record is None else from_plain(SearchTrajectory, record.body)
        if record is not None and before is not None and before.outcome is None:
            after = replace(before, outcome=outcome, reward=reward_of(outcome, before.tokens))
            self._write(recall_id, home, after, record.created_at, record.names)

    def _write(
        self, id: str, home: Partition, one: SearchTrajectory, created_at: datetime, shown: Sequence[str]
    ) -> None:
        record = Record(
            partition=home,
            kind=KIND,
            key=id,
            state="open" if one.outcome is None else "ended",
            body=to_plain(one),
            names=tuple(dict.fromkeys(shown)),  # it is forgotten with any of them
            created_at=created_at,
            updated_at=max(self._clock(), created_at),
        )
        try:
            if self._store.heads([home]) == [None]:  # a record must not bring back a partition that is forgotten
                return
            with self._store.transact() as tx:
                tx.put_records([record])
                if self._written % TRIM_EVERY == 0:
                    held = self._store.records(
                        RecordFilter(partition=home, kinds=[KIND], limit=MOST_KEPT + 10 * TRIM_EVERY)
                    )
                    for old in held[MOST_KEPT - TRIM_EVERY :]:
                        tx.drop_records(RecordFilter(partition=home, kinds=[KIND], keys=[old.key]))
        except WellwornError as error:  # a search that cannot be recorded must not stop the agent
            _logger.warning("a search is not recorded: %s", type(error).__name__)
        self._written += 1

    def trajectories(self, home: Partition) -> dict[str, SearchTrajectory]:
        """The recorded searches of a home by recall id, newest first."""
        kept = self._store.records(RecordFilter(partition=home, kinds=[KIND], limit=MOST_KEPT))
        return {one.key: from_plain(SearchTrajectory, one.body) for one in kept}

    def policy(self, home: Partition) -> SearchPolicy:
        """What serves a home: what it began with, and the rewards of its searches."""
        policy = self.begun(home)
        if self._learner.status(home).trusted:
            for one in self.trajectories(home).values():
                policy = policy if one.reward is None else policy.plus(one.shape, one.choice, one.reward)
        return policy

    def begun(self, home: Partition) -> SearchPolicy:
        """What practice, or a loaded state, said."""
        record = self._store.record(home, BEGUN, BEGUN)
        return SearchPolicy() if record is None else from_plain(SearchPolicy, record.body)

    def begin(self, home: Partition, policy: SearchPolicy) -> None:
        """Begin with this evidence, in the place of what the policy began with before."""
        now, body = self._clock(), to_plain(policy)
        with self._store.transact() as tx:
            tx.put_records([Record(partition=home, kind=BEGUN, key=BEGUN, body=body, created_at=now, updated_at=now)])

    def status(self, home: Partition) -> tuple[Searching, ...]:
        """How questions of each shape with any evidence are searched now."""
        policy = self.policy(home)
        return tuple(
            Searching(
                shape=shape,
                outcomes=round(sum(seen.n for seen in found.values())),
                serves=policy.serves(shape),
                rewards={choice: seen.mean for choice, seen in found.items()},
            )
            for shape, found in policy.rewards.items()
        )


class CombinedMemoryTrainer:
    """Both halves of learning: which entries are worth showing (`Learner`), and how to find them (`SearchTrainer`)."""

    def __init__(self, store: Store, learner: Learner, searches: SearchTrainer) -> None:
        self._store = store
        self._learner = learner
        self._searches = searches

    def outcome(self, recall_id: str, outcome: OutcomeInput, *, tenant: str | None) -> bool:
        """Learn from an outcome; False when one of this kind was reported before."""
        counts = self._learner.outcome(recall_id, outcome, tenant=tenant)
        recall = logged_recall(self._store, recall_id) if counts else None
        if recall is not None:
            self._searches.end(recall_id, recall.partition, outcome_of(outcome))
        return counts

    def status(self, home: Partition) -> LearningStatus:
        return replace(self._learner.status(home), searches=self._searches.status(home))

    def export(self, home: Partition) -> dict[str, Any]:
        """What was learned, as JSON: numbers and names of ways of searching, no text."""
        return {**self._learner.export(home), "searches": to_plain(self._searches.policy(home))}

    def load(self, home: Partition, state: dict[str, Any]) -> None:
        """Replace what was learned by an exported state; parts it does not have stay as they are."""
        try:
            policy = None if state.get("searches") is None else from_plain(SearchPolicy, state["searches"])
        except ValueError as error:
            raise InvalidInput(
                "state", f"its searches cannot be read: {error}", "give what `export` returned"
            ) from None
        self._learner.load(home, state)
        if policy is not None:
            self._searches.begin(home, policy)


def drop_searches(store: Store, tenant: str) -> int:
    """Remove the trajectories and policies of a tenant; returns how many records there were."""
    with store.transact() as tx:
        return tx.drop_records(RecordFilter(tenant=tenant, kinds=[KIND, BEGUN]))


# -- practice ---------------------------------------------------------------------------------------------------------


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
            shape: {choice: Evidence().plus(seen, PRACTICE) for choice, seen in by_choice.items()}
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
