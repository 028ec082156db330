"""Months and days that queries name, and words that only look like them."""

from __future__ import annotations

import pytest

from wellworn.ingest.dates import NamedDate, named_dates
from wellworn.ingest.terms import read_question, words


def named(query: str) -> list[NamedDate]:
    return [*named_dates(query, words(query))]


@pytest.mark.parametrize(
    ("query", "dates"),
    [
        ("What happened in May?", [(5, None, None)]),
        ("what happened in may", [(5, None, None)]),
        ("last March, I think", [(3, None, None)]),
        ("the trip in mid-May", [(5, None, None)]),
        ("what did we do in January 2023?", [(1, None, 2023)]),
        ("the october meeting", [(10, None, None)]),
        ("on 8 May, 2023", [(5, 8, 2023)]),
        ("on the 8th of May 2023", [(5, 8, 2023)]),
        ("on May 8th", [(5, 8, None)]),
        ("on may 31", [(5, 31, None)]),
        ("on December 1,2023", [(12, 1, 2023)]),
        ("they met on Aug 15th", [(8, 15, None)]),
        ("since Sept. 2022", [(9, None, 2022)]),
        ("on 2023-05-08", [(5, 8, 2023)]),
        ("in 2023-05", [(5, None, 2023)]),
        ("in March or May", [(3, None, None), (5, None, None)]),
        ("between August 11 and August 15 2023", [(8, 11, 2023), (8, 15, 2023)]),
        ("in June 2022, and in 2021?", [(6, None, 2022)]),
        ("June, of 2021 or 2022", [(6, None, 2021), (6, None, 2022)]),
        ("in June, June and june", [(6, None, None)]),
    ],
)
def test_a_month_or_day_that_is_named(query: str, dates: list[tuple[int, int | None, int | None]]) -> None:
    assert named(query) == dates
    assert read_question(query).dates == tuple(NamedDate(month=month, day=day, year=year) for month, day, year in dates)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "May I ask who may come?",
        "and may it stay so",
        "What did May say?",
        "the march on Washington",
        "march on",
        "Jan told me",
        "Mar del Plata",
        "in 2023",
        "a 2023 model",
        "on the 8th",
        "on Friday",
        "decisive",
        "20 mayors",
        "marching",
        "3 to 5 apples",
        "may 80 people come",
        "call 2023-13",
        "version 19-05",
    ],
)
def test_what_only_looks_like_a_date(query: str) -> None:
    assert named(query) == []
