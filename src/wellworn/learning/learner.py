"""Learning from outcomes: each outcome is one transaction that appends it to the log and moves the learned state.

The arithmetic is `policy.advance`. As it arrives or replayed from the log, an outcome is the same step over the same
numbers, so a replay rebuilds the same weights bit for bit. The paper's reranker (`reranker`) is None by default.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from wellworn.core.cache import LruCache
from wellworn.core.clock import Clock, aware
from wellworn.core.errors import InvalidInput, NotFound
from wellworn.core.values import CurvePoint, Entry, LearningStatus, Partition
from wellworn.ingest.hashing import hash64
from wellworn.ingest.terms import read_question
from wellworn.learning.guard import Z_GAIN, Evidence
from wellworn.learning.log import LearningLog
from wellworn.learning.outcome import OutcomeInput, judged
from wellworn.learning.past import MOST_RECALLS, PersonPast, attributes_of
from wellworn.learning.policy import Advanced, Person, Prior, Replay, advance, serving
from wellworn.learning.ranker import Example, Ranker, example_of
from wellworn.learning.records import (
    LoggedOutcome,
    LoggedRecall,
    add_outcome,
    drop_policies,
    every_outcome,
    last_outcome,
    put_policy,
    recent_outcomes,
    stored_policies,
    stored_policy,
)
from wellworn.learning.state import SETTINGS, Tenant, dumps_state, dumps_tenant, loads_state, loads_tenant, places_of
from wellworn.store.events import Event, audit
from wellworn.store.port import Tx, Vector

if TYPE_CHECKING:
    from wellworn.learning.reranker import MatrixReranker
    from wellworn.learning.residual import Residual

MODES = ("on", "observe", "off")
TEACHES = ("cited", "ignored", "refined")
"""Kinds of outcome that say which of the shown entries were useful; a refined query says that none was. `used` does not
say which: credited to all that was shown, it rewards being shown (measured: Recall@5 23.1 to 16.3)."""
MOST_HELD = 500
"""States of a kind held in memory."""
CURVE_OUTCOMES = 20
"""Outcomes that the citation rate of the curve is taken over."""

Labelled = Sequence[tuple[LoggedRecall | None, Sequence[str]]]
"""Recalls with the ids of the right entries."""


def checked_mode(mode: object) -> str:
    if mode not in MODES:
        raise InvalidInput("learning", f"{mode!r} is unknown", f"use one of {', '.join(MODES)}")
    return str(mode)


@dataclass(frozen=True, kw_only=True)
class Serving:
    """What serves a partition now, as a recall needs it."""

    level: str = "base"
    ranker: Ranker | None = None
    """None: the untrained ranking."""
    outcomes: int = 0
    """Outcomes it rests on; 0 while feedback is distrusted or only observed, so that nothing is tried on the person."""
    past: PersonPast | None = None
    matrices: Residual | None = None
    """Only with a `MatrixReranker`: they replace the ranker."""


class Learner:
    """Turns outcomes into learned states. `names` are the features that recalls are logged with.

    States belong to a profile: a correction is learned for the base scores of one profile, so only recalls that it
    ranked teach it.
    """

    def __init__(
        self,
        log: LearningLog,
        *,
        mode: str,
        names: Sequence[str],
        clock: Clock,
        profile: str = "default",
        explore: float = 0.0,
        start: Prior | None = None,
        reranker: MatrixReranker | None = None,
    ) -> None:
        """`explore` is the share of recalls whose last place tries another candidate. `start` is the prior of tenants
        that have none of their own yet."""
        self.mode = mode
        self.log = log
        self._store = log.store
        self.names = list(names)
        self.profile = profile
        self.explore = explore
        self._clock = aware(clock)
        self._start = start or Prior()
        self._reranker = reranker
        # Each with the text or the objects that it was made from: most are read again as they were.
        self._priors: LruCache[str, tuple[str | None, Prior]] = LruCache(MOST_HELD)
        self._people: LruCache[Partition, tuple[str | None, Person | None]] = LruCache(MOST_HELD)
        self._serving: LruCache[Partition, tuple[Prior, Person | None, Serving]] = LruCache(MOST_HELD)
        self._pasts: LruCache[Partition, tuple[Person, PersonPast]] = LruCache(MOST_HELD)

    def close(self) -> None:
        self.log.close()

    # -- serving -------------------------------------------------------------------------------------------------

    def serving(self, partition: Partition) -> Serving:
        """What serves this partition, as of now in every process."""
        if self.mode == "off":
            return Serving()
        prior, person = self._read(partition)
        held = self._serving.get(partition)
        if held is None or held[0] is not prior or held[1] is not person:
            held = (prior, person, self._serves(partition, prior, person))
            self._serving.put(partition, held)
        return held[2]

    def _serves(self, partition: Partition, prior: Prior, person: Person | None) -> Serving:
        past = None if person is None else self._past_of(partition, person)
        if self.mode != "on":
            return Serving(past=past)
        level, ranker = serving(prior, person)
        outcomes = 0 if person is None or person.distrust() else person.outcomes
        if self._reranker is not None:
            return Serving(level="person", outcomes=outcomes, past=past, matrices=self._reranker.serving(partition))
        return Serving(level=level, ranker=ranker, outcomes=outcomes, past=past)

    def tried_place(self, now: Serving, terms: Sequence[int], spare: int) -> int | None:
        """Which of the `spare` candidates after the last place is tried in it, if any: by a hash of the query and of how
        much was learned, so that a run can be repeated. Nothing is tried on people who report no outcomes."""
        if not self.explore or not now.outcomes:
            return None
        dice = hash64(f"{now.outcomes}:{terms}")
        return dice // 1000 % spare if dice % 1000 < 1000 * self.explore else None

    def _past_of(self, partition: Partition, person: Person) -> PersonPast:
        """A person's past outcomes; read again when another process added or removed some."""
        held = self._pasts.get(partition)
        if held is None or held[0] is not person or len(held[1]) > 2 * MOST_RECALLS:
            past, since = PersonPast(), self._settings(partition.tenant).since
            recent = recent_outcomes(self._store, partition, recalls=MOST_RECALLS, after=since)
            recent = [one for one in recent if one.kind in TEACHES and one.recall.profile == self.profile]
            shown = {no for one in recent for no in one.recall.nos[: one.recall.shown]}
            entries = self._store.read([*shown])
            for one in recent:
                _add(past, one.recall, one.value.get("nos", ()), entries)
            held = (person, past)
            self._pasts.put(partition, held)
        return held[1]

    def forget(self, nos: Iterable[int]) -> None:
        """Rows are gone: pending recalls must not name them, and no question about them is kept."""
        self._pasts.clear()
        self._serving.clear()
        self.log.forget(nos)

    # -- outcomes ------------------------------------------------------------------------------------------------

    def outcome(self, recall_id: str, outcome: OutcomeInput, *, tenant: str | None) -> bool:
        """Append an outcome to the log and learn from it; False when one of this kind was reported before."""
        query = self.prepare(recall_id, outcome)
        with self._store.transact() as tx:
            counts, committed = self.outcome_in(tx, recall_id, outcome, tenant=tenant, query=query)
        committed()
        return counts

    def prepare(self, recall_id: str, outcome: OutcomeInput) -> Vector | None:
        """The query's vector where learning needs it; call this before the transaction, because embedding is slow."""
        if self._reranker is None or outcome.kind not in TEACHES:
            return None
        recall = self.log.find(recall_id)
        return None if recall is None or not self._ours(recall) else self._reranker.embed(recall.query)

    def outcome_in(
        self, tx: Tx, recall_id: str, outcome: OutcomeInput, *, tenant: str | None, query: Vector | None = None
    ) -> tuple[bool, Callable[[], None]]:
        """`outcome` within a transaction; call the second result once that is committed."""
        now = self._clock()
        recall, alive, written = self.log.write_for(tx, recall_id)
        if recall is None or (tenant is not None and recall.partition.tenant != tenant):
            raise NotFound("recall", recall_id, "outcomes are told of recalls made with learning on or observing")
        rows = outcome.rows(recall)
        value = {"nos": rows} if outcome.kind == "cited" else outcome.value
        if add_outcome(tx, recall_id, recall.partition, outcome.kind, value, now) is None:
            return False, written
        if outcome.kind == "cited":
            tx.count_use(rows, now)
        elif outcome.kind == "verdict":
            for entry in self._store.read(rows).values():
                tx.update(judged(entry, outcome.value["success"], now), change=None)
        if outcome.kind not in TEACHES or self.mode == "off" or not self._ours(recall):
            return True, written
        cited = set(value.get("nos", ()))
        step = self._learn(tx, recall, cited, alive, query, now)

        def committed() -> None:
            written()
            if step is not None:
                self._grow_past(recall, cited, *step)

        return True, committed

    def _learn(
        self, tx: Tx, recall: LoggedRecall, cited: set[int], alive: set[int], query: Vector | None, now: datetime
    ) -> tuple[Person | None, Person] | None:
        """The person before and after it; None when it teaches nothing."""
        partition, tenant = recall.partition, recall.partition.tenant
        example = self._example(recall, cited, alive)
        if example is None:
            return None
        texts = stored_policies(tx, partition, [SETTINGS, self.profile])
        settings, prior_text = loads_tenant(texts.get((SETTINGS, None))), texts.get((self.profile, None))
        prior = self._beginning(settings) if prior_text is None else self._prior_in(tenant, prior_text)
        if prior.shares != settings.shares:
            prior = replace(prior, shares=settings.shares)
        before = self._person_in(partition, texts.get((self.profile, partition)))
        step = advance(prior, before, example, past=lambda: self._past(partition, settings.since), at=now)
        if prior_text is None or step.prior is not prior:
            self._put_prior(tx, tenant, step.prior)
        self._put_person(tx, partition, step.person)
        self._record_switch(tx, tenant, step, now)
        if self._reranker is not None and query is not None:
            self._reranker.learn(tx, recall, query, cited)
        return before, step.person

    def _grow_past(self, recall: LoggedRecall, cited: set[int], before: Person | None, after: Person) -> None:
        """An outcome is committed: add it to what is held here, unless another process came in between."""
        held = self._pasts.get(recall.partition)
        if held is not None and held[0] is before:
            _add(held[1], recall, cited, self._store.read(recall.nos[: recall.shown]))
            self._pasts.put(recall.partition, (after, held[1]))

    def _record_switch(self, tx: Tx, tenant: str, step: Advanced, now: datetime) -> None:
        """Every switch of what serves is an event in the audit log."""
        if step.switched is not None:
            gain, (before, after) = step.person.guard.gain, step.switched
            detail: dict[str, Any] = {"from": before, "to": after, "why": step.why, "outcomes": step.person.outcomes}
            detail |= {"gain": round(gain.mean, 4), "bound": round(_sure(gain), 4)}
            audit(tx, Event(at=now, tenant=tenant, action="learn", detail=detail))

    # -- replay --------------------------------------------------------------------------------------------------

    def replay(self, tenant: str, settings: Tenant | None = None) -> Replay:
        """A tenant's log since its last reset, to be learned from the start."""
        settings = settings or self._settings(tenant)
        return Replay(
            prior=self._beginning(settings), last=settings.since, read=lambda after: self._examples(tenant, after=after)
        )

    def relearn(self, tenant: str, labelled: Labelled | None = None, *, whole: bool = False) -> None:
        """Learn the log since the last reset again, or with `whole` all of it, which undoes the reset.

        Labelled recalls are learned first, into the prior. They replace those that were given before; None leaves
        these as they are.
        """
        self.log.flush()
        before = self._settings(tenant)
        settings = self._changed(before, labelled, whole)
        replay = self.replay(tenant, settings)
        matrices = _exhausted(replay) if self._reranker is None else self._reranker.relearned(replay)
        with self._store.transact() as tx:
            now = self._settings(tenant, tx)
            if now != before:  # reset, or sharing was switched, while this was learned
                settings = self._changed(now, labelled, whole)
                replay, matrices = self.replay(tenant, settings), {}
            _exhausted(replay)  # outcomes reported while the rest was learned
            drop_policies(tx, tenant, profile=self.profile)
            self._put_settings(tx, tenant, settings)
            if self._reranker is not None:
                self._reranker.put_all(tx, tenant, matrices)
            self._put_prior(tx, tenant, replay.prior)
            for partition, person in replay.people.items():
                self._put_person(tx, partition, person)
            audit(tx, Event(at=self._clock(), tenant=tenant, action="relearn", detail={"people": len(replay.people)}))

    def curve(self, partition: Partition) -> list[CurvePoint]:
        """How one person's learning came to where it is: one point per outcome since the last reset."""
        points: list[CurvePoint] = []
        recent: deque[float] = deque(maxlen=CURVE_OUTCOMES)
        for outcome, example, person in self.replay(partition.tenant).steps():
            if outcome.recall.partition != partition:
                continue
            recent.append(float(example.cited.mean()))
            gain = person.guard.gain
            points.append(
                CurvePoint(
                    number=len(points) + 1,
                    at=outcome.at,
                    cited_rate=sum(recent) / len(recent),
                    gain=gain.mean,
                    bound=_sure(gain),
                    level=person.level,
                    weights=dict(zip(self.names, person.own.weights.tolist(), strict=True)),
                )
            )
        return points

    def _examples(
        self, tenant: str, partition: Partition | None = None, after: int = 0
    ) -> Iterator[tuple[LoggedOutcome, Example]]:
        """Every outcome that teaches, with what it teaches today: forgotten entries are left out."""
        for one in every_outcome(self._store, tenant, partition, after=after):
            if one.kind in TEACHES and self._ours(one.recall):
                example = self._example(one.recall, set(one.value.get("nos", ())), self._store.alive(one.recall.nos))
                if example is not None:
                    yield one, example

    def _past(self, partition: Partition, since: int) -> Iterator[Example]:
        """A person's examples as committed: without the one that is being reported."""
        return (example for _, example in self._examples(partition.tenant, partition, since))

    def _ours(self, recall: LoggedRecall) -> bool:
        return recall.profile == self.profile and places_of(recall.names, self.names) is not None

    def _example(self, recall: LoggedRecall, cited: Set[int], alive: set[int]) -> Example | None:
        """The recall as an example; features that it was logged without are 0."""
        if recall.names != self.names:
            features = np.zeros((len(recall.nos), len(self.names)), dtype=np.float32)
            features[:, places_of(recall.names, self.names)] = recall.features
            recall = replace(recall, features=features)
        return example_of(recall, cited, alive)

    def _changed(self, settings: Tenant, labelled: Labelled | None, whole: bool) -> Tenant:
        """The settings that a replay begins with."""
        if whole:
            settings = replace(settings, since=0)
        if labelled is None:
            return settings
        bare = settings.with_start(self.profile, None, self.names)
        return bare.with_start(self.profile, self._pretrained(self._beginning(bare), labelled), self.names)

    def _pretrained(self, prior: Prior, labelled: Labelled) -> Prior | None:
        """The prior after pairs of a query and its right entries; None when they teach nothing."""
        examples = []
        for recall, ids in labelled:
            if recall is None:
                continue
            ids_of = {no: entry.id for no, entry in self._store.read(recall.nos).items()}
            right = {no for no, entry_id in ids_of.items() if entry_id in set(ids)}
            # A label says that the other candidates are wrong, whether they would have been shown or not.
            example = example_of(replace(recall, shown=len(recall.nos)), right, set(ids_of))
            if example is not None and example.wanted is not None:
                examples.append(example)
        return prior.pretrained(examples) if examples else None

    # -- status and settings -------------------------------------------------------------------------------------

    def status(self, partition: Partition) -> LearningStatus:
        self._store.heads([])  # a closed store says so
        prior, person = self._read(partition)
        now = self.serving(partition)
        ranker = now.ranker or (person.own if person is not None else None)
        gain = prior.gain if person is None else person.guard.gain
        return LearningStatus(
            mode=self.mode,
            serving="base" if now.level == "base" else "learned",
            level=now.level,
            outcomes=0 if person is None else person.outcomes,
            steps=0 if person is None else person.own.steps,
            agreement=0.0 if person is None else person.guard.agree.mean,
            trusted=person is not None and person.guard.trusted,
            distrust="" if person is None else person.distrust(),
            gain=gain.mean,
            bound=_sure(gain),
            prior_steps=0 if prior.ranker is None else prior.ranker.steps,
            prior_users=prior.users,
            shares=self._settings(partition.tenant).shares,
            last_change=None if person is None else person.changed_at,
            weights={} if ranker is None else dict(zip(self.names, ranker.weights.tolist(), strict=True)),
        )

    def reset(self, tenant: str) -> int:
        """Drop every learned state of a tenant, of all profiles; outcomes so far teach no more. Returns the number of
        states. Whether the tenant shares stays as it was."""
        with self._store.transact() as tx:
            before = stored_policy(tx, tenant, None, profile=SETTINGS)
            dropped = drop_policies(tx, tenant) - (before is not None)
            self._put_settings(tx, tenant, Tenant(shares=loads_tenant(before).shares, since=last_outcome(tx, tenant)))
            audit(tx, Event(at=self._clock(), tenant=tenant, action="reset_learning", detail={"states": dropped}))
        return dropped

    def share(self, tenant: str, on: bool) -> None:
        """Switch sharing and relearn the log: off removes everyone's lessons from each other's weights.

        States of other profiles are dropped too; they are learned again when they are asked for.
        """
        with self._store.transact() as tx:
            settings = self._settings(tenant, tx)
            if settings.shares == on:
                return
            drop_policies(tx, tenant)
            self._put_settings(tx, tenant, replace(settings, shares=on))
            audit(tx, Event(at=self._clock(), tenant=tenant, action="share_learning", detail={"on": int(on)}))
        self.relearn(tenant)

    def export(self, partition: Partition) -> dict[str, Any]:
        """The states of the tenant and the partition as they are kept: numbers only."""
        texts = stored_policies(self._store, partition, [self.profile])
        found = {"prior": texts.get((self.profile, None)), "person": texts.get((self.profile, partition))}
        return {name: None if text is None else json.loads(text) for name, text in found.items()}

    def load(self, partition: Partition, state: dict[str, Any]) -> None:
        """Replace states by exported ones; parts that are missing stay."""
        prior = loads_state(Prior, json.dumps(state.get("prior")), self.names)
        person = loads_state(Person, json.dumps(state.get("person")), self.names)
        with self._store.transact() as tx:
            if prior is not None:
                self._put_prior(tx, partition.tenant, prior)
            if person is not None:
                self._put_person(tx, partition, person)

    # -- states --------------------------------------------------------------------------------------------------

    def _read(self, partition: Partition) -> tuple[Prior, Person | None]:
        """The prior and the person, as of now."""
        texts = stored_policies(self._store, partition, [self.profile])
        prior = self._prior_in(partition.tenant, texts.get((self.profile, None)))
        return prior, self._person_in(partition, texts.get((self.profile, partition)))

    def _prior_in(self, tenant: str, text: str | None) -> Prior:
        """The prior in this text, or the one that the tenant begins with."""
        held = self._priors.get(tenant)
        if held is None or held[0] != text:
            fresh = self._beginning(self._settings(tenant)) if text is None else Prior()
            held = (text, loads_state(Prior, text, self.names) or fresh)
            self._priors.put(tenant, held)
        return held[1]

    def _beginning(self, settings: Tenant) -> Prior:
        """Where a tenant's learning begins: as pretrained, or at the prior to start with unless it shares nothing."""
        start = settings.start(self.profile, self.names) or (self._start if settings.shares else Prior())
        return replace(start, shares=settings.shares)

    def _person_in(self, partition: Partition, text: str | None) -> Person | None:
        held = self._people.get(partition)
        if held is None or held[0] != text:
            held = (text, loads_state(Person, text, self.names))
            self._people.put(partition, held)
        return held[1]

    def _put_prior(self, tx: Tx, tenant: str, prior: Prior) -> None:
        text = dumps_state(prior, self.names)
        put_policy(tx, tenant, None, text, profile=self.profile)
        self._priors.put(tenant, (text, prior))

    def _put_person(self, tx: Tx, partition: Partition, person: Person) -> None:
        text = dumps_state(person, self.names)
        put_policy(tx, partition.tenant, partition, text, profile=self.profile)
        self._people.put(partition, (text, person))

    def _settings(self, tenant: str, tx: Tx | None = None) -> Tenant:
        return loads_tenant(stored_policy(tx or self._store, tenant, None, profile=SETTINGS))

    def _put_settings(self, tx: Tx, tenant: str, settings: Tenant) -> None:
        """Keep settings; the defaults need no row."""
        if settings != self._settings(tenant, tx):
            put_policy(tx, tenant, None, dumps_tenant(settings), profile=SETTINGS)


def _sure(gain: Evidence) -> float:
    """The gain's lower bound."""
    return gain.bound(-Z_GAIN) if gain.n >= 2 else 0.0


def _add(past: PersonPast, recall: LoggedRecall, cited: Iterable[int], entries: Mapping[int, Entry]) -> None:
    shown = recall.nos[: recall.shown]
    alike = [attributes_of(no, entries[no]) for no in shown if no in entries]
    past.add(read_question(recall.query).terms, cited, shown, alike)


def _exhausted(replay: Replay) -> dict[Partition, Residual]:
    """Take the remaining steps; there are no matrices to learn on the way."""
    for _ in replay.steps():
        pass
    return {}
