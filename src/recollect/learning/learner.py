"""Learning in a store: outcomes in, policies out, each outcome one transaction.

The arithmetic is `policy.advance`, one fold step; told at once or replayed from the log it is the same step over the
same numbers, so a replay rebuilds the same weights bit for bit.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from recollect.clock import Clock, aware
from recollect.errors import EmbeddingFailed, InvalidInput, NotFound
from recollect.ingest.terms import read_question
from recollect.learning.echoes import MOST_RECALLS, Echoes
from recollect.learning.example import Example, example_of
from recollect.learning.guard import Z_GAIN
from recollect.learning.log import RecallLog
from recollect.learning.lowrank import CHUNK, LowRank
from recollect.learning.policy import Advanced, Person, Prior, advance, serving
from recollect.learning.ranker import Ranker
from recollect.learning.reinforce import judged
from recollect.learning.replay import Replay
from recollect.learning.residual import Residual
from recollect.learning.state import dumps_person, dumps_prior, loads_person, loads_prior
from recollect.learning.tenant import PROFILE as SETTLED
from recollect.learning.tenant import Tenant, dumps_tenant, loads_tenant
from recollect.learning.told import Told
from recollect.learning.tune import Chunks, Tuner, served
from recollect.stores.base import Event, LoggedOutcome, LoggedRecall, Store, Tx
from recollect.types import LearningStatus, Shelf

MODES = ("on", "observe", "off")
TEACHES = ("cited", "ignored", "refined")
"""Kinds of outcome that say which of the shown were useful; asking anew says that none was. `used` does not say which:
credited to all that was shown, it rewards being shown (measured: Recall@5 23.1 to 16.3 with `reasoningbank`)."""
PAGE = 500
REBUILT = 1000
"""Outcomes in a log that is replayed for a missing chunk of the residual, some half a second; beyond, it starts afresh,
and `relearn` rebuilds it."""

Labelled = Sequence[tuple[LoggedRecall | None, Sequence[str]]]
"""Recalls with the ids of the right entries."""

_logger = logging.getLogger(__name__)

K = TypeVar("K")
V = TypeVar("V")


def checked_mode(mode: object) -> str:
    if mode not in MODES:
        raise InvalidInput("learning", f"{mode!r} is unknown", f"use one of {', '.join(MODES)}")
    return str(mode)


@dataclass(frozen=True, kw_only=True)
class Serving:
    """Which ranking serves a shelf now: a level, its weights (None for the base), and how many outcomes it rests on.

    None while a person's feedback is distrusted: what it says of a candidate that is tried teaches nothing.
    """

    level: str
    ranker: Ranker | None
    outcomes: int
    residual: LowRank | None = None
    """Matrices on top of a person's ranker."""
    echoes: Echoes | None = None
    """What became of the person's earlier questions; None when nothing was told yet."""
    told: int = 0
    """The same for swapping neighbours, which whoever is distrusted for citing by place must be able to disprove."""


