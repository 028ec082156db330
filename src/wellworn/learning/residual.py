"""The reranker of RMM (Tan et al., ACL 2025, arXiv 2503.08026), Equations 1 to 3, in low-rank form.

    1   q' = q + W_q q,  m'_i = m_i + W_m m_i,  s_i = q'·m'_i
    2   show the M best of K by s_i/τ + g_i,  g_i = -log(-log u_i);  p = softmax(s/τ) over the K
    3   Δφ = η Σ_{i shown} (R_i - b) ∇ log p_i,  R = +1 cited, -1 not

Equation 2 is printed as softmax((s+g)/τ). Dividing the sum by τ cannot change an order, so sampling would not depend on
τ at all, and the sample would not follow the p whose gradient Equation 3 takes. s/τ + g draws exactly from softmax(s/τ)
without replacement (Plackett-Luce).

The gradients are rank one. With e_i = ∂(Σ advantage · log p)/∂s_i and v = Σ_i e_i m_i:

    ΔW_q = η m̂ qᵀ,  m̂ = Σ_i e_i m'_i = v + W_m v            ΔW_m = η q' vᵀ

so q and v say all about a recall while its batch is open, and W is a sum of few outer products.

In the profile `paper` the matrices replace the linear correction, without prior and guard. With the paper's values that
lowers recall; it is here to be compared with. `MatrixReranker` learns them from the log when a process first serves a
person, so nothing of them is stored. The default loads none of it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from wellworn.core.dataclass import dataclass
from wellworn.core.hashes import hash64
from wellworn.core.values import Partition
from wellworn.learning.ranker import Array, Flags, example_of
from wellworn.learning.records import LoggedRecall
from wellworn.store.port import Store, Vector

CANDIDATES, SHOWN = 20, 5  # K, M
TAU, ETA, BASELINE, BATCH = 0.5, 1e-3, 0.5, 4
SIGMA = 0.01
"""Standard deviation of an entry of W at the start. The paper does not state one."""
RANK = 8
"""Outer products kept per matrix. 4·8·d floats and an open batch are 228 KiB at d = 1536 (`Residual.to_bytes`)."""
MAX_NORM = 4.0
"""The largest Frobenius norm of what was learned, per matrix. Nothing in Equation 3 pulls W back: where one answer keeps
being cited, its scores grow, the steps grow with them, and W reached 5e8 in 3,000 turns."""
SCORE_DECIMALS = 9
"""Processors differ in the last bits of a sum. Scores that agree to this many decimals are a tie on all of them."""

_MAGIC = b"RRL1"
_HEADER = struct.Struct("<4sIIIIIQ")


@dataclass(frozen=True, kw_only=True)
class Rates:
    """How Equations 2 and 3 are run: τ, η and b. The defaults are the paper's."""

    tau: float = TAU
    eta: float = ETA
    baseline: float = BASELINE


PAPER = Rates()


class Factors(NamedTuple):
    """W = leftᵀ · right; both of shape (rank, d)."""

    left: Vector
    right: Vector

    def of(self, x: Array) -> Array:
        """W x, for one vector (d,) or for each row of (n, d)."""
        return (x @ self.right.T.astype(np.float64)) @ self.left.astype(np.float64)

    def grown(self, left: Array, right: Array) -> Factors:
        """W + leftᵀ · right, at most `MAX_NORM` large; beyond `RANK` outer products, the nearest matrix of that rank."""
        left, right = np.concatenate([self.left, left]), np.concatenate([self.right, right])  # (r, d) each
        if len(left) > RANK:
            # leftᵀ = Q_l R_l and rightᵀ = Q_r R_r, so W = Q_l (R_l R_rᵀ) Q_rᵀ: the SVD of the small middle one is W's.
            (q_left, r_left), (q_right, r_right) = np.linalg.qr(left.T), np.linalg.qr(right.T)
            u, size, vt = np.linalg.svd(r_left @ r_right.T)
            left, right = (q_left @ (u[:, :RANK] * size[:RANK])).T, vt[:RANK] @ q_right.T
            sign = np.sign(right[np.arange(len(right)), np.abs(right).argmax(axis=1)])  # an SVD leaves it open
            left, right = left * sign[:, None], right * sign[:, None]
        norm = float(np.sqrt(max(((left @ left.T) * (right @ right.T)).sum(), 0.0)))  # ‖W‖² = tr(L Lᵀ R Rᵀ)
        if not norm <= MAX_NORM:
            left = left * (MAX_NORM / norm) if np.isfinite(norm) else np.zeros_like(left)
        return Factors(left.astype(np.float32), right.astype(np.float32))


