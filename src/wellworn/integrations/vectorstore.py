"""A LangChain `VectorStore` on a memory: documents by id, searched by words and meaning, or by vectors alone.

Translates LangChain's methods; how documents are kept is for `wellworn.integrations.items` to know. The asynchronous methods are
LangChain's own, which run these on worker threads. Needs the extra `langchain`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, TypeVar

import numpy as np

from wellworn.core.errors import InvalidInput, MissingExtra
from wellworn.core.values import Entry, Hit, Scope
from wellworn.ingest.validate import MAX_QUERY_CHARS, checked_count, checked_scope
from wellworn.integrations.documents import Filter, MemoryEmbeddings, document_of, predicate, put_of
from wellworn.integrations.engine import engine_of
from wellworn.integrations.items.item import Put, checked_key, is_valid, item_id, item_of
from wellworn.memory import Memory
from wellworn.models.choose import choose_embedder
from wellworn.models.port import Embedder, check_served, unit_rows
from wellworn.search.pipeline import Near
from wellworn.store.port import Selection

try:
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.runnables import run_in_executor
    from langchain_core.vectorstores import VectorStore
    from langchain_core.vectorstores.utils import maximal_marginal_relevance
except ModuleNotFoundError as error:
    raise MissingExtra("WellwornVectorStore", "langchain") from error

Ranking = Literal["hybrid", "similarity"]
Found = TypeVar("Found", Hit, Near)

SOURCE = "langchain"
DEFAULT_SCOPE = Scope(tenant="default", project="langchain")
BATCH = 512
PAGE = 100
_GROWTH = 16


class WellwornVectorStore(VectorStore):
    """Documents of one scope of a memory.

    Writes go to the scope's home layer; searches see every layer of the scope, and what was remembered there by other
    means too. Without a memory the documents live in RAM and die with the object. The vectors are those of the
    memory's embedder; `embedding` says which to open one with, or is checked against it. `ranking` says what a search
    by text goes by: `hybrid` (wellworn's own score) or `similarity` (the cosine alone).
    """

    def __init__(
        self,
        memory: Memory | None = None,
        *,
        scope: Scope = DEFAULT_SCOPE,
        embedding: Embeddings | None = None,
        ranking: Ranking = "hybrid",
    ) -> None:
        if ranking not in ("hybrid", "similarity"):
            raise InvalidInput("ranking", f"{ranking!r} is unknown", "use hybrid or similarity")
        given = memory is not None
        if memory is None:
            memory = Memory.open(":memory:", embedder="static" if embedding is None else embedding)
        engine = engine_of(memory, source=SOURCE)
        if given and embedding is not None:
            _refuse_other(embedding, engine.embedder)
        self._memory = memory
        self._scope = checked_scope(scope)
        self._partitions = self._scope.partitions()
        self._home = self._scope.home()
        self._store, self._searcher, self._items = engine.store, engine.searcher, engine.items
        self._embedder = engine.embedder
        self._embedding = embedding
        self._ranking = ranking

    @property
    def embeddings(self) -> Embeddings | None:
        """What makes the vectors; None when the memory goes by words only."""
        if self._embedding is not None:
            return self._embedding
        return None if self._embedder is None else MemoryEmbeddings(self._embedder)

    # -- documents by id -----------------------------------------------------------------------------------------

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Keep texts, each under its id or a new one; what was under an id is replaced. Returns the ids."""
        _refuse_unknown(kwargs)
        texts = list(texts)
        for name, given in (("metadatas", metadatas), ("ids", ids)):
            if given and len(given) != len(texts):
                raise InvalidInput(name, f"are {len(given)} for {len(texts)} texts", "give one for each, or none")
        named = [str(uuid.uuid4()) if id is None else checked_key(id) for id in ids or [None] * len(texts)]
        puts = [
            put_of(self._home, Document(page_content=text, metadata=metadata), id)
            for text, metadata, id in zip(texts, metadatas or [{}] * len(texts), named, strict=True)
        ]
        for start in range(0, len(puts), BATCH):
            self._items.put(puts[start : start + BATCH])
        return named

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents of these ids that are there, in the order of the ids."""
        return [document_of(entry) for entry in self._entries(ids).values()]

    def get_vectors(self, ids: Sequence[str]) -> dict[str, list[float]]:
        """The stored vectors of these documents, of length one; those that have none are left out."""
        entries = self._entries(ids)
        named = {entry.id: id for id, entry in entries.items()}
        rows = {
            no: entry.id for no, entry in self._store.select(self._partitions, Selection(ids=[*named]), limit=2**31)
        }
        vectors = {rows[no]: vector for no, (_, vector) in self._store.index_of([*rows]).items()}
        return {
            id: vector.tolist()
            for id, entry in entries.items()
            if (vector := vectors.get(entry.id)) is not None and vector.any()
        }

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """Forget these documents for good; with no ids, all that were added on the scope's home layer.

        Ids that are not there are passed over. What was remembered by other means goes only when it is named.
        """
        _refuse_unknown(kwargs)
        if ids is None:
            return self._delete_all()
        entries = self._entries(ids)
        items = {id: item for id, entry in entries.items() if (item := item_of(entry)) is not None}
        self._items.put([Put(partition=item.partition, key=item.key, value=None) for item in items.values()])
        others = [entry.id for id, entry in entries.items() if id not in items]
        if others:
            self._memory.forget(scope=self._scope, ids=others)
        return True

    def _delete_all(self) -> bool:
        after = 0
        while rows := self._store.select([self._home], Selection(kinds=["episode"]), after=after, limit=BATCH):
            items = [item for _, entry in rows if (item := item_of(entry)) is not None]
            self._items.put([Put(partition=item.partition, key=item.key, value=None) for item in items])
            after = rows[-1][0]
        return True

    def _entries(self, ids: Iterable[str]) -> dict[str, Entry]:
        """The entry of each id that is there: a document's, on the most specific layer, else a remembered one's."""
        wanted = list(dict.fromkeys(checked_key(id) for id in ids))
        places = {id: [*(item_id(partition, id) for partition in self._partitions), id] for id in wanted}
        now = self._items.now()
        there = self._store.get(self._partitions, [place for known in places.values() for place in known])
        found = {id: next((there[place] for place in known if place in there), None) for id, known in places.items()}
        return {id: entry for id, entry in found.items() if entry is not None and is_valid(entry, now)}

    # -- searching -----------------------------------------------------------------------------------------------

    def similarity_search(self, query: str, k: int = 4, filter: Filter | None = None, **kwargs: Any) -> list[Document]:
        """The k best documents for a text."""
        _refuse_unknown(kwargs)
        return [document for document, _ in self.similarity_search_with_score(query, k, filter)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, filter: Filter | None = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """The same with the score that each was ranked by; higher is better."""
        _refuse_unknown(kwargs)
        if self._ranking == "similarity" or not query.strip():
            return self._similar(query, k, filter)
        query = query[:MAX_QUERY_CHARS]
        hits = self._filtered(
            lambda n: chain.from_iterable(self._searcher.search(query, partitions=self._partitions, k=n, page=PAGE)),
            k,
            filter,
        )
        return [(document, hit.score) for document, hit in hits]

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, filter: Filter | None = None, **kwargs: Any
    ) -> list[Document]:
        """The k documents whose vectors are nearest to this one."""
        _refuse_unknown(kwargs)
        return [document for document, _ in self._near(embedding, k, filter)]

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Filter | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Documents near to the text and unlike each other: `lambda_mult` from 0 (unlike) to 1 (near)."""
        _refuse_unknown(kwargs)
        return self.max_marginal_relevance_search_by_vector(
            self._vector_of(query), k, fetch_k, lambda_mult, filter=filter
        )

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Filter | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """The same for a vector."""
        _refuse_unknown(kwargs)
        near = self._near(embedding, max(k, fetch_k), filter)
        chosen = maximal_marginal_relevance(
            np.array(embedding, dtype=np.float32),
            [found.vector.tolist() for _, found in near],
            lambda_mult=lambda_mult,
            k=k,
        )
        return [near[place][0] for place in chosen]

    def _similarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """By the cosine whatever the ranking, because a threshold needs a scale: 0 for none or against, 1 for equal."""
        found = self._similar(query, k, kwargs.pop("filter", None))
        _refuse_unknown(kwargs)
        return [(document, min(1.0, max(0.0, cosine))) for document, cosine in found]

    async def _asimilarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        return await run_in_executor(None, self._similarity_search_with_relevance_scores, query, k, **kwargs)

    def _similar(self, query: str, k: int, filter: Filter | None) -> list[tuple[Document, float]]:
        return [(document, found.cosine) for document, found in self._near(self._vector_of(query), k, filter)]

    def _near(self, embedding: Sequence[float], k: int, filter: Filter | None) -> list[tuple[Document, Near]]:
        embedder = self._embedding_needed()
        (vector,) = unit_rows([embedding], width=embedder.width, name=embedder.name)
        return self._filtered(lambda n: self._searcher.nearest(vector, partitions=self._partitions, k=n), k, filter)

    def _vector_of(self, query: str) -> list[float]:
        self._embedding_needed()
        vector = self._searcher.vector_of(query, partitions=self._partitions)
        return [] if vector is None else vector.tolist()

    def _embedding_needed(self) -> Embedder:
        if self._embedder is None:
            raise InvalidInput("embedding", "this memory goes by words only", "open it with an embedder")
        return self._embedder

    def _filtered(
        self, find: Callable[[int], Iterable[Found]], k: int, filter: Filter | None
    ) -> list[tuple[Document, Found]]:
        """The first k that pass; asks for more until there are so many, or no more."""
        passes = predicate(filter)
        wanted = checked_count("k", k)
        n = wanted if filter is None else max(20, 2 * wanted)
        while wanted:
            passed: list[tuple[Document, Found]] = []
            seen = 0
            for seen, one in enumerate(find(n), start=1):  # noqa: B007  how many there were at its end
                document = document_of(one.entry)
                if passes(document):
                    passed.append((document, one))
                if len(passed) == wanted:
                    return passed
            if seen < n:
                return passed
            n *= _GROWTH
        return []

    # -- making one ----------------------------------------------------------------------------------------------

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        memory: Memory | None = None,
        scope: Scope = DEFAULT_SCOPE,
        ranking: Ranking = "hybrid",
        **kwargs: Any,
    ) -> WellwornVectorStore:
        """A store with these texts in it; the other arguments are those of the class."""
        _refuse_unknown(kwargs)
        made = cls(memory, scope=scope, embedding=embedding, ranking=ranking)
        made.add_texts(texts, metadatas, ids=ids)
        return made


def _refuse_unknown(keywords: Mapping[str, Any]) -> None:
    """LangChain lets any keyword through; one that nobody reads is more likely misspelt than meant."""
    if keywords:
        raise InvalidInput("keywords", f"{', '.join(sorted(keywords))} are not known here", "see docs/langchain.md")


def _refuse_other(embedding: Embeddings, served: Embedder | None) -> None:
    given = choose_embedder(embedding)
    if given is not None and served is None:
        raise InvalidInput("embedding", "this memory goes by words only", "open it with embedder=embedding")
    check_served(given, None if served is None else (served.name, served.width))
