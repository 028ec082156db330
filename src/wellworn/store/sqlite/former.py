"""A file of recollect 0.1, wellworn's former name, becomes a wellworn file: everything in it stays.

Entries, links, versions, sessions and turns lie in the same tables, of which some names changed. What had tables of its
own (the audit log, recalls, outcomes, learned states, model calls, jobs, tasks) becomes records. Runs in the transaction
of its caller, so a crash leaves the old file.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC
from typing import Any

from wellworn.core.clock import from_micros

SHELVED = ("entries", "index_records", "entry_tags", "sessions", "removed", "recalls", "policies", "jobs", "dossiers")
"""Tables with the column `shelf`, the former word for a partition."""
DROPPED = ("outcomes", "recalls", "policies", "calls", "jobs", "dossier_entries", "dossiers", "audit", "migrations")
"""Tables whose rows become records; those that refer to others come first."""
STALE_INDEX = "stale_index"
"""The table that says, until they are written anew, that the index records are those of that release."""
_INSERT = """
INSERT INTO records (no, tenant, partition, kind, key, state, session, due_at, created_at, updated_at, names, body, blob,
                     rows)
VALUES (:no, :tenant, :partition, :kind, :key, :state, :session, :due_at, :at, :updated_at, :names, :body, :blob, :rows)
"""


def convert(db: sqlite3.Connection, schema: Iterable[str]) -> None:
    """Bring a file of recollect 0.1 to the first schema of wellworn, whose statements are given."""
    for kind, name in db.execute("SELECT type, name FROM sqlite_master WHERE sql IS NOT NULL").fetchall():
        if kind in ("index", "trigger"):
            db.execute(f"DROP {kind} {name}")
    db.execute("ALTER TABLE shelves RENAME TO partitions")
    for table in SHELVED:
        db.execute(f"ALTER TABLE {table} RENAME COLUMN shelf TO partition")
    there = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()}
    for statement in schema:
        words = statement[statement.index("CREATE") :].split()
        if words[1] != "TABLE" or words[2] not in there:
            db.execute(statement)
    # Outcomes first, under their own numbers: learned states refer to them.
    for records in (_outcomes, _recalls, _policies, _calls, _sums, _jobs, _dossiers, _events):
        for record in records(db):
            _put(db, **record)
    for table in DROPPED:
        db.execute(f"DROP TABLE {table}")
    db.execute(f"CREATE TABLE {STALE_INDEX} (no INTEGER)")


def _put(db: sqlite3.Connection, *, entries: Iterable[int] = (), **given: Any) -> None:  # columns of records
    empty = {"no": None, "partition": None, "key": None, "state": "", "session": None, "due_at": None, "names": "[]"}
    record: dict[str, Any] = {**empty, "body": "{}", "blob": None, "rows": None, **given}
    made = db.execute(_INSERT, {"updated_at": record["at"], **record}).lastrowid
    db.executemany("INSERT OR IGNORE INTO record_entries VALUES (?, ?)", [(made, entry) for entry in entries])


def _outcomes(db: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    for no, tenant, partition, recall, kind, value, at in db.execute(
        "SELECT o.no, s.tenant, r.partition, r.id, o.kind, o.value, o.at FROM outcomes o "
        "JOIN recalls r ON r.no = o.recall JOIN partitions s ON s.no = r.partition ORDER BY o.no"
    ):
        body = _dumps({"recall": recall, "value": json.loads(value)})
        yield {
            "no": no,
            "tenant": tenant,
            "partition": partition,
            "kind": "outcome",
            "key": f"{recall} {kind}",
            "state": kind,
            "body": body,
            "at": at,
        }


def _recalls(db: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    """See `learning.records`: the words are the body, a line of JSON and the numbers the blob."""
    for tenant, partition, key, at, query, profile, level, shown, nos, base, names, features in db.execute(
        "SELECT s.tenant, r.partition, r.id, r.at, r.query, r.profile, r.level, r.shown, r.nos, r.base, r.names, "
        "r.features FROM recalls r JOIN partitions s ON s.no = r.partition ORDER BY r.no"
    ):
        how = json.dumps([profile, level, shown, json.loads(names)]).encode()
        yield {
            "tenant": tenant,
            "partition": partition,
            "kind": "recall",
            "key": key,
            "body": _dumps({"query": query}) if query else "{}",
            "rows": nos[: 8 * shown] if query and shown else None,
            "blob": how + b"\n" + nos + base + features,
            "at": at,
        }


def _policies(db: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    for tenant, partition, profile, state in db.execute("SELECT tenant, partition, profile, state FROM policies"):
        yield {
            "tenant": tenant,
            "partition": partition,
            "kind": "policy",
            "key": profile or "(settings)",
            "blob": state.encode(),
            "at": 0,
        }


_CALLS = (
    "SELECT tenant, at, purpose, model, session, input_tokens, output_tokens, usd, seconds, ok FROM calls ORDER BY no"
)


def _calls(db: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    for tenant, at, purpose, model, _, read, written, usd, seconds, ok in db.execute(_CALLS):
        call = {"purpose": purpose, "model": model, "input_tokens": read, "output_tokens": written}
        body = _dumps({**call, "usd": usd, "seconds": seconds, "ok": bool(ok)})
        yield {"tenant": tenant, "kind": "call", "body": body, "at": at}


def _sums(db: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    """What each tenant, day and session cost; see `models.ledger`."""
    tokens: dict[tuple[str, str, str | None], int] = defaultdict(int)
    dollars: dict[tuple[str, str, str | None], float] = defaultdict(float)
    last: dict[str, int] = {}
    for tenant, at, _, _, session, read, written, usd, _, _ in db.execute(_CALLS):
        last[tenant] = at
        keys: list[tuple[str, str | None]] = [("tenant", None), (f"day {from_micros(at).astimezone(UTC).date()}", None)]
        for key, of in [*keys, *([] if session is None else [(f"session {session}", session)])]:
            tokens[tenant, key, of] += read + written
            dollars[tenant, key, of] += usd
    for (tenant, key, session), total in tokens.items():
        body = _dumps({"tokens": total, "usd": dollars[tenant, key, session]})
        yield {"tenant": tenant, "kind": "spent", "key": key, "session": session, "body": body, "at": last[tenant]}


def _jobs(db: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    for (
        tenant,
        partition,
        id,
        kind,
        key,
        payload,
        state,
        attempts,
        due_at,
        lease,
        worker,
        error,
        result,
        at,
        updated,
    ) in db.execute(
        "SELECT s.tenant, j.partition, j.id, j.kind, j.key, j.payload, j.state, j.attempts, j.due_at, j.lease_until, "
        "j.worker, j.error, j.result, j.created_at, j.updated_at FROM jobs j JOIN partitions s ON s.no = j.partition "
        "ORDER BY j.no"
    ):
        about = json.loads(payload)
        body = {"id": id, "kind": kind, "key": key, "payload": about, "attempts": attempts, "due_at": due_at}
        body |= {"worker": worker, "error": error, "result": json.loads(result)}
        yield {
            "tenant": tenant,
            "partition": partition,
            "kind": "job",
            "key": f"{kind} {key}",
            "state": state,
            "session": about.get("session"),
            "due_at": {"queued": due_at, "running": lease}.get(state),
            "body": _dumps(body),
            "at": at,
            "updated_at": updated,
        }


def _dossiers(db: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    named: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for dossier, entry, id in db.execute(
        "SELECT d.dossier, e.no, e.id FROM dossier_entries d JOIN entries e ON e.no = d.entry ORDER BY d.dossier, d.place"
    ):
        named[dossier].append((entry, id))
    for no, tenant, partition, kind, key, state, body, session, at, updated in db.execute(
        "SELECT d.no, s.tenant, d.partition, d.kind, d.key, d.state, d.body, d.session, d.created_at, d.updated_at "
        "FROM dossiers d JOIN partitions s ON s.no = d.partition ORDER BY d.no"
    ):
        yield {
            "tenant": tenant,
            "partition": partition,
            "kind": kind,
            "key": key,
            "state": state,
            "session": session,
            "body": body,
            "names": _dumps([id for _, id in named[no]]),
            "entries": [entry for entry, _ in named[no]],
            "at": at,
            "updated_at": updated,
        }


def _events(db: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    for tenant, at, action, entry, detail in db.execute(
        "SELECT tenant, at, action, entry_id, detail FROM audit ORDER BY no"
    ):
        body = {"entry": entry} if detail == "{}" else {"entry": entry, "detail": json.loads(detail)}
        yield {"tenant": tenant, "kind": "event", "state": action, "body": _dumps(body), "at": at}


def _dumps(value: Any) -> str:  # any JSON value
    return json.dumps(value, ensure_ascii=False)
