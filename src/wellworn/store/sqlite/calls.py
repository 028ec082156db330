"""The ledger of model calls in the SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from wellworn.core.clock import to_micros
from wellworn.store.port import Call, Spent

_GROUPS = {
    "tenant": "tenant",
    "purpose": "purpose",
    "model": "model",
    "day": "strftime('%Y-%m-%d', at / 86400000000 * 86400, 'unixepoch')",
}


def add(db: sqlite3.Connection, calls: Sequence[Call]) -> None:
    db.executemany(
        "INSERT INTO calls (at, tenant, purpose, model, session, input_tokens, output_tokens, usd, seconds, ok) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                to_micros(call.at),
                call.tenant,
                call.purpose,
                call.model,
                call.session,
                call.input_tokens,
                call.output_tokens,
                float(call.usd),
                float(call.seconds),
                call.ok,
            )
            for call in calls
        ],
    )


def spent(
    db: sqlite3.Connection, tenant: str | None, *, since: datetime | None, session: str | None, by: Sequence[str]
) -> list[Spent]:
    """Totals by group; without a group one row, of zeros when nothing was called."""
    conditions = {"tenant = ?": tenant, "at >= ?": None if since is None else to_micros(since), "session = ?": session}
    given: dict[str, Any] = {text: value for text, value in conditions.items() if value is not None}
    groups = [_GROUPS[name] for name in by]
    rows = db.execute(
        f"SELECT {''.join(f'{group}, ' for group in groups)}"
        "count(*), count(*) - coalesce(sum(ok), 0), coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0), "
        "total(usd), total(seconds) FROM calls"
        f"{' WHERE ' if given else ''}{' AND '.join(given)}"
        f"{f' GROUP BY {_places(groups)} ORDER BY {_places(groups)}' if groups else ''}",
        tuple(given.values()),
    )
    return [_spent(tuple(row[: len(groups)]), *row[len(groups) :]) for row in rows]


def forget_sessions(db: sqlite3.Connection, partition_no: int, session_ids: Sequence[str]) -> None:
    """Take the names of sessions that are gone out of the tenant's calls; what they cost stays."""
    db.executemany(
        "UPDATE calls SET session = NULL WHERE tenant = (SELECT tenant FROM partitions WHERE no = ?) AND session = ?",
        [(partition_no, session_id) for session_id in session_ids],
    )


def _places(groups: Sequence[str]) -> str:
    return ", ".join(str(place) for place in range(1, len(groups) + 1))


def _spent(
    key: tuple[str, ...], calls: int, failed: int, input_tokens: int, output_tokens: int, usd: float, seconds: float
) -> Spent:
    return Spent(
        key=key,
        calls=calls,
        failed=failed,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        usd=usd,
        seconds=seconds,
    )
