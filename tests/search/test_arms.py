"""The arms against their formulas; what may and may not change a score."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.reference import WIDTH, Partition, by_no, index_of, meaning, random_partition, words
from wellworn.ingest.terms import Question
from wellworn.search import arms
from wellworn.search import partition as partition_index
from wellworn.search.bank import Bank
from wellworn.search.profiles import PROFILES, Profile

DEFAULT = PROFILES["default"]
seeds = st.integers(0, 10_000)
profiles = st.sampled_from(
    [
        DEFAULT,
        PROFILES["paper"],
        replace(DEFAULT, k1=1.5, b=0.0),
        replace(DEFAULT, b=1.0, pivot_terms=10.0),
        replace(DEFAULT, near_terms=(0.0, 0.5), answer_share=0.0),
        replace(DEFAULT, near_meaning=(0.0, 1.0)),
        replace(DEFAULT, absent_share=1.0),
    ]
)


def question(dice: np.random.Generator) -> Question:
    return Question(terms=[int(t) for t in dice.choice(np.arange(5, 45), size=4, replace=False)], asks_when=False)


def unit(dice: np.random.Generator) -> Any:  # an array
    vector = dice.normal(size=WIDTH).astype(np.float32)
    return vector / np.linalg.norm(vector)


def bank_of(partitions: list[Partition], profile: Profile) -> Bank:
    return Bank([index_of(partition, profile, partition_no=number) for number, partition in enumerate(partitions)])


def worlds(seed: int) -> tuple[np.random.Generator, list[Partition]]:
    dice = np.random.default_rng(seed)
    sizes = dice.integers(0, 25, size=3)
    return dice, [random_partition(dice, int(size), first_no=1 + 100 * n) for n, size in enumerate(sizes)]


@given(seed=seeds, profile=profiles)
def test_the_lexical_arm_is_bm25_with_neighbours(seed: int, profile: Profile) -> None:
    profile = replace(profile, weights={**profile.weights, "terms": 8.0})  # else nobody asks for it
    dice, partitions = worlds(seed)
    asked = question(dice)
    bank = bank_of(partitions, profile)
    assert by_no(bank, arms.words(bank, asked, profile, None).score) == pytest.approx(
        words(partitions, asked, profile), abs=1e-5
    )


@given(seed=seeds, most=st.integers(0, 40))
def test_frequent_words_that_are_looked_at_later_give_the_same_scores(seed: int, most: int) -> None:
    dice = np.random.default_rng(seed)
    partition = random_partition(dice, 30, first_no=1)
    partition.rows = {no: replace(row, thread=None, position=None, speaker=0) for no, row in partition.rows.items()}
    bank, asked = bank_of([partition], DEFAULT), question(dice)
    full = arms.words(bank, asked, DEFAULT, None)
    with patch.object(arms, "MOST_POSTINGS", most), patch.object(partition_index, "LEAST_SIGNED", 1):
        lazy = arms.words(bank_of([partition], DEFAULT), asked, DEFAULT, None)
    assert isinstance(lazy.score, arms.LazyWords) == (sum(len(having) for _, having in full.found) > most)
    for name in ("score", "plain"):
        np.testing.assert_allclose(getattr(lazy, name)[:], getattr(full, name)[:], atol=1e-6)
    assert all((np.diff(having) > 0).all() for _, having in full.found)


@given(seed=seeds, profile=profiles)
def test_the_vector_arm_is_cosine_with_neighbours(seed: int, profile: Profile) -> None:
    dice, partitions = worlds(seed)
    query = unit(dice)
    bank = bank_of(partitions, profile)
    plain, blended = arms.meaning(bank, query, profile)
    assert by_no(bank, blended) == pytest.approx(meaning(partitions, query, profile), abs=1e-5)
    assert by_no(bank, plain) == pytest.approx(
        {no: float(np.dot(row.vector, query)) for partition in partitions for no, row in partition.rows.items()},
        abs=1e-5,
    )


@given(seed=seeds)
def test_rows_that_are_not_live_count_in_no_way(seed: int) -> None:
    dice, partitions = worlds(seed)
    asked = question(dice)
    bank = bank_of(partitions, DEFAULT)
    live = dice.random(len(bank)) < 0.7
    nos = [int(no) for partition in bank.partitions for no in partition.no]
    kept = {no for no, is_live in zip(nos, live, strict=True) if is_live}
    blanked = [
        Partition(rows={no: row if no in kept else replace(row, terms={}) for no, row in partition.rows.items()})
        for partition in partitions
    ]
    wanted = words(blanked, asked, DEFAULT)
    found = by_no(bank, arms.words(bank, asked, DEFAULT, live).score)
    total, everyone = len(kept), len(nos)
    if total == everyone:
        assert found == pytest.approx(wanted, abs=1e-5)
    else:  # the count of rows differs, and with it every idf: only what is zero can be compared
        assert {no for no, score in found.items() if score == 0} == {no for no, score in wanted.items() if score == 0}


@given(seed=seeds, share=st.sampled_from([0.0, 0.5, 1.0]))
def test_a_related_word_counts_a_share_where_the_word_itself_is_missing(seed: int, share: float) -> None:
    profile = replace(DEFAULT, related_share=share)
    dice, partitions = worlds(seed)
    bank, asked, other = bank_of(partitions, profile), question(dice), int(dice.integers(5, 45))
    one = Question(terms=asked.terms[:1])
    plain = arms.words(bank, one, profile, None).plain[:]
    both = arms.words(bank, replace(one, related={one.terms[0]: [other]}), profile, None).plain[:]
    of_other = arms.words(bank, Question(terms=[other]), profile, None).plain[:]
    lacks = (plain == 0) & (of_other > 0)
    np.testing.assert_array_equal(both[~lacks], plain[~lacks])
    if lacks.any() and plain.any():
        np.testing.assert_allclose(both[lacks], share * of_other[lacks], rtol=1e-5)
