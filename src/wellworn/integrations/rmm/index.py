"""A LangChain `VectorStore` as an index of memories: it finds ids, and may be lost and rebuilt.

Scores are ignored, for every store means something else by them; the order is kept. What is found is checked against
the person it is labelled with, and only ids leave here: texts come from the records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from wellworn.integrations.rmm.records import MemoryRecord, moment

ID, USER = "rmm_id", "rmm_user"
_MOST_LOOKED_AT = 2_000
"""Documents of a shared index that are looked through for a person's own."""

SearchKwargs = Callable[[str], Mapping[str, Any]]


class Index:
    """One vector store for all, or one for each label."""

    def __init__(self, given: VectorStore | Callable[[str], VectorStore], *, narrowed: SearchKwargs | None) -> None:
        self._given = given
        self._narrowed = narrowed

    def store_for(self, label: str) -> VectorStore:
        return self._given if isinstance(self._given, VectorStore) else self._given(label)

    def find(self, label: str, query: str, vector: Sequence[float], k: int) -> list[Document]:
        """A person's documents nearest to the query, best first, each memory once."""
        store = self.store_for(label)
        kwargs = dict(self._narrowed(label)) if self._narrowed is not None else {}
        wanted = k
        while True:
            documents = _search(store, query, vector, wanted, kwargs)
            own = {str(one.metadata[ID]): one for one in reversed(documents) if one.metadata.get(USER) == label}
            found = [one for one in documents if own.get(str(one.metadata.get(ID))) is one]
            if len(found) >= k or len(documents) < wanted or wanted >= _MOST_LOOKED_AT:
                return found[:k]
            wanted = min(4 * wanted, _MOST_LOOKED_AT)  # the others are other people's: look further

    def add(self, label: str, records: Sequence[MemoryRecord]) -> None:
        documents = [
            Document(
                id=record.index_id,
                page_content=record.text,
                metadata={ID: record.id, USER: label, "at": record.at.isoformat(), "kind": record.kind},
            )
            for record in records
        ]
        if documents:
            self.store_for(label).add_documents(documents, ids=[record.index_id for record in records])

    def remove(self, label: str, ids: Sequence[str]) -> None:
        """Take documents out, where the store can: what stays is not believed, for the record says otherwise."""
        with suppress(Exception):
            if ids:
                self.store_for(label).delete([*ids])


def record_of(document: Document) -> MemoryRecord:
    """What a document says of its memory, for when the records cannot be read."""
    metadata = document.metadata
    return MemoryRecord(id=str(metadata[ID]), text=document.page_content, at=moment(metadata.get("at")))


def _search(store: VectorStore, query: str, vector: Sequence[float], k: int, kwargs: dict[str, Any]) -> list[Document]:
    try:
        return store.similarity_search_by_vector([*vector], k=k, **kwargs)
    except NotImplementedError:  # it can only be asked in words
        return store.similarity_search(query, k=k, **kwargs)
