"""Moments as callers give them: a datetime, ISO 8601 text, or None. Naive means UTC."""

from __future__ import annotations

from datetime import UTC, date, datetime, time

from wellworn.core.errors import InvalidInput

TimeLike = datetime | date | str | None


def as_time(field: str, value: TimeLike) -> datetime | None:
    """The moment in UTC, or None. Anything unreadable is an error that shows the value."""
    if value is None:
        return None
    if isinstance(value, str):
        value = _parsed(field, value)
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    if not isinstance(value, datetime):
        raise InvalidInput(field, f"must be a time, not {type(value).__name__}", "use a datetime or ISO 8601 text")
    if value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidInput(field, f"{value!r} lies outside the calendar in UTC") from None


def _parsed(field: str, text: str) -> datetime:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInput(field, f"{text[:40]!r} is not a time", "use ISO 8601, as in 2026-05-01T09:30") from None