@dataclass(frozen=True, kw_only=True, eq=False)
class Residual:
    """W_q and W_m of one person. The start is made from the seed again and is not stored; what was learned is."""

    width: int
    seed: int
    """Below 2³²."""
    query: Factors
    """Learned part of W_q."""
    memory: Factors
    """Learned part of W_m."""
    open: Vector
    """q and v of each recall in the unfinished batch, shape (n, 2, d) with n < `BATCH`."""
    steps: int
    """Recalls learned from, those in the unfinished batch included."""

    @classmethod
    def fresh(cls, width: int, *, seed: int) -> Residual:
        """Nothing learned yet, for vectors of this width."""
        nothing = Factors(*np.zeros((2, 0, width), dtype=np.float32))
        pairs = np.zeros((0, 2, width), dtype=np.float32)
        return cls(width=width, seed=seed, query=nothing, memory=nothing, open=pairs, steps=0)

    def scores(self, q: Array, m: Array) -> Array:
        """Equation 1: s (K,) for a query (d,) and candidates (K, d)."""
        return np.round((m + self._memory(m)) @ (q + self._query(q)), SCORE_DECIMALS)

    def updated(self, q: Array, m: Array, shown: Sequence[int], cited: Flags, *, rates: Rates = PAPER) -> Residual:
        """Equation 3 for one recall: `shown` are places in m, `cited` says which of them were. W moves when a batch is
        full: by the sum over the batch, all of it taken at the W with which the batch began."""
        advantage = np.where(cited, 1.0, -1.0) - rates.baseline  # (M,)
        # ∂ log p_i / ∂s = (onehot_i - p) / τ
        slope = -advantage.sum() * chances(self.scores(q, m), tau=rates.tau)  # (K,)
        np.add.at(slope, list(shown), advantage)
        v = (slope / rates.tau) @ m  # (d,)
        pairs = np.concatenate([self.open, np.stack([q, v])[None].astype(np.float32)])
        grown = replace(self, open=pairs, steps=self.steps + 1)
        return grown._closed(rates.eta) if len(pairs) == BATCH else grown

    def settled(self, *, rates: Rates = PAPER) -> Residual:
        """The same with an unfinished batch applied as it is. `steps` then counts the batch as full: the bytes of a
        state say by it how many recalls are open."""
        if not len(self.open):
            return self
        return replace(self._closed(rates.eta), steps=self.steps + BATCH - len(self.open))

    def _closed(self, eta: float) -> Residual:
        q, v = self.open[:, 0].astype(np.float64), self.open[:, 1].astype(np.float64)  # (n, d) each
        return replace(
            self,
            query=self.query.grown(eta * (v + self._memory(v)), q),
            memory=self.memory.grown(eta * (q + self._query(q)), v),
            open=self.open[:0],
        )

    def _query(self, x: Array) -> Array:
        return _start(self.width, self.seed)[0].of(x) + self.query.of(x)

    def _memory(self, x: Array) -> Array:
        return _start(self.width, self.seed)[1].of(x) + self.memory.of(x)

    def to_bytes(self) -> bytes:
        """Little-endian: "RRL1"; uint32 width, `RANK`, rank of W_q, rank of W_m, seed; uint64 steps; then float32 rows
        of `width` numbers: left and right factors of W_q, of W_m, then q, v of each of steps mod 4 recalls."""
        ranks = len(self.query.left), len(self.memory.left)
        header = _HEADER.pack(_MAGIC, self.width, RANK, *ranks, self.seed, self.steps)
        arrays = [*self.query, *self.memory, self.open]
        return header + b"".join(np.ascontiguousarray(array, dtype="<f4").tobytes() for array in arrays)

    @classmethod
    def from_bytes(cls, data: bytes) -> Residual:
        """The state that `to_bytes` wrote; ValueError when these bytes are none."""
        if len(data) < _HEADER.size or data[:4] != _MAGIC:
            raise ValueError("not a residual state: it does not begin with RRL1")
        _, width, _, rank_q, rank_m, seed, steps = _HEADER.unpack_from(data)
        body = data[_HEADER.size :]
        counts = [rank_q, rank_q, rank_m, rank_m, 2 * (steps % BATCH)]
        if len(body) != 4 * width * sum(counts):
            raise ValueError(f"not a residual state: {len(body)} bytes of rows, {4 * width * sum(counts)} expected")
        rows = np.frombuffer(body, dtype="<f4").astype(np.float32).reshape(-1, width)
        q_left, q_right, m_left, m_right, pairs = np.split(rows, np.cumsum(counts)[:-1])
        query, memory = Factors(q_left, q_right), Factors(m_left, m_right)
        pairs = pairs.reshape(-1, 2, width)
        return cls(width=width, seed=seed, query=query, memory=memory, open=pairs, steps=steps)


