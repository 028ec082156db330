"""From text to terms: the same hashes for ever, stems, stop words, scripts, traits, sketches."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.builders import analyze, make_entry
from wellworn.core.hashes import hash64, signed64
from wellworn.ingest.remember import jaccard
from wellworn.ingest.terms import Trait, embedding_text, hash_of, name_hash, read_question, terms, text_hash, words

GOLDEN = {
    # These numbers are in files on users' disks: a change needs a new ANALYSIS_VERSION and a rebuild.
    "rust": 12670075210618624892,
    "bee": 18119106239126326041,
    "run": 10773672743070944251,
    "東京": 17306041243353289198,
}


def test_hashes_are_those_that_lie_in_files_already() -> None:
    assert {word: hash64(word) for word in GOLDEN} == GOLDEN
    assert text_hash("  Ada likes\ntea") == "5067e49be0ca3cec024a846107dac82b"


@pytest.mark.parametrize(("a", "b"), [("a b", "ab"), ("Ada", "ada"), ("tea.", "tea"), ("①", "1"), ("ﬁ", "fi")])
def test_texts_that_differ_have_different_hashes(a: str, b: str) -> None:
    assert text_hash(a) != text_hash(b)


def test_the_same_words_in_another_turn_are_another_episode() -> None:
    turns = [("s", [0]), ("s", [1]), ("t", [0]), ("s1", [11]), ("s11", [1]), (None, [])]
    hashes = {hash_of("yes", kind="episode", session_id=session, turn_refs=refs) for session, refs in turns}
    assert len(hashes) == len(turns)
    assert hash_of("yes", kind="note", session_id="s", turn_refs=[0]) in hashes  # as outside of a session


def test_hashes_do_not_depend_on_the_process() -> None:
    code = "from wellworn.ingest.terms import terms; print(terms('running bees in 東京, café'))"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert outputs == {f"{terms('running bees in 東京, café')}\n"}


@pytest.mark.parametrize(
    ("a", "b"),
    [
        *(("running", "runs"), ("BEES", "bee"), ("café", "cafe"), ("Ｆｕｌｌ", "full"), ("O’Brien", "O'Brien")),
        *(("ﬁne", "fine"), ("cafe\u0301", "café"), ("Ελλάδα", "ελλαδα"), ("STRASSE", "Straße"), ("Łódź", "lodz")),
        *(("ışık", "isik"), ("مدرسة", "مدرسه"), ("كتـاب", "كتاب"), ("٢٠", "20"), ("ज़मीन", "जमीन")),
    ],
)
def test_spellings_of_one_word_are_one_term(a: str, b: str) -> None:
    assert terms(a) == terms(b) != []


@pytest.mark.parametrize(
    ("a", "b"), [("bee", "beer"), ("मोर", "मेरी"), ("बांग्ला", "बंगला"), ("rust", "trust"), ("東京", "京都"), ("1", "11")]
)
def test_different_words_are_different_terms(a: str, b: str) -> None:
    assert set(terms(a)).isdisjoint(terms(b))


def test_stop_words_are_left_out_but_of_a_question_that_has_no_other() -> None:
    assert terms("the The AND don't I'm we've what of") == []
    assert len(read_question("who are you?").terms) == 3
    assert read_question("???").terms == []
    assert read_question("¿Qué coche tengo?").terms == read_question("coche").terms  # its form words say nothing
    assert len(read_question("Mia food").terms) == 2  # which is a name


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("दिल्ली में बारिश है।", ["दिल्ली", "में", "बारिश", "है"]),
        ("தமிழ்நாடு", ["தமிழ்நாடு"]),
        ("แพ้ถั่ว 12", ["แพ", "พ้", "้ถ", "ถั", "ั่", "่ว", "12"]),
        ("東京都に行く", ["東京", "京都", "都に", "に行", "行く"]),
        ("Tokyo東京2020 本", ["tokyo", "東京", "2020", "本"]),
        ("snake_case kebab-case a.b/c", ["snake", "case", "kebab", "case", "a", "b", "c"]),
    ],
)
def test_the_words_of_a_text(text: str, found: list[str]) -> None:
    assert words(text) == found


@given(text=st.text(st.characters(codec="ascii")))
def test_ascii_has_the_words_that_any_text_has(text: str) -> None:
    assert words(f"{text} é") == [*words(text), "e"]


@given(text=st.text(max_size=200), title=st.text(max_size=30), tags=st.lists(st.text(max_size=10), max_size=3))
def test_an_index_record_counts_every_term_once(text: str, title: str, tags: list[str]) -> None:
    record = analyze(text, title=title, tags=tags)
    assert record.terms.dtype == np.dtype("<u8")
    assert (np.diff(record.terms.astype(object)) > 0).all()
    assert len(record.terms) == len(record.counts)
    assert int(record.counts.astype(np.int64).sum()) == record.length
    assert 0 not in record.terms.tolist()
    assert record.chars == len(text)


def test_title_tags_and_speaker_count_as_words_and_title_and_speaker_are_embedded_too() -> None:
    record = analyze("likes tea", title="Drinks", tags=["hot stuff"], speaker="Ada Lovelace")
    assert set(record.terms.tolist()) == set(terms("likes tea drinks hot stuff ada lovelace"))
    entry = make_entry("1", text="likes tea", title="Drinks", tags=["hot"], speaker="Ada")
    assert embedding_text(entry) == "Ada: Drinks. likes tea"
    often = analyze("bee " * 70_000)
    assert (often.counts.tolist(), often.length) == ([65_535], 70_000)  # the most that fits


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(("Where?", Trait.QUESTION), ("你好？ ", Trait.QUESTION), ("x" * 300 + "?", Trait(0)), ("No.", Trait(0))),
        *(("on Monday", Trait.TIMED), ("in 1999", Trait.TIMED), ("at 5 pm", Trait.TIMED), ("mayor", Trait(0))),
        ("my cat last week?", Trait.QUESTION | Trait.TIMED | Trait.FIRST_PERSON),
    ],
)
def test_traits_of_a_text(text: str, expected: Trait) -> None:
    assert Trait(analyze(text).traits) == expected


def test_a_speaker_is_named_by_the_first_telling_word() -> None:
    assert name_hash("Ada Lovelace") == name_hash("ada") != 0
    assert name_hash("Ada Lovelace") in map(signed64, read_question("what did Ada say?").terms)
    assert name_hash("...") == 0


def test_texts_with_the_same_words_share_both_sketches() -> None:
    a = analyze("the old mill by the river burned down in summer")
    b = analyze("In summer, the OLD mill burned down; by the river!")
    assert a.near == b.near != (0, 0)
    assert jaccard(set(a.terms.tolist()), b.terms.tolist()) == 1.0


def test_nearly_identical_texts_nearly_always_share_a_sketch() -> None:
    dice = np.random.default_rng(7)
    shared = 0
    for _ in range(200):
        chosen = [f"word{n}" for n in dice.choice(10_000, size=40, replace=False)]
        a, b = analyze(" ".join(chosen)), analyze(" ".join([*chosen[:-2], "else", "other"]))
        assert jaccard(set(a.terms.tolist()), b.terms.tolist()) > 0.9
        shared += any(x == y != 0 for x, y in zip(a.near, b.near, strict=True))
    assert shared >= 185


def test_what_a_thing_is_called_is_asked_for_not_told() -> None:
    assert read_question("What's my cat called?").terms == read_question("What's my cat?").terms
    assert read_question("Who called me?").terms == terms("called")
