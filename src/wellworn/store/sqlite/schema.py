"""The schema of a file: making it, and bringing a file of recollect 0.1 to it in one transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

from wellworn.core.errors import OtherFile, StoreCorrupt
from wellworn.store.sql import schema as sql

APPLICATION_ID = 0x77656C6C  # "well": tells a wellworn file from any other SQLite file
FORMER_ID = 0x7265636C  # "recl": files of recollect 0.1, the former name
FORMER_SCHEMA = 6
FORMER = -1
FIRST, VERSION = 3, 4
"""Of the schema: the first that was released, and that of today. A later release adds a step from each number in between."""

_TRIGGER = """
CREATE TRIGGER {} ON records WHEN {}
BEGIN SELECT RAISE(ABORT, 'records of events, calls, recalls and outcomes are append-only'); END;
"""
SCHEMA = (
    *sql.SCHEMA.strip().split(";\n"),
    "CREATE INDEX records_with_rows ON records (tenant) WHERE rows IS NOT NULL",
    *(_TRIGGER.format(*which) for which in sql.APPEND_ONLY.items()),
)
"""Statements one by one: `executescript` would commit the transaction they must stay in."""


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the file up to date; several processes may try at once, one wins and the others find it done."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        found = version_of(connection)
        if found == FORMER:
            convert(connection)
        elif found == 0:
            for statement in SCHEMA:
                connection.execute(statement)
        if found != VERSION:
            for statement in sql.PARTS:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def version_of(connection: sqlite3.Connection) -> int:
    """The number of its schema, 0 for an empty file, `FORMER` for a file of recollect 0.1. Only reads."""
    begun = not connection.in_transaction
    if begun:
        connection.execute("BEGIN")  # all three are read at one moment: another process may be making the file
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (ours,) = connection.execute("SELECT count(*) FROM sqlite_master WHERE name IN ('entries', 'turns')").fetchone()
    finally:
        if begun and connection.in_transaction:
            connection.execute("ROLLBACK")
    if tables and application == FORMER_ID:
        if version != FORMER_SCHEMA:
            raise StoreCorrupt(
                f"the file has schema {version} of recollect, wellworn reads {FORMER_SCHEMA}: open it once with "
                "recollect 0.1, which brings it up to date"
            )
        return FORMER
    if tables and application != APPLICATION_ID:
        found = StoreCorrupt if ours == 2 else OtherFile
        raise found("this SQLite file was not made by wellworn; give another path")
    if version and not FIRST <= version <= VERSION:
        raise OtherFile(f"the file has schema {version}, this wellworn knows {VERSION}; upgrade wellworn")
    return int(version)


# -- files of the former name ------------------------------------------------------------------------------------------


SHELVED = ("entries", "index_records", "entry_tags", "sessions", "removed", "recalls", "policies", "jobs", "dossiers")
"""Tables with the column `shelf`, the former word for a partition."""
DROPPED = ("outcomes", "recalls", "policies", "calls", "jobs", "dossier_entries", "dossiers", "audit", "migrations")
"""Tables whose rows become records; those that refer to others come first."""
STALE_INDEX = "stale_index"
"""The table that says, until they are written anew, that the index records are those of that release."""
_INTO = """
INSERT INTO records (no, tenant, partition, kind, key, state, session, due_at, created_at, updated_at, names, body, blob,
                     rows)
"""
# Under their own numbers, and so before all others: learned states refer to them.
_OUTCOMES = """
SELECT o.no, s.tenant, r.partition, 'outcome', r.id || ' ' || o.kind, o.kind, NULL, NULL, o.at, o.at, '[]',
       json_object('recall', r.id, 'value', json(o.value)), NULL, NULL
FROM outcomes o JOIN recalls r ON r.no = o.recall JOIN partitions s ON s.no = r.partition ORDER BY o.no
"""
_RECALLS = """
SELECT s.tenant, r.partition, r.id, r.at, r.query, r.profile, r.level, r.shown, r.nos, r.base, r.names, r.features
FROM recalls r JOIN partitions s ON s.no = r.partition ORDER BY r.no
"""
_POLICIES = """
SELECT NULL, tenant, partition, 'policy', ifnull(nullif(profile, ''), '(settings)'), '', NULL, NULL, 0, 0, '[]', '{}',
       CAST(state AS BLOB), NULL
