"""Writing many at once gives what writing one after another gives."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.builders import analyze
from wellworn import Memory, Scope
from wellworn.ingest.terms import record_of, records_of
from wellworn.ingest.validate import CHECKS, Draft, check

SCOPE = Scope(tenant="t", user="ada")
MOMENT = datetime(2026, 5, 1, tzinfo=UTC)
words = st.lists(
    st.sampled_from(["deploy", "service", "cluster", "error", "nightly", "17", "18", "the", "of"]), max_size=9
)


@given(st.lists(words.map(" ".join).filter(str.strip), min_size=1, max_size=6))
def test_records_of_many_texts_are_those_of_each(texts: list[str]) -> None:
    entries = [check(Draft(text=text, tags=["a"]), SCOPE, MOMENT) for text in texts]
    for entry, one in zip(entries, records_of(entries), strict=True):
        alone = record_of(entry)
        assert alone.terms.tolist() == one.terms.tolist()
        assert alone.counts.tolist() == one.counts.tolist()
        assert {**vars(alone), "terms": 0, "counts": 0} == {**vars(one), "terms": 0, "counts": 0}


def test_a_text_with_few_terms_between_others_has_its_own_sketches() -> None:
    many = records_of([check(Draft(text=text), SCOPE, MOMENT) for text in ("red green blue black", "the", "red blue")])
    assert [one.near for one in many] == [analyze(text).near for text in ("red green blue black", "the", "red blue")]
    assert many[1].near == (0, 0)
    assert many[2].near[0] == many[2].near[1] != 0


def test_what_a_draft_leaves_out_is_what_its_check_would_make_of_it() -> None:
    entry = check(Draft(text="x"), SCOPE, MOMENT)
    for one in fields(Draft):
        if one.name in CHECKS and one.name not in ("text", "metadata", "at", "valid_from", "evidence"):
            assert getattr(entry, one.name) == CHECKS[one.name](one.default)
    assert (entry.metadata, entry.evidence, entry.at, entry.valid_from) == ({}, "", MOMENT, MOMENT)


@pytest.mark.parametrize("tags", [[], ["deploy", "prod"]])
def test_look_alikes_in_a_batch_are_linked_as_one_by_one(tags: list[str]) -> None:
    texts = [f"The deployment of service {n} to the cluster finished without any errors." for n in range(70)]
    texts += [texts[3], texts[69], "Something else."]
    with Memory.open(":memory:", embedder=None, clock=lambda: MOMENT) as whole:
        whole.remember_many([{"text": text, "tags": tags} for text in texts], scope=SCOPE)
        with Memory.open(":memory:", embedder=None, clock=lambda: MOMENT) as single:
            for text in texts:
                single.remember(text, tags=tags, scope=SCOPE)
            assert _links(whole) == _links(single)


def _links(memory: Memory) -> set[tuple[str, str, str, float]]:
    text_of = {entry.id: entry.text for entry in memory.entries(scope=SCOPE, limit=1000)}
    return {
        (text_of[link.source], text_of[link.target], link.type, link.confidence)
        for id in text_of
        for link in memory.links(id, scope=SCOPE)
    }
