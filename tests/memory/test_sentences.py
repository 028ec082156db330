"""A hit of several sentences says which one matched: stored with the vector, read for the candidates, gone with the entry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wellworn import Memory, Profile, Recall, Scope
from wellworn.core.values import Hit
from wellworn.ingest.terms import embedding_text, place_in_text
from wellworn.language.parts import unpacked
from wellworn.language.reader import WIDTH, bundled
from wellworn.models.hashing import HashEmbedder
from wellworn.store.port import Selection

ADA = Scope(user="ada")
LONG = (
    "It rained the whole week and the tram was late again. We had soup at my aunt's, with far too much salt in it. "
    "I had the braces off in March, cant stop smiling. Can you write Dr Okonkwo a card?"
)
OTHERS = ["I like tea.", "The office moves to Lisbon in June. The lease of the old one ends in May."]
QUESTION = "since when are my teeth straight?"
ANSWER = "I had the braces off in March, cant stop smiling."
BY_SENTENCE = Profile(name="by sentence", weights={"sentence": 1.0})


@pytest.fixture
def mem() -> Iterator[Memory]:
    with Memory(":memory:", background=False) as memory:
        yield memory


def marked(hit: Hit) -> str | None:
    return None if hit.sentence is None else hit.text[slice(*hit.sentence)]


def parts_of(mem: Memory) -> dict[str, bytes]:
    store = mem.engine.store
    ids = {no: entry.id for no, entry in store.select(None, Selection())}
    return {ids[no]: blob for no, blob in store.parts([*ids]).items()}


def test_the_sentence_that_answers_is_named(mem: Memory) -> None:
    (long, *_) = mem.remember_many([LONG, *OTHERS], scope=ADA)
    for _ in range(2):  # found anew, and as it was found before
        first, *others = mem.recall(QUESTION, scope=ADA)
        assert (first.entry.id, marked(first)) == (long, ANSWER)
        assert [hit.sentence for hit in others if hit.text == OTHERS[0]] == [None]
    assert marked(mem.recall("When does the lease end?", scope=ADA)[0]) == "The lease of the old one ends in May."
    assert [hit.sentence for hit in mem.recall("私の歯はいつから", scope=ADA)] == [
        None
    ] * 3  # nothing of it can be read


@pytest.mark.parametrize("title", ["", "A long talk. About this and that."])
@pytest.mark.parametrize("speaker", [None, "Ada"])
def test_its_place_is_that_in_the_text_whatever_stands_before(mem: Memory, title: str, speaker: str | None) -> None:
    mem.remember(LONG, scope=ADA, title=title, speaker=speaker)
    assert marked(mem.recall(QUESTION, scope=ADA)[0]) == ANSWER
    assert mem.recall("About this and that", scope=ADA)[0].sentence is None or not title


def test_a_place_outside_the_text_is_none(mem: Memory) -> None:
    entry = replace(mem.get(mem.remember("One. Two.", scope=ADA)[0], scope=ADA), title="Head", speaker="Ada")
    whole = embedding_text(entry)
    begin = whole.index("One.")
    assert place_in_text(entry, 0, begin - 1) is None
    assert place_in_text(entry, 0, begin + 4) == (0, 4)
    assert place_in_text(entry, begin + 5, len(whole) + 9) == (5, 9)
    assert place_in_text(entry, begin, len(whole)) is None  # all of it
    assert place_in_text(entry, len(whole) + 1, len(whole) + 2) is None


def test_a_profile_may_weigh_the_best_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory(":memory:", background=False, profile=BY_SENTENCE) as mem:
        mem.remember_many([LONG, *OTHERS], scope=ADA)
        store, reads = mem.engine.store, list[Sequence[int]]()
        parts = store.parts

        def counted(nos: Sequence[int]) -> dict[int, bytes]:
            reads.append(nos)
            return parts(nos)

        monkeypatch.setattr(mem.engine.searcher, "_read_parts", counted)
        found, reader = mem.recall(QUESTION, scope=ADA), bundled()
        assert (marked(found[0]), len(reads)) == (ANSWER, 1)  # the hits are among the candidates
        vector = reader.embed_query(QUESTION)
        for hit in found:
            (read,) = reader.read([hit.text])
            assert hit.factors["sentence"] == pytest.approx(float((read.parts @ vector).max()), abs=0.01)


def test_without_them_the_whole_vector_counts() -> None:
    embedder = HashEmbedder()
    with Memory(":memory:", embedder=embedder, background=False, profile=BY_SENTENCE) as mem:
        mem.remember_many([LONG, *OTHERS], scope=ADA)
        vector = embedder.embed_query("braces")
        for hit in mem.recall("braces", scope=ADA):
            assert hit.sentence is None
            assert hit.factors["sentence"] == pytest.approx(float(embedder.embed([hit.text])[0] @ vector), abs=1e-5)
        assert parts_of(mem) == {}


def test_they_follow_the_words_and_go_with_them(mem: Memory) -> None:
    (long, tea, _) = mem.remember_many([LONG, *OTHERS], scope=ADA)
    before = parts_of(mem)
    assert {long, tea} & before.keys() == {long}
    mem.edit(long, scope=ADA, confidence=0.9)
    mem.remember(LONG, scope=ADA, tags=["said again"])
    assert parts_of(mem) == before
    mem.edit(tea, scope=ADA, text="I like green tea. I never drink coffee in the evening.")
    mem.edit(long, scope=ADA, text="I had the braces off.")
    assert {long, tea} & parts_of(mem).keys() == {tea}
    assert marked(mem.recall("Do I drink coffee?", scope=ADA)[0]) == "I never drink coffee in the evening."
    mem.forget(ids=[tea], scope=ADA)
    assert tea not in parts_of(mem)
    assert mem.recall("Do I drink coffee?", scope=ADA)[0].entry.id != tea
    mem.forget(everything=True, scope=ADA)
    assert parts_of(mem) == {}


def test_an_encrypted_memory_shows_nothing_of_them(tmp_path: Path) -> None:
    pytest.importorskip("sqlcipher3")
    for key in (None, b"k" * 32):
        path = tmp_path / f"{key is None}.db"
        with Memory(path, background=False, key=key) as mem:
            (id_,) = mem.remember(LONG, scope=ADA)
            blob = parts_of(mem)[id_]
            assert marked(mem.recall(QUESTION, scope=ADA)[0]) == ANSWER
        assert (blob[12:60] in path.read_bytes()) is (key is None)
        assert len(unpacked(blob, WIDTH)[0]) == 4


def test_a_damaged_row_is_recalled_by_its_whole_vector(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", background=False, profile=BY_SENTENCE) as mem:
        mem.remember_many([LONG, *OTHERS], scope=ADA)
        store: Any = mem.engine.store
        for harm in ("x'0102'", "'text'", "zeroblob(792)"):
            with store.transact() as tx:
                tx._db.run(f"UPDATE index_records SET parts = {harm}")
                tx._seq(1)
            found: Recall = mem.recall(QUESTION, scope=ADA)
            assert found[0].text == LONG
            assert np.isfinite([hit.score for hit in found]).all()
            assert not any(marked(hit) for hit in found)


def test_short_lines_begin_with_the_sentence(mem: Memory) -> None:
    mem.remember(LONG, scope=ADA)
    assert f"… {ANSWER}" in str(mem.recall(QUESTION, scope=ADA))
