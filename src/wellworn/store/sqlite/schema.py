"""The tables, as numbered migrations: each runs once, in one transaction.

Numbers inside: times are microseconds since 1970 in UTC; hashes are signed 64-bit; vectors little-endian float32;
terms little-endian uint64 ascending, counts little-endian uint16; lists and objects are JSON.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from wellworn.core.errors import OtherFile, StoreCorrupt

APPLICATION_ID = 0x77656C6C  # "well": tells a wellworn file from any other SQLite file
FORMER_ID = 0x7265636C  # "recl": files of recollect 0.1, the former name
FORMER_SCHEMA = 6
FORMER = -1

SCHEMA = """
-- One row per (tenant, layer, id). `seq` counts the transactions that changed the partition.
CREATE TABLE partitions (
  no INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant TEXT NOT NULL, layer TEXT NOT NULL, layer_id TEXT NOT NULL,
  seq INTEGER NOT NULL DEFAULT 0,
  UNIQUE (tenant, layer, layer_id)
);

-- The model whose vectors are in index_records (current = 1), and one that is being moved to.
CREATE TABLE models (
  no INTEGER PRIMARY KEY, name TEXT NOT NULL, width INTEGER NOT NULL, current INTEGER NOT NULL DEFAULT 0,
  UNIQUE (name, width)
);

CREATE TABLE entries (
  no INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  partition INTEGER NOT NULL REFERENCES partitions (no) ON DELETE CASCADE,
  seq INTEGER NOT NULL,          -- the partition's count at the last change of this entry
  index_seq INTEGER NOT NULL,    -- … at the last change of its text, index or vector
  kind TEXT NOT NULL, state TEXT NOT NULL, trust TEXT NOT NULL,
  confidence REAL NOT NULL, repeats INTEGER NOT NULL, usage_count INTEGER NOT NULL,
  success_count INTEGER NOT NULL, failure_count INTEGER NOT NULL, token_count INTEGER NOT NULL,
  at INTEGER NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  valid_from INTEGER NOT NULL, valid_to INTEGER,
  thread INTEGER, position INTEGER,
  session_id TEXT, turn_refs TEXT NOT NULL, content_hash TEXT NOT NULL,
  source TEXT NOT NULL, speaker TEXT, title TEXT NOT NULL, tags TEXT NOT NULL, metadata TEXT NOT NULL,
  text TEXT NOT NULL,
  evidence TEXT                  -- NULL: the text itself
);
CREATE INDEX entries_by_partition ON entries (partition);
CREATE INDEX entries_by_change ON entries (partition, seq);
CREATE UNIQUE INDEX entries_by_content ON entries (partition, content_hash) WHERE state IN ('active', 'flagged');
CREATE INDEX entries_by_session ON entries (partition, session_id) WHERE session_id IS NOT NULL;

CREATE TABLE index_records (
  entry INTEGER PRIMARY KEY REFERENCES entries (no) ON DELETE CASCADE,
  partition INTEGER NOT NULL,
  near_a INTEGER NOT NULL, near_b INTEGER NOT NULL,
  length INTEGER NOT NULL, chars INTEGER NOT NULL, traits INTEGER NOT NULL, speaker INTEGER NOT NULL,
  terms BLOB NOT NULL, counts BLOB NOT NULL,
  vector BLOB                    -- NULL: the store has no embedding model
);
CREATE INDEX index_records_near_a ON index_records (near_a, partition) WHERE near_a <> 0;
CREATE INDEX index_records_near_b ON index_records (near_b, partition) WHERE near_b <> 0;

-- Vectors of the model that is being moved to, until it takes over.
CREATE TABLE new_vectors (
  entry INTEGER PRIMARY KEY REFERENCES entries (no) ON DELETE CASCADE,
  model INTEGER NOT NULL REFERENCES models (no) ON DELETE CASCADE,
  vector BLOB NOT NULL
);

CREATE TABLE entry_tags (
  partition INTEGER NOT NULL, tag TEXT NOT NULL, entry INTEGER NOT NULL REFERENCES entries (no) ON DELETE CASCADE,
  PRIMARY KEY (partition, tag, entry)
) WITHOUT ROWID;
CREATE INDEX entry_tags_by_entry ON entry_tags (entry);

CREATE TABLE links (
  source INTEGER NOT NULL REFERENCES entries (no) ON DELETE CASCADE,
  target INTEGER NOT NULL REFERENCES entries (no) ON DELETE CASCADE,
  type TEXT NOT NULL, confidence REAL NOT NULL, automatic INTEGER NOT NULL, created_at INTEGER NOT NULL,
  PRIMARY KEY (source, target, type)
) WITHOUT ROWID;
CREATE INDEX links_by_target ON links (target);
CREATE INDEX links_by_hand ON links (source) WHERE automatic = 0;
CREATE INDEX links_by_hand_to ON links (target) WHERE automatic = 0;

CREATE TABLE replaced (
  no INTEGER PRIMARY KEY, entry INTEGER NOT NULL REFERENCES entries (no) ON DELETE CASCADE,
  change TEXT NOT NULL, changed_at INTEGER NOT NULL, snapshot TEXT NOT NULL
);
CREATE INDEX replaced_by_entry ON replaced (entry);

