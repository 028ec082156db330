"""Hashes that stand for words, threads and texts."""

from __future__ import annotations

import hashlib

import pytest

from contract.builders import make_entry
from wellworn.core.hashes import hash64
from wellworn.ingest.terms import content_hash, text_hash


def test_a_hash_is_blake2b_read_from_its_small_end() -> None:
    assert hash64("rust") == int.from_bytes(hashlib.blake2b(b"rust", digest_size=8).digest(), "little")


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
