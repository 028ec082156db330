"""A bank on the user's own LangChain parts: `VectorStore`, `Embeddings`, `BaseStore` and a chat model.

Recall is the seed's: the K nearest of the index, reranked to M by Equations 1 and 2 with what this person has taught
(`learning.residual`). Citations teach it by Equation 3.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Protocol
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from wellworn.core.clock import Clock, aware, system_clock
from wellworn.core.locks import ForkLock
from wellworn.integrations.rmm.bank import Found, rendered
from wellworn.integrations.rmm.config import RerankerConfig
from wellworn.integrations.rmm.context import Person
from wellworn.integrations.rmm.dialogue import Said
from wellworn.integrations.rmm.faults import Faults
from wellworn.integrations.rmm.index import Index, record_of
from wellworn.integrations.rmm.records import MemoryRecord, MemoryRecords, label_of
from wellworn.integrations.rmm.reflect import Reflect
from wellworn.integrations.rmm.weights import Learned, Weights
from wellworn.learning.ranker import Array
from wellworn.learning.residual import Rates, sample

_MOST_SESSIONS = 1_000
_LOCKS = 64


class Embeds(Protocol):
    """The part of LangChain's `Embeddings` that is used."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]: ...

    def embed_query(self, text: str) -> list[float]: ...


class PartsBank:
    """See the module. Safe between threads; what one person teaches in several sessions at once is all counted."""

    def __init__(
        self,
        *,
        index: Index,
        embeddings: Embeds,
        records: MemoryRecords,
        weights: Weights,
        reflect: Reflect,
        config: RerankerConfig,
        max_tokens: int,
        learns: bool,
        faults: Faults,
        clock: Clock = system_clock,
    ) -> None:
        self.faults = faults
        self._index = index
        self._embeddings = embeddings
        self._records = records
        self._weights = weights
        self._reflect = reflect
        self._config = config
        self._max_tokens = max_tokens
        self._learns = learns
        self._clock = aware(clock)
        self._dice = np.random.default_rng(config.seed)
        self._dice_lock = ForkLock()
        self._locks = [ForkLock() for _ in range(_LOCKS)]
        self._said_lock = ForkLock()
        self._said: OrderedDict[tuple[str, str], list[Said]] = OrderedDict()

    # -- the bank ------------------------------------------------------------------------------------------------

    def recall(self, person: Person, question: str, *, except_session: str | None) -> Found:
        label, now = label_of(person), self._clock()
        vector = self._embeddings.embed_query(question)
        candidates = self._candidates(label, question, vector, except_session)
        order: Sequence[int] = range(len(candidates))
        with self.faults.guarded("rerank"):
            order = self._order(label, np.asarray(vector, dtype=np.float64), candidates)
        ranked = [candidates[place] for place in order]
        shown_first = ranked[: self._config.top_m]
        block, shown = rendered([one.entry(person) for one in shown_first], max_tokens=self._max_tokens)
        return Found(recall=uuid4().hex, ids=tuple(one.id for one in ranked), block=block, shown=shown, at=now)

    def show_again(self, person: Person, ids: Sequence[str], shown: int) -> str:
        records = self._records.get(label_of(person), ids[:shown])
        if len(records) < shown:
            raise LookupError("a memory that was shown is gone")
        return rendered([one.entry(person) for one in records], max_tokens=self._max_tokens)[0]

    def learn(
        self, person: Person, question: str, recall: str, ids: Sequence[str], shown: int, cited: Sequence[int]
    ) -> None:
        if not self._learns or shown < min(len(ids), self._config.top_m):
            return
        label = label_of(person)
        records = self._vectors(self._records.get(label, ids))
        places = {record.id: place for place, record in enumerate(records)}
        alive = [place for place in range(shown) if ids[place] in places]
        if not alive:
            return
        query = np.asarray(self._embeddings.embed_query(question), dtype=np.float64)
        flags = np.array([place in cited for place in alive])
        with self._lock(label):
            state = self._weights.load(label).rewarded(2.0 * float(flags.mean()) - 1.0)
            rows = [places[ids[place]] for place in alive]
            rates = self._rates(state)
            grown = state.residual.updated(_unit(query), self._matrix(records), rows, flags, rates=rates)
            self._weights.save(label, replace(state, residual=grown), self._clock())

    def keep(self, person: Person, session_id: str, turns: Sequence[Said]) -> None:
        """The turns stay where they are, in the agent's checkpoints; here only for `end` without them."""
        with self._said_lock:
            self._said.setdefault((label_of(person), session_id), []).extend(turns)
            self._said.move_to_end((label_of(person), session_id))
            while len(self._said) > _MOST_SESSIONS:
                self._said.popitem(last=False)

    def end(self, person: Person, session_id: str, turns: Sequence[Said]) -> None:
        label = label_of(person)
        with self._said_lock:
            spoken = [*turns] or [*self._said.get((label, session_id), ())]
        with self._lock(label):
            self._reflect.session(person, label, session_id, spoken)
            if self._learns:
                with self.faults.guarded("weights"):
                    self._settle(label)
        with self._said_lock:
            self._said.pop((label, session_id), None)

    # -- care ----------------------------------------------------------------------------------------------------

    def rebuild_index(self, person: Person) -> int:
        """Put every memory of a person into the index anew, from the records; how many there are."""
        label = label_of(person)
        with self._lock(label):
            old = self._records.all(label)
            new = [replace(record, index_id=str(uuid4())) for record in old]
            self._index.add(label, new)
            for record in new:
                self._records.put(label, record)
            self._index.remove(label, [record.index_id for record in old if record.index_id])
        return len(new)

    # -- steps ---------------------------------------------------------------------------------------------------

    def _rates(self, state: Learned) -> Rates:
        config = self._config
        baseline = state.mean if config.baseline is None else config.baseline
        return Rates(tau=config.temperature, eta=config.learning_rate, baseline=baseline)

    def _lock(self, label: str) -> AbstractContextManager[None]:
        return self._locks[hash(label) % _LOCKS]

    def _candidates(
        self, label: str, question: str, vector: Sequence[float], except_session: str | None
    ) -> list[MemoryRecord]:
        """The K nearest, with their vectors. Without the records, what the index itself says of them."""
        documents = self._index.find(label, question, vector, self._config.top_k)
        if not documents:
            return []
        records: list[MemoryRecord] | None = None
        with self.faults.guarded("store"):
            records = self._records.get(label, [record_of(one).id for one in documents])
        if records is None:
            records = [record_of(one) for one in documents]
        return [record for record in records if except_session is None or record.session != except_session]

    def _order(self, label: str, query: Array, candidates: Sequence[MemoryRecord]) -> list[int]:
        """Equations 1 and 2: places of the candidates, those to be shown first; the others as the index has them."""
        if not candidates:
            return []
        matrix = self._matrix(self._vectors(candidates))
        scores = self._weights.load(label).residual.scores(_unit(query), matrix)
        if not np.isfinite(scores).all():
            raise ValueError("a score is no number")
        if self._config.sample and self._learns:
            with self._dice_lock:
                first = sample(scores, self._config.top_m, self._dice, tau=self._config.temperature)
            first.sort(key=lambda place: -scores[place])
        else:
            first = [int(place) for place in np.argsort(-scores, kind="stable")[: self._config.top_m]]
        return [*first, *(place for place in range(len(candidates)) if place not in first)]

    def _vectors(self, records: Sequence[MemoryRecord]) -> list[MemoryRecord]:
        """The records with their vectors; those that have none are embedded."""
        bare = [record for record in records if record.vector is None]
        made = self._embeddings.embed_documents([record.text for record in bare]) if bare else []
        vectors = {record.id: np.asarray(vector, np.float32) for record, vector in zip(bare, made, strict=True)}
        return [replace(record, vector=vectors.get(record.id, record.vector)) for record in records]

    def _matrix(self, records: Sequence[MemoryRecord]) -> Array:
        """Vectors of length `scale`, shape (K, d): with it the scores, and what they teach, are that much larger."""
        rows = [_unit(np.asarray(record.vector, dtype=np.float64)) for record in records]
        return np.stack(rows) * self._config.scale

    def _settle(self, label: str) -> None:
        """At the end of a session a batch is applied as far as it has come."""
        state = self._weights.load(label)
        if len(state.residual.open):
            settled = state.residual.settled(rates=self._rates(state))
            self._weights.save(label, replace(state, residual=settled), self._clock())


def _unit(vector: npt.NDArray[np.float64]) -> Array:
    length = float(np.sqrt(np.einsum("d,d->", vector, vector)))
    return vector / length if length > 0 else vector
