"""Learning as RMM's paper has it, for `profile="paper"`: per person W_q, W_m by REINFORCE, shown by Gumbel top-M.

No prior, no guard, no named features: it is here to be compared with. States and log are kept like the default's; the
vectors that an update needs are read from the store, and the query is embedded again before the transaction.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from wellworn.core.clock import Clock
from wellworn.core.values import LearningStatus, Partition
from wellworn.ingest.hashing import hash64
from wellworn.learning.learner import Labelled, Learner
from wellworn.learning.policy import Person
from wellworn.learning.residual import Residual
from wellworn.learning.told import Told
from wellworn.store.port import Event, LoggedRecall, Store, Tx, Vector

EmbedQuery = Callable[[str], Vector]
_KIND = "residual"


class _Kept(NamedTuple):
    text: str | None
    """The open batch, as it is kept."""
    state: Residual
    closed: int | None
    """The hash of what is kept of closed batches."""


class PaperLearner(Learner):
    """Keeps a `Residual` per partition instead of a prior and a person."""

    teaches = ("cited", "ignored")

    def __init__(
        self,
        store: Store,
        *,
        mode: str,
        names: Sequence[str],
        clock: Clock,
        embed_query: EmbedQuery,
        width: int,
        profile: str = "paper",
    ) -> None:
        super().__init__(store, mode=mode, names=names, clock=clock, profile=profile)
        self._embed_query = embed_query
        self._width = width
        self._queries: dict[str, Vector] = {}
        self._closed = f"{profile}/closed"
        self._last: tuple[Partition, _Kept] | None = None
        """Read or written last, as most often the one that is wanted next."""

    def residual(self, partition: Partition) -> Residual | None:
        """The matrices that serve a partition; None when the base does."""
        return self._kept(self._store, partition) if self._mode == "on" else None

    @contextmanager
    def ready(self, recall_id: str, told: Told) -> Iterator[None]:
        recall = self._log.find(recall_id) or self._store.logged_recall(recall_id)
        if recall is not None and told.kind in self.teaches:
            self._queries[recall_id] = self._embed_query(recall.query)  # before the transaction: it may be slow
        try:
            yield
        finally:
            self._queries.pop(recall_id, None)

    def _learn(self, tx: Tx, recall: LoggedRecall, cited: set[int], alive: set[int],
               now: datetime) -> tuple[Person | None, Person] | None:  # fmt: skip
        query = self._queries.get(recall.id)
        if query is None or not recall.query:  # logged by another process a moment ago, or its words were forgotten
            return None
        if recall.profile != self._profile:
            return None
        found = self._found(tx, recall.partition)
        grown = self._grown(found.state, recall, query, cited, alive)
        if grown is not found.state:
            self._keep(tx, recall.partition, grown, found.closed)
        return None

    def _grown(
        self, state: Residual, recall: LoggedRecall, query: Vector, cited: set[int], alive: set[int]
    ) -> Residual:
        """Equation 3 on what is still there of a recall."""
        vectors = self._store.vectors([no for no in recall.nos if no in alive])
        rows = [no for no in recall.nos if no in vectors]
        shown = [rows.index(no) for no in recall.nos[: recall.shown] if no in rows]
        if not shown or state.width != len(query):
            return state
        matrix: npt.NDArray[np.float64] = np.array([vectors[no] for no in rows], dtype=np.float64)
        flags = np.array([rows[place] in cited for place in shown])
        return state.updated(np.asarray(query, dtype=np.float64), matrix, shown, flags)

    def relearn(self, tenant: str, labelled: Labelled | None = None, *, whole: bool = False) -> None:
        """Replay the log; labelled pairs are not part of the paper's online method and are left out."""
        self._log.flush()
        states: dict[Partition, Residual] = {}
        settled = self._resettled(self._settled(tenant), None, whole)
        for one in self._told(tenant, after=settled.since):
            partition = one.recall.partition
            state = states.get(partition) or self._fresh(partition)
            if not one.recall.query or one.recall.profile != self._profile:
                continue
            alive = self._store.alive(one.recall.nos)
            query = self._embed_query(one.recall.query)
            states[partition] = self._grown(state, one.recall, query, set(one.value.get("nos", ())), alive)
        with self._store.transact() as tx:
            tx.drop_policies(tenant, profile=self._profile)
            self._settle(tx, tenant, settled)
            tx.drop_policies(tenant, profile=self._closed)
            for partition, state in states.items():
                self._keep(tx, partition, state, None)
            tx.audit(Event(at=self._clock(), tenant=tenant, action="relearn", detail={"people": len(states)}))

    def status(self, partition: Partition) -> LearningStatus:
        plain = super().status(partition)
        state = self._kept(self._store, partition)
        serves = self._mode == "on"
        return replace(
            plain,
            steps=state.steps,
            outcomes=state.steps,
            serving="learned" if serves else "base",
            level="person" if serves else "base",
        )

    def _fresh(self, partition: Partition) -> Residual:
        seed = hash64(f"{partition.tenant}\x1f{partition.layer}\x1f{partition.layer_id}") % 2**32
        return Residual.fresh(self._width, seed=seed)

    # What was learned is large and moves with every fourth recall only, so it is kept apart from the open batch.

    def _kept(self, read: Store | Tx, partition: Partition) -> Residual:
        """The state of a partition; a fresh one when there is none of this width."""
        return self._found(read, partition).state

    def _found(self, read: Store | Tx, partition: Partition) -> _Kept:
        text = read.policy(partition.tenant, partition, profile=self._profile)
        if self._last is not None and self._last[0] == partition and self._last[1].text == text:
            return self._last[1]
        found = _read(text, lambda: read.policy(partition.tenant, partition, profile=self._closed))
        if found is None or found.state.width != self._width:
            found = _Kept(text, self._fresh(partition), None)
        if text is not None:
            self._last = (partition, found)
        return found

    def _keep(self, tx: Tx, partition: Partition, state: Residual, closed: int | None) -> None:
        """`closed` names what is kept of closed batches; None: write it too, if there is any."""
        learned, open_ = state.parts()
        if learned.steps and (closed is None or len(state.open) == 0):
            text = _base64(learned)
            tx.put_policy(partition.tenant, partition, text, profile=self._closed)
            closed = hash64(text)
        text = json.dumps({"format": 2, "kind": _KIND, "closed": closed, "open": _base64(open_)})
        tx.put_policy(partition.tenant, partition, text, profile=self._profile)
        self._last = (partition, _Kept(text, state, closed))


def _read(text: str | None, closed: Callable[[], str | None]) -> _Kept | None:
    """The open batch in this text, with what was learned from the closed ones; None when either cannot be read."""
    try:
        value = json.loads(text or "{}")
        if value["kind"] != _KIND or value["format"] != 2:
            return None
        state = Residual.from_bytes(base64.b64decode(value["open"]))
        if value["closed"] is not None:
            learned = closed() or ""
            if hash64(learned) != value["closed"]:
                return None
            state = Residual.from_bytes(base64.b64decode(learned)).opened(state.open)
        return _Kept(text, state, value["closed"])
    except (ValueError, KeyError, TypeError):
        return None


def _base64(state: Residual) -> str:
    return base64.b64encode(state.to_bytes()).decode("ascii")
