"""A memory bank on the user's own LangChain parts: `VectorStore`, `Embeddings`, `BaseStore` and a chat model.

Three layers, as the paper's design has them: the agent's checkpoints hold the dialogue, the vector store is an index of
the memories, and the `BaseStore` holds the memories, what was learned, and what waits for reflection:

    ("rmm", LABEL, "memories")  id → `MemoryRecord`
    ("rmm", LABEL, "weights")   "reranker" → `RerankerWeights`
    ("rmm", LABEL, "sessions")  session → `PendingSession`

A recall takes the K nearest memories and reranks them to M by Equations 1 and 2 of the paper; citations teach by
Equation 3 (`learning.residual`). Reflection uses the prompts, the evidence check and the decisions of `reflection`.
"""

from __future__ import annotations

import contextvars
import json
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import numpy as np
import numpy.typing as npt
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.vectorstores import VectorStore
from langgraph.store.base import BaseStore, Item

from wellworn.core.cache import LruCache
from wellworn.core.clock import Clock, aware
from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput, StoreError
from wellworn.core.locks import fork_lock
from wellworn.core.plain import from_plain, to_plain
from wellworn.core.values import READ_BY_MODEL, READ_BY_RULES, Entry, Scope, Turn
from wellworn.core.wellformed import well_formed
from wellworn.ingest.validate import checked_k
from wellworn.integrations import Faults
from wellworn.integrations.rmm_bank import Retrieved, Utterance, block_of
from wellworn.learning.residual import CANDIDATES, ETA, SHOWN, TAU, Rates, Residual, sample
from wellworn.models.langchain import LangChainModel
from wellworn.reflection import ReflectionSettings
from wellworn.reflection.compare import group_same
from wellworn.reflection.decide import Proposal, decide
from wellworn.reflection.extract import by_model, evidence_of, windows
from wellworn.reflection.reflector import SIMILAR

Numbers = npt.NDArray[np.float64]
SearchKwargs = Callable[[str], Mapping[str, Any]]
"""For a user's label, the arguments that narrow a search of the vector store to that user."""

ID, USER, RECORD = "rmm_id", "rmm_user", "rmm_record"
"""The metadata of a memory's document."""
_ROOT = "rmm"
_PAGE = 100
_LONGEST_LABEL = 96
_MAX_SEARCHED = 2_000
"""Documents of a shared vector store that are searched for one user's own."""
_MAX_EVIDENCE_CHARS = 4_000
_MAX_WAITING = 64
"""Recalls without an answer, and users with unsaved weights, that are kept in memory."""
_MEAN_OVER = 50
"""Turns that the running mean of rewards looks back on."""
_LOCKS = 64