class Learner:
    """Turns outcomes into policies. `names` are the features that recalls are logged with.

    States belong to a profile: its base scores are what a correction is learned for, so only recalls that it ranked
    teach it, whoever tells of them.
    """

    teaches: tuple[str, ...] = TEACHES

    def __init__(self, store: Store, *, mode: str, names: Sequence[str], clock: Clock, profile: str = "default",
                 start: Prior | None = None, log: RecallLog | None = None,
                 tuner: Tuner | None = None) -> None:  # fmt: skip
        """`start` is the prior of tenants who have none of their own yet; `log` is one to share with another learner
        of the same store, so that either is told of the recalls of both; `tuner` needs an embedder."""
        self._tuner = tuner
        self._tuned = f"{profile}/residual"
        self._start = start or Prior()
        self._profile = profile
        self._store = store
        self._mode = mode
        self._names = list(names)
        self._clock = aware(clock)
        self._log = log or RecallLog(store)
        # What states were read last, each with its text: most are read again as they were.
        self._priors: dict[str, tuple[str | None, Prior]] = {}
        self._people: dict[Shelf, tuple[str | None, Person | None]] = {}
        self._serving: dict[Shelf, tuple[Prior, Person | None, Serving]] = {}
        self._echoes: dict[Shelf, tuple[Person, Echoes]] = {}

    @property
    def mode(self) -> str:
        return self._mode

    @property
    def log(self) -> RecallLog:
        return self._log

    @property
    def names(self) -> list[str]:
        return self._names

    # -- serving -------------------------------------------------------------------------------------------------

    def serving(self, shelf: Shelf) -> Serving:
        """What serves this shelf, as of now in every process."""
        if self._mode == "off":
            return Serving(level="base", ranker=None, outcomes=0)
        of_all, own = self._store.policies(shelf, profile=self._profile)
        prior, person = self._prior_in(shelf.tenant, of_all), self._person_in(shelf, own)
        held = self._serving.get(shelf)
        if held is None or held[0] is not prior or held[1] is not person:
            level, ranker = serving(prior, person) if self._mode == "on" else ("base", None)
            outcomes = 0 if person is None or person.guard.distrust() else person.outcomes
            residual = self._residual(shelf, person) if level == "person" else None
            told = person.outcomes if person is not None and person.guard.positional else outcomes
            if self._mode != "on":  # nothing is tried on someone who is only observed
                outcomes = told = 0
            echoes = None if person is None else self._echoes_of(shelf, person)
            now = Serving(level=level, ranker=ranker, outcomes=outcomes, residual=residual, echoes=echoes, told=told)
            held = (prior, person, now)
            _keep(self._serving, shelf, held)
        return held[2]

    def _echoes_of(self, shelf: Shelf, person: Person) -> Echoes:
        """What a person's last outcomes say; read anew when others told some, or took some back."""
        held = self._echoes.get(shelf)
        if held is None or held[0] is not person or len(held[1]) > 2 * MOST_RECALLS:
            since = self._settled(shelf.tenant).since
            echoes = Echoes()
            for one in self._store.recent_outcomes(shelf, recalls=MOST_RECALLS, after=since):
                if one.kind in self.teaches and one.recall.profile == self._profile:
                    self._echo(echoes, one.recall, one.value.get("nos", ()))
            held = (person, echoes)
            _keep(self._echoes, shelf, held)
        return held[1]

    def _echo(self, echoes: Echoes, recall: LoggedRecall, cited: Iterable[int]) -> None:
        echoes.add(read_question(recall.query).terms, cited, recall.nos[: recall.shown])

    def _told_of(self, recall: LoggedRecall, cited: Iterable[int], before: Person | None, after: Person) -> None:
        """An outcome is committed: what is held here grows by it, if it missed none."""
        held = self._echoes.get(recall.shelf)
        if held is not None and held[0] is before:
            self._echo(held[1], recall, cited)
            self._echoes[recall.shelf] = (after, held[1])

    def _residual(self, shelf: Shelf, person: Person | None) -> LowRank | None:
        if self._tuner is None or person is None:
            return None
        return self._tuner.serving(person, lambda: self._store.policy(shelf.tenant, shelf, profile=self._tuned))

    def residual(self, shelf: Shelf) -> Residual | None:  # noqa: ARG002  `PaperLearner` has one
        """The matrices of the paper's reranker, where that serves."""
        return None

    def record(self, recall: LoggedRecall, *, new: bool) -> None:
        """Log a recall; it reaches the store in the background. `new`: its shelf was not there when it was made."""
        self._log.add(recall, new=new)

    def forget(self, nos: Iterable[int]) -> None:
        """Rows are gone: what is on its way to the log must not name them, nor is any question about them kept."""
        self._echoes.clear()
        self._serving.clear()
        self._log.forget(nos)

    def write_pending(self, tx: Tx) -> Callable[[], None]:
        """Put logged recalls that are still on their way into a transaction; see `RecallLog.write`."""
        return self._log.write(tx)

    def _prior(self, tenant: str) -> Prior:
        return self._prior_in(tenant, self._store.policy(tenant, None, profile=self._profile))

    def _prior_in(self, tenant: str, text: str | None) -> Prior:
        """The prior kept in this text, or the one to start with."""
        held = self._priors.get(tenant)
        if held is None or held[0] != text:
            fresh = text is None and self._start.ranker is not None
            held = (text, self._begin(self._settled(tenant)) if fresh else loads_prior(text, self._names))
            _keep(self._priors, tenant, held)
        return held[1]

    def _settled(self, tenant: str) -> Tenant:
        return loads_tenant(self._store.policy(tenant, None, profile=SETTLED))

    def _begin(self, settled: Tenant) -> Prior:
        """Where a tenant's learning begins: as pretrained, or at the prior to start with unless it shares nothing."""
        start = settled.start(self._profile, self._names) or (self._start if settled.shares else Prior())
        return replace(start, shares=settled.shares)

    def _person(self, shelf: Shelf) -> Person | None:
        return self._person_in(shelf, self._store.policy(shelf.tenant, shelf, profile=self._profile))

    def _person_in(self, shelf: Shelf, text: str | None) -> Person | None:
        """The person kept in this text."""
        held = self._people.get(shelf)
        if held is None or held[0] != text:
            held = (text, loads_person(text, self._names))
            _keep(self._people, shelf, held)
        return held[1]

    # -- outcomes ------------------------------------------------------------------------------------------------

    def outcome(self, recall_id: str, told: Told, *, tenant: str | None) -> bool:
        """Append an outcome to the log and learn from it; False when one of this kind was told before."""
        with self.ready(recall_id, told), self._store.transact() as tx:
            counts, written = self.outcome_in(tx, recall_id, told, tenant=tenant)
        written()
        return counts

    @contextmanager
    def ready(self, recall_id: str, told: Told) -> Iterator[None]:  # noqa: ARG002  this learner needs nothing
        """To be entered before a transaction with `outcome_in`: what may be slow happens here."""
        yield

    def outcome_in(self, tx: Tx, recall_id: str, told: Told, *,
                   tenant: str | None) -> tuple[bool, Callable[[], None]]:  # fmt: skip
        """`outcome` within someone's transaction; what comes second is to be called when that is committed."""
        now = self._clock()
        written = self._log.write(tx, wanted=recall_id)
        recall = tx.logged_recall(recall_id)
        if recall is None or (tenant is not None and recall.shelf.tenant != tenant):
            raise NotFound("recall", recall_id, "outcomes are told of recalls made with learning on or observing")
        value = told.logged(recall)
        number = tx.add_outcome(recall_id, told.kind, value, now)
        if number is None:
            return False, written
        self._reinforce(tx, told, told.rows(recall), now)
        if told.kind not in self.teaches or self._mode == "off":
            return True, written
        cited = set(value.get("nos", ()))
        step = self._learn(tx, recall, cited, tx.alive(recall.nos), now)
        if step is None:
            return True, written
        before, person = step
        tuner, shelf = self._tuner, recall.shelf

        def committed() -> None:
            written()
            self._told_of(recall, cited, before, person)
            if tuner is None or not tuner.due(person):
                return
            try:
                self._tune(tuner, shelf, person, number)
            except EmbeddingFailed as error:  # the outcome counts; the chunk is made up for with the next one
                _logger.warning("the residual is not learned: %s", type(error).__name__)

        return True, committed

    def trusts(self, tx: Tx, shelf: Shelf) -> bool:
        """Whether a person's feedback is trusted, as of this transaction."""
        person = self._person_in(shelf, tx.policies(shelf, profile=self._profile)[1])
        return person is not None and person.guard.trusted

    def _reinforce(self, tx: Tx, told: Told, rows: Sequence[int], now: datetime) -> None:
        """Count use, and let success and failure change how sure the entries are that it is about."""
        if told.kind == "cited":
            tx.count_use(rows, now)
        elif told.kind == "verdict":
            for entry in self._store.read(rows).values():
                tx.update(judged(entry, told.value["success"], now), change=None)

    def _learn(self, tx: Tx, recall: LoggedRecall, cited: set[int], alive: set[int],
               now: datetime) -> tuple[Person | None, Person] | None:  # fmt: skip
        """The person before and after it; None when it teaches nothing."""
        example = self._example(recall, cited, alive)
        if example is None:
            return None
        tenant, shelf, profile = recall.shelf.tenant, recall.shelf, self._profile
        settled = loads_tenant(tx.policy(tenant, None, profile=SETTLED))
        prior_text, person_text = tx.policies(shelf, profile=profile)
        prior = self._begin(settled) if prior_text is None else self._prior_in(tenant, prior_text)
        if prior.shares != settled.shares:
            prior = replace(prior, shares=settled.shares)
        person = self._person_in(shelf, person_text)
        step = advance(prior, person, example, past=lambda: self._past(shelf, settled.since), at=now)
        if prior_text is None or step.prior is not prior:
            prior_text = dumps_prior(step.prior, self._names)
            tx.put_policy(tenant, None, prior_text, profile=profile)
            _keep(self._priors, tenant, (prior_text, step.prior))
        person_text = dumps_person(step.person, self._names)
        tx.put_policy(tenant, shelf, person_text, profile=profile)
        _keep(self._people, shelf, (person_text, step.person))
        self._receipt(tx, tenant, step, now)
        return person, step.person

    def _receipt(self, tx: Tx, tenant: str, step: Advanced, now: datetime) -> None:
        """Every switch of what serves is an event."""
        if step.switched is not None:
            before, after = step.switched
            gain = step.person.guard.gain
            tx.audit(Event(at=now, tenant=tenant, action="learn", detail={
                "from": before, "to": after, "why": step.why, "outcomes": step.person.outcomes,
                "gain": round(gain.mean, 4), "bound": round(gain.bound(-Z_GAIN), 4) if gain.n >= 2 else 0.0,
            }))  # fmt: skip

    def _example(self, recall: LoggedRecall, cited: set[int], alive: set[int]) -> Example | None:
        """What a recall teaches; None when another profile or other features ranked it, or nothing of it is left."""
        ours = recall.profile == self._profile and recall.names == self._names
        return example_of(recall, cited, alive) if ours else None

    # -- the residual --------------------------------------------------------------------------------------------

    def _tune(self, tuner: Tuner, shelf: Shelf, person: Person, number: int) -> None:
        """Learn the chunk that ended with outcome `number`, outside of its transaction: queries are embedded for it."""
        before = self._store.policy(shelf.tenant, shelf, profile=self._tuned)
        state = tuner.loads(before)
        if (state.chunks + 1) * CHUNK == person.outcomes:
            since = max(state.last, self._settled(shelf.tenant).since)
            told = [one for one, _ in self._logged(shelf.tenant, shelf, since) if one.no <= number]
            state = tuner.after(state, person, told)
        else:  # a chunk is missing, or vectors are of another model now
            state = self._rebuilt(tuner, shelf, number) if number <= REBUILT else tuner.fresh()
            state = replace(state, chunks=person.outcomes // CHUNK, last=number)
        with self._store.transact() as tx:
            own = loads_person(tx.policy(shelf.tenant, shelf, profile=self._profile), self._names)
            if own is None or tx.policy(shelf.tenant, shelf, profile=self._tuned) != before:
                return  # reset, or learned by another process
            self._put_residual(tx, shelf, own, state)

    def _rebuilt(self, tuner: Tuner, shelf: Shelf, number: int) -> LowRank:
        """A person's matrices after outcome `number`, from the log."""
        chunks = Chunks(tuner)
        for step in self.replay(shelf.tenant).steps():
            if step.shelf == shelf and step.told.no <= number:
                chunks.add(step.told, step.after.person)
        return chunks.states.get(shelf) or tuner.fresh()

    def _put_residual(self, tx: Tx, shelf: Shelf, person: Person, state: LowRank) -> None:
        """Keep matrices, and say in the person's state whether they serve. Every switch is an event."""
        text = state.dumps()
        tx.put_policy(shelf.tenant, shelf, text, profile=self._tuned)
        serves = served(state, text)
        if serves != person.residual:
            kept = dumps_person(replace(person, residual=serves), self._names)
            tx.put_policy(shelf.tenant, shelf, kept, profile=self._profile)
        if bool(serves) != bool(person.residual):
            gain = state.gain
            tx.audit(Event(at=self._clock(), tenant=shelf.tenant, action="learn", detail={
                "from": "linear" if serves else "residual", "to": "residual" if serves else "linear",
                "why": f"the order with the low-rank residual against the linear one: gain {gain}",
                "outcomes": person.outcomes, "gain": round(gain.mean, 4),
            }))  # fmt: skip

    # -- replay --------------------------------------------------------------------------------------------------

    def _told(self, tenant: str, shelf: Shelf | None = None, after: int = 0) -> Iterator[LoggedOutcome]:
        """Every outcome that teaches, in order."""
        while page := self._store.outcomes(tenant, shelf=shelf, after=after, limit=PAGE):
            after = page[-1].no
            yield from (one for one in page if one.kind in self.teaches)

    def _logged(self, tenant: str, shelf: Shelf | None = None,
                after: int = 0) -> Iterator[tuple[LoggedOutcome, Example]]:  # fmt: skip
        """Every outcome with what it teaches today: forgotten entries are left out."""
        for one in self._told(tenant, shelf, after):
            alive = self._store.alive(one.recall.nos)
            example = self._example(one.recall, set(one.value.get("nos", ())), alive)
            if example is not None:
                yield one, example

    def _past(self, shelf: Shelf, since: int) -> Iterator[Example]:
        """A person's examples as committed: without the one that is being told."""
        return (example for _, example in self._logged(shelf.tenant, shelf, since))

    def replay(self, tenant: str, settled: Tenant | None = None) -> Replay:
        """A tenant's log since its last reset, to be learned from the start."""
        settled = settled or self._settled(tenant)
        return Replay(
            prior=self._begin(settled), last=settled.since, log=lambda after: self._logged(tenant, after=after)
        )

    def relearn(self, tenant: str, labelled: Labelled | None = None, *, whole: bool = False) -> None:
        """Learn the log since the last reset anew, or with `whole` all of it, which takes the reset back.

        Labelled recalls are learned before it, into the prior. They take the place of those that were learned before;
        None leaves these as they are.
        """
        self._log.flush()
        before = self._settled(tenant)
        settled = self._resettled(before, labelled, whole)
        replay = self.replay(tenant, settled)
        tuned = self._followed(replay)
        with self._store.transact() as tx:
            now = loads_tenant(tx.policy(tenant, None, profile=SETTLED))
            if now != before:  # reset, or shared otherwise, while this was learned
                settled = self._resettled(now, labelled, whole)
                replay, tuned = self.replay(tenant, settled), {}
            for _ in replay.steps():  # what was told while the rest was learned
                pass
            for profile in (self._profile, self._tuned):
                tx.drop_policies(tenant, profile=profile)
            self._settle(tx, tenant, settled)
            tx.put_policy(tenant, None, dumps_prior(replay.prior, self._names), profile=self._profile)
            for shelf, person in replay.people.items():
                tx.put_policy(tenant, shelf, dumps_person(person, self._names), profile=self._profile)
            for shelf, state in tuned.items():
                tx.put_policy(tenant, shelf, state.dumps(), profile=self._tuned)
            tx.audit(Event(at=self._clock(), tenant=tenant, action="relearn", detail={"people": len(replay.people)}))

    def _followed(self, replay: Replay) -> dict[Shelf, LowRank]:
        """Take the steps of a replay, chunk by chunk with the residual; its states."""
        chunks = None if self._tuner is None else Chunks(self._tuner)
        for step in replay.steps():
            state = None if chunks is None else chunks.add(step.told, step.after.person)
            if state is not None:
                replay.people[step.shelf] = replace(step.after.person, residual=served(state, state.dumps()))
        return {} if chunks is None else chunks.states

    def _resettled(self, settled: Tenant, labelled: Labelled | None, whole: bool) -> Tenant:
        """The settings that a replay begins with."""
        if whole:
            settled = replace(settled, since=0)
        if labelled is None:
            return settled
        bare = settled.with_start(self._profile, None, self._names)
        start = self._pretrained(self._begin(bare), labelled)
        return bare if start is None else bare.with_start(self._profile, start, self._names)

    def _settle(self, tx: Tx, tenant: str, settled: Tenant) -> None:
        """Keep settings; the usual ones need no row."""
        if settled != loads_tenant(tx.policy(tenant, None, profile=SETTLED)):
            tx.put_policy(tenant, None, dumps_tenant(settled), profile=SETTLED)

    def _pretrained(self, prior: Prior, labelled: Labelled) -> Prior | None:
        """The prior after pairs of a query and its right entries; None when they teach nothing."""
        ranker = first = prior.ranker or Ranker.fresh(len(self._names))
        for recall, ids in labelled:
            if recall is None:
                continue
            ids_of = {no: entry.id for no, entry in self._store.read(recall.nos).items()}
            right = {no for no, entry_id in ids_of.items() if entry_id in set(ids)}
            example = self._example(_shown_first(recall, right), right, set(ids_of))
            if example is not None:
                ranker = ranker.updated(example)
        return None if ranker is first else replace(prior, ranker=ranker)

    # -- looking and settings ------------------------------------------------------------------------------------

    def status(self, shelf: Shelf) -> LearningStatus:
        self._store.heads([])  # a closed store says so
        prior, person = self._prior(shelf.tenant), self._person(shelf)
        now = self.serving(shelf)
        ranker = now.ranker or (person.own if person is not None else None)
        gain = prior.gain if person is None else person.guard.gain
        return LearningStatus(
            mode=self._mode, serving="base" if now.ranker is None else "learned", level=now.level,
            outcomes=0 if person is None else person.outcomes, steps=0 if person is None else person.own.steps,
            agreement=0.0 if person is None else person.guard.agree.mean,
            trusted=person is not None and person.guard.trusted,
            distrust="" if person is None else person.guard.distrust(),
            gain=gain.mean, bound=gain.bound(-Z_GAIN) if gain.n >= 2 else 0.0,
            prior_steps=0 if prior.ranker is None else prior.ranker.steps, prior_users=prior.users,
            shares=self._settled(shelf.tenant).shares, last_change=None if person is None else person.changed_at,
            weights={} if ranker is None else dict(zip(self._names, ranker.weights.tolist(), strict=True)),
        )  # fmt: skip

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

    def export(self, shelf: Shelf) -> dict[str, Any]:
        """The states as they are kept: numbers only."""
        texts = {
            name: self._store.policy(shelf.tenant, of, profile=self._profile)
            for name, of in (("prior", None), ("person", shelf))
        }
        return {name: None if text is None else json.loads(text) for name, text in texts.items()}

    def load_in(self, tx: Tx, shelf: Shelf, state: dict[str, Any]) -> None:
        """Put exported states in the place of those that are kept; a residual is not in them, and starts afresh."""
        if state.get("prior") is not None:
            prior = loads_prior(json.dumps(state["prior"]), self._names)
            tx.put_policy(shelf.tenant, None, dumps_prior(prior, self._names), profile=self._profile)
        person = loads_person(json.dumps(state.get("person")), self._names)
        if person is not None:
            text = dumps_person(replace(person, residual=0), self._names)
            tx.put_policy(shelf.tenant, shelf, text, profile=self._profile)

    def close(self) -> None:
        self._log.close()


def _keep(held: dict[K, V], key: K, value: V) -> None:
    """Into a cache of at most `PAGE` of a kind."""
    if len(held) >= PAGE:
        held.clear()
    held[key] = value


def _shown_first(recall: LoggedRecall, right: set[int]) -> LoggedRecall:
    """The recall as if the right rows had been shown as well: a label says more than what was shown."""
    shown = [place for place, no in enumerate(recall.nos) if place < recall.shown or no in right]
    rest = [place for place in range(len(recall.nos)) if place not in set(shown)]
    order = shown + rest
    return replace(
        recall, nos=[recall.nos[place] for place in order], shown=len(shown), base=recall.base[order],
        features=recall.features[order],
    )  # fmt: skip
