"""A bank put together from a user's own parts, checked before the first turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.vectorstores import VectorStore
from langgraph.store.base import BaseStore

from wellworn.core.clock import system_clock
from wellworn.core.errors import InvalidInput
from wellworn.ingest.validate import checked_count, checked_flag
from wellworn.integrations.rmm.config import RerankerConfig, config_of
from wellworn.integrations.rmm.faults import Faults
from wellworn.integrations.rmm.index import Index, SearchKwargs
from wellworn.integrations.rmm.parts import PartsBank
from wellworn.integrations.rmm.records import MemoryRecords
from wellworn.integrations.rmm.reflect import Reflect
from wellworn.integrations.rmm.weights import Weights
from wellworn.models.langchain import LangChainModel

_PROBE = "How wide is a vector?"


def create_bank(
    *,
    vector_store: VectorStore | Callable[[str], VectorStore],
    embeddings: Embeddings,
    store: BaseStore,
    model: BaseChatModel,
    config: RerankerConfig | Mapping[str, Any] | None,
    max_tokens: int,
    learns: bool,
    search_kwargs: SearchKwargs | None,
) -> PartsBank:
    """The parts as a bank; `InvalidInput` says which one does not fit."""
    _checked(
        "vector_store", vector_store, VectorStore, "give a VectorStore or a function from a label to one", callable
    )
    _checked("embeddings", embeddings, Embeddings, "give a LangChain Embeddings")
    _checked("store", store, BaseStore, "give a LangGraph BaseStore, such as InMemoryStore() or WellwornStore(…)")
    _checked("summarization_model", model, BaseChatModel, "give a LangChain chat model")
    width = _width("embeddings", embeddings)
    own = vector_store.embeddings if isinstance(vector_store, VectorStore) else None
    if own is not None and own is not embeddings and (other := _width("vector_store", own)) != width:
        raise InvalidInput(
            "embeddings",
            f"make vectors of width {width}, those of the vector store {other}",
            "give the embeddings that the vector store was made with",
        )
    faults, records = Faults(), MemoryRecords(store)
    index = Index(vector_store, narrowed=search_kwargs)
    return PartsBank(
        index=index,
        embeddings=embeddings,
        records=records,
        weights=Weights(records, faults, width=width),
        reflect=Reflect(
            index=index, embeddings=embeddings, records=records, model=LangChainModel(model), clock=system_clock
        ),
        config=config_of(config),
        max_tokens=checked_count("max_tokens", max_tokens, least=1),
        learns=checked_flag("enable_retrospective_reflection", learns),
        faults=faults,
    )


def _checked(name: str, value: object, kind: type, remedy: str, also: Callable[[object], bool] | None = None) -> None:
    if not isinstance(value, kind) and not (also is not None and not isinstance(value, type) and also(value)):
        raise InvalidInput(name, f"{type(value).__name__} is none", remedy)


def _width(name: str, embeddings: Embeddings) -> int:
    vector = embeddings.embed_query(_PROBE)
    if not vector:
        raise InvalidInput(name, "embed to vectors without a number", "give others")
    return len(vector)


__all__ = ["RerankerConfig", "create_bank"]
