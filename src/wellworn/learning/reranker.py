"""Optional rerankers with matrices: W_q and W_m per person, learned from citations. The default does not load this.

`paper` (profile `paper`) is RMM's reranker as printed: it replaces the linear correction, has no prior and no guard,
and shows a sample. With the paper's values it lowers recall; it is here to be compared with. `lowrank` (profile
`lowrank`) adds to a person's linear correction and starts at zero:

    score(i) = base(i) + linear(i) + clip(r_i - mean of r, ±1)        r_i = 10 (q'·m'_i - q·m_i)

It is trained with the loss of `ranker`, and every outcome first says whether the order with r predicts its citations
better than the order without; it serves only while it does. On LoCoMo it never came to serve.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from wellworn.core.values import Partition
from wellworn.ingest.hashing import hash64
from wellworn.learning.guard import LEAST, NO_EVIDENCE, Evidence, auc
from wellworn.learning.policy import Person, Replay
from wellworn.learning.ranker import MIN_BASE_WEIGHT, UNSHOWN_LOG, Array, example_of
from wellworn.learning.records import LoggedRecall, drop_policies, put_policy, stored_policy
from wellworn.learning.residual import FROM_ZERO, TAU, Residual, chances
from wellworn.store.port import Store, Tx, Vector

SCALE = 10.0
"""Of a cosine in the score, as the base weighs meaning."""
STEP = 2e-3
MAX_RESIDUAL = 1.0
"""The most that it moves a row, a third of what the linear correction may."""
Z_RESIDUAL = 2.0
"""Standard errors above 0 at which it begins to serve, and below 0 at which it starts over. At 1, random citations got
it to serve."""
MIN_VARIANCE = 1e-4
"""Most orders are the same with r and without, so the variance is really small."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PersonMatrices:
    """The matrices of one person, with the evidence for them."""

    residual: Residual
    paper: bool
    gain: Evidence = NO_EVIDENCE
    """How much better than the linear ranking alone the order with r predicted citations."""

    @property
    def alone(self) -> bool:
        """Whether they replace the linear correction."""
        return self.paper

    @property
    def proven(self) -> bool:
        return self.gain.n >= LEAST and _bound(self.gain, -Z_RESIDUAL) > 0.0

    def factors(self, query: Vector, rows: Vector, recall_id: str) -> list[tuple[str, Array, float]]:
        """What to add to the scores of a recall's candidates: name, values and weight of each factor.

        The paper orders by s/τ + g. Shown as s + τ·g, the same order: `residual` is s minus the cosine, `noise` is g.
        The dice are seeded by the recall's id, so that a run with given ids can be repeated.
        """
        q, m = query.astype(np.float64), rows.astype(np.float64)
        if len(q) != self.residual.width or not len(m):
            return []
        if not self.paper:
            return [("residual", self._moves(q, m), 1.0)]
        noise = np.random.default_rng(hash64(recall_id)).gumbel(size=len(m))
        return [("residual", self.residual.scores(q, m) - m @ q, 1.0), ("noise", noise, TAU)]

    def _moves(self, q: Array, m: Array) -> Array:
        raw = SCALE * (self.residual.scores(q, m) - m @ q)
        moves: Array = np.clip(np.nan_to_num(raw - raw.mean()), -MAX_RESIDUAL, MAX_RESIDUAL)
        return moves

    def learned(
        self, recall: LoggedRecall, query: Vector, cited: set[int], vectors: dict[int, Vector], person: Person
    ) -> PersonMatrices:
        """After one more outcome, with what is left of its rows."""
        nos = [no for no in recall.nos if no in vectors]
        example = example_of(recall, cited, set(nos))
        if example is None or len(example.base) != len(nos) or len(query) != self.residual.width:
            return self
        q, m = query.astype(np.float64), np.array([vectors[no] for no in nos], dtype=np.float64)
        if self.paper:
            return replace(self, residual=self.residual.updated(q, m, range(example.shown), example.cited))
        if not person.guard.trusted or not example.cited.any():
            return self
        linear = example.base + person.own.correction(example.base, example.features, example.best)
        scores, shown, flags, gain = linear + self._moves(q, m), example.shown, example.cited.tolist(), self.gain
        if not all(flags):
            gain = gain.add(auc(scores[:shown].tolist(), flags) - auc(linear[:shown].tolist(), flags))
        if gain.n >= LEAST and _bound(gain, Z_RESIDUAL) < 0.0:
            return PersonMatrices(residual=Residual.fresh(self.residual.width, seed=FROM_ZERO), paper=False)
        # v = Σ (y_i - p_i) m_i of the listwise loss; theta[0] says how noisy citations are.
        logits = max(float(person.own.theta[0]), MIN_BASE_WEIGHT) * scores
        logits[shown:] += UNSHOWN_LOG
        slope = -chances(logits, tau=1.0)
        slope[:shown] += example.cited / example.cited.sum()
        return replace(self, gain=gain, residual=self.residual.taught(q, SCALE * (slope @ m), eta=STEP))


