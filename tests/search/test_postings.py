"""The inverted index against a dictionary."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wellworn.search import postings as module
from wellworn.search.postings import Postings

TERMS = [1, 2, 3, 2**63 - 1, 2**63, 2**64 - 1]
row = st.dictionaries(st.sampled_from(TERMS), st.integers(1, 65_535), max_size=len(TERMS))
step = st.one_of(
    st.tuples(st.just("add"), st.lists(row, min_size=1, max_size=1)),
    st.tuples(st.just("extend"), st.lists(row, max_size=5)),
    st.tuples(st.just("drop"), st.lists(row, max_size=3)),
)
Naive = dict[int, dict[int, int]]


def assert_same(quick: Postings, naive: Naive) -> None:
    for term in [*TERMS, 0, 77]:
        rows, counts = quick.find(term)
        assert rows.dtype == np.int32
        assert counts.dtype == np.float32
        assert dict(zip(rows.tolist(), counts.tolist(), strict=True)) == {
            number: float(terms[term]) for number, terms in naive.items() if term in terms
        }
        assert len(set(rows.tolist())) == len(rows)
    wanted = [77, *reversed(TERMS), 0]
    rows, counts, sizes = quick.find_all(wanted)
    found = [quick.find(term) for term in wanted]
    assert rows.tolist() == [row for one, _ in found for row in one.tolist()]
    assert counts.tolist() == [count for _, one in found for count in one.tolist()]
    assert sizes == [len(one) for one, _ in found]


@given(steps=st.lists(step, max_size=12), fold=st.sampled_from([0, 2, 1024]), dropped=st.integers(0, 3))
def test_postings_hold_what_was_put_in(steps: list[tuple[str, list[dict[int, int]]]], fold: int, dropped: int) -> None:
    quick, size = Postings(), 0
    naive: Naive = {}
    with patch.object(module, "_SMALLEST_FOLD", fold):
        for action, rows in steps:
            if action == "drop":  # every so many rows, and the rest moves together
                keep = [number for number in range(size) if number % 4 != dropped]
                new_row = np.full(size + 1, -1, dtype=np.int32)
                new_row[keep] = np.arange(len(keep), dtype=np.int32)
                quick = quick.renumbered(new_row)
                naive = {int(new_row[number]): terms for number, terms in naive.items() if new_row[number] >= 0}
                size = len(keep)
            elif action == "add":
                quick.add(size, sorted(rows[0]), [rows[0][term] for term in sorted(rows[0])])
                naive[size] = rows[0]
                size += 1
            else:
                quick.extend(
                    range(size, size + len(rows)),
                    [np.array(sorted(r), dtype="<u8").tobytes() for r in rows],
                    [np.array([r[t] for t in sorted(r)], dtype="<u2").tobytes() for r in rows],
                )
                naive |= dict(enumerate(rows, size))
                size += len(rows)
            assert_same(quick, naive)


def test_folding_thousands_of_rows_loses_none() -> None:
    dice = np.random.default_rng(3)
    quick = Postings()
    naive: Naive = {}
    for number in range(3000):
        terms = {int(t): int(dice.integers(1, 9)) for t in dice.choice([*TERMS[:3], 77], size=2, replace=False)}
        quick.add(number, sorted(terms), [terms[t] for t in sorted(terms)])
        naive[number] = terms
    assert_same(quick, naive)
