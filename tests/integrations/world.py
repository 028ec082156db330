"""A clock to turn by hand, and what every answer is made of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class HandClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = datetime(2024, 5, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, minutes: float) -> None:
        self.now += timedelta(minutes=minutes)
