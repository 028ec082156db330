"""Learning from outcomes: each outcome is one transaction that appends it to the log and moves the learned state.

The arithmetic is `policy.advance`. As it arrives or replayed from the log, an outcome is the same step over the same
numbers, so a replay rebuilds the same weights bit for bit. The paper's reranker (`residual`) is None by default.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from wellworn.core.cache import LruCache
from wellworn.core.clock import Clock, aware
from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput, NotFound
from wellworn.core.scope import SHARED_LAYERS
from wellworn.core.spans import span
from wellworn.core.values import Entry, LearningStatus, Partition
from wellworn.ingest.terms import read_question
from wellworn.learning import policy, records
from wellworn.learning.guard import NO_EVIDENCE, Z_GAIN
from wellworn.learning.past import MOST_OUTCOMES, PersonPast, attributes_of
from wellworn.learning.ranker import Example, Ranker, example_of
from wellworn.learning.records import LearningLog, LoggedOutcome, LoggedRecall, MaySee, OutcomeInput
from wellworn.store.events import Event, audit
from wellworn.store.port import StoreReader, Tx

if TYPE_CHECKING:
    from wellworn.learning.residual import MatrixReranker, Residual

MODES = ("on", "observe", "off")
TEACHES = ("cited", "ignored", "refined")
"""Kinds of outcome that say which of the shown entries were useful; a refined query says that none was. `used` does not
say which: credited to all that was shown, it rewards being shown (measured: Recall@5 23.1 to 16.3)."""
MOST_HELD = 500
"""Partitions whose states are held in memory."""
MOST_POOLED = 100
FORMER_NAMES = {"echo": "repeated"}
"""Features that had another name in the log of recollect 0.1."""

Labelled = Sequence[tuple[LoggedRecall | None, Sequence[str]]]
"""Recalls with the ids of the right entries."""


def checked_mode(mode: object) -> str:
    if mode not in MODES:
        raise InvalidInput("learning", f"{mode!r} is unknown", f"use one of {', '.join(MODES)}")
    return str(mode)


@dataclass(frozen=True, kw_only=True, eq=False)
class Serving:
    """What serves a partition now, as a recall needs it."""

    level: str = "base"
    ranker: Ranker | None = None
    """None: the untrained ranking."""
    outcomes: int = 0
    """Outcomes it rests on; 0 while feedback is distrusted or only observed."""
    past: PersonPast | None = None
    matrices: Residual | None = None
    """Only with a `MatrixReranker`: they replace the ranker."""


_NOTHING = Serving()


@dataclass(kw_only=True, eq=False)
class _Held:
    """What is stored for a partition, read; it stands as long as the texts are the stored ones."""

    texts: dict[tuple[str, Partition | None], str]
    settings: policy.Tenant
    prior: policy.Prior
    person: policy.Person | None
    past: PersonPast | None = None
    matrices: Residual | None = None
    serving: Serving | None = None
    moment: Hashable = None
    """The store's, when it was last compared with what is stored."""


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
        start: policy.Prior | None = None,
        reranker: MatrixReranker | None = None,
    ) -> None:
        """`start` is the prior of tenants that have none of their own yet."""
        self.mode = mode
        self.log = log
        self._store = log.store
        self.names = list(names)
        self.profile = profile
        self._clock = aware(clock)
        self._start = start or policy.Prior()
        self._reranker = reranker
        self._held: LruCache[Partition, _Held] = LruCache(MOST_HELD)

    # -- serving -------------------------------------------------------------------------------------------------

    def serving(self, partition: Partition, moment: Hashable = None) -> Serving:
        """What serves this partition, as of now in every process; with the store's `moment`, read only if anything was
        written."""
        if self.mode == "off":
            return _NOTHING
        held = self._held.get(partition)
        if held is None or moment is None or held.moment != moment:
            held = self._read(self._store, partition)
            held.moment = moment
        if held.serving is None:
            held.serving = self._serves(partition, held)
        return held.serving

    def _serves(self, partition: Partition, held: _Held) -> Serving:
        person = held.person
        if person is not None and (held.past is None or len(held.past) > 2 * MOST_OUTCOMES):
            held.past = self._past_of(partition, held.settings.since)
        if self.mode != "on":
            return Serving(past=held.past)
        level, ranker = policy.serving(held.prior, person)
        outcomes = 0 if person is None or person.distrust() else person.outcomes
        if self._reranker is None:
            return Serving(level=level, ranker=ranker, outcomes=outcomes, past=held.past)
        if held.matrices is None:
            held.matrices = self._reranker.fresh(partition)
            for one in self._lessons(partition.tenant, partition, held.settings.since):
                if one.recall.profile == self.profile:
                    held.matrices = self._reranker.learned(held.matrices, one.recall, one.cited)
        return Serving(level="person", outcomes=outcomes, past=held.past, matrices=held.matrices)

    def _past_of(self, partition: Partition, since: int) -> PersonPast:
        """A person's past outcomes, read from the log."""
        past, recent = PersonPast(), records.recent_outcomes(self._store, partition, most=MOST_OUTCOMES, after=since)
        recent = [one for one in recent if one.kind in TEACHES and one.recall.profile == self.profile]
        entries = self._store.read([*{no for one in recent for no in one.recall.nos[: one.recall.shown]}])
        for one in recent:
            _add(past, one.recall, one.cited, entries)
        return past

    def forget(self, nos: Iterable[int]) -> None:
        """Rows are gone: pending recalls must not name them, and no question about them is kept."""
        self._held.clear()
        self.log.forget(nos)

    # -- outcomes ------------------------------------------------------------------------------------------------

    def outcome(self, recall_id: str, outcome: OutcomeInput, *, may_see: MaySee) -> bool:
        """Append an outcome to the log and learn from it; False when one of this kind was reported before.

        A recall of a partition that the caller may not see is not found.
        """
        with span("outcome") as note:
            note(recall=recall_id, kind=outcome.kind)
            return self._outcome(recall_id, outcome, may_see)

    def _outcome(self, recall_id: str, outcome: OutcomeInput, may_see: MaySee) -> bool:
        now, taught, recall = self._clock(), None, self.log.find(recall_id)
        if recall is None or not may_see(recall.partition):
            raise NotFound("recall", recall_id, "outcomes are told of recalls made with learning on or observing")
        with self._store.transact(tenant=recall.partition.tenant) as tx:
            written, committed = self.log.write(tx)
            recall = written.get(recall_id) or records.logged_recall(tx, recall_id)
            if recall is None:  # forgotten meanwhile
                raise NotFound("recall", recall_id)
            rows = outcome.rows(recall)
            value = {"nos": rows} if outcome.kind == "cited" else outcome.value
            counts = records.add_outcome(tx, recall_id, recall.partition, outcome.kind, value, now) is not None
            cited = set(rows) if outcome.kind == "cited" else set()
            if counts and cited:
                tx.count_use(rows, now)
            elif counts and outcome.kind == "verdict":
                used = records.cited_rows(tx, recall, kinds=TEACHES) if outcome.places is None else None
                rows = rows if used is None else used
                for entry in self._store.read(rows).values():
                    shared = outcome.places is None and entry.layer in SHARED_LAYERS
                    lowest = records.LOWEST_SHARED if shared else records.LOWEST
                    tx.update(records.judged(entry, outcome.value["success"], now, lowest=lowest), change=None)
            if counts and outcome.kind in TEACHES and self.mode != "off" and recall.profile == self.profile:
                taught = self._learn(tx, recall, cited, now)
        committed()
        if taught is not None:
            before, after = taught
            if before.past is not None:  # else, or if another process came in between, it is read again
                _add(before.past, recall, cited, self._store.read(recall.nos[: recall.shown]))
                after.past = before.past
            if self._reranker is not None and before.matrices is not None:
                after.matrices = self._reranker.learned(before.matrices, recall, cited)
        return counts

    def _learn(self, tx: Tx, recall: LoggedRecall, cited: set[int], now: datetime) -> tuple[_Held, _Held] | None:
        """The states before and after it; None when it teaches nothing."""
        partition, example = recall.partition, self._example(recall, cited, tx.alive(recall.nos))
        if example is None:
            return None
        held = self._read(tx, partition)
        past = partial(self._past_examples, partition, held.settings.since)
        step = policy.advance(held.prior, held.person, example, past=past, at=now)
        texts = dict(held.texts)
        if (self.profile, None) not in texts or step.prior is not held.prior:
            texts[self.profile, None] = self._put(tx, partition.tenant, None, step.prior)
        texts[self.profile, partition] = self._put(tx, partition.tenant, partition, step.person)
        after = _Held(texts=texts, settings=held.settings, prior=step.prior, person=step.person)
        self._held.put(partition, after)
        self._record_switch(tx, partition.tenant, step, now)
        return held, after

    def _record_switch(self, tx: Tx, tenant: str, step: policy.Advanced, now: datetime) -> None:
        """Every switch of what serves is an event in the audit log."""
        if step.switched is not None:
            gain, (before, after) = step.person.guard.gain, step.switched
            detail: dict[str, Any] = {"from": before, "to": after, "why": step.why, "outcomes": step.person.outcomes}
            detail |= {"gain": round(gain.mean, 4), "bound": round(gain.sure(Z_GAIN), 4)}
            audit(tx, Event(at=now, tenant=tenant, action="learn", detail=detail))

    # -- replay --------------------------------------------------------------------------------------------------

    def relearn(self, tenant: str, labelled: Labelled | None = None) -> None:
        """Learn the log since the last reset again, for every profile that ranked it.

        Labelled recalls are learned first, into the prior. They replace those that were given before; None leaves
        these as they are.
        """
        self.log.flush()
        while not self._relearned(tenant, labelled):
            pass

    def _relearned(self, tenant: str, labelled: Labelled | None) -> bool:
        """Whether it was learned again; not if the tenant was reset, or sharing switched, meanwhile."""
        before = self._settings(self._store, tenant)
        settings = before if labelled is None else self._labelled(before, labelled)
        replay = policy.Replay(beginning=partial(self._beginning, settings), last=settings.since)
        replay.take(self._examples(tenant, None, replay.last))
        with self._store.transact() as tx:
            if self._settings(tx, tenant) != before:
                return False
            replay.take(self._examples(tenant, None, replay.last))  # reported while the rest was learned
            records.drop_policies(tx, tenant)
            self._put_settings(tx, tenant, settings)
            replay.priors.setdefault(self.profile, self._beginning(settings, self.profile))
            for profile, prior in replay.priors.items():
                self._put(tx, tenant, None, prior, profile)
            for (profile, partition), person in replay.people.items():
                self._put(tx, tenant, partition, person, profile)
            audit(tx, Event(at=self._clock(), tenant=tenant, action="relearn", detail={"people": len(replay.people)}))
        return True

    def _examples(
        self, tenant: str, partition: Partition | None, after: int
    ) -> Iterator[tuple[LoggedOutcome, Example]]:
        """Every outcome that teaches, with what it teaches today: forgotten entries are left out."""
        for one in self._lessons(tenant, partition, after):
            example = self._example(one.recall, one.cited, self._store.alive(one.recall.nos))
            if example is not None:
                yield one, example

    def _past_examples(self, partition: Partition, since: int) -> list[Example]:
        """A person's examples as committed: without the one that is being reported."""
        found = self._examples(partition.tenant, partition, since)
        return [example for one, example in found if one.recall.profile == self.profile]

    def _lessons(self, tenant: str, partition: Partition | None, after: int) -> Iterator[LoggedOutcome]:
        found = records.outcomes(self._store, tenant, partition, after=after)
        return (one for one in found if one.kind in TEACHES)

    def _example(self, recall: LoggedRecall, cited: Set[int], alive: set[int]) -> Example | None:
        """The recall as an example. Features that it was logged without are 0; unknown ones make it teach nothing."""
        names = [FORMER_NAMES.get(name, name) for name in recall.names]
        if names != self.names:
            if not {*names} <= {*self.names}:
                return None
            features = np.zeros((len(recall.nos), len(self.names)), dtype=np.float32)
            features[:, [self.names.index(name) for name in names]] = recall.features
            recall = replace(recall, features=features)
        return example_of(recall, cited, alive)

    def _labelled(self, settings: policy.Tenant, labelled: Labelled) -> policy.Tenant:
        """The settings with what pairs of a query and its right entries teach, in the place of earlier pairs."""
        bare, examples = settings.with_start(self.profile, None, self.names), list[Example]()
        for recall, ids in labelled:
            if recall is not None:
                ids_of = {no: entry.id for no, entry in self._store.read(recall.nos).items()}
                right = {no for no, entry_id in ids_of.items() if entry_id in set(ids)}
                # A label says that the other candidates are wrong, whether they would have been shown or not.
                example = example_of(replace(recall, shown=len(recall.nos)), right, set(ids_of))
                examples += [example] if example is not None and example.wanted is not None else []
        prior = self._beginning(bare, self.profile).pretrained(examples) if examples else None
        return bare.with_start(self.profile, prior, self.names)

    # -- status and settings -------------------------------------------------------------------------------------

    def status(self, partition: Partition) -> LearningStatus:
        self._store.heads([])  # a closed store says so
        held, now = self._read(self._store, partition), self.serving(partition)
        prior, person = held.prior, held.person
        known = person or policy.Person(own=Ranker.fresh(len(self.names)))
        ranker = now.ranker or (None if person is None else person.own)
        gain = prior.gain if person is None else person.guard.gain
        return LearningStatus(
            mode=self.mode,
            serving="base" if now.level == "base" else "learned",
            level=now.level,
            outcomes=known.outcomes,
            steps=known.own.steps,
            agreement=known.guard.agree.mean,
            trusted=known.guard.trusted,
            distrust=known.distrust(),
            gain=gain.mean,
            bound=gain.sure(Z_GAIN),
            prior_steps=0 if prior.ranker is None else prior.ranker.steps,
            prior_users=prior.users,
            shares=held.settings.shares,
            last_change=known.changed_at,
            weights={} if ranker is None else dict(zip(self.names, ranker.weights.tolist(), strict=True)),
            citation_rate=records.citation_rate(self._store, partition, kinds=TEACHES),
        )

    def pooled_gain(self) -> tuple[float, float, int]:
        """The gain over the untrained order, its lower bound and how many people taught it: of the tenants that recalls
        were made for here, as far as they are few."""
        gain, users = NO_EVIDENCE, 0
        for tenant in sorted(self.log.tenants)[:MOST_POOLED]:
            text = records.stored_policy(self._store, tenant, None, profile=self.profile)
            prior = self._prior_in(text)
            gain, users = gain.plus(prior.gain), users + prior.users
        return gain.mean, gain.sure(Z_GAIN), users

    def reset(self, tenant: str) -> int:
        """Drop every learned state of a tenant, of all profiles; outcomes so far teach no more. Returns the number of
        states. Whether the tenant shares stays as it was."""
        with self._store.transact() as tx:
            before = records.stored_policy(tx, tenant, None, profile=policy.SETTINGS)
            dropped = records.drop_policies(tx, tenant) - (before is not None)
            shares, since = policy.loads_tenant(before).shares, records.last_outcome(tx, tenant)
            self._put_settings(tx, tenant, policy.Tenant(shares=shares, since=since))
            audit(tx, Event(at=self._clock(), tenant=tenant, action="reset_learning", detail={"states": dropped}))
        return dropped

    def share(self, tenant: str, on: bool) -> None:
        """Switch sharing, and learn the log again: off removes everyone's lessons from each other's weights."""
        with self._store.transact() as tx:
            settings = self._settings(tx, tenant)
            if settings.shares == on:
                return
            records.drop_policies(tx, tenant)
            self._put_settings(tx, tenant, replace(settings, shares=on))
            audit(tx, Event(at=self._clock(), tenant=tenant, action="share_learning", detail={"on": int(on)}))
        self.relearn(tenant)

    def export(self, partition: Partition) -> dict[str, Any]:
        """The states of the tenant and the partition as they are kept: numbers only."""
        texts = records.stored_policies(self._store, partition, [self.profile])
        found = {"prior": texts.get((self.profile, None)), "person": texts.get((self.profile, partition))}
        return {name: None if text is None else json.loads(text) for name, text in found.items()}

    # -- states --------------------------------------------------------------------------------------------------

    def _read(self, reader: StoreReader, partition: Partition) -> _Held:
        """The settings, the prior and the person, as of now."""
        texts = records.stored_policies(reader, partition, [policy.SETTINGS, self.profile])
        held = self._held.get(partition)
        if held is None or held.texts != texts:
            settings, prior = policy.loads_tenant(texts.get((policy.SETTINGS, None))), texts.get((self.profile, None))
            first = self._beginning(settings, self.profile) if prior is None else self._prior_in(prior)
            held = _Held(
                texts=texts,
                settings=settings,
                prior=replace(first, shares=settings.shares),
                person=policy.loads_state(policy.Person, texts.get((self.profile, partition)), self.names),
            )
            self._held.put(partition, held)
        return held

    def _prior_in(self, text: str | None) -> policy.Prior:
        return policy.loads_state(policy.Prior, text, self.names) or policy.Prior()

    def _beginning(self, settings: policy.Tenant, profile: str) -> policy.Prior:
        """Where a tenant's learning begins: as pretrained, or at the prior to start with unless it shares nothing."""
        given = self._start if settings.shares and profile == self.profile else policy.Prior()
        return replace(settings.start(profile, self.names) or given, shares=settings.shares)

    def _put(
        self, tx: Tx, tenant: str, partition: Partition | None, state: policy.Prior | policy.Person, profile: str = ""
    ) -> str:
        text = policy.dumps_state(state, self.names)
        records.put_policy(tx, tenant, partition, text, profile=profile or self.profile)
        return text

    def _settings(self, reader: StoreReader, tenant: str) -> policy.Tenant:
        return policy.loads_tenant(records.stored_policy(reader, tenant, None, profile=policy.SETTINGS))

    def _put_settings(self, tx: Tx, tenant: str, settings: policy.Tenant) -> None:
        """Keep settings; the defaults need no row."""
        if settings != self._settings(tx, tenant):
            records.put_policy(tx, tenant, None, policy.dumps_tenant(settings), profile=policy.SETTINGS)


def _add(past: PersonPast, recall: LoggedRecall, cited: Iterable[int], entries: Mapping[int, Entry]) -> None:
    shown = recall.nos[: recall.shown]
    alike = [attributes_of(no, entries[no]) for no in shown if no in entries]
    past.add(read_question(recall.query).terms, cited, shown, alike)
