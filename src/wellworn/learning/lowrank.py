"""A person's own sense of what is alike: low-rank W_q and W_m on top of the linear correction, from citations.

    q' = q + W_q q,  m'_i = m_i + W_m m_i        r_i = 10 (q'·m'_i - q·m_i)        W = 0 at the start

    score(i) = base(i) + linear(i) + clip(r_i - mean of r, ±1)

Equation 1 of RMM as `residual` has it, but trained with the loss of `ranker` and judged before it may serve: each chunk
of outcomes first says whether the order with r foretells its citations better than the order without, and is learned
from only then. With e_i = η (y_i - p_i) and v = Σ_i e_i m_i the step of a recall is rank one in each matrix:

    ΔW_q = (v + W_m v) qᵀ          ΔW_m = (q + W_q q) vᵀ

A chunk's steps are all taken at the W with which it began; what exceeds the rank goes. Gives the same bits on one
machine; elsewhere, to rounding. Knows neither stores nor where vectors come from.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from wellworn.learning.exact import Array
from wellworn.learning.example import Flags, Places
from wellworn.learning.guard import LEAST, Evidence, auc_of
from wellworn.learning.ranker import MIN_BASE_WEIGHT, UNSHOWN_LOG
from wellworn.learning.residual import Factors

CHUNK = 32
"""Outcomes of a person between two steps: most outcomes cost nothing, and a step is shared by its recalls."""
ROWS = 12
"""Rows of a recall that teach: those shown, and the best that were not."""
RANK = 6
"""Outer products kept per matrix: 4·6·d floats are 147 KB at d = 1536, 197 KB as text."""
SCALE = 10.0
"""Of a cosine in the score, as the base weighs meaning."""
STEP = 2e-3
MAX_RESIDUAL = 1.0
"""The most that it moves a row, a third of what the linear correction may."""
Z_RESIDUAL = 2.0
"""Standard errors above 0 at which it begins to serve, and below 0 at which it is thrown away. It is looked at after
every chunk; at 1, random citations got it to serve."""
MIN_VARIANCE = 1e-4


@dataclass(frozen=True, kw_only=True, eq=False)
class Pairs:
    """One recall with its vectors: the first `shown` rows were shown."""

    query: Array
    """Shape (d,)."""
    rows: Array
    """Shape (n, d)."""
    ahead: Array
    """Base score and linear correction of each row, shape (n,)."""
    shown: int
    cited: Flags
    """Shape (shown,)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LowRank:
    """W_q and W_m of one person, and the evidence for them."""

    query: Factors
    memory: Factors
    gain: Evidence = field(default_factory=Evidence)
    """How much better than the linear ranking alone the order with r foretold citations."""
    beats: bool = False
    """Whether that is enough to serve."""
    chunks: int = 0
    """Chunks seen, those of distrusted feedback included."""
    last: int = 0
    """The number of the last outcome in them."""

    @classmethod
    def fresh(cls, width: int) -> LowRank:
        """Nothing learned yet, for vectors of this width."""
        empty = np.zeros((0, width), dtype=np.float32)
        return cls(query=Factors(empty, empty), memory=Factors(empty, empty))

    @property
    def width(self) -> int:
        return int(self.query.left.shape[1])

    def moves(self, query: Array, rows: Array, best: Sequence[int] | None = None) -> Array:
        """What to add to each score, shape (n,), within ±`MAX_RESIDUAL`; zeros while nothing was learned.

        Centred over the rows at the places `best`, or over all.
        """
        if not len(self.query.left) or not len(rows):
            return np.zeros(len(rows))
        raw = SCALE * np.einsum("nd,d->n", rows, self._pulls(query))
        return _bounded(raw, lambda values: (values if best is None else values[best]).mean())

    def _pulls(self, queries: Array) -> Array:
        """W_q q + W_mᵀ q' of one query (d,) or of each row: r_i = 10 m_i · of that, so no row is multiplied by W_m."""
        by_query = self.query.of(queries)
        pulls: Array = by_query + Factors(self.memory.right, self.memory.left).of(queries + by_query)
        return pulls

    def seen(self, chunk: Sequence[Pairs], base_weight: float) -> LowRank:
        """After one more chunk: judged by it, then taught. `base_weight` says how noisy citations are."""
        if not chunk:
            return replace(self, beats=_beats(self.gain, self.beats), chunks=self.chunks + 1)
        rows = _Rows.of_chunk(chunk)
        moves = np.zeros(len(rows.ahead))
        if len(self.query.left):
            moves = rows.moves(self._pulls(np.array([pairs.query for pairs in chunk])))
        gain = self.gain
        linear, moved = rows.ahead.tolist(), (rows.ahead + moves).tolist()
        for pairs, first in zip(chunk, rows.starts.tolist(), strict=True):
            flags, shown = pairs.cited.tolist(), slice(first, first + pairs.shown)
            if any(flags) and not all(flags):
                gain = gain.add(auc_of(moved[shown], flags) - auc_of(linear[shown], flags))
        if gain.n >= LEAST and _bound(gain, Z_RESIDUAL) < 0.0:
            return replace(LowRank.fresh(self.width), chunks=self.chunks + 1)
        slopes = rows.slopes(rows.ahead + moves, max(base_weight, MIN_BASE_WEIGHT))
        steps: dict[bytes, tuple[Array, Array]] = {}
        for pairs, slope in zip(chunk, slopes, strict=True):
            if pairs.cited.any():
                before = steps.get(key := pairs.query.tobytes())  # the same question again is one step, not two
                steps[key] = (pairs.query, slope if before is None else before[1] + slope)
        taught = self._taught([*steps.values()])
        return replace(taught, gain=gain, beats=_beats(gain, self.beats), chunks=self.chunks + 1)

    def _taught(self, steps: Sequence[tuple[Array, Array]]) -> LowRank:
        if not steps:
            return self
        q, v = np.array([query for query, _ in steps]), np.array([slope for _, slope in steps])  # (n, d) each
        grown = replace(
            self,
            query=self.query.grown(v + self.memory.of(v), q, RANK),
            memory=self.memory.grown(q + self.query.of(q), v, RANK),
        )
        finite = all(np.isfinite(part).all() for part in (*grown.query, *grown.memory))
        return grown if finite else self

    def dumps(self) -> str:
        """As text: `state` holds the float32 rows of both factors of W_q, then of W_m, little-endian, in base64."""
        rows = np.concatenate([*self.query, *self.memory]).astype("<f4", copy=False)
        head = {
            "format": 1,
            "kind": "lowrank",
            "width": self.width,
            "ranks": [len(self.query.left), len(self.memory.left)],
            "gain": [self.gain.n, self.gain.total, self.gain.squares],
            "beats": self.beats,
            "chunks": self.chunks,
            "last": self.last,
        }
        return f'{json.dumps(head)[:-1]}, "state": "{base64.b64encode(rows.tobytes()).decode("ascii")}"}}'

    @classmethod
    def loads(cls, text: str | None, width: int) -> LowRank:
        """The state in this text; a fresh one when there is none of this width."""
        try:
            value = json.loads(text or "{}")
            if (value["format"], value["kind"], value["width"]) != (1, "lowrank", width):
                return cls.fresh(width)
            of_query, of_memory = value["ranks"]
            rows = np.frombuffer(bytearray(base64.b64decode(value["state"])), dtype="<f4").astype(
                np.float32, copy=False
            )
            q_left, q_right, m_left, m_right, _ = np.split(
                rows.reshape(2 * (of_query + of_memory), width), np.cumsum([of_query, of_query, of_memory, of_memory])
            )
            n, total, squares = value["gain"]
            return cls(
                query=Factors(q_left, q_right),
                memory=Factors(m_left, m_right),
                gain=Evidence(n=n, total=total, squares=squares),
                beats=bool(value["beats"]),
                chunks=int(value["chunks"]),
                last=int(value["last"]),
            )
        except (KeyError, TypeError, ValueError):
            return cls.fresh(width)


