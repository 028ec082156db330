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
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from recollect.learning.exact import Array
from recollect.learning.example import Flags
from recollect.learning.guard import LEAST, Evidence, auc
from recollect.learning.ranker import MIN_BASE_WEIGHT, UNSHOWN_LOG
from recollect.learning.residual import Factors

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
        turned, moved = query + self.query.of(query), self.memory.of(rows)  # (d,), (n, d)
        raw = SCALE * (np.einsum("nd,d->n", rows, turned - query) + np.einsum("nd,d->n", moved, turned))
        centred = raw - (raw if best is None else raw[best]).mean()
        moves: Array = np.clip(np.nan_to_num(centred, nan=0.0), -MAX_RESIDUAL, MAX_RESIDUAL)
        return moves

    def seen(self, chunk: Sequence[Pairs], base_weight: float) -> LowRank:
        """After one more chunk: judged by it, then taught. `base_weight` says how noisy citations are."""
        gain = self.gain
        steps: list[tuple[Array, Array]] = []
        for pairs in chunk:
            moves = self.moves(pairs.query, pairs.rows)
            if pairs.cited.any() and not pairs.cited.all():
                ahead = pairs.ahead[: pairs.shown]
                gain = gain.add(auc(ahead + moves[: pairs.shown], pairs.cited) - auc(ahead, pairs.cited))
            if pairs.cited.any():
                steps.append((pairs.query, _slope(pairs, pairs.ahead + moves, max(base_weight, MIN_BASE_WEIGHT))))
        if gain.n >= LEAST and _bound(gain, Z_RESIDUAL) < 0.0:
            return replace(LowRank.fresh(self.width), chunks=self.chunks + 1)
        return replace(self._taught(steps), gain=gain, beats=_beats(gain, self.beats), chunks=self.chunks + 1)

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
            "format": 1, "kind": "lowrank", "width": self.width, "ranks": [len(self.query.left), len(self.memory.left)],
            "gain": [self.gain.n, self.gain.total, self.gain.squares], "beats": self.beats, "chunks": self.chunks,
            "last": self.last,
        }  # fmt: skip
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
                query=Factors(q_left, q_right), memory=Factors(m_left, m_right),
                gain=Evidence(n=n, total=total, squares=squares), beats=bool(value["beats"]),
                chunks=int(value["chunks"]), last=int(value["last"]),
            )  # fmt: skip
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


def _slope(pairs: Pairs, scores: Array, base_weight: float) -> Array:
    """v = η Σ (y_i - p_i) m_i of the listwise loss, shape (d,)."""
    logits = base_weight * scores
    logits[pairs.shown :] += UNSHOWN_LOG
    raised = np.exp(logits - logits.max())
    pull = -raised / raised.sum()
    pull[: pairs.shown][pairs.cited] += 1.0 / int(pairs.cited.sum())
    found: Array = STEP * SCALE * np.einsum("n,nd->d", pull, pairs.rows)
    return found