def chances(scores: Array, *, tau: float = TAU) -> Array:
    """Equation 2's p = softmax(s/τ), shape (K,)."""
    raised = np.exp((scores - scores.max()) / tau)
    found: Array = raised / raised.sum()
    return found


def sample(scores: Array, m: int, dice: np.random.Generator, *, tau: float = TAU) -> list[int]:
    """Equation 2's Gumbel top-M: m places, the first drawn first. Without chance, take the best by score instead."""
    keys = scores / tau + dice.gumbel(size=len(scores))
    return [int(place) for place in np.argsort(-keys, kind="stable")[:m]]


@lru_cache(maxsize=64)
def _start(width: int, seed: int) -> tuple[Factors, Factors]:
    """W_q and W_m before learning: entries of standard deviation σ and rank `RANK`, from the seed.

    An entry sums RANK products of two factors' entries, so those have variance σ/√RANK. RandomState, since numpy keeps
    its stream the same over releases, and does not promise that for Generator.
    """
    spread = (SIGMA / RANK**0.5) ** 0.5
    drawn = np.random.RandomState(seed).normal(0.0, spread, size=(4, RANK, width)).astype(np.float32)
    return Factors(drawn[0], drawn[1]), Factors(drawn[2], drawn[3])


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
    """Learns the matrices of people from what they cited."""

    def __init__(self, store: Store, *, embed: Callable[[str], Vector], width: int) -> None:
        self._store = store
        self._embed = embed
        self._width = width

    def fresh(self, partition: Partition) -> Residual:
        """A person's start, before any outcome."""
        who = f"{partition.tenant}\x1f{partition.layer}\x1f{partition.layer_id}"
        return Residual.fresh(self._width, seed=hash64(who) % 2**32)

    def learned(self, before: Residual, recall: LoggedRecall, cited: Set[int]) -> Residual:
        """After one more outcome, with what is left of its words and rows."""
        vectors = {no: vector for no, (_, vector) in self._store.index_of(recall.nos).items() if vector is not None}
        nos = [no for no in recall.nos if no in vectors]
        example = example_of(recall, cited, set(nos))
        if not recall.query or example is None or len(example.base) != len(nos):
            return before
        q, m = (np.array(one, dtype=np.float64) for one in (self._embed(recall.query), [vectors[no] for no in nos]))
        return before.updated(q, m, range(example.shown), example.cited)
