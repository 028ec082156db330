"""A LangChain `VectorStore` on a memory: documents by id, searched by words and meaning.

Translates LangChain's methods; `items` knows how documents are stored. The async methods are LangChain's own, which run
these on threads. Needs the extra `langchain`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wellworn.core.errors import InvalidInput, MissingExtra
from wellworn.core.values import Entry, Hit, Scope
from wellworn.ingest.validate import MAX_QUERY_CHARS, checked_count, checked_scope
from wellworn.integrations import checked_memory, items
from wellworn.memory import Memory
from wellworn.models.choose import choose_embedder
from wellworn.models.port import Embedder, fits

try:
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import VectorStore
except ModuleNotFoundError as error:
    raise MissingExtra("WellwornVectorStore", "langchain") from error

Filter = Mapping[str, Any]
"""Fields of the metadata with their values or operators."""

DEFAULT_SCOPE = Scope(tenant="default", project="langchain")
BATCH = 512


class WellwornVectorStore(VectorStore):
    """Documents of one scope of a memory.

    Writes go to the scope's home layer. Searches see every layer of the scope, including what was remembered there by
    other means. Without a memory the documents live in RAM and end with the object. The vectors are those of the
    memory's embedder; `embedding` says which to open one with, or is checked against it.
    """

    def __init__(
        self, memory: Memory | None = None, *, scope: Scope | None = None, embedding: Embeddings | None = None
    ) -> None:
        if memory is None:
            memory = Memory(":memory:", embedder="reader" if embedding is None else embedding)
        elif embedding is not None:
            _check_same(embedding, checked_memory(memory).engine.embedder)
        engine = checked_memory(memory).engine
        self._scope = checked_scope(scope or memory.scope or DEFAULT_SCOPE)
        self._partitions = self._scope.partitions()
        self._home = self._scope.home()
        self._store = engine.store
        self._items = items.Items(engine, source="langchain")
        self._embedding = embedding

    @property
    def embeddings(self) -> Embeddings | None:
        """What was given as `embedding`."""
        return self._embedding

    # -- documents by id -----------------------------------------------------------------------------------------

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Store texts, each under its id or a new one, and return the ids. What was under an id is replaced."""
        _refuse(kwargs)
        texts = list(texts)
        for name, given in (("metadatas", metadatas), ("ids", ids)):
            if given and len(given) != len(texts):
                raise InvalidInput(name, f"are {len(given)} for {len(texts)} texts", "give one for each, or none")
        if odd := [type(metadata).__name__ for metadata in metadatas or () if not isinstance(metadata, dict)]:
            raise InvalidInput("metadatas", f"hold a {odd[0]}", "give a dict for each text, or no metadatas")
        named = [str(uuid.uuid4()) if id is None else items.checked_key(id) for id in ids or [None] * len(texts)]
        puts = [
            items.PutItem(partition=self._home, key=id, value={"page_content": text, "metadata": metadata}, text=text)
            for text, metadata, id in zip(texts, metadatas or [{}] * len(texts), named, strict=True)
        ]
        for start in range(0, len(puts), BATCH):
            self._items.put(puts[start : start + BATCH])
        return named

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents of these ids that are there, in the order of the ids."""
        return [_document(entry) for entry in self._entries(ids).values()]

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """Forget these documents for good; without ids, all on the scope's home layer. Unknown ids are ignored, and
        what was remembered by other means stays."""
        _refuse(kwargs)
        if ids is None:
            places = [(self._home, item.key) for item in self._items.newest(partitions=[self._home])]
        else:
            found = filter(None, map(items.item_of, self._entries(ids).values()))
            places = [(item.partition, item.key) for item in found]
        self._items.put([items.PutItem(partition=partition, key=key, value=None) for partition, key in places])
        return True

    def _entries(self, ids: Iterable[str]) -> dict[str, Entry]:
        """Return the entry of each id: a document's, on the most specific layer, else a remembered one's."""
        wanted = list(dict.fromkeys(items.checked_key(id) for id in ids))
        places = {id: [*(items.item_id(partition, id) for partition in self._partitions), id] for id in wanted}
        now = self._items.now()
        there = self._store.get(self._partitions, [place for known in places.values() for place in known])
        found = {id: next((there[place] for place in known if place in there), None) for id, known in places.items()}
        return {id: entry for id, entry in found.items() if entry is not None and items.is_valid(entry, now)}

    # -- searching -----------------------------------------------------------------------------------------------

    def similarity_search(self, query: str, k: int = 4, filter: Filter | None = None, **kwargs: Any) -> list[Document]:
        """Return the k best documents for a text."""
        return [document for document, _ in self.similarity_search_with_score(query, k, filter, **kwargs)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, filter: Filter | None = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """Return the k best documents for a text, each with the score it was ranked by; higher is better."""
        _refuse(kwargs)
        if filter is not None and not isinstance(filter, Mapping):
            raise InvalidInput("filter", f"a {type(filter).__name__} will not do", "use {'field': value}")
        items.check_filter(filter)

        def accepted(hit: Hit) -> tuple[Document, float] | None:
            document = _document(hit.entry)
            return (document, hit.score) if items.matches(document.metadata, filter or {}) else None

        if not query.strip():
            return []
        asked, want = query[:MAX_QUERY_CHARS], checked_count("k", k)
        return self._items.search(asked, partitions=self._partitions, want=want, accept=accepted)

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> WellwornVectorStore:
        """Make a store with these texts in it; `kwargs` are those of the class."""
        made = cls(embedding=embedding, **kwargs)
        made.add_texts(texts, metadatas, ids=ids)
        return made


def _document(entry: Entry) -> Document:
    """Return the document an entry was made from, or what was remembered as a document."""
    item = items.item_of(entry)
    value = {} if item is None else item.value
    text, metadata = value.get("page_content"), value.get("metadata")
    if item is not None and isinstance(text, str) and isinstance(metadata, dict):  # else an item of a LangGraph store
        return Document(id=item.key, page_content=text, metadata=metadata)
    said = {"title": entry.title, "speaker": entry.speaker, "session_id": entry.session_id, "tags": entry.tags}
    known = {"kind": entry.kind, "at": entry.at.isoformat(), **{name: value for name, value in said.items() if value}}
    return Document(id=entry.id, page_content=entry.text, metadata=known | entry.metadata)


def _refuse(keywords: Mapping[str, Any]) -> None:
    """LangChain passes any keyword on; one that nobody reads is more likely misspelt than meant."""
    if keywords:
        raise InvalidInput("keywords", f"{', '.join(sorted(keywords))} are not known here", "see docs/langchain.md")


def _check_same(embedding: Embeddings, served: Embedder | None) -> None:
    given = choose_embedder(embedding)
    if given is not None and served is None:
        raise InvalidInput("embedding", "this memory goes by words only", "open it with embedder=embedding")
    fits(given, None if served is None else (served.name, served.width))
