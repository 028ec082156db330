"""The ledger of model calls in memory: a list, added up on request."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from wellworn.store.port import Call, Spent


def spent(
    calls: Sequence[Call], tenant: str | None, *, since: datetime | None, session: str | None, by: Sequence[str]
) -> list[Spent]:
    """Totals by group; without a group one, of zeros when nothing was called."""
    groups: dict[tuple[str, ...], list[Call]] = {} if by else {(): []}
    for call in calls:
        if tenant in (None, call.tenant) and session in (None, call.session) and (since is None or call.at >= since):
            groups.setdefault(tuple(_value(call, name) for name in by), []).append(call)
    return [_total(key, groups[key]) for key in sorted(groups)]


def _value(call: Call, name: str) -> str:
    return call.at.astimezone(UTC).date().isoformat() if name == "day" else str(getattr(call, name))


def _total(key: tuple[str, ...], calls: Sequence[Call]) -> Spent:
    return Spent(
        key=key,
        calls=len(calls),
        failed=sum(not call.ok for call in calls),
        input_tokens=sum(call.input_tokens for call in calls),
        output_tokens=sum(call.output_tokens for call in calls),
        usd=sum((call.usd for call in calls), start=0.0),
        seconds=sum((call.seconds for call in calls), start=0.0),
    )
