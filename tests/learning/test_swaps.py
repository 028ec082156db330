"""Neighbours that change places, and what it tells of those who cite by place."""

from __future__ import annotations

import numpy as np
import pytest

from wellworn.learning.example import Example
from wellworn.learning.guard import Guard
from wellworn.learning.swaps import FROM, LEVELS, lot, pairs, swap_of, swapped, with_swap, without_swap


def test_every_other_pair_changes_places() -> None:
    assert swapped(5, None) == [0, 1, 2, 3, 4]
    assert swapped(5, 0) == [1, 0, 3, 2, 4]
    assert swapped(5, 1) == [0, 2, 1, 4, 3]
    assert [swapped(n, 0) for n in range(3)] == [[], [0], [1, 0]]
    assert [*pairs(5, 1)] == [1, 3]


def test_a_logged_level_says_which() -> None:
    for level in ("base", "prior", "person"):
        for first in (None, 0, 1):
            logged = with_swap(level, first)
            assert logged in LEVELS
            assert (swap_of(logged), without_swap(logged)) == (first, level)


def test_lots_are_drawn_in_the_share_asked_for_and_the_same_each_time() -> None:
    drawn = [lot(0.2, FROM + n, ["bee"]) for n in range(2000)]
    assert drawn == [lot(0.2, FROM + n, ["bee"]) for n in range(2000)]
    assert 0.15 < sum(first is not None for first in drawn) / 2000 < 0.25
    assert {*drawn} == {None, 0, 1}
    assert {lot(0.0, FROM + n, "q") for n in range(100)} == {None}
    assert {lot(1.0, n, "q") for n in range(FROM)} == {None}


def test_a_pair_tells_something_when_one_of_it_was_cited() -> None:
    def by_place(*cited: int) -> list[bool]:
        flags = np.array(cited, dtype=np.bool_)
        return Example(base=np.zeros(5), features=np.zeros((5, 1)), shown=5, cited=flags, swapped=(0, 2)).by_place

    assert by_place(1, 0, 0, 0, 0) == [True]  # the one that stood first, though the next one ranked better
    assert by_place(0, 1, 1, 0, 0) == [False, True]
    assert by_place(1, 1, 0, 0, 1) == []


def seen(guard: Guard, first: list[bool]) -> Guard:
    for one in first:
        guard = guard.see((0.3, 0.0), [one])
    return guard


def test_who_cites_by_place_is_not_trusted() -> None:
    never = seen(Guard(), [True] * 40)
    assert (never.positional, never.trusted, never.lost) == (True, False, False)
    assert "place" in never.distrust()
    trusted = seen(Guard(), [True, False, False] * 20)
    assert (trusted.trusted, trusted.positional, trusted.distrust()) == (True, False, "")
    turned = seen(trusted, [True] * 12)
    assert (turned.positional, turned.trusted, turned.lost) == (True, False, True)
    back = seen(turned, [False] * 4)
    assert (back.positional, back.trusted, back.lost) == (False, True, False)


@pytest.mark.parametrize(("better", "flagged"), [(0.6, False), (0.55, False), (0.22, True), (0.0, True)])
def test_content_is_told_from_place(better: float, flagged: bool) -> None:
    dice = np.random.default_rng(0)
    found = []
    for _ in range(20):
        guard, ever = Guard(), False
        for first in (dice.uniform(size=60) >= better).tolist():
            guard = guard.see((0.3, 0.0), [first])
            ever = ever or guard.positional
        found.append(ever)
    assert sum(found) >= 18 if flagged else sum(found) <= 1
