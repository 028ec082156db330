"""From which score on a question earns a recursive recall, learned from what became of recalls on either side.

For each shape, scores fall into bands of a tenth, and each band has two means with their uncertainty:

    worth of a recursive recall = reward - 0.02 - 0.05 · whole seconds it took      worth of a plain one = its reward

A band is given to the side whose worth is higher by 2.5 standard errors (99.4 % per look), after at least eight
outcomes of each, and is taken back by the mean. What a score earns then moves band by band from where the settings put
it, by two bands at most, and only past bands that are given. Knows neither stores nor plans.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from wellworn.learning.guard import Evidence
from wellworn.search.steps.cues import Shape

Side = Literal["", "recursive", "plain"]
"""Whom a band is given to; nobody while nothing is proven."""

SHAPES: tuple[Shape, ...] = get_args(Shape)
BANDS = 10
"""Of equal width, from 0 to 1."""
REACH = 0.2
"""How far from the threshold of the settings learning may move it."""
TRIES = 8
"""Outcomes of either side before any verdict on a band."""
Z = 2.5
"""Standard errors by which a side must be worth more."""
TOLL, TOLL_PER_SECOND = 0.02, 0.05
"""What a recursive recall must be better by for the time it takes: two to four times a plain one's, and more where a
model plans. Whole seconds, so that a busy machine does not change what is learned."""
YOUNG, TIMES_YOUNG, TIMES_LOST = 20, 4.0, 0.25
"""So many recursive outcomes of a band come at four times the rate of tries; a band that plain search has won is tried
at a quarter of it."""
_TINY = 1e-9


@dataclass(frozen=True, kw_only=True)
class Band:
    """What is known of the questions of one shape and a tenth of the scores."""

    recursive: Evidence = field(default_factory=Evidence)
    plain: Evidence = field(default_factory=Evidence)
    to: Side = ""

    def learned(self, worth: float, *, recursive: bool) -> Band:
        after = (
            replace(self, recursive=self.recursive.add(worth))
            if recursive
            else replace(self, plain=self.plain.add(worth))
        )
        return replace(after, to=after._verdict())

    def _verdict(self) -> Side:
        one, two = self.recursive, self.plain
        if round(one.n) < TRIES or round(two.n) < TRIES:  # evidence fades a little
            return ""
        apart, bound = one.mean - two.mean, Z * math.hypot(one.error, two.error)
        if abs(apart) > bound:
            return "recursive" if apart > 0 else "plain"
        turned = (self.to == "recursive" and apart < 0) or (self.to == "plain" and apart > 0)
        return "" if turned else self.to

    def rate(self, explore: float) -> float:
        """The share of plain questions of this band that is tried."""
        times = TIMES_LOST if self.to == "plain" else TIMES_YOUNG if self.recursive.n < YOUNG else 1.0
        return min(0.5, explore * times)


@dataclass(frozen=True, kw_only=True)
class Routing:
    """The bands of a tenant. Empty: everything is as the settings say."""

    bands: Mapping[Shape, Mapping[int, Band]] = field(default_factory=dict)

    def band(self, shape: Shape, score: float) -> Band:
        return self._at(shape, band_of(score))

    def _at(self, shape: Shape, number: int) -> Band:
        return self.bands.get(shape, {}).get(number, Band())

    def learned(self, shape: Shape, score: float, reward: float, *, recursive: bool, seconds: float) -> Routing:
        """After one reward that counts."""
        worth = reward - (TOLL + TOLL_PER_SECOND * math.floor(seconds) if recursive else 0.0)
        number = band_of(score)
        band = self._at(shape, number).learned(worth, recursive=recursive)
        return Routing(bands={**self.bands, shape: {**self.bands.get(shape, {}), number: band}})

    def starts(self, shape: Shape, threshold: float) -> float:
        """The score from which on questions of a shape are recursive. A threshold above 1 stays: it is never."""
        if threshold > 1 or shape not in self.bands:
            return threshold
        at, number = threshold, _below(threshold)
        while number >= 0 and threshold - number / BANDS <= REACH + _TINY and self._at(shape, number).to == "recursive":
            at, number = number / BANDS, number - 1
        if at < threshold:
            return at
        number = band_of(threshold)
        while number < BANDS and (number + 1) / BANDS - threshold <= REACH + _TINY:
            if self._at(shape, number).to != "plain":
                break
            number += 1
            at = number / BANDS
        return at

    def near(self, shape: Shape, score: float, threshold: float) -> bool:
        """Whether a plain question is in the band next to those that are recursive, where one may be tried."""
        starts = self.starts(shape, threshold)
        edge = _below(starts) / BANDS
        return edge <= score < starts and threshold <= 1 and threshold - edge <= REACH + _TINY


def band_of(score: float) -> int:
    return max(0, min(BANDS - 1, math.floor(score * BANDS + _TINY)))


def _below(score: float) -> int:
    """The band that ends at a score or holds it."""
    return math.ceil(score * BANDS - _TINY) - 1


def plain_routing(routing: Routing) -> dict[str, Any]:
    """As JSON keeps it: per shape and band the numbers of both means and the side."""
    return {
        shape: {
            str(number): [*_numbers(band.recursive), *_numbers(band.plain), band.to] for number, band in bands.items()
        }
        for shape, bands in routing.bands.items()
    }


def routing_of(value: dict[str, Any]) -> Routing:
    """The bands in such a value; those with numbers that are none are left out."""
    bands: dict[Shape, dict[int, Band]] = {}
    for shape in SHAPES:
        for number, (*numbers, to) in value.get(shape, {}).items():
            if len(numbers) == 6 and all(math.isfinite(one) for one in numbers) and to in get_args(Side):
                one, two = _evidence(numbers[:3]), _evidence(numbers[3:])
                bands.setdefault(shape, {})[int(number)] = Band(recursive=one, plain=two, to=to)
    return Routing(bands=bands)


def _numbers(seen: Evidence) -> tuple[float, float, float]:
    return seen.n, seen.total, seen.squares


def _evidence(numbers: list[float]) -> Evidence:
    n, total, squares = numbers
    return Evidence(n=n, total=total, squares=squares)
