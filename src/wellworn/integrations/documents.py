"""LangChain documents and embeddings in wellworn's terms, computed over values. Needs the extra `langchain`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from wellworn.core.errors import InvalidInput, MissingExtra
from wellworn.core.values import Entry, Partition
from wellworn.integrations import conditions
from wellworn.integrations.items.item import Put, item_of
from wellworn.models.port import Embedder

try:
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
except ModuleNotFoundError as error:
    raise MissingExtra("WellwornVectorStore", "langchain") from error

Filter = Mapping[str, Any] | Callable[[Document], bool]
"""Fields of the metadata with their values or operators (`conditions`), or a function of the document."""


def put_of(partition: Partition, document: Document, id: str) -> Put:
    """The document as an item, found by its whole text as one piece."""
    value = {"page_content": document.page_content, "metadata": document.metadata}
    return Put(partition=partition, key=id, value=value, texts=[[document.page_content]])


def document_of(entry: Entry) -> Document:
    """The document an entry was made from; or what was remembered, as a document."""
    item = item_of(entry)
    if item is not None and "page_content" in item.value:
        return Document(id=item.key, page_content=item.value["page_content"], metadata=item.value["metadata"])
    said = {"title": entry.title, "speaker": entry.speaker, "session_id": entry.session_id, "tags": entry.tags}
    known = {"kind": entry.kind, "at": entry.at.isoformat(), **{name: value for name, value in said.items() if value}}
    return Document(id=entry.id, page_content=entry.text, metadata=known | entry.metadata)


def predicate(filter: object) -> Callable[[Document], bool]:
    """Whether a document passes a filter; None lets every one pass."""
    if filter is None:
        return _pass
    if isinstance(filter, Mapping):
        conditions.check(filter)
        fields = filter
        return lambda document: conditions.passes(document.metadata, fields)
    if callable(filter):
        asked: Callable[[Document], bool] = filter
        return asked
    raise InvalidInput(
        "filter", f"a {type(filter).__name__} is none", "use {'field': value} or a function of a Document"
    )


def _pass(document: Document) -> bool:  # noqa: ARG001  what it is does not matter
    return True


class MemoryEmbeddings(Embeddings):
    """A memory's own embedder as LangChain `Embeddings`."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        rows: list[list[float]] = self._embedder.embed(texts).tolist()
        return rows

    def embed_query(self, text: str) -> list[float]:
        row: list[float] = self._embedder.embed_query(text).tolist()
        return row