CREATE TABLE sessions (
  no INTEGER PRIMARY KEY, partition INTEGER NOT NULL REFERENCES partitions (no) ON DELETE CASCADE,
  session_id TEXT NOT NULL, created_at INTEGER NOT NULL,
  turns INTEGER NOT NULL DEFAULT 0,       -- the next free number
  reflected INTEGER NOT NULL DEFAULT 0,   -- turns below it have been reflected on
  touched_at INTEGER NOT NULL DEFAULT 0, ended_at INTEGER,
  UNIQUE (partition, session_id)
);
CREATE INDEX sessions_unreflected ON sessions (touched_at) WHERE reflected < turns;
CREATE TABLE turns (
  no INTEGER PRIMARY KEY,
  session INTEGER NOT NULL REFERENCES sessions (no) ON DELETE CASCADE,
  number INTEGER NOT NULL, role TEXT NOT NULL, speaker TEXT, at INTEGER NOT NULL,
  entry INTEGER REFERENCES entries (no) ON DELETE SET NULL,
  text TEXT NOT NULL,
  UNIQUE (session, number)
);
CREATE INDEX turns_by_entry ON turns (entry) WHERE entry IS NOT NULL;

-- Row numbers that are gone, so that other processes drop them from memory. Never reused.
CREATE TABLE removed (
  partition INTEGER NOT NULL REFERENCES partitions (no) ON DELETE CASCADE,
  seq INTEGER NOT NULL, entry INTEGER NOT NULL,
  PRIMARY KEY (partition, seq, entry)
) WITHOUT ROWID;

-- What mechanisms write down about their own work: jobs, learned states, model calls, events, logged recalls, tasks.
-- Goes with its partition, its session, or an entry that it names; its body goes with an entry of its rows.
CREATE TABLE records (
  no INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant TEXT NOT NULL,
  partition INTEGER REFERENCES partitions (no) ON DELETE CASCADE,  -- NULL: of the tenant as a whole
  kind TEXT NOT NULL, key TEXT, state TEXT NOT NULL, session TEXT,  -- key NULL: a line of a log
  due_at INTEGER, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  names TEXT NOT NULL,                                             -- ids of entries, as in record_entries
  body TEXT NOT NULL, blob BLOB,
  rows BLOB                                                        -- row numbers of entries that the body tells of
);
CREATE UNIQUE INDEX records_by_key ON records (kind, key, tenant, ifnull(partition, 0)) WHERE key IS NOT NULL;
CREATE INDEX records_of_tenant ON records (tenant, kind);
CREATE INDEX records_of_partition ON records (partition, kind) WHERE partition IS NOT NULL;
CREATE INDEX records_of_session ON records (tenant, session) WHERE session IS NOT NULL;
CREATE INDEX records_with_rows ON records (tenant) WHERE rows IS NOT NULL;
CREATE INDEX records_due ON records (due_at) WHERE due_at IS NOT NULL;
CREATE TRIGGER records_keep_their_rows BEFORE DELETE ON records WHEN OLD.kind IN ('event', 'call')
  BEGIN SELECT RAISE(ABORT, 'records of events and calls are append-only'); END;
CREATE TRIGGER records_keep_their_words BEFORE UPDATE ON records
  WHEN OLD.kind IN ('event', 'call', 'outcome') OR (OLD.kind = 'recall' AND NEW.body <> '{}')
  BEGIN SELECT RAISE(ABORT, 'records of events, calls, recalls and outcomes are append-only'); END;
CREATE TABLE record_entries (
  record INTEGER NOT NULL REFERENCES records (no) ON DELETE CASCADE,
  entry INTEGER NOT NULL REFERENCES entries (no) ON DELETE CASCADE,
  PRIMARY KEY (record, entry)
) WITHOUT ROWID;
CREATE INDEX record_entries_by_entry ON record_entries (entry);
"""


def create(connection: sqlite3.Connection) -> None:
    for statement in statements(SCHEMA):
        connection.execute(statement)


def close_as_one_file(connection: sqlite3.Connection) -> None:
    """Changes no table: from now on a file that is closed has no log, see `connection`."""


def fold_letters(connection: sqlite3.Connection) -> None:
    """Terms have other forms of some letters (`ingest.terms`): index records of texts with these are to be made anew."""
    found = "SELECT 1 FROM entries WHERE text || title || tags || ifnull(speaker, '') GLOB ? LIMIT 1"
    if connection.execute(found, ("*[ßẞæÆǢǣǼǽøØǾǿđĐıłŁœŒةـ٠-᫿ﳲ-ﺔ]*",)).fetchone():
        connection.execute(f"CREATE TABLE IF NOT EXISTS {STALE_INDEX} (no INTEGER)")


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (create, close_as_one_file, fold_letters)
"""Migration n is the n-th function, from 1. Never change one that was released; add the next."""
LONE = 2
"""The first schema whose files are one file when they are closed."""


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the file up to date; several processes may try at once, one wins and the others find it done."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        found = version = version_of(connection)
        if version == FORMER:
            convert(connection, statements(SCHEMA))
            version = 1
        for step in MIGRATIONS[version:]:
            step(connection)
        if found != len(MIGRATIONS):
            connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def version_of(connection: sqlite3.Connection) -> int:
    """The number of the last migration that the file has had; `FORMER` for a file of recollect 0.1. Only reads."""
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
    if version > len(MIGRATIONS):
        raise OtherFile(f"the file has schema {version}, this wellworn knows {len(MIGRATIONS)}; upgrade wellworn")
    return int(version)


def statements(script: str) -> list[str]:
    """Statements one by one: `executescript` would commit the transaction they must stay in."""
    found, current = [], ""
    for line in script.splitlines(keepends=True):
        current += line
        if sqlite3.complete_statement(current):
            found.append(current)
            current = ""
    return found


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
