"""Searches that the router thought worth several steps: chosen by what was learned, written down, learned from.

Written with the recall log: a search waits in memory and reaches the store in the background, or with its outcome, in
that one's transaction. What became of it is told by `outcome`, by a context that it was put into, by the same question
asked anew, or by being left alone. Only `outcome` of people whose feedback is trusted is evidence for what serves (the
rest moves weights); those who become trusted bring what they told before. Nothing is tried on who tells nothing. Of
plain questions only those whose score is near the recursive ones are written down, and only of who tells outcomes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from wellworn.core.clock import Clock, aware
from wellworn.core.locks import ForkLock
from wellworn.core.values import Partition, Recall
from wellworn.ingest.hashing import hash64
from wellworn.ingest.terms import read_question
from wellworn.learning.learner import Learner
from wellworn.learning.outcome import OutcomeInput
from wellworn.search.steps.choices import Choice, choices_for
from wellworn.search.steps.cues import Shape
from wellworn.search.steps.lessons import INFERRED, SEARCHED
from wellworn.search.steps.plans import Planner
from wellworn.search.steps.reward import Became, became
from wellworn.search.steps.router import THRESHOLD, Route
from wellworn.search.steps.routing import REACH
from wellworn.search.steps.teaching import Teacher
from wellworn.search.steps.trainer import Policy, Practice
from wellworn.search.steps.trajectory import KIND, TAUGHT, TOLD, Trajectory, actions_of, trajectory_of
from wellworn.store.port import Store, Tx

MOST_KEPT = 200
"""Searches kept of a partition; the oldest go first."""
TRIM_EVERY = 32
MOST_PENDING = 512
MOST_PLAIN = 4096
"""Latest plain recalls of this process that are known to be none of ours without a look into the store."""
REFINED_WITHIN = timedelta(minutes=5)
REFINED_SHARE = 0.5
"""Share of the terms of the earlier question that the same question asked anew has."""
ABANDONED_AFTER = timedelta(minutes=30)
_TINY = 1e-9


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """How a question is searched."""

    shape: Shape
    choice: Choice = "planner"
    explored: bool = False
    score: float = 0.0
    """What the router gave the question."""
    near: bool = False
    """It is plain, or a try, beside the recursive ones: what becomes of it says something of routing alone."""


@dataclass(frozen=True, kw_only=True)
class _Last:
    """The search that a home asked for last, without its words."""

    trajectory: Trajectory
    terms: frozenset[int]


class Searches:
    """Chooses, keeps books and learns. Shares the learner's log and its mode."""

    def __init__(
        self,
        store: Store,
        learner: Learner,
        *,
        explore: float,
        clock: Clock,
        threshold: float = THRESHOLD,
        share: float = 1.0,
    ) -> None:
        """`threshold` and `share` say which questions may be recursive, as in `Recursion`."""
        self.teacher = Teacher(store, clock=clock)
        self._threshold = threshold
        self._share = share
        self._store = store
        self._learner = learner
        self._explore = explore
        self._clock = aware(clock)
        self._pending: OrderedDict[str, Trajectory] = OrderedDict()
        self._last: OrderedDict[Partition, _Last] = OrderedDict()
        self._written: dict[Partition, int] = {}
        self._plain: OrderedDict[str, None] = OrderedDict()
        self._lock = ForkLock()
        learner.log.beside(self)

    # -- choosing ------------------------------------------------------------------------------------------------

    def choose(self, query: str, routed: Route, home: Partition, planner: Planner) -> Chosen | None:
        """How a question is searched, by its score and what was learned; None: plainly, and nobody needs to know."""
        shape, score = routed.shape, routed.score
        may = within(self._share, home, query)
        if self._learner.mode != "on":
            chosen = Chosen(shape=shape, score=score, choice="planner" if may else "plain")
            return chosen if routed.recursive else None
        if score < self._threshold - REACH - _TINY:
            return None
        policy = self.policy(home)
        explore = self._explore if self._learner.serving(home).outcomes else 0.0
        if score < policy.routing.starts(shape, self._threshold):
            return self._beside(query, routed, policy, explore, may=may)
        if not may:
            return Chosen(shape=shape, score=score, choice="plain")
        choice, tried = policy.choose(shape, choices_for(shape, planner), query=query, explore=explore)
        return Chosen(shape=shape, score=score, choice=choice, explored=tried)

    def _beside(self, query: str, routed: Route, policy: Policy, explore: float, *, may: bool) -> Chosen | None:
        """A plain question: noted or tried where that can become evidence for routing."""
        shape, score = routed.shape, routed.score
        if not explore or not policy.routing.near(shape, score, self._threshold):
            return None
        if not may or not policy.tries(shape, score, query=query, explore=explore):
            return Chosen(shape=shape, score=score, choice="plain", near=True)
        serves = policy.family(shape).serves
        choice: Choice = "planner" if serves == "plain" else serves
        return Chosen(shape=shape, score=score, choice=choice, explored=True, near=True)

    def policy(self, home: Partition) -> Policy:
        """What serves a home."""
        return self.teacher.policy(home)

    # -- keeping books -------------------------------------------------------------------------------------------

    def asked(self, found: Recall, home: Partition, *, plain: bool) -> None:
        """A home asked something, on whatever route: that may say what became of its last search."""
        if plain:
            self._plain[found.id] = None
            if len(self._plain) > MOST_PLAIN:
                self._plain.popitem(last=False)
        if home not in self._last:
            return
        now = self._clock()
        with self._lock:
            last = self._last.pop(home, None)
        if last is None:
            return
        since = now - last.trajectory.at
        if since <= REFINED_WITHIN and _same(last.terms, found.query):
            self._inferred(last.trajectory, Became(kind="refined", by="session"))
        elif since >= ABANDONED_AFTER and self._learner.serving(home).outcomes:
            self._inferred(last.trajectory, Became(kind="ignored", by="session"))
        elif since < ABANDONED_AFTER:
            with self._lock:
                self._last.setdefault(home, last)

    def note(self, found: Recall, chosen: Chosen, home: Partition, *, tokens: int) -> None:
        """Write a search down; it reaches the store in the background. Of one that was near, only who is told of it
        says anything: what its session shows is not looked for."""
        trajectory = Trajectory(
            id=found.id,
            partition=home,
            query=found.query,
            shape=chosen.shape,
            choice=chosen.choice,
            explored=chosen.explored,
            at=self._clock(),
            actions=actions_of(found.trace),
            tokens=tokens,
            shown=tuple(hit.entry.id for hit in found.hits),
            depth=max((step.depth for step in found.trace), default=0),
            score=chosen.score,
            near=chosen.near,
            seconds=found.cost.seconds,
        )
        with self._lock:
            self._add(trajectory)
            if chosen.near:
                return
            self._last[home] = _Last(
                trajectory=replace(trajectory, query=""), terms=frozenset(read_question(found.query).terms)
            )
            while len(self._last) > MOST_PENDING:
                self._last.popitem(last=False)

    def assembled(self, recall_id: str, home: Partition, quality: float) -> None:
        """A search was put into a context, which has this share of its question's words."""
        with self._lock:
            last = self._last.get(home)
        if last is not None and last.trajectory.id == recall_id:
            self._inferred(last.trajectory, Became(kind="used", quality=quality, by="assembly"))

    def _inferred(self, trajectory: Trajectory, outcome: Became) -> None:
        with self._lock:
            self._add(replace(trajectory.ended(outcome), query=self._query_of(trajectory)))

    def _query_of(self, trajectory: Trajectory) -> str:
        waiting = self._pending.get(trajectory.id)
        return trajectory.query or ("" if waiting is None else waiting.query)

    def _add(self, trajectory: Trajectory) -> None:
        self._pending[trajectory.id] = trajectory
        while len(self._pending) > MOST_PENDING:
            self._pending.popitem(last=False)

    # -- writing, with the recall log ----------------------------------------------------------------------------

    @property
    def waits(self) -> bool:
        """Whether anything is on its way to the store."""
        return bool(self._pending)

    def write(self, tx: Tx) -> Callable[[], None]:
        """Put what is pending into a transaction; what is returned is to be called when that is committed.

        Searches of a partition that is gone, or that showed what is gone, are not written.
        """
        with self._lock:
            pending = [*self._pending.values()]
        partitions = list(dict.fromkeys(one.partition for one in pending))
        there = {
            partition
            for partition, head in zip(partitions, self._store.heads(partitions), strict=True)
            if head is not None
        }
        for one in pending:
            if one.partition in there:
                self._write(tx, one)
        return lambda: self._drop(pending)

    def _write(self, tx: Tx, one: Trajectory) -> None:
        kept = tx.record(one.partition, KIND, one.id)
        before = None if kept is None else trajectory_of(kept)
        if before is not None and (before.outcome is not None or one.outcome is None):
            return  # told meanwhile: what is told goes before what is inferred
        if before is not None:
            one = replace(one, query=before.query)
        if tx.put_record(one.record(self._clock())):
            if before is None:
                self._trim(tx, one.partition)
            if one.outcome is not None and self._learner.mode != "off" and tx.logged_recall(one.id) is not None:
                self.teacher.teach(tx, one.id, one.partition, one.lesson(trusted=False), kind=INFERRED)

    def _trim(self, tx: Tx, partition: Partition) -> None:
        count = self._written.get(partition, 0)
        self._written[partition] = count + 1
        if count % TRIM_EVERY == 0:
            held = self._store.records(partition=partition, kinds=[KIND], limit=MOST_KEPT + 10 * TRIM_EVERY)
            for old in held[MOST_KEPT - TRIM_EVERY :]:
                tx.drop_record(partition, KIND, old.key)

    def _drop(self, written: list[Trajectory]) -> None:
        with self._lock:
            for one in written:
                if self._pending.get(one.id) is one:
                    del self._pending[one.id]

    # -- learning ------------------------------------------------------------------------------------------------

    def told(self, tx: Tx, recall_id: str, told: OutcomeInput) -> None:
        """What became of a recall, in the transaction of its outcome; nothing when it was no such search."""
        if recall_id in self._plain:
            return
        recall = tx.logged_recall(recall_id)
        kept = None if recall is None else tx.record(recall.partition, KIND, recall_id)
        if kept is None:
            return
        before = trajectory_of(kept)
        if before.outcome is not None and before.outcome.by == "told":
            return
        with self._lock:
            last = self._last.get(before.partition)
            if last is not None and last.trajectory.id == recall_id:
                del self._last[before.partition]
        one = before.ended(became(told))
        trusted = self._learner.trusts(tx, one.partition)
        if self._learner.mode != "off":
            self.teacher.teach(tx, recall_id, one.partition, one.lesson(trusted=trusted), kind=SEARCHED)
        if trusted:
            self._mark_taught(tx, one)
        else:
            tx.put_record(one.record(self._clock()))

    def _mark_taught(self, tx: Tx, one: Trajectory) -> None:
        """What a trusted person told, now and before they were trusted, is evidence."""
        waiting = self._store.records(partition=one.partition, kinds=[KIND], states=[TOLD], limit=2 * MOST_KEPT)
        earlier = [trajectory_of(kept) for kept in waiting if kept.key != one.id]
        for lesson in (*(old for old in earlier if old.outcome is not None and old.outcome.by == "told"), one):
            tx.put_record(replace(lesson, state=TAUGHT).record(self._clock()))

    def begin(self, home: Partition, practice: Practice, tasks: int) -> None:
        """Begin with what synthetic tasks said."""
        self._learner.log.flush()
        self.teacher.begin(home, practice, tasks, last=self._learner.log.last_outcome(home.tenant))

    def kept(self, home: Partition, *, limit: int = 100) -> list[Trajectory]:
        """Searches of a home, newest first."""
        return [trajectory_of(one) for one in self._store.records(partition=home, kinds=[KIND], limit=limit)]


def _same(terms: frozenset[int], query: str) -> bool:
    """Whether a question is that one asked anew: much of the same words, though not the very same."""
    new = frozenset(read_question(query).terms)
    return bool(terms) and new != terms and len(terms & new) >= REFINED_SHARE * len(terms)


def within(share: float, home: Partition, query: str) -> bool:
    """Whether a question is among the share that may be recursive: always the same for who asks it."""
    dice = hash64(f"share:{home.tenant}\x1f{home.layer}\x1f{home.layer_id}\x1f{query}")
    return dice % 10_000 < 10_000 * share
