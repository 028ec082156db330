"""RMM's reranker as printed (profile `paper`): W_q and W_m per person, learned from citations. The default does not load
this.

It replaces the linear correction, has no prior and no guard, and shows a sample. With the paper's values it lowers
recall; it is here to be compared with.
"""

from __future__ import annotations

import base64
from collections.abc import Callable

import numpy as np

from wellworn.core.values import Partition
from wellworn.ingest.hashing import hash64
from wellworn.learning.policy import Replay
from wellworn.learning.ranker import Array, example_of
from wellworn.learning.records import LoggedRecall, drop_policies, put_policy, stored_policy
from wellworn.learning.residual import TAU, Residual
from wellworn.store.port import Store, Tx, Vector


def paper_factors(residual: Residual, query: Vector, rows: Vector, recall_id: str) -> list[tuple[str, Array, float]]:
    """What to add to the cosines of a recall's candidates: name, values and weight of each factor.

    The paper orders by s/τ + g. Shown as s + τ·g, the same order: `residual` is s minus the cosine, `noise` is g. The
    dice are seeded by the recall's id, so that a run with given ids can be repeated.
    """
    q, m = query.astype(np.float64), rows.astype(np.float64)
    if len(q) != residual.width or not len(m):
        return []
    noise = np.random.default_rng(hash64(recall_id)).gumbel(size=len(m))
    return [("residual", residual.scores(q, m) - m @ q, 1.0), ("noise", noise, TAU)]


class MatrixReranker:
    """Keeps the matrices of people in a store, under the profile's name and `/matrices`."""

    def __init__(self, store: Store, *, profile: str, embed: Callable[[str], Vector], width: int) -> None:
        self._store = store
        self._profile = f"{profile}/matrices"
        self._embed = embed
        self._width = width

    def embed(self, query: str) -> Vector | None:
        """The vector of a query; None when its words were forgotten."""
        return self._embed(query) if query else None

    def serving(self, partition: Partition, tx: Tx | None = None) -> Residual:
        """A person's matrices; a start of their own where there is nothing usable of this width."""
        text = stored_policy(tx or self._store, partition.tenant, partition, profile=self._profile)
        try:
            found = Residual.from_bytes(base64.b64decode(text or ""))
        except ValueError:
            return self._fresh(partition)
        return found if found.width == self._width else self._fresh(partition)

    def learn(self, tx: Tx, recall: LoggedRecall, query: Vector, cited: set[int]) -> None:
        """Learn one outcome in its transaction."""
        if recall.query:  # else its words were forgotten meanwhile
            self._put(tx, recall.partition, self._learned(self.serving(recall.partition, tx), recall, query, cited))

    def relearned(self, replay: Replay) -> dict[Partition, Residual]:
        """Take the steps of a replay; the matrices after it."""
        found: dict[Partition, Residual] = {}
        for one, _, _ in replay.steps():
            partition, query = one.recall.partition, self.embed(one.recall.query)
            if query is not None:
                before = found.get(partition) or self._fresh(partition)
                found[partition] = self._learned(before, one.recall, query, set(one.value.get("nos", ())))
        return found

    def put_all(self, tx: Tx, tenant: str, states: dict[Partition, Residual]) -> None:
        """Replace the matrices of a tenant's people."""
        drop_policies(tx, tenant, profile=self._profile)
        for partition, state in states.items():
            self._put(tx, partition, state)

    def _learned(self, before: Residual, recall: LoggedRecall, query: Vector, cited: set[int]) -> Residual:
        """After one more outcome, with what is left of its rows."""
        vectors = {no: vector for no, (_, vector) in self._store.index_of(recall.nos).items() if vector is not None}
        nos = [no for no in recall.nos if no in vectors]
        example = example_of(recall, cited, set(nos))
        if example is None or len(example.base) != len(nos) or len(query) != before.width:
            return before
        q, m = query.astype(np.float64), np.array([vectors[no] for no in nos], dtype=np.float64)
        return before.updated(q, m, range(example.shown), example.cited)

    def _fresh(self, partition: Partition) -> Residual:
        who = f"{partition.tenant}\x1f{partition.layer}\x1f{partition.layer_id}"
        return Residual.fresh(self._width, seed=hash64(who) % 2**32)

    def _put(self, tx: Tx, partition: Partition, state: Residual) -> None:
        text = base64.b64encode(state.to_bytes()).decode("ascii")
        put_policy(tx, partition.tenant, partition, text, profile=self._profile)
