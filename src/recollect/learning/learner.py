"""Learning in a store: outcomes in, policies out, each outcome one transaction.

The arithmetic is `policy.advance`, one fold step; told at once or replayed from the log it is the same step over the
same numbers, so a replay rebuilds the same weights bit for bit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from recollect.clock import Clock, aware
from recollect.errors import InvalidInput, NotFound
from recollect.learning.example import Example, example_of
from recollect.learning.guard import Z_GAIN
from recollect.learning.log import RecallLog
from recollect.learning.policy import Advanced, Person, Prior, advance, serving
from recollect.learning.ranker import Ranker
from recollect.learning.reinforce import judged, used
from recollect.learning.replay import Replay
from recollect.learning.residual import Residual
from recollect.learning.state import dumps_person, dumps_prior, loads_person, loads_prior
from recollect.learning.told import Told
from recollect.stores.base import Event, LoggedOutcome, LoggedRecall, Store, Tx
from recollect.types import LearningStatus, Shelf

MODES = ("on", "observe", "off")
TEACHES = ("cited", "ignored")
"""Kinds of outcome that say which of the shown were useful."""
PAGE = 500


def checked_mode(mode: object) -> str:
    if mode not in MODES:
        raise InvalidInput("learning", f"{mode!r} is unknown", f"use one of {', '.join(MODES)}")
    return str(mode)


@dataclass(frozen=True, kw_only=True)
class Serving:
    """Which ranking serves a shelf now: a level, its weights (None for the base), and how many outcomes it rests on."""

    level: str
    ranker: Ranker | None
    outcomes: int


class Learner:
    """Turns outcomes into policies. `names` are the features that recalls are logged with."""

    def __init__(self, store: Store, *, mode: str, names: Sequence[str], clock: Clock,
                 start: Prior | None = None) -> None:  # fmt: skip
        """`start` is the prior of tenants who have none of their own yet."""
        self._start = start or Prior()
        self._store = store
        self._mode = mode
        self._names = list(names)
        self._clock = aware(clock)
        self._log = RecallLog(store)
        self._parsed: dict[tuple[str, Shelf | None], tuple[str | None, Any]] = {}

    @property
    def names(self) -> list[str]:
        return self._names

    # -- serving -------------------------------------------------------------------------------------------------

    def serving(self, shelf: Shelf) -> Serving:
        """What serves this shelf, as of now in every process."""
        prior, person = self._prior(shelf.tenant), self._person(shelf)
        outcomes = 0 if person is None else person.outcomes
        if self._mode != "on":
            return Serving(level="base", ranker=None, outcomes=0)
        level, ranker = serving(prior, person)
        return Serving(level=level, ranker=ranker, outcomes=outcomes)

    def residual(self, shelf: Shelf) -> Residual | None:  # noqa: ARG002  `PaperLearner` has one
        """The matrices of the paper's reranker, where that serves."""
        return None

    def record(self, recall: LoggedRecall, *, new: bool) -> None:
        """Log a recall; it reaches the store in the background. `new`: its shelf was not there when it was made."""
        self._log.add(recall, new=new)

    def forget(self, nos: Iterable[int]) -> None:
        """Rows are gone: what is on its way to the log must not name them."""
        self._log.forget(nos)

    def write_pending(self, tx: Tx) -> Callable[[], None]:
        """Put logged recalls that are still on their way into a transaction; see `RecallLog.write`."""
        return self._log.write(tx)

    def _prior(self, tenant: str) -> Prior:
        text = self._store.policy(tenant, None)
        held = self._parsed.get((tenant, None))
        if held is None or held[0] != text:
            held = self._parsed[tenant, None] = (text, self._prior_in(text))
        prior: Prior = held[1]
        return prior

    def _prior_in(self, text: str | None) -> Prior:
        """The prior kept in this text, or the one to start with."""
        return self._start if text is None else loads_prior(text, self._names)

    def _person(self, shelf: Shelf) -> Person | None:
        text = self._store.policy(shelf.tenant, shelf)
        held = self._parsed.get((shelf.tenant, shelf))
        if held is None or held[0] != text:
            if len(self._parsed) > PAGE:
                self._parsed.clear()
            held = self._parsed[shelf.tenant, shelf] = (text, loads_person(text, self._names))
        person: Person | None = held[1]
        return person

    # -- outcomes ------------------------------------------------------------------------------------------------

    def outcome(self, recall_id: str, told: Told, *, tenant: str | None) -> bool:
        """Append an outcome to the log and learn from it; False when one of this kind was told before."""
        now = self._clock()
        with self._store.transact() as tx:
            written = self._log.write(tx, wanted=recall_id)
            recall = tx.logged_recall(recall_id)
            if recall is None or (tenant is not None and recall.shelf.tenant != tenant):
                raise NotFound("recall", recall_id, "outcomes are told of recalls made with learning on or observing")
            value = told.logged(recall)
            counts = tx.add_outcome(recall_id, told.kind, value, now) is not None
            if counts:
                self._reinforce(tx, recall, told.kind, value, now)
                if told.kind in TEACHES and self._mode != "off":
                    self._learn(tx, recall, set(value.get("nos", ())), self._store.alive(recall.nos), now)
        written()
        return counts

    def _reinforce(self, tx: Tx, recall: LoggedRecall, kind: str, value: dict[str, Any], now: datetime) -> None:
        """Count use, and let success and failure change how sure the shown entries are."""
        if kind == "cited":
            changed = [used(entry, now) for entry in self._store.read(value["nos"]).values()]
        elif kind == "verdict":
            shown = self._store.read(recall.nos[: recall.shown])
            changed = [judged(entry, value["success"], now) for entry in shown.values()]
        else:
            return
        for entry in changed:
            tx.update(entry, change=None)

    def _learn(self, tx: Tx, recall: LoggedRecall, cited: set[int], alive: set[int], now: datetime) -> None:
        example = self._example(recall, cited, alive)
        if example is None:
            return
        tenant, shelf = recall.shelf.tenant, recall.shelf
        step = advance(
            self._prior_in(tx.policy(tenant, None)), loads_person(tx.policy(tenant, shelf), self._names),
            example, past=lambda: self._past(shelf), at=now,
        )  # fmt: skip
        tx.put_policy(tenant, None, dumps_prior(step.prior, self._names))
        tx.put_policy(tenant, shelf, dumps_person(step.person, self._names))
        self._receipt(tx, tenant, step, now)

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
        """What a recall teaches; None when it was logged with other features or nothing of it is left."""
        return example_of(recall, cited, alive) if recall.names == self._names else None

    # -- replay --------------------------------------------------------------------------------------------------

    def _told(self, tenant: str, shelf: Shelf | None = None, after: int = 0) -> Iterator[LoggedOutcome]:
        """Every outcome that teaches, in order."""
        while page := self._store.outcomes(tenant, shelf=shelf, after=after, limit=PAGE):
            after = page[-1].no
            yield from (one for one in page if one.kind in TEACHES)

    def _logged(self, tenant: str, shelf: Shelf | None = None,
                after: int = 0) -> Iterator[tuple[LoggedOutcome, Example]]:  # fmt: skip
        """Every outcome with what it teaches today: forgotten entries are left out."""
        for one in self._told(tenant, shelf, after):
            alive = self._store.alive(one.recall.nos)
            example = self._example(one.recall, set(one.value.get("nos", ())), alive)
            if example is not None:
                yield one, example

    def _past(self, shelf: Shelf) -> Iterator[Example]:
        """A person's examples as committed: without the one that is being told."""
        return (example for _, example in self._logged(shelf.tenant, shelf))

    def replay(self, tenant: str, start: Prior) -> Replay:
        """A tenant's log, to be learned from the start."""
        return Replay(prior=start, log=lambda after: self._logged(tenant, after=after))

    def relearn(self, tenant: str, labelled: Sequence[tuple[LoggedRecall | None, Sequence[str]]]) -> None:
        """Learn the log anew and serve that; labelled recalls are learned before it, into the prior."""
        self._log.flush()
        replay = self.replay(tenant, self._pretrained(self._started(tenant), labelled))
        for _ in replay.steps():
            pass
        with self._store.transact() as tx:
            for _ in replay.steps():  # what was told while the rest was learned
                pass
            tx.drop_policies(tenant)
            tx.put_policy(tenant, None, dumps_prior(replay.prior, self._names))
            for shelf, person in replay.people.items():
                tx.put_policy(tenant, shelf, dumps_person(person, self._names))
            tx.audit(Event(at=self._clock(), tenant=tenant, action="relearn", detail={"people": len(replay.people)}))

    def _started(self, tenant: str) -> Prior:
        """Where a tenant's learning begins: at the prior to start with, unless it shares nothing."""
        return self._start if self._prior(tenant).shares else Prior(shares=False)

    def _pretrained(self, prior: Prior, labelled: Iterable[tuple[LoggedRecall | None, Sequence[str]]]) -> Prior:
        """The prior after pairs of a query and its right entries."""
        ranker = prior.ranker or Ranker.fresh(len(self._names))
        for recall, ids in labelled:
            if recall is None:
                continue
            ids_of = {no: entry.id for no, entry in self._store.read(recall.nos).items()}
            right = {no for no, entry_id in ids_of.items() if entry_id in set(ids)}
            example = self._example(_shown_first(recall, right), right, set(ids_of))
            if example is not None:
                ranker = ranker.updated(example)
        return replace(prior, ranker=ranker) if ranker.steps else prior

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
            shares=prior.shares, last_change=None if person is None else person.changed_at,
            weights={} if ranker is None else dict(zip(self._names, ranker.weights.tolist(), strict=True)),
        )  # fmt: skip

    def reset(self, tenant: str) -> int:
        """Drop every learned state of a tenant; whether it shares stays as it was."""
        shares = self._prior(tenant).shares
        with self._store.transact() as tx:
            dropped = tx.drop_policies(tenant)
            if not shares:
                tx.put_policy(tenant, None, dumps_prior(Prior(shares=False), self._names))
            tx.audit(Event(at=self._clock(), tenant=tenant, action="reset_learning", detail={"states": dropped}))
        return dropped

    def share(self, tenant: str, on: bool) -> None:
        """Switch sharing, and learn the log anew with it: off takes everyone's lessons out of each other's weights."""
        with self._store.transact() as tx:
            if self._prior_in(tx.policy(tenant, None)).shares == on:
                return
            tx.put_policy(tenant, None, dumps_prior(Prior(shares=on), self._names))
            tx.audit(Event(at=self._clock(), tenant=tenant, action="share_learning", detail={"on": int(on)}))
        self.relearn(tenant, [])

    def export(self, shelf: Shelf) -> dict[str, Any]:
        """The states as they are kept: numbers only."""
        texts = {"prior": self._store.policy(shelf.tenant, None), "person": self._store.policy(shelf.tenant, shelf)}
        return {name: None if text is None else json.loads(text) for name, text in texts.items()}

    def close(self) -> None:
        self._log.close()


def _shown_first(recall: LoggedRecall, right: set[int]) -> LoggedRecall:
    """The recall as if the right rows had been shown as well: a label says more than what was shown."""
    shown = [place for place, no in enumerate(recall.nos) if place < recall.shown or no in right]
    rest = [place for place in range(len(recall.nos)) if place not in set(shown)]
    order = shown + rest
    return replace(
        recall, nos=[recall.nos[place] for place in order], shown=len(shown), base=recall.base[order],
        features=recall.features[order],
    )  # fmt: skip
