"""Expressions of time, resolved against Wednesday 2024-05-01."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellworn.reflection.rules.dates import resolve

from .dialogue import WEDNESDAY


@pytest.mark.parametrize(
    ("said", "resolved"),
    [
        ("I left the day before yesterday", "I left the day before yesterday (2024-04-29)"),
        ("I leave the day after tomorrow", "I leave the day after tomorrow (2024-05-03)"),
        ("I slept badly last night", "I slept badly last night (2024-04-30)"),
        ("last Friday we met", "last Friday (2024-04-26) we met"),
        ("last Wednesday we met", "last Wednesday (2024-04-24) we met"),
        ("this Friday I fly", "this Friday (2024-05-03) I fly"),
        ("next Friday I fly", "next Friday (2024-05-10) I fly"),
        ("I fly on Monday", "I fly on Monday (2024-05-06)"),
        ("I flew on Monday", "I flew on Monday (2024-04-29)"),
        ("I swim every Monday", "I swim every Monday"),
        ("last weekend was long", "last weekend (2024-04-27 to 2024-04-28) was long"),
        ("this weekend I rest", "this weekend (2024-05-04 to 2024-05-05) I rest"),
        ("next week is full", "next week (2024-05-06 to 2024-05-12) is full"),
        ("last month was dull", "last month (2024-04) was dull"),
        ("next year I retire", "next year (2025) I retire"),
        ("a couple of days ago", "a couple of days ago (2024-04-29)"),
        ("2 years ago I quit", "2 years ago (2022) I quit"),
        ("in six weeks", "in six weeks (2024-06-10 to 2024-06-16)"),
        ("in a month", "in a month (2024-06)"),
        ("three days from now", "three days from now (2024-05-04)"),
        ("on June 5th", "on June 5th (2024-06-05)"),
        ("on June 5, 2021", "on June 5, 2021"),
        ("on 2021-06-05", "on 2021-06-05"),
        ("in February I will ski", "in February (2025-02) I will ski"),
        ("in February I skied", "in February (2024-02) I skied"),
        ("I may go, we march on", "I may go, we march on"),
        ("on February 31", "on February 31"),
        ("in 999 years", "in 999 years (3023)"),
        ("room 2024 is mine", "room 2024 is mine"),
    ],
)
def test_the_date_is_put_behind_the_words(said: str, resolved: str) -> None:
    assert resolve(said, WEDNESDAY).text == resolved


@pytest.mark.parametrize("at", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, tzinfo=UTC)])
@pytest.mark.parametrize(
    "said",
    [
        "999 years ago",
        "in 999 years",
        "last year",
        "next year",
        "next week",
        "yesterday",
        "for the next 900 years",
        "tomorrow",
        "in 2024",
    ],
)
def test_a_date_outside_the_calendar_is_left_alone(at: datetime, said: str) -> None:
    assert resolve(said, at).text.startswith(said)


@given(st.text(max_size=80), st.datetimes(timezones=st.just(UTC)))
def test_any_text_at_any_time_keeps_its_words(text: str, at: datetime) -> None:
    assert resolve(text, at).text.replace(" ", "").startswith(text[:1].replace(" ", ""))
