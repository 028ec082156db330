"""Months and days that queries name, words that only look like them, and relative dates."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from wellworn.ingest.dates import NamedDate, named_dates, with_dates
from wellworn.ingest.terms import read_question, words

WEDNESDAY = datetime(2024, 5, 1, 9, tzinfo=UTC)


def named(query: str) -> list[NamedDate]:
    return [*named_dates(query, words(query))]


@pytest.mark.parametrize(
    ("query", "dates"),
    [
        ("What happened in May?", [(5, None, None)]),
        ("last March, I think", [(3, None, None)]),
        ("the trip in mid-May", [(5, None, None)]),
        ("what did we do in January 2023?", [(1, None, 2023)]),
        ("the october meeting", [(10, None, None)]),
        ("on 8 May, 2023", [(5, 8, 2023)]),
        ("on May 8th", [(5, 8, None)]),
        ("on December 1,2023", [(12, 1, 2023)]),
        ("they met on Aug 15th", [(8, 15, None)]),
        ("since Sept. 2022", [(9, None, 2022)]),
        ("on 2023-05-08", [(5, 8, 2023)]),
        ("in 2023-05", [(5, None, 2023)]),
        ("in March or May", [(3, None, None), (5, None, None)]),
        ("between August 11 and August 15 2023", [(8, 11, 2023), (8, 15, 2023)]),
        ("in June 2022, and in 2021?", [(6, None, 2022)]),
        ("June, of 2021 or 2022", [(6, None, 2021), (6, None, 2022)]),
    ],
)
def test_a_month_or_day_that_is_named(query: str, dates: list[tuple[int, int | None, int | None]]) -> None:
    assert named(query) == dates
    assert read_question(query).dates == tuple(NamedDate(month=month, day=day, year=year) for month, day, year in dates)


@pytest.mark.parametrize(
    "query",
    [
        *(
            "",
            "May I ask who may come?",
            "and may it stay so",
            "What did May say?",
            "the march on Washington",
            "Jan told me",
        ),
        *(
            "in 2023",
            "on the 8th",
            "on Friday",
            "decisive",
            "20 mayors",
            "may 80 people come",
            "call 2023-13",
            "version 19-05",
        ),
    ],
)
def test_what_only_looks_like_a_date(query: str) -> None:
    assert named(query) == []


@pytest.mark.parametrize(
    ("said", "dated"),
    [
        ("I left the day before yesterday", "I left the day before yesterday (2024-04-29)"),
        ("last Friday we met", "last Friday (2024-04-26) we met"),
        ("I fly on Monday", "I fly on Monday (2024-05-06)"),
        ("I flew on Monday", "I flew on Monday (2024-04-29)"),
        ("last weekend was long", "last weekend (2024-04-27 to 2024-04-28) was long"),
        ("next week is full", "next week (2024-05-06 to 2024-05-12) is full"),
        ("last month was dull", "last month (2024-04) was dull"),
        ("2 years ago I quit", "2 years ago (2022) I quit"),
        ("in six weeks", "in six weeks (2024-06-10 to 2024-06-16)"),
        ("next Tuesday I fly", "next Tuesday (2024-05-07) I fly"),
        # Two readings, no day, or dated already.
        ("next Friday I fly", "next Friday I fly"),
        ("I swim on Wednesday", "I swim on Wednesday"),
        ("I swim every Monday", "I swim every Monday"),
        ("yesterday (2024-04-30) it rained", "yesterday (2024-04-30) it rained"),
        ("on 3 March", "on 3 March"),
    ],
)
def test_the_date_is_put_behind_the_words(said: str, dated: str) -> None:
    assert with_dates(said, WEDNESDAY).text == dated


@pytest.mark.parametrize("at", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, tzinfo=UTC)])
@pytest.mark.parametrize("said", ["999 years ago", "in 999 years", "last year", "next week"])
def test_a_date_outside_the_calendar_is_left_out(at: datetime, said: str) -> None:
    assert with_dates(said, at).text.startswith(said)


def test_since_and_until_are_bounds() -> None:
    assert with_dates("I am off sick since Monday", WEDNESDAY).valid_from == datetime(2024, 4, 29, tzinfo=UTC)
    assert with_dates("I am away until Friday", WEDNESDAY).valid_to == datetime(2024, 5, 4, tzinfo=UTC)
    assert with_dates("I swim since last month", WEDNESDAY).valid_from == datetime(2024, 4, 1, tzinfo=UTC)
