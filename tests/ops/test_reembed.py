"""Moving a store from one embedding model to another."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from wellworn.core.errors import EmbedderMismatch, InvalidInput
from wellworn.ingest.terms import embedding_text
from wellworn.memory import Memory
from wellworn.models.base import FunctionEmbedder
from wellworn.models.hashing import HashEmbedder
from wellworn.models.port import Matrix
from wellworn.ops import reembed as module
from wellworn.ops.doctor import verify
from wellworn.ops.reembed import adopt_model, reembed
from wellworn.store.events import events
from wellworn.store.port import EmbeddingModel, Selection, Store

from .conftest import ADA, EVE, Ticking, entries_of, fill


class Counting(HashEmbedder):
    """Notes every text it embeds; `before` is called ahead of each batch."""

    def __init__(self, width: int = 8) -> None:
        super().__init__(width)
        self.texts: list[str] = []
        self.before: Callable[[], object] = list

    def embed(self, texts: Sequence[str]) -> Matrix:
        self.before()
        self.texts += texts
        return super().embed(texts)


class Stop(Exception):
    pass


def test_a_new_store_takes_the_first_embedder_and_refuses_another_by_name(store: Store) -> None:
    adopt_model(store, None)
    assert store.model() is None
    for embedder in (HashEmbedder(16), HashEmbedder(16), None):
        adopt_model(store, embedder)
        assert store.model() == EmbeddingModel(name="hash:16", width=16)
    with pytest.raises(EmbedderMismatch, match="reembed") as caught:
        adopt_model(store, HashEmbedder(8))
    assert (caught.value.stored, caught.value.given) == ("hash:16", "hash:8")
    assert (caught.value.stored_width, caught.value.given_width) == (16, 8)
    with pytest.raises(InvalidInput, match="embedder"):
        reembed(store, None)
    assert reembed(store, HashEmbedder(8)).entries == 0  # it is empty
    assert store.model() == EmbeddingModel(name="hash:8", width=8)


def test_a_function_is_asked_for_not_its_name(store: Store) -> None:
    def letters(texts: list[str]) -> list[list[float]]:
        return [[1.0, 0.0] for _ in texts]

    adopt_model(store, FunctionEmbedder(letters))
    with pytest.raises(EmbedderMismatch, match=r"its own \(pass the same function as embedder\)"):
        adopt_model(store, HashEmbedder(2))


def test_every_entry_gets_a_vector_of_the_new_model(memory: Memory, store: Store) -> None:
    fill(memory)
    before = entries_of(store)
    seen: list[tuple[int, int]] = []
    result = reembed(store, Counting(), clock=Ticking(), progress=lambda done, of: seen.append((done, of)))
    assert (result.entries, result.skipped) == (len(before), 0)
    assert store.model() == result.model == EmbeddingModel(name="hash:8", width=8)
    assert seen[-1] == (len(before), len(before))
    assert entries_of(store) == before
    assert verify(store, HashEmbedder(8)).flaws == []
    for scope in (ADA, EVE):
        (event,) = (event for event in events(store, scope.tenant) if event.action == "reembed")
        assert event.detail == {"model": "hash:8", "width": 8}
    again = Counting()
    result = reembed(store, again)
    assert (result.entries, result.skipped, again.texts) == (0, len(before), [])
    assert len([event for event in events(store, "acme") if event.action == "reembed"]) == 1


def test_a_stopped_move_goes_on_where_it_was(memory: Memory, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 3)
    fill(memory)
    total = len(entries_of(store))
    first, second = Counting(), Counting()

    def stop(done: int, of: int) -> None:
        if done >= 6:
            raise Stop

    with pytest.raises(Stop):
        reembed(store, first, progress=stop)
    assert store.model() == EmbeddingModel(name="hash:16", width=16)
    assert verify(store, HashEmbedder(16)).flaws == []
    result = reembed(store, second)
    assert (result.entries, result.skipped) == (total - 6, 6)
    assert len(first.texts) == 6
    assert not set(first.texts) & set(second.texts)
    assert verify(store, HashEmbedder(8)).flaws == []


def test_what_is_written_meanwhile_is_caught(memory: Memory, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 3)
    ids = fill(memory)
    embedder = Counting()
    batches = iter(range(100))

    def meddle() -> None:
        batch = next(batches)
        if batch == 0:  # changes an entry between reading and writing it
            memory.edit(ids["tokio"], scope=ADA, text="Ada has changed her mind.")
        if batch == 2:
            memory.remember("Something new under way.", scope=ADA)

    embedder.before = meddle
    reembed(store, embedder)
    assert verify(store, HashEmbedder(8)).flaws == []
    for no, entry in store.select(None, Selection(without_vector_of=EmbeddingModel(name="hash:16", width=16))):
        stored = store.index_of([no])[no][1]
        assert stored is not None
        expected = HashEmbedder(8).embed([embedding_text(entry)])[0]
        np.testing.assert_allclose(stored, expected, atol=1e-6)
