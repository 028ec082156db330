"""The edge: what is good passes unchanged, what is bad is named."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellworn import Scope
from wellworn.ingest.validate import Draft, as_time, check, checked_metadata, checked_tags

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
ADA = Scope(tenant="acme", user="ada")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("2026-05-01", datetime(2026, 5, 1, tzinfo=UTC)),
        (" 2026-05-01T09:30 ", datetime(2026, 5, 1, 9, 30, tzinfo=UTC)),
        ("2026-05-01T09:30:00+02:00", datetime(2026, 5, 1, 7, 30, tzinfo=UTC)),
        ("2026-05-01T09:30Z", datetime(2026, 5, 1, 9, 30, tzinfo=UTC)),
        (date(2026, 5, 1), datetime(2026, 5, 1, tzinfo=UTC)),
        (datetime(2026, 5, 1, 9), datetime(2026, 5, 1, 9, tzinfo=UTC)),
        (datetime(2026, 5, 1, 9, tzinfo=timezone(timedelta(hours=9))), datetime(2026, 5, 1, tzinfo=UTC)),
        (None, None),
    ],
)
def test_moments_are_read_as_utc(given: object, expected: datetime | None) -> None:
    moment = as_time("at", given)  # type: ignore[arg-type]
    assert moment == expected
    assert moment is None or moment.utcoffset() == timedelta(0)


@given(st.datetimes())
def test_a_moment_survives_its_own_words(moment: datetime) -> None:
    assert as_time("at", moment.isoformat()) == moment.replace(tzinfo=UTC)


def test_metadata_is_a_copy_and_tags_lose_repeats_and_spaces_but_not_their_order() -> None:
    mine = {"list": [1]}
    kept = checked_metadata(mine)
    mine["list"].append(2)
    assert kept == {"list": [1]}
    assert checked_tags([" b ", "a", "b", "a"]) == ["b", "a"]
    assert checked_tags(str(n) for n in range(64)) == [str(n) for n in range(64)]


def test_a_draft_is_valid_from_when_it_happened_but_never_from_the_future() -> None:
    past, future = NOON - timedelta(days=9), NOON + timedelta(days=9)
    assert check(Draft(text="x", at=past), ADA, NOON).valid_from == past
    assert check(Draft(text="x", at=future), ADA, NOON).valid_from == NOON
    assert check(Draft(text="x", at=future), ADA, NOON).at == future
    assert check(Draft(text="x", at=past, valid_from=future), ADA, NOON).valid_from == future
    assert check(Draft(text="x"), ADA, NOON).at == NOON