def _beats(gain: Evidence, before: bool) -> bool:
    """On by a lower bound, off as soon as the mean is below 0: the linear ranking is there to fall back on."""
    if gain.n < LEAST or gain.mean < 0.0:
        return False
    return before or _bound(gain, -Z_RESIDUAL) > 0.0


def _bound(gain: Evidence, z: float) -> float:
    """mean + z standard errors. Most orders are the same with r and without, so the variance is small in truth."""
    return gain.mean + z * math.sqrt(max(gain.variance, MIN_VARIANCE) / gain.n)


def _bounded(raw: Array, mean: Callable[[Array], Array]) -> Array:
    """clip(r - mean of r); what is no number moves nothing."""
    centred = raw - mean(raw)
    centred[np.isnan(centred)] = 0.0
    moves: Array = np.minimum(np.maximum(centred, -MAX_RESIDUAL), MAX_RESIDUAL)
    return moves


class _Rows(NamedTuple):
    """All N rows of a chunk, one recall after the other: softmax and means are taken of all at once."""

    chunk: Sequence[Pairs]
    ahead: Array
    starts: Places
    """Where each recall begins, shape (recalls,)."""
    of: Places
    """Which recall a row is of, shape (N,)."""
    unshown: Array
    """What an unshown row's logit lacks, 0 for shown ones."""
    wanted: Array
    """y: 1/c on each of a recall's c cited rows."""

    @classmethod
    def of_chunk(cls, chunk: Sequence[Pairs]) -> _Rows:
        counts = [len(pairs.rows) for pairs in chunk]
        starts = np.cumsum([0, *counts[:-1]])
        unshown, wanted = np.full(sum(counts), UNSHOWN_LOG), np.zeros(sum(counts))
        for pairs, first in zip(chunk, starts.tolist(), strict=True):
            unshown[first : first + pairs.shown] = 0.0
            if pairs.cited.any():
                wanted[first : first + pairs.shown] = pairs.cited / pairs.cited.sum()
        return cls(
            chunk=chunk,
            ahead=np.concatenate([pairs.ahead for pairs in chunk]),
            starts=starts,
            of=np.repeat(np.arange(len(chunk)), counts),
            unshown=unshown,
            wanted=wanted,
        )

    def moves(self, pulls: Array) -> Array:
        """What to add to each score; `pulls` (recalls, d)."""
        raw = np.concatenate(
            [np.einsum("nd,d->n", pairs.rows, pull) for pairs, pull in zip(self.chunk, pulls, strict=True)]
        )
        return _bounded(SCALE * raw, self._means)

    def _means(self, values: Array) -> Array:
        """The mean over a row's recall, for each row."""
        means: Array = np.add.reduceat(values, self.starts) / np.bincount(self.of)
        return means[self.of]

    def slopes(self, scores: Array, base_weight: float) -> list[Array]:
        """v = η Σ (y_i - p_i) m_i of the listwise loss, shape (d,), for each recall."""
        logits = base_weight * scores + self.unshown
        raised = np.exp(logits - np.maximum.reduceat(logits, self.starts)[self.of])
        p = raised / np.add.reduceat(raised, self.starts)[self.of]
        shares = np.split(STEP * SCALE * (self.wanted - p), self.starts[1:])
        return [np.einsum("n,nd->d", share, pairs.rows) for share, pairs in zip(shares, self.chunk, strict=True)]