class MatrixReranker:
    """Keeps the matrices of people in a store, under the profile's name and `/matrices`."""

    def __init__(self, store: Store, *, paper: bool, profile: str, embed: Callable[[str], Vector], width: int) -> None:
        self._paper = paper
        self._store = store
        self._profile = f"{profile}/matrices"
        self._embed = embed
        self._width = width

    def embed(self, query: str) -> Vector | None:
        """The vector of a query; None when its words were forgotten."""
        return self._embed(query) if query else None

    def serving(self, partition: Partition, level: str) -> PersonMatrices | None:
        """The matrices that serve a person whose linear ranking is at this level; None while they are not known to
        help."""
        if self._paper:
            return self._read(partition)
        found = self._read(partition) if level == "person" else None
        return found if found is not None and found.proven else None

    def learn(self, tx: Tx, recall: LoggedRecall, query: Vector, cited: set[int], person: Person) -> None:
        """Learn one outcome in its transaction."""
        if not recall.query:  # its words were forgotten meanwhile
            return
        before = self._read(recall.partition, tx)
        after = before.learned(recall, query, cited, self._vectors(recall), person)
        if after is not before:
            self._put(tx, recall.partition, after)

    def relearned(self, replay: Replay) -> dict[Partition, PersonMatrices]:
        """Take the steps of a replay; the matrices after it."""
        found: dict[Partition, PersonMatrices] = {}
        for one, _, person in replay.steps():
            recall, query = one.recall, self.embed(one.recall.query)
            if query is not None:
                before = found.get(recall.partition) or self._fresh(recall.partition)
                cited, vectors = set(one.value.get("nos", ())), self._vectors(recall)
                found[recall.partition] = before.learned(recall, query, cited, vectors, person)
        return found

    def put_all(self, tx: Tx, tenant: str, states: dict[Partition, PersonMatrices]) -> None:
        """Replace the matrices of a tenant's people."""
        drop_policies(tx, tenant, profile=self._profile)
        for partition, state in states.items():
            self._put(tx, partition, state)

    def _vectors(self, recall: LoggedRecall) -> dict[int, Vector]:
        """The vectors of its rows that still exist."""
        return {no: vector for no, (_, vector) in self._store.index_of(recall.nos).items() if vector is not None}

    def _fresh(self, partition: Partition) -> PersonMatrices:
        who = f"{partition.tenant}\x1f{partition.layer}\x1f{partition.layer_id}"
        seed = hash64(who) % (2**32 - 1) + 1 if self._paper else FROM_ZERO
        return PersonMatrices(residual=Residual.fresh(self._width, seed=seed), paper=self._paper)

    def _read(self, partition: Partition, tx: Tx | None = None) -> PersonMatrices:
        text = stored_policy(tx or self._store, partition.tenant, partition, profile=self._profile)
        try:
            value = msgspec.json.decode(text or "{}")
            residual = Residual.from_bytes(base64.b64decode(value["residual"]))
            gain = Evidence(*value["gain"])
        except (KeyError, TypeError, ValueError):
            return self._fresh(partition)
        fits = residual.width == self._width  # else the vectors are of another model now
        return PersonMatrices(residual=residual, paper=self._paper, gain=gain) if fits else self._fresh(partition)

    def _put(self, tx: Tx, partition: Partition, state: PersonMatrices) -> None:
        residual = base64.b64encode(state.residual.to_bytes()).decode("ascii")
        text = msgspec.json.encode({"kind": "matrices", "gain": state.gain, "residual": residual}).decode()
        put_policy(tx, partition.tenant, partition, text, profile=self._profile)


def _bound(gain: Evidence, z: float) -> float:
    return gain.mean + z * math.sqrt(max(gain.variance, MIN_VARIANCE) / gain.n)
