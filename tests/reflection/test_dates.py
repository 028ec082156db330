"""Expressions of time, counted from Wednesday 2024-05-01."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellworn.reflection.dates import with_dates

from .dialogue import WEDNESDAY


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


@given(st.text(max_size=80), st.datetimes(timezones=st.just(UTC)))
def test_any_text_at_any_time_keeps_its_words(text: str, at: datetime) -> None:
    assert with_dates(text, at).text.startswith(text[:1])


@pytest.mark.parametrize("at", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, tzinfo=UTC)])
@pytest.mark.parametrize("said", ["999 years ago", "in 999 years", "last year", "next week", "for the next 900 years"])
def test_a_date_outside_the_calendar_is_left_out(at: datetime, said: str) -> None:
    assert with_dates(said, at).text.startswith(said)
