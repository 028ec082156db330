"""Learning in a store: outcomes in, policies out, each outcome one transaction.

The arithmetic is `policy.advance`, one fold step; told at once or replayed from the log it is the same step over the
same numbers, so a replay rebuilds the same weights bit for bit. What is kept is in `states`, the replay in `relearner`,
the low-rank residual in `tuned`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime
from typing import Any

from wellworn.core.errors import EmbeddingFailed, InvalidInput, NotFound
from wellworn.core.values import LearningStatus, Partition, altered
from wellworn.ingest.terms import read_question
from wellworn.learning.echoes import MOST_RECALLS, Echoes
from wellworn.learning.guard import Z_GAIN
from wellworn.learning.policy import Advanced, Person, advance, serving
from wellworn.learning.reinforce import judged
from wellworn.learning.relearner import Labelled
from wellworn.learning.residual import Residual
from wellworn.learning.serving import Serving
from wellworn.learning.state import dumps_person, dumps_prior, loads_person, loads_prior
from wellworn.learning.states import TEACHES, keep
from wellworn.learning.tenant import PROFILE as SETTLED
from wellworn.learning.tenant import Tenant, loads_tenant
from wellworn.learning.told import Told
from wellworn.learning.tuned import Tuned
from wellworn.store.port import Event, LoggedRecall, Tx

__all__ = ["MODES", "TEACHES", "Labelled", "Learner", "Serving", "checked_mode"]

MODES = ("on", "observe", "off")

_logger = logging.getLogger(__name__)


def checked_mode(mode: object) -> str:
    if mode not in MODES:
        raise InvalidInput("learning", f"{mode!r} is unknown", f"use one of {', '.join(MODES)}")
    return str(mode)


class Learner(Tuned):
    """Turns outcomes into policies. `names` are the features that recalls are logged with.

    States belong to a profile: its base scores are what a correction is learned for, so only recalls that it ranked
    teach it, whoever tells of them.
    """

    # -- serving -------------------------------------------------------------------------------------------------

    def serving(self, partition: Partition) -> Serving:
        """What serves this partition, as of now in every process."""
        if self._mode == "off":
            return Serving(level="base", ranker=None, outcomes=0)
        of_all, own = self._store.policies(partition, profile=self._profile)
        prior, person = self._prior_in(partition.tenant, of_all), self._person_in(partition, own)
        held = self._serving.get(partition)
        if held is None or held[0] is not prior or held[1] is not person:
            level, ranker = serving(prior, person) if self._mode == "on" else ("base", None)
            outcomes = 0 if person is None or person.guard.distrust() else person.outcomes
            residual = self._residual(partition, person) if level == "person" else None
            told = person.outcomes if person is not None and person.guard.positional else outcomes
            if self._mode != "on":  # nothing is tried on someone who is only observed
                outcomes = told = 0
            echoes = None if person is None else self._echoes_of(partition, person)
            now = Serving(level=level, ranker=ranker, outcomes=outcomes, residual=residual, echoes=echoes, told=told)
            held = (prior, person, now)
            keep(self._serving, partition, held)
        return held[2]

    def _echoes_of(self, partition: Partition, person: Person) -> Echoes:
        """What a person's last outcomes say; read anew when others told some, or took some back."""
        held = self._echoes.get(partition)
        if held is None or held[0] is not person or len(held[1]) > 2 * MOST_RECALLS:
            since = self._settled(partition.tenant).since
            echoes = Echoes()
            for one in self._store.recent_outcomes(partition, recalls=MOST_RECALLS, after=since):
                if one.kind in self.teaches and one.recall.profile == self._profile:
                    self._echo(echoes, one.recall, one.value.get("nos", ()))
            held = (person, echoes)
            keep(self._echoes, partition, held)
        return held[1]

    def _echo(self, echoes: Echoes, recall: LoggedRecall, cited: Iterable[int]) -> None:
        echoes.add(read_question(recall.query).terms, cited, recall.nos[: recall.shown])

    def _told_of(self, recall: LoggedRecall, cited: Iterable[int], before: Person | None, after: Person) -> None:
        """An outcome is committed: what is held here grows by it, if it missed none."""
        held = self._echoes.get(recall.partition)
        if held is not None and held[0] is before:
            self._echo(held[1], recall, cited)
            self._echoes[recall.partition] = (after, held[1])

    def residual(self, partition: Partition) -> Residual | None:
        """The matrices of the paper's reranker, where that serves."""
        return None

    # -- outcomes ------------------------------------------------------------------------------------------------

    def outcome(self, recall_id: str, told: Told, *, tenant: str | None) -> bool:
        """Append an outcome to the log and learn from it; False when one of this kind was told before."""
        with self.ready(recall_id, told), self._store.transact() as tx:
            counts, written = self.outcome_in(tx, recall_id, told, tenant=tenant)
        written()
        return counts

    def ready(self, recall_id: str, told: Told) -> AbstractContextManager[None]:
        """To be entered before a transaction with `outcome_in`: what may be slow happens here."""
        return nullcontext()

    def outcome_in(self, tx: Tx, recall_id: str, told: Told, *, tenant: str | None) -> tuple[bool, Callable[[], None]]:
        """`outcome` within someone's transaction; what comes second is to be called when that is committed."""
        now = self._clock()
        written = self._log.write(tx, wanted=recall_id)
        recall = self._recall_in(tx, recall_id)
        if recall is None or (tenant is not None and recall.partition.tenant != tenant):
            raise NotFound("recall", recall_id, "outcomes are told of recalls made with learning on or observing")
        value = told.logged(recall)
        number = tx.add_outcome(recall_id, told.kind, value, now)
        if number is None:
            return False, written
        teaches = told.kind in self.teaches and self._mode != "off"
        alive = tx.alive(recall.nos) if teaches else set()  # first: with it the transaction knows the cited rows
        self._reinforce(tx, told, told.rows(recall), now)
        if not teaches:
            return True, written
        cited = set(value.get("nos", ()))
        step = self._learn(tx, recall, cited, alive, now)
        if step is None:
            return True, written
        before, person = step
        tuner, partition = self._tuner, recall.partition

        def committed() -> None:
            written()
            self._told_of(recall, cited, before, person)
            if tuner is None or not tuner.due(person):
                return
            try:
                self._tune(tuner, partition, person, number)
            except EmbeddingFailed as error:  # the outcome counts; the chunk is made up for with the next one
                _logger.warning("the residual is not learned: %s", type(error).__name__)

        return True, committed

    def _recall_in(self, tx: Tx, recall_id: str) -> LoggedRecall | None:
        """A logged recall, as of this transaction."""
        recall = self._log.at_hand(recall_id)
        query = None if recall is None else tx.logged_query(recall)
        return tx.logged_recall(recall_id) if recall is None or query is None else altered(recall, query=query)

    def trusts(self, tx: Tx, partition: Partition) -> bool:
        """Whether a person's feedback is trusted, as of this transaction."""
        person = self._person_in(partition, tx.policies(partition, profile=self._profile)[1])
        return person is not None and person.guard.trusted

    def _reinforce(self, tx: Tx, told: Told, rows: Sequence[int], now: datetime) -> None:
        """Count use, and let success and failure change how sure the entries are that it is about."""
        if told.kind == "cited":
            tx.count_use(rows, now)
        elif told.kind == "verdict":
            for entry in self._store.read(rows).values():
                tx.update(judged(entry, told.value["success"], now), change=None)

    def _learn(
        self, tx: Tx, recall: LoggedRecall, cited: set[int], alive: set[int], now: datetime
    ) -> tuple[Person | None, Person] | None:
        """The person before and after it; None when it teaches nothing."""
        example = self._example(recall, cited, alive)
        if example is None:
            return None
        tenant, partition, profile = recall.partition.tenant, recall.partition, self._profile
        settled = loads_tenant(tx.policy(tenant, None, profile=SETTLED))
        prior_text, person_text = tx.policies(partition, profile=profile)
        prior = self._begin(settled) if prior_text is None else self._prior_in(tenant, prior_text)
        if prior.shares != settled.shares:
            prior = replace(prior, shares=settled.shares)
        person = self._person_in(partition, person_text)
        step = advance(prior, person, example, past=lambda: self._past(partition, settled.since), at=now)
        if prior_text is None or step.prior is not prior:
            prior_text = dumps_prior(step.prior, self._names)
            tx.put_policy(tenant, None, prior_text, profile=profile)
            keep(self._priors, tenant, (prior_text, step.prior))
        person_text = dumps_person(step.person, self._names)
        tx.put_policy(tenant, partition, person_text, profile=profile)
        keep(self._people, partition, (person_text, step.person))
        self._receipt(tx, tenant, step, now)
        return person, step.person

    def _receipt(self, tx: Tx, tenant: str, step: Advanced, now: datetime) -> None:
        """Every switch of what serves is an event."""
        if step.switched is not None:
            before, after = step.switched
            gain = step.person.guard.gain
            tx.audit(
                Event(
                    at=now,
                    tenant=tenant,
                    action="learn",
                    detail={
                        "from": before,
                        "to": after,
                        "why": step.why,
                        "outcomes": step.person.outcomes,
                        "gain": round(gain.mean, 4),
                        "bound": round(gain.bound(-Z_GAIN), 4) if gain.n >= 2 else 0.0,
                    },
                )
            )

    # -- looking and settings ------------------------------------------------------------------------------------

    def status(self, partition: Partition) -> LearningStatus:
        self._store.heads([])  # a closed store says so
        prior, person = self._prior(partition.tenant), self._person(partition)
        now = self.serving(partition)
        ranker = now.ranker or (person.own if person is not None else None)
        gain = prior.gain if person is None else person.guard.gain
        return LearningStatus(
            mode=self._mode,
            serving="base" if now.ranker is None else "learned",
            level=now.level,
            outcomes=0 if person is None else person.outcomes,
            steps=0 if person is None else person.own.steps,
            agreement=0.0 if person is None else person.guard.agree.mean,
            trusted=person is not None and person.guard.trusted,
            distrust="" if person is None else person.guard.distrust(),
            gain=gain.mean,
            bound=gain.bound(-Z_GAIN) if gain.n >= 2 else 0.0,
            prior_steps=0 if prior.ranker is None else prior.ranker.steps,
            prior_users=prior.users,
            shares=self._settled(partition.tenant).shares,
            last_change=None if person is None else person.changed_at,
            weights={} if ranker is None else dict(zip(self._names, ranker.weights.tolist(), strict=True)),
        )

    def reset(self, tenant: str) -> int:
        """Drop every learned state of a tenant, of all profiles; what was told so far teaches no more.

        Whether it shares stays as it was.
        """
        with self._store.transact() as tx:
            before = tx.policy(tenant, None, profile=SETTLED)
            dropped = tx.drop_policies(tenant) - (before is not None)
            settled = Tenant(shares=loads_tenant(before).shares, since=self.last_told(tenant))
            self._settle(tx, tenant, settled)
            tx.audit(Event(at=self._clock(), tenant=tenant, action="reset_learning", detail={"states": dropped}))
        return dropped

    def last_told(self, tenant: str) -> int:
        """The number of the tenant's last outcome, 0 when there is none: the smallest with none after it."""
        low, high = 0, 1
        while self._store.outcomes(tenant, after=high, limit=1):
            low, high = high, 2 * high
        while low < high:
            middle = (low + high) // 2
            if self._store.outcomes(tenant, after=middle, limit=1):
                low = middle + 1
            else:
                high = middle
        return low

    def share(self, tenant: str, on: bool) -> None:
        """Switch sharing, and learn the log anew with it: off takes everyone's lessons out of each other's weights.

        States of other profiles are dropped too; they are learned anew when asked for there.
        """
        with self._store.transact() as tx:
            settled = loads_tenant(tx.policy(tenant, None, profile=SETTLED))
            if settled.shares == on:
                return
            tx.drop_policies(tenant)
            self._settle(tx, tenant, replace(settled, shares=on))
            tx.audit(Event(at=self._clock(), tenant=tenant, action="share_learning", detail={"on": int(on)}))
        self.relearn(tenant)

    def export(self, partition: Partition) -> dict[str, Any]:
        """The states as they are kept: numbers only."""
        texts = {
            name: self._store.policy(partition.tenant, of, profile=self._profile)
            for name, of in (("prior", None), ("person", partition))
        }
        return {name: None if text is None else json.loads(text) for name, text in texts.items()}

    def load_in(self, tx: Tx, partition: Partition, state: dict[str, Any]) -> None:
        """Put exported states in the place of those that are kept; a residual is not in them, and starts afresh."""
        if state.get("prior") is not None:
            prior = loads_prior(json.dumps(state["prior"]), self._names)
            tx.put_policy(partition.tenant, None, dumps_prior(prior, self._names), profile=self._profile)
        person = loads_person(json.dumps(state.get("person")), self._names)
        if person is not None:
            text = dumps_person(replace(person, residual=0), self._names)
            tx.put_policy(partition.tenant, partition, text, profile=self._profile)