@dataclass(frozen=True, kw_only=True)
class RerankerConfig:
    """The numbers of the reranker. Top-K, Top-M, τ and η are the paper's; its own `scale`, 1, and `baseline`, 0.5, do
    harm."""

    top_k: int = CANDIDATES
    """How many candidates come from the vector store."""
    top_m: int = SHOWN
    """How many of these are shown."""
    temperature: float = TAU
    """τ: the lower, the less chance decides which are shown (Equation 2)."""
    learning_rate: float = ETA
    """η."""
    baseline: float | None = None
    """b, which a reward of +1 or -1 is compared with; None takes the running mean of this user's rewards."""
    scale: float = 20.0
    """Multiplies the scores. Cosines differ by tenths: at 1.0 the noise of Equation 2 drowns them."""
    seed: int | None = None
    """Of the random numbers."""

    def __post_init__(self) -> None:
        if checked_k(self.top_m, "top_m") > checked_k(self.top_k, "top_k"):
            raise InvalidInput("top_m", f"{self.top_m} is more than top_k, {self.top_k}", "show at most what is found")
        for name in ("temperature", "learning_rate", "scale"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
                raise InvalidInput(name, f"{value!r} is not a number above 0")


@dataclass(frozen=True, kw_only=True)
class MemoryRecord:
    """One memory with its embedding, as float32: vector stores do not return the vectors they hold."""

    entry: Entry
    embedding: bytes

    @property
    def vector(self) -> Numbers:
        return _unit(np.frombuffer(self.embedding, "<f4"))

    def document(self, label: str) -> Document:
        metadata = {ID: self.entry.id, USER: label, RECORD: json.dumps(to_plain(self))}
        return Document(id=self.entry.id, page_content=self.entry.text, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class RerankerWeights:
    """W_q and W_m of one user (`Residual.to_bytes`), and the running mean of the user's rewards."""

    state: bytes
    mean: float = 0.0
    turns: int = 0


@dataclass(frozen=True, kw_only=True)
class PendingSession:
    """What was said in a session and has not become memories yet."""

    at: datetime
    turns: tuple[Utterance, ...] = ()


def label_of(user: Scope) -> str:
    """Return the user as one label of a namespace. Any id is allowed, and no two users share a label."""
    names = [*([] if user.tenant == "default" else [user.tenant]), *user.ids("user")]
    label = ":".join(quote(name, safe="").replace(".", "%2E").replace("~", "%7E") for name in names)
    whole = "\x1f".join([user.tenant, *user.ids("user")])
    return label if len(label) <= _LONGEST_LABEL else "~" + sha256(whole.encode()).hexdigest()


@dataclass(kw_only=True, eq=False)
class PartsBank:
    """Safe to share between threads: what one user teaches in several sessions at once is all counted."""

    vector_store: VectorStore
    embeddings: Embeddings
    store: BaseStore
    summarization_model: BaseChatModel
    reranker_config: RerankerConfig
    max_tokens: int
    learns: bool
    reflects: bool
    search_kwargs: SearchKwargs | None
    reflection: ReflectionSettings
    background: bool
    clock: Clock

    def __post_init__(self) -> None:
        parts: Sequence[tuple[str, type, str]] = (
            ("vector_store", VectorStore, "give a LangChain VectorStore"),
            ("embeddings", Embeddings, "give a LangChain Embeddings"),
            ("store", BaseStore, "give a LangGraph BaseStore, such as InMemoryStore()"),
            ("summarization_model", BaseChatModel, "give a LangChain chat model"),
            ("reranker_config", RerankerConfig, "give a RerankerConfig"),
            ("reflection", ReflectionSettings, "give ReflectionSettings(…)"),
        )
        for name, kind, remedy in parts:
            if not isinstance(part := getattr(self, name), kind):
                raise InvalidInput(name, f"a {type(part).__name__} will not do", remedy)
        self.clock = aware(self.clock)
        self.faults = Faults()
        self._model = LangChainModel(self.summarization_model)
        self._width = _common_width(self.embeddings, self.vector_store)
        self._pool = ThreadPoolExecutor(1, "wellworn-reflection") if self.background else None
        self._random = np.random.default_rng(self.reranker_config.seed)
        self._random_lock = fork_lock()
        self._locks, self._reflecting = [[fork_lock() for _ in range(_LOCKS)] for _ in range(2)]
        self._forgets = [0] * _LOCKS
        self._recalls: LruCache[str, tuple[Numbers, list[MemoryRecord]]] = LruCache(_MAX_WAITING)
        self._unsaved: LruCache[str, RerankerWeights] = LruCache(_MAX_WAITING)

    # -- recall --------------------------------------------------------------------------------------------------

    def recall(self, user: Scope, question: str, *, except_session: str | None) -> Retrieved:
        label, vector = label_of(user), self.embeddings.embed_query(question)
        found = self._nearest(label, question, vector, self.reranker_config.top_k)
        ranked = [one for one in found if except_session is None or one.entry.session_id != except_session]
        with self.faults.guarded("rerank"):
            ranked = self._reranked(label, _unit(vector), ranked)
        id = uuid4().hex
        self._recalls.put(id, (_unit(vector), ranked))
        at, ids = self.clock(), [one.entry.id for one in ranked]
        block = self._block(ranked[: self.reranker_config.top_m], at)
        return Retrieved(id=id, at=at, ids=ids, shown=max(0, block.count("\n") - 1), nothing=False)

    def block(self, user: Scope, recalled: Retrieved) -> str:
        records = self._recalled(user, recalled["id"], recalled["ids"][: recalled["shown"]])
        return self._block(records[: recalled["shown"]], recalled["at"])

    def _block(self, records: Sequence[MemoryRecord], at: datetime) -> str:
        return block_of([one.entry for one in records], max_tokens=self.max_tokens, now=at)

    def _recalled(self, user: Scope, id: str, ids: Sequence[str]) -> list[MemoryRecord]:
        """Return the memories of a recall, also of another process."""
        known = self._recalls.get(id)
        if known is not None:
            return known[1]
        found = [self.store.get((_ROOT, label_of(user), "memories"), one) for one in ids]
        records = [from_plain(MemoryRecord, item.value) for item in found if item is not None]
        if len(records) < len(ids):
            raise LookupError("a memory that was recalled is gone")
        return records

    def _nearest(self, label: str, text: str, vector: Sequence[float], k: int) -> list[MemoryRecord]:
        """Return a user's k nearest memories. Look further if the vector store holds many of other users."""
        kwargs = dict(self.search_kwargs(label)) if self.search_kwargs is not None else {}
        limit = k
        while True:
            try:
                documents = self.vector_store.similarity_search_by_vector([*vector], k=limit, **kwargs)
            except NotImplementedError:  # it can only be asked in words
                documents = self.vector_store.similarity_search(text, k=limit, **kwargs)
            own = {one.metadata[ID]: one.metadata[RECORD] for one in documents if one.metadata.get(USER) == label}
            if len(own) >= k or len(documents) < limit or limit >= _MAX_SEARCHED:
                break
            limit = min(4 * limit, _MAX_SEARCHED)
        if not own and documents and self.store.search((_ROOT, label, "memories"), limit=1):
            reason = f"of {len(documents)} documents that the vector store found, none is this user's"
            remedy = "narrow its search with search_kwargs=lambda label: {'filter': {'rmm_user': label}}"
            self.faults.note("recall", reason, remedy)
        return [from_plain(MemoryRecord, json.loads(record)) for record in [*own.values()][:k]]

    def _reranked(self, label: str, query: Numbers, records: list[MemoryRecord]) -> list[MemoryRecord]:
        """Equations 1 and 2: put the memories to show first; the others stay in the order of the vector store."""
        if not records or not self.learns:
            return records
        config = self.reranker_config
        scores = Residual.from_bytes(self._weights(label).state).scores(query, self._matrix(records))
        if not np.isfinite(scores).all():
            raise ValueError("a score is not a number")
        with self._random_lock:
            top = sample(scores, config.top_m, self._random, tau=config.temperature)
        top.sort(key=lambda place: -scores[place])
        return [records[n] for n in top] + [one for n, one in enumerate(records) if n not in top]

    def _matrix(self, records: Sequence[MemoryRecord]) -> Numbers:
        """Return the vectors at length `scale`, shape (K, d): scores, and what they teach, grow with it."""
        return np.stack([record.vector for record in records]) * self.reranker_config.scale

    # -- learning ------------------------------------------------------------------------------------------------

    def learn(self, user: Scope, question: str, recalled: Retrieved, cited: Sequence[int]) -> None:
        id, ids, shown, label = recalled["id"], recalled["ids"], recalled["shown"], label_of(user)
        if not self.learns or shown < min(len(ids), self.reranker_config.top_m):  # some did not fit: that says nothing
            return
        records, known = self._recalled(user, id, ids), self._recalls.pop(id)
        query = _unit(self.embeddings.embed_query(question)) if known is None else known[0]
        flags = np.array([place in cited for place in range(shown)])
        with self._lock(label):
            old = self._weights(label)
            residual, reward = Residual.from_bytes(old.state), 2.0 * float(flags.mean()) - 1.0
            mean = old.mean + (reward - old.mean) / min(old.turns + 1, _MEAN_OVER)
            grown = residual.updated(query, self._matrix(records), range(shown), flags, rates=self._rates(mean))
            self._save(label, RerankerWeights(state=grown.to_bytes(), mean=mean, turns=old.turns + 1))

    def _rates(self, mean: float) -> Rates:
        config = self.reranker_config
        baseline = mean if config.baseline is None else config.baseline
        return Rates(tau=config.temperature, eta=config.learning_rate, baseline=baseline)

    def _weights(self, label: str) -> RerankerWeights:
        """Load what a user has taught; start anew if there is nothing usable of this width."""
        weights = self._unsaved.get(label)
        with self.faults.guarded("weights"), suppress(ValueError):  # damaged
            item = None if weights is not None else self.store.get((_ROOT, label, "weights"), "reranker")
            if item is not None:
                weights = from_plain(RerankerWeights, item.value)
        if weights is not None and Residual.from_bytes(weights.state).width == self._width:
            return weights
        seed = int.from_bytes(sha256(label.encode()).digest()[:4], "little")
        return RerankerWeights(state=Residual.fresh(self._width, seed=seed).to_bytes())

    def _save(self, label: str, weights: RerankerWeights) -> None:
        """Write every turn, an unfinished batch too. If the store fails, learning continues in memory."""
        self._unsaved.put(label, weights)
        with self.faults.guarded("weights"):
            self._put(label, "weights", "reranker", weights)
            self._unsaved.pop(label)

    def _lock(self, label: str) -> threading.Lock:
        return self._locks[hash(label) % _LOCKS]

    # -- sessions ------------------------------------------------------------------------------------------------

    def add_turns(self, user: Scope, session_id: str, turns: Sequence[Utterance]) -> None:
        """Let turns wait for reflection, which starts when there are `every_turns`, or after `idle_minutes`."""
        if not self.reflects:
            return
        label, now, idle = label_of(user), self.clock(), self.reflection.idle_minutes
        for item in [] if idle is None else self._items(label, "sessions"):
            if now - from_plain(PendingSession, item.value).at >= timedelta(minutes=idle or 0.0):
                self.end(user, item.key)
        with self._lock(label):
            waiting = (*self._waiting(label, session_id), *turns)
            self._put(label, "sessions", session_id, PendingSession(at=now, turns=waiting))
        if self.reflection.every_turns is not None and len(waiting) >= self.reflection.every_turns:
            self.end(user, session_id)

    def end(self, user: Scope, session_id: str) -> None:
        """Turn what was said since the last end into memories, and apply an unfinished batch of learning."""

        def work() -> None:
            with self.faults.guarded("reflect"):
                label = label_of(user)
                with self._reflecting[hash(label) % _LOCKS]:  # not the other lock: nobody waits for our model
                    self._reflect(user, label, session_id)
                with self._lock(label):
                    old = self._weights(label)
                    settled = Residual.from_bytes(old.state).settled(rates=self._rates(old.mean)).to_bytes()
                    if settled != old.state:
                        self._save(label, replace(old, state=settled))

        if self._pool is None:
            work()
        else:
            self._pool.submit(work)

    def wait(self) -> None:
        """Wait for the reflection that runs in the background."""
        if self._pool is not None:
            self._pool.submit(lambda: None).result()

    def _reflect(self, user: Scope, label: str, session_id: str) -> None:
        turns, forgets = self._waiting(label, session_id), self._forgets[hash(label) % _LOCKS]
        # In a context of its own, so that calls of our model are not part of the agent's stream.
        added, retired = contextvars.Context().run(self._changes, user, label, session_id, turns) if turns else ([], [])
        ids = [record.entry.id for record in added]
        try:
            self._add(label, added)  # not under the lock: nobody waits for the index
            with self._lock(label):
                waiting = self._waiting(label, session_id)
                forgotten = forgets != self._forgets[hash(label) % _LOCKS] or waiting[: len(turns)] != turns
                if not forgotten:
                    self._settle(label, session_id, waiting[len(turns) :])
        except Exception:  # then all of it waits
            with suppress(Exception):
                for id in ids:  # whatever the index does
                    self.store.delete((_ROOT, label, "memories"), id)
                self._remove(label, ids)
            raise
        with self._lock(label):
            self._remove(label, ids if forgotten else retired)
        if forgotten:  # something was, and these memories may say it
            self._reflect(user, label, session_id)

    def _settle(self, label: str, session_id: str, later: tuple[Utterance, ...]) -> None:
        """What was said `later` than what became memories still waits."""
        if later:
            self._put(label, "sessions", session_id, PendingSession(at=self.clock(), turns=later))
        else:
            self.store.delete((_ROOT, label, "sessions"), session_id)

    def _waiting(self, label: str, session_id: str) -> tuple[Utterance, ...]:
        item = self.store.get((_ROOT, label, "sessions"), session_id)
        return () if item is None else from_plain(PendingSession, item.value).turns

    def _changes(
        self, user: Scope, label: str, session_id: str, spoken: Sequence[Utterance]
    ) -> tuple[list[MemoryRecord], list[str]]:
        """Return the memories to add and the ids of those to remove. Calls the models, writes nothing."""
        now = self.clock()
        times: dict[str, Any] = dict.fromkeys(("at", "created_at", "updated_at", "valid_from"), now)
        turns = [
            Turn(session_id=session_id, number=number, role=one.role, text=one.text, at=now)
            for number, one in enumerate(spoken)
        ]
        read = [by_model(window, self._model, user=None) for window in windows(turns)]
        source = READ_BY_RULES if all(one.by == "rules" for one in read) else READ_BY_MODEL
        candidates = group_same([candidate for one in read for candidate in one.candidates])
        vectors = self._embedded([one.summary for one in candidates])
        near = [self._nearest(label, c.summary, v, SIMILAR) for c, v in zip(candidates, vectors, strict=True)]
        proposals = [
            Proposal(candidate=one, similar=[record.entry for record in records])
            for one, records in zip(candidates, near, strict=True)
        ]
        added: list[Entry] = []
        retired: dict[str, None] = {}
        for decision in decide(proposals, self._model):
            olds = [old for old in decision.olds if old.id not in retired]
            if decision.action == "same":
                continue
            evidence = evidence_of(turns[n] for n in decision.candidate.turns)
            text, kind = decision.candidate.summary, decision.candidate.kind
            if decision.draws_on_old and olds:
                kind = olds[0].kind if decision.action == "merge" else kind
                text, evidence = decision.text, f"{olds[0].evidence}\n{evidence}"
            new = Entry(
                id=str(uuid4()),
                partition=user.home(),
                kind=kind,
                text=well_formed(text),
                evidence=evidence[:_MAX_EVIDENCE_CHARS],
                session_id=session_id,
                turn_refs=[*decision.candidate.turns],
                source=source,
                **times,
            )
            added.append(new)
            retired |= dict.fromkeys(old.id for old in olds)
        return self._embedded_records(added), [*retired]

    # -- care ----------------------------------------------------------------------------------------------------

    def entries(self, user: Scope) -> list[Entry]:
        """The memories of a user."""
        items = self._items(label_of(user), "memories")
        return [from_plain(MemoryRecord, item.value).entry for item in items]

    def forget(self, user: Scope, ids: Sequence[str] | None) -> int:
        """Remove memories of a user for good; without ids all of them, with what was learned and what waits."""
        label = label_of(user)
        with self._lock(label):
            self._forgets[hash(label) % _LOCKS] += 1
            gone = [item.key for item in self._items(label, "memories") if ids is None or item.key in ids]
            self._remove(label, gone)
            if ids is None:
                for item in self._items(label, "sessions") + self._items(label, "weights"):
                    self.store.delete(item.namespace, item.key)
                self._unsaved.pop(label)
            self._recalls.clear()
        return len(gone)

    def rebuild(self, user: Scope) -> int:
        """Put the memories of a user into the vector store again, with new vectors; returns how many there are."""
        label = label_of(user)
        with self._lock(label):
            records = self._embedded_records(self.entries(user))
            with suppress(Exception):  # some refuse to add an id that is there, others to delete one that is not
                self.vector_store.delete([record.entry.id for record in records])
            self._add(label, records)
        return len(records)

    def _items(self, label: str, kind: str) -> list[Item]:
        """Everything under a namespace, read in pages."""
        found: list[Item] = []
        while page := self.store.search((_ROOT, label, kind), limit=_PAGE, offset=len(found)):
            found += page
        return found

    def _put(self, label: str, kind: str, key: str, value: object) -> None:
        self.store.put((_ROOT, label, kind), key, to_plain(value), index=False)

    def _add(self, label: str, records: Sequence[MemoryRecord]) -> None:
        for record in records:
            self._put(label, "memories", record.entry.id, record)
        if records:
            documents = [record.document(label) for record in records]
            self.vector_store.add_documents(documents, ids=[record.entry.id for record in records])

    def _remove(self, label: str, ids: Sequence[str]) -> None:
        """Remove memories, from the index first: if it fails, they are there to be removed again."""
        try:
            self._unindex(ids)
        except Exception:  # some delete none if one is not there
            try:
                there = [document.metadata[ID] for document in self.vector_store.get_by_ids([*ids])]
            except NotImplementedError:
                there = [*ids]
            if len(there) == len(ids):
                raise
            self._unindex(there)
        for id in ids:
            self.store.delete((_ROOT, label, "memories"), id)

    def _unindex(self, ids: Sequence[str]) -> None:
        if ids and self.vector_store.delete([*ids]) is False:  # None says that it does not say
            raise StoreError("the vector store refused to delete memories; forget them again")

    def _embedded_records(self, entries: Sequence[Entry]) -> list[MemoryRecord]:
        packed = [np.asarray(vector, "<f4").tobytes() for vector in self._embedded([entry.text for entry in entries])]
        return [MemoryRecord(entry=e, embedding=v) for e, v in zip(entries, packed, strict=True)]

    def _embedded(self, texts: list[str]) -> list[list[float]]:
        return self.embeddings.embed_documents(texts) if texts else []


def _common_width(embeddings: Embeddings, vector_store: VectorStore) -> int:
    """Return the width of the vectors, which must be that of the vector store."""
    width = len(embeddings.embed_query("How wide is a vector?"))
    own = vector_store.embeddings
    other = width if own is None or own is embeddings else len(own.embed_query("How wide is a vector?"))
    if not width or other != width:
        problem = f"make vectors of width {width}, those of the vector store {other}"
        raise InvalidInput("embeddings", problem, "give the embeddings that the vector store was made with")
    return width


def _unit(vector: Sequence[float] | npt.NDArray[np.float32]) -> Numbers:
    numbers: Numbers = np.asarray(vector, dtype=np.float64)
    length = float(np.sqrt(np.einsum("d,d->", numbers, numbers)))
    return numbers / length if length > 0 else numbers
