"""One partition in memory against a plain one, under random changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.reference import WIDTH, Partition, Row, index_of, random_rows
from wellworn.core.values import KINDS, STATES
from wellworn.search import partition as partition_module
from wellworn.search import postings as postings_module
from wellworn.search.partition import NONE, PartitionIndex, few_of
from wellworn.search.profiles import PROFILES

WEIGHTS = (0.6, 0.4)
PROFILE = PROFILES["default"]

unit = st.sampled_from([tuple(float(x) for x in np.eye(WIDTH)[n]) for n in range(WIDTH)] + [(0.0,) * WIDTH, ()])
texts = st.fixed_dictionaries(
    {
        "terms": st.dictionaries(st.integers(1, 6), st.integers(1, 3), max_size=4),
        "vector": unit,
        "traits": st.integers(0, 7),
        "speaker": st.integers(-5, 5),
        "chars": st.integers(1, 500),
    }
)
numbers = st.fixed_dictionaries(
    {
        "at": st.integers(0, 100),
        "valid_from": st.integers(0, 100),
        "valid_to": st.none() | st.integers(101, 200),
        "confidence": st.sampled_from([0.0, 0.5, 1.0]),
        "usage": st.integers(0, 20),
        "repeats": st.integers(0, 5),
        "kind": st.sampled_from(KINDS),
        "state": st.sampled_from(STATES),
    }
)
change = st.tuples(
    st.lists(st.tuples(st.integers(-1, 2), texts, numbers), max_size=4),  # new rows and their threads
    st.lists(st.tuples(st.integers(0, 100), texts), max_size=2),  # rows with a new text
    st.lists(st.tuples(st.integers(0, 100), numbers), max_size=2),  # rows with new numbers
    st.lists(st.integers(0, 100), max_size=3),  # rows gone
)


def assert_same(index: PartitionIndex, partition: Partition) -> None:
    """Every row, neighbour, posting and norm of the quick index is that of the plain one."""
    alive = {int(index.no[row]): int(row) for row in np.flatnonzero(index.alive)}
    assert set(alive) == set(partition.rows)
    filled = Partition(rows={n: replace(r, vector=r.vector or (0.0,) * WIDTH) for n, r in partition.rows.items()})
    for no, row in alive.items():
        wanted = partition.rows[no]
        assert index.rows_of([no]) == [row]
        assert KINDS[index.kind[row]] == wanted.kind
        assert STATES[index.state[row]] == wanted.state
        assert (index.seq[row], index.at[row], index.valid_from[row]) == (wanted.seq, wanted.at, wanted.valid_from)
        assert index.valid_to[row] == (NONE if wanted.valid_to is None else wanted.valid_to)
        assert (index.confidence[row], index.usage[row], index.repeats[row]) == (
            wanted.confidence,
            wanted.usage,
            wanted.repeats,
        )
        assert (index.length[row], index.chars[row], index.traits[row], index.speaker[row]) == (
            wanted.words,
            wanted.chars,
            wanted.traits,
            wanted.speaker,
        )
        held_by = [sum(term in other.terms for other in partition.rows.values()) for term in wanted.terms]
        rare = sum(count <= few_of(len(partition.rows)) for count in held_by)
        assert (index.distinct[row], index.rare[row]) == (len(wanted.terms), rare)
        assert index.vectors[row].tolist() == list(wanted.vector or (0.0,) * WIDTH)
        for name, step in (("before", -1), ("after", 1), ("before2", -2), ("after2", 2)):
            place = int(getattr(index, name)[row])
            assert (int(index.no[place]) if place >= 0 else None) == partition.beside(no, step), (name, no)
        norm = float(np.linalg.norm(filled.blend(no, WEIGHTS)))
        beside = any(partition.beside(no, step) is not None for step in (-1, 1))
        assert index.blend_norm[row] == pytest.approx((norm or 1.0) if beside else 1.0, abs=1e-5)
    for term in range(1, 8):
        rows, counts = index.postings.find(term)
        found = {int(index.no[r]): c for r, c in zip(rows.tolist(), counts.tolist(), strict=True) if index.alive[r]}
        assert found == {no: row.terms[term] for no, row in partition.rows.items() if term in row.terms}
    assert index.threaded == any(partition.beside(no, 1) is not None for no in partition.rows)
    for moment in (0, 50, 100, 150, 250):
        valid = all(
            r.state != "pruned" and r.valid_from <= moment < (r.valid_to or NONE) for r in partition.rows.values()
        )
        assert moment < index.all_valid_from or valid


@given(changes=st.lists(change, max_size=10), bulk=st.sampled_from([1, 3, 256]), fold=st.sampled_from([0, 1024]))
def test_an_index_kept_current_is_the_index_of_what_is_there(changes: list[Any], bulk: int, fold: int) -> None:
    partition, index = Partition(), PartitionIndex(1, WIDTH, WEIGHTS)
    next_no, positions = 1, [0, 0, 0]
    with patch.object(partition_module, "_BULK", bulk), patch.object(postings_module, "_SMALLEST_FOLD", fold):
        for new, rewritten, renumbered, gone in changes:
            put = []
            for thread, text, number in new:
                place = {"thread": thread, "position": positions[thread]} if thread >= 0 else {}
                positions[thread] += thread >= 0
                put.append(Row(no=next_no, **place, **text, **number))
                next_no += 1
            present = sorted(partition.rows)
            removed = {present[pick % len(present)] for pick in gone if present}
            again = {present[pick % len(present)]: text for pick, text in rewritten if present}
            other = {present[pick % len(present)]: number for pick, number in renumbered if present}
            put += [replace(partition.rows[no], **text) for no, text in again.items() if no not in removed]
            renumber = [
                replace(partition.rows[no], **number)
                for no, number in other.items()
                if no not in removed and no not in again
            ]
            index.apply(partition.change(put=put, renumber=renumber, remove=sorted(removed)))
            assert index.known_seq == partition.seq
            assert_same(index, partition)
        scratch = index_of(partition, replace(PROFILE, near_meaning=WEIGHTS))
        assert_same(scratch, partition)


def test_thousands_of_changes_with_compaction_lose_nothing() -> None:
    dice = np.random.default_rng(11)
    partition, index = Partition(), PartitionIndex(1, WIDTH, WEIGHTS)
    rows = list(random_rows(dice, 1500, threads=12))
    index.apply(partition.change(put=rows[:600]))
    for start in range(600, 1500, 30):
        gone = [int(no) for no in dice.choice(sorted(partition.rows), size=25, replace=False)]
        index.apply(partition.change(put=rows[start : start + 30], remove=gone))
    assert index._size < 1500 - 200  # dead rows were dropped on the way
    assert len(index.dead) <= max(64, index._size // 4)
    partition_now = Partition(rows=partition.rows, seq=partition.seq)
    assert_same(index, partition_now)


def test_a_removed_row_leaves_no_number_of_its_vector() -> None:
    partition, index = Partition(), PartitionIndex(1, WIDTH, WEIGHTS)
    index.apply(
        partition.change(
            put=[Row(no=1, terms={5: 1}, vector=(1.0,) * WIDTH), Row(no=2, terms={6: 1}, vector=(0.5,) * WIDTH)]
        )
    )
    index.apply(partition.change(remove=[1]))
    assert index.vectors[0].tolist() == [0.0] * WIDTH
    assert index.rows_of([1]) == []
