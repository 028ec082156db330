"""Two memories on one file: each sees what the other did, at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory.world import ADA, OpenMemory, texts
from wellworn import EmbedderMismatch, Memory, NotFound


@pytest.fixture
def pair(path: Path, opened: OpenMemory) -> tuple[Memory, Memory]:
    a, b = opened(path), opened(path)
    for mem in (a, b):
        mem.recall("warm up", scope=ADA)
    return a, b


def test_an_entry_is_seen_by_the_other_at_once(pair: tuple[Memory, Memory]) -> None:
    for n in range(10):
        writer, reader = pair[n % 2], pair[1 - n % 2]
        (entry_id,) = writer.remember(f"bee number {n}", scope=ADA)
        assert reader.get(entry_id, scope=ADA).text == f"bee number {n}"
        assert entry_id in [hit.entry.id for hit in reader.recall(f"bee number {n}", scope=ADA, k=20)]


def test_an_edit_is_seen_by_the_other_at_once(pair: tuple[Memory, Memory]) -> None:
    a, b = pair
    (entry_id,) = a.remember("the first wording", scope=ADA)
    for n in range(5):
        assert len(b.recall("wording", scope=ADA)) == 1
        a.edit(entry_id, scope=ADA, text=f"wording number {n}")
        assert texts(b, "wording", ADA) == [f"wording number {n}"]
        a.edit(entry_id, scope=ADA, metadata={"n": n}, confidence=n / 10)
        entry = b.recall("wording", scope=ADA).hits[0].entry
        assert (entry.metadata, entry.confidence) == ({"n": n}, n / 10)


def test_a_forget_is_seen_by_the_other_at_once(pair: tuple[Memory, Memory]) -> None:
    a, b = pair
    first, second = a.remember_many(["first bee", "second bee"], scope=ADA)
    assert len(b.recall("bee", scope=ADA)) == 2
    a.forget(ids=[first], scope=ADA)
    assert [hit.entry.id for hit in b.recall("bee", scope=ADA)] == [second]
    with pytest.raises(NotFound):
        b.get(first, scope=ADA)
    a.forget(everything=True, scope=ADA)
    assert b.recall("bee", scope=ADA).hits == []
    (third,) = a.remember("third bee", scope=ADA)
    assert [hit.entry.id for hit in b.recall("bee", scope=ADA)] == [third]


def test_an_outcome_counts_only_while_its_recall_is_in_the_log(pair: tuple[Memory, Memory]) -> None:
    a, b = pair
    a.remember("first bee", scope=ADA)
    first, second = b.recall("bee", scope=ADA), b.recall("which bee?", scope=ADA)
    b.engine.learner.log.flush()
    assert b.outcome(first.id, cited=[0])
    assert not a.outcome(first.id, cited=[])
    a.forget(everything=True, scope=ADA)
    with pytest.raises(NotFound):
        b.outcome(second.id, cited=[0])


def test_supersession_repeats_and_links_are_seen_by_the_other_at_once(pair: tuple[Memory, Memory]) -> None:
    a, b = pair
    (old,) = a.remember("the red rule", scope=ADA, at="2020-01-01")
    (new,) = b.remember("the blue rule", scope=ADA, at="2021-01-01")
    assert len(b.recall("rule", scope=ADA)) == 2
    a.supersede(old, new, scope=ADA)
    assert texts(b, "rule", ADA) == ["the blue rule"]
    assert b.remember("the blue rule", scope=ADA) == [new]
    assert a.recall("rule", scope=ADA).hits[0].entry.repeats == 1
    assert {link.type for link in b.links(new, scope=ADA)} >= {"supersedes"}


def test_a_whole_move_to_another_model_is_seen_by_the_other_as_a_clear_error(path: Path, opened: OpenMemory) -> None:
    old = opened(path, embedder="hash:16")
    old.remember("a bee", scope=ADA)
    old.recall("bee", scope=ADA)
    new = opened(path, embedder="hash:32", reembedding=True)
    new.admin.reembed()
    assert len(new.recall("bee", scope=ADA)) == 1
    for call in (lambda: old.recall("bee", scope=ADA), lambda: old.remember("another bee", scope=ADA)):
        with pytest.raises(EmbedderMismatch):
            call()
    assert new.verify().ok