FROM policies
"""
_CALLS = """
SELECT NULL, tenant, NULL, 'call', NULL, '', NULL, NULL, at, at, '[]',
       json_object('purpose', purpose, 'model', model, 'input_tokens', input_tokens, 'output_tokens', output_tokens,
                   'usd', usd, 'seconds', seconds, 'ok', json(CASE WHEN ok THEN 'true' ELSE 'false' END)), NULL, NULL
FROM calls ORDER BY no
"""
_SUMS = """
SELECT NULL, tenant, NULL, 'spent', {key}, '', {session}, NULL, max(at), max(at), '[]',
       json_object('tokens', sum(input_tokens + output_tokens), 'usd', sum(usd)), NULL, NULL
FROM calls WHERE {key} IS NOT NULL GROUP BY tenant, {key}
"""
"""What each tenant, day and session cost; see `models.ledger`."""
_JOBS = """
SELECT NULL, s.tenant, j.partition, 'job', j.kind || ' ' || j.key, j.state, json_extract(j.payload, '$.session'),
       CASE j.state WHEN 'queued' THEN j.due_at WHEN 'running' THEN j.lease_until END, j.created_at, j.updated_at, '[]',
       json_object('id', j.id, 'kind', j.kind, 'key', j.key, 'payload', json(j.payload), 'attempts', j.attempts,
                   'due_at', j.due_at, 'worker', j.worker, 'error', j.error, 'result', json(j.result)), NULL, NULL
FROM jobs j JOIN partitions s ON s.no = j.partition ORDER BY j.no
"""
_DOSSIERS = """
SELECT NULL, s.tenant, d.partition, d.kind, d.key, d.state, d.session, NULL, d.created_at, d.updated_at,
       (SELECT json_group_array(id) FROM (SELECT e.id FROM dossier_entries n JOIN entries e ON e.no = n.entry
                                          WHERE n.dossier = d.no ORDER BY n.place)), d.body, NULL, NULL
FROM dossiers d JOIN partitions s ON s.no = d.partition ORDER BY d.no
"""
_NAMED = """
INSERT OR IGNORE INTO record_entries
SELECT r.no, e.no FROM records r, json_each(r.names) j JOIN entries e ON e.id = j.value WHERE r.names <> '[]'
"""
_EVENTS = """
SELECT NULL, tenant, NULL, 'event', NULL, action, NULL, NULL, at, at, '[]',
       CASE detail WHEN '{}' THEN json_object('entry', entry_id)
                   ELSE json_object('entry', entry_id, 'detail', json(detail)) END, NULL, NULL
FROM audit ORDER BY no
"""


def convert(db: sqlite3.Connection) -> None:
    """Bring a file of recollect 0.1 to this schema."""
    for kind, name in db.execute("SELECT type, name FROM sqlite_master WHERE sql IS NOT NULL").fetchall():
        if kind in ("index", "trigger"):
            db.execute(f"DROP {kind} {name}")
    db.execute("ALTER TABLE shelves RENAME TO partitions")
    for table in SHELVED:
        db.execute(f"ALTER TABLE {table} RENAME COLUMN shelf TO partition")
    there = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()}
    for statement in SCHEMA:
        words = statement[statement.index("CREATE") :].split()
        if words[1] != "TABLE" or words[2] not in there:
            db.execute(statement)
    db.execute(_INTO + _OUTCOMES)
    db.executemany(f"{_INTO} VALUES ({', '.join('?' * 14)})", _recalls(db))
    day = "'day ' || date(at / 1000000, 'unixepoch')"
    sums = (("'tenant'", "NULL"), (day, "NULL"), ("'session ' || session", "session"))
    costs = [_SUMS.format(key=key, session=session) for key, session in sums]
    for query in (_POLICIES, _CALLS, *costs, _JOBS, _DOSSIERS, _EVENTS):
        db.execute(_INTO + query)
    db.execute(_NAMED)
    for table in DROPPED:
        db.execute(f"DROP TABLE {table}")
    db.execute(f"CREATE TABLE {STALE_INDEX} (no INTEGER)")


def _recalls(db: sqlite3.Connection) -> Iterator[tuple[Any, ...]]:
    """See `learning.records`: the words are the body, a line of JSON and the numbers the blob."""
    for tenant, partition, key, at, query, profile, level, shown, nos, base, names, features in db.execute(_RECALLS):
        how = json.dumps([profile, level, shown, json.loads(names)]).encode()
        body = json.dumps({"query": query}, ensure_ascii=False) if query else "{}"
        rows, blob = nos[: 8 * shown] if query and shown else None, how + b"\n" + nos + base + features
        yield None, tenant, partition, "recall", key, "", None, None, at, at, "[]", body, blob, rows
