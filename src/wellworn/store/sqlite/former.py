"""A file of recollect 0.1, wellworn's former name, becomes a wellworn file: everything in it stays.

Entries, links, versions, sessions and turns lie in the same tables, of which some names changed. What had tables of its
own (the audit log, recalls, outcomes, learned states, model calls, jobs, tasks) becomes records. Runs in the transaction
of its caller, so a crash leaves the old file.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

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
