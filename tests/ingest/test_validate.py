"""The edge: what is good passes unchanged, what is bad is named."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellworn import InvalidInput, Scope
from wellworn.ingest.validate import (
    Draft,
    as_time,
    check,
    checked_fraction,
    checked_k,
    checked_metadata,
    checked_query,
    checked_tags,
    checked_text,
    checked_turn_refs,
    drafts_of,
)

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
ADA = Scope(tenant="acme", user="ada")
readable = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1)


plain = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    plain | readable,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(readable, inner, max_size=3),
    max_leaves=8,
)


@given(readable)
def test_readable_text_passes_as_it_is(text: str) -> None:
    if text.strip():
        assert checked_text("text", text) == text == checked_query(text)
    else:
        with pytest.raises(InvalidInput, match="empty"):
            checked_text("text", text)


@given(st.text(), st.integers(0, 20))
def test_a_lone_surrogate_is_named_with_its_place(text: str, place: int) -> None:
    clean = text.replace("\x00", "")[:place]
    with pytest.raises(InvalidInput, match=f"surrogate at position {len(clean)}"):
        checked_text("text", clean + "\ud800")


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


@given(json_values)
def test_any_json_value_survives_as_metadata(value: object) -> None:
    assert checked_metadata({"value": value}) == {"value": value}


def test_metadata_is_a_copy() -> None:
    mine = {"list": [1]}
    kept = checked_metadata(mine)
    mine["list"].append(2)
    assert kept == {"list": [1]}


def test_tags_lose_repeats_and_spaces_but_not_their_order() -> None:
    assert checked_tags([" b ", "a", "b", "a"]) == ["b", "a"]
    assert checked_tags(tag for tag in ("x", "y")) == ["x", "y"]
    assert len(checked_tags([str(n) for n in range(64)])) == 64


@pytest.mark.parametrize("good", [0, 1, 0.5, 1.0, 0.0])
def test_fractions_from_0_to_1_pass(good: float) -> None:
    assert checked_fraction("confidence", good) == float(good)


def test_k_and_turn_numbers_pass_within_their_bounds() -> None:
    assert [checked_k(k) for k in (1, 10_000)] == [1, 10_000]
    assert checked_turn_refs([0, 2**31 - 1]) == [0, 2**31 - 1]
    assert checked_turn_refs(range(3)) == [0, 1, 2]


def test_a_draft_is_valid_from_when_it_happened_but_never_from_the_future() -> None:
    past, future = NOON - timedelta(days=9), NOON + timedelta(days=9)
    assert check(Draft(text="x", at=past), ADA, NOON).valid_from == past
    assert check(Draft(text="x", at=future), ADA, NOON).valid_from == NOON
    assert check(Draft(text="x", at=future), ADA, NOON).at == future
    assert check(Draft(text="x", at=past, valid_from=future), ADA, NOON).valid_from == future
    assert check(Draft(text="x"), ADA, NOON).at == NOON


def test_an_end_must_lie_after_the_beginning() -> None:
    for valid_to in (NOON, NOON - timedelta(days=1)):
        with pytest.raises(InvalidInput, match="valid_to"):
            check(Draft(text="x", valid_from=NOON, valid_to=valid_to), ADA, NOON)
    assert check(Draft(text="x", valid_from=NOON, valid_to=NOON + timedelta(microseconds=1)), ADA, NOON).valid_to


def test_items_become_drafts_with_the_common_keywords_below_their_own() -> None:
    drafts = drafts_of(["a", {"text": "b", "kind": "fact"}], {"kind": "summary", "tags": ["x"]})
    assert [(draft.text, draft.kind, draft.tags) for draft in drafts] == [("a", "summary", ["x"]), ("b", "fact", ["x"])]
