"""Hashes that stand for words, threads and texts."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.builders import make_entry
from wellworn.ingest.hashing import content_hash, hash64, signed64, text_hash, thread_of


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=50))
def test_a_hash_has_64_bits_and_is_never_zero(text: str) -> None:
    assert 0 < hash64(text) < 1 << 64
    assert -(1 << 63) <= signed64(hash64(text)) < 1 << 63
    assert signed64(hash64(text)) % (1 << 64) == hash64(text)


def test_a_hash_is_blake2b_read_from_its_small_end() -> None:
    assert hash64("rust") == int.from_bytes(hashlib.blake2b(b"rust", digest_size=8).digest(), "little")


@pytest.mark.parametrize(("a", "b"), [("a b", " a\n\tb "), ("caf\u00e9", "cafe\u0301"), ("a\u3000b", "a b")])
def test_spacing_and_unicode_form_make_no_difference(a: str, b: str) -> None:
    assert text_hash(a) == text_hash(b)


@pytest.mark.parametrize(("a", "b"), [("a b", "ab"), ("Ada", "ada"), ("tea.", "tea"), ("①", "1"), ("ﬁ", "fi")])
def test_anything_else_does(a: str, b: str) -> None:
    assert text_hash(a) != text_hash(b)


def test_the_hash_of_a_text_is_stable() -> None:
    plain = hashlib.blake2b(b"\x1fAda likes tea", digest_size=16).hexdigest()
    assert text_hash("  Ada likes\ntea") == plain


def test_the_same_words_in_another_turn_are_another_episode() -> None:
    def episode(**given: object) -> str:
        return content_hash(make_entry("1", text="yes", **({"kind": "episode"} | given)))

    hashes = [
        episode(session_id="s", turn_refs=[0]),
        episode(session_id="s", turn_refs=[1]),
        episode(session_id="t", turn_refs=[0]),
        episode(),
        episode(session_id="s1", turn_refs=[11]),
        episode(session_id="s11", turn_refs=[1]),
    ]
    assert len(set(hashes)) == len(hashes)
    assert episode() == content_hash(make_entry("2", text="yes", kind="note", session_id="s", turn_refs=[0]))


def test_threads_of_different_things_differ() -> None:
    assert len({thread_of("session", "a"), thread_of("session", "b"), thread_of("text", "a")}) == 3
