"""The tables, as numbered migrations: each runs once, in a transaction together with its own record.

Numbers inside: times are microseconds since 1970 in UTC; hashes are signed 64-bit; vectors little-endian float32,
scores and features too; terms little-endian uint64 ascending, counts little-endian uint16, row numbers little-endian
int64; lists and objects are JSON.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import Any

from wellworn.core.clock import Clock, to_micros
from wellworn.core.errors import StoreCorrupt

APPLICATION_ID = 0x7265636C  # "recl": tells a wellworn file from any other SQLite file

_FIRST_SCHEMA = """
CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL);

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
  UNIQUE (partition, session_id)
);
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

CREATE TABLE audit (
  no INTEGER PRIMARY KEY, at INTEGER NOT NULL, tenant TEXT NOT NULL, action TEXT NOT NULL,
  entry_id TEXT, detail TEXT NOT NULL
);
CREATE INDEX audit_by_tenant ON audit (tenant);
CREATE TRIGGER audit_keeps_its_rows BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'audit is append-only'); END;
CREATE TRIGGER audit_keeps_its_words BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'audit is append-only'); END;
"""

_LEARNING_LOG = """
-- Recalls as learning sees them. Never changed, nor are their outcomes; they go with their partition or an entry shown.
CREATE TABLE recalls (
  no INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  partition INTEGER NOT NULL REFERENCES partitions (no) ON DELETE CASCADE,
  at INTEGER NOT NULL, query TEXT NOT NULL, profile TEXT NOT NULL, level TEXT NOT NULL,
  shown INTEGER NOT NULL,        -- so many of the rows, from the first
  nos BLOB NOT NULL,             -- row numbers of entries
  base BLOB NOT NULL,            -- a score for each row
  names TEXT NOT NULL,
  features BLOB NOT NULL         -- row by row, a number for each name
);
CREATE INDEX recalls_by_partition ON recalls (partition);
CREATE TRIGGER recalls_keep_their_words BEFORE UPDATE ON recalls WHEN NEW.query <> ''
  BEGIN SELECT RAISE(ABORT, 'recalls is append-only'); END;

CREATE TABLE outcomes (
  no INTEGER PRIMARY KEY AUTOINCREMENT,
  recall INTEGER NOT NULL REFERENCES recalls (no) ON DELETE CASCADE,
  kind TEXT NOT NULL, value TEXT NOT NULL, at INTEGER NOT NULL,
  UNIQUE (recall, kind)
);
CREATE TRIGGER outcomes_keep_their_words BEFORE UPDATE ON outcomes
  BEGIN SELECT RAISE(ABORT, 'outcomes is append-only'); END;

-- What was learned: of each partition, and with partition NULL of the tenant as a whole.
CREATE TABLE policies (
  tenant TEXT NOT NULL, partition INTEGER REFERENCES partitions (no) ON DELETE CASCADE, state TEXT NOT NULL
);
CREATE UNIQUE INDEX policies_of_tenants ON policies (tenant) WHERE partition IS NULL;
CREATE UNIQUE INDEX policies_of_partitions ON policies (partition) WHERE partition IS NOT NULL;
"""

_PROFILES = """
-- Each profile learns by itself. The profile '' holds what is settled for the tenant, whatever the profile.
ALTER TABLE policies ADD COLUMN profile TEXT NOT NULL DEFAULT 'default';
DROP INDEX policies_of_tenants;
DROP INDEX policies_of_partitions;
CREATE UNIQUE INDEX policies_of_tenants ON policies (tenant, profile) WHERE partition IS NULL;
CREATE UNIQUE INDEX policies_of_partitions ON policies (partition, profile) WHERE partition IS NOT NULL;
"""

_MODEL_CALLS = """
-- Every call of a language model: numbers and names, never text. A session that is forgotten is blanked.
CREATE TABLE calls (
  no INTEGER PRIMARY KEY, at INTEGER NOT NULL, tenant TEXT NOT NULL, purpose TEXT NOT NULL, model TEXT NOT NULL,
  session TEXT, input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, usd REAL NOT NULL,
  seconds REAL NOT NULL, ok INTEGER NOT NULL
);
CREATE INDEX calls_by_tenant ON calls (tenant, at);
CREATE INDEX calls_by_session ON calls (tenant, session) WHERE session IS NOT NULL;
CREATE TRIGGER calls_keep_their_rows BEFORE DELETE ON calls BEGIN SELECT RAISE(ABORT, 'calls is append-only'); END;
CREATE TRIGGER calls_keep_their_numbers BEFORE UPDATE ON calls WHEN NEW.session IS NOT NULL
  OR (NEW.no, NEW.at, NEW.tenant, NEW.purpose, NEW.model, NEW.input_tokens, NEW.output_tokens, NEW.usd, NEW.seconds,
      NEW.ok)
  IS NOT (OLD.no, OLD.at, OLD.tenant, OLD.purpose, OLD.model, OLD.input_tokens, OLD.output_tokens, OLD.usd,
          OLD.seconds, OLD.ok)
  BEGIN SELECT RAISE(ABORT, 'calls is append-only'); END;
"""

_JOBS = """
-- Work to be done in the background: ids and numbers, never text. Goes with its partition, or with payload.session.
CREATE TABLE jobs (
  no INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  partition INTEGER NOT NULL REFERENCES partitions (no) ON DELETE CASCADE,
  kind TEXT NOT NULL, key TEXT NOT NULL, payload TEXT NOT NULL,
  state TEXT NOT NULL, attempts INTEGER NOT NULL, due_at INTEGER NOT NULL,
  lease_until INTEGER, worker TEXT,  -- while it runs
  error TEXT NOT NULL, result TEXT NOT NULL,
  created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  UNIQUE (partition, kind, key)
);
CREATE INDEX jobs_open ON jobs (due_at) WHERE state IN ('queued', 'running');

ALTER TABLE sessions ADD COLUMN turns INTEGER NOT NULL DEFAULT 0;       -- the next free number
ALTER TABLE sessions ADD COLUMN reflected INTEGER NOT NULL DEFAULT 0;   -- turns below it have been reflected on
ALTER TABLE sessions ADD COLUMN touched_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN ended_at INTEGER;
UPDATE sessions SET
  turns = coalesce((SELECT max(number) + 1 FROM turns WHERE session = sessions.no), 0),
  touched_at = coalesce((SELECT max(at) FROM turns WHERE session = sessions.no), created_at),
  ended_at = coalesce((SELECT max(at) FROM turns WHERE session = sessions.no), created_at);  -- nobody left them open
CREATE INDEX sessions_unreflected ON sessions (touched_at) WHERE reflected < turns;
"""

_RECORDS = """
-- What mechanisms write down about their own work. Goes with its partition, its session, or an entry that it names.
CREATE TABLE records (
  no INTEGER PRIMARY KEY AUTOINCREMENT,
  partition INTEGER NOT NULL REFERENCES partitions (no) ON DELETE CASCADE,
  kind TEXT NOT NULL, key TEXT NOT NULL, state TEXT NOT NULL, body TEXT NOT NULL, session TEXT,
  created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  UNIQUE (partition, kind, key)
);
CREATE INDEX records_by_kind ON records (kind, state);
CREATE TABLE record_entries (
  record INTEGER NOT NULL REFERENCES records (no) ON DELETE CASCADE,
  place INTEGER NOT NULL,
  entry INTEGER NOT NULL REFERENCES entries (no) ON DELETE CASCADE,
  PRIMARY KEY (record, place)
) WITHOUT ROWID;
CREATE INDEX record_entries_by_entry ON record_entries (entry);
"""


def _first_schema(connection: sqlite3.Connection) -> None:
    for statement in _statements(_FIRST_SCHEMA):
        connection.execute(statement)


def _learning_log(connection: sqlite3.Connection) -> None:
    for statement in _statements(_LEARNING_LOG):
        connection.execute(statement)


def _profiles(connection: sqlite3.Connection) -> None:
    """States made so far are of the profile that ranked last; who had opted out of sharing stays out, in each."""
    for statement in _statements(_PROFILES):
        connection.execute(statement)
    for rowid, tenant, partition, text in connection.execute(
        "SELECT rowid, tenant, partition, state FROM policies"
    ).fetchall():
        state = _object(text)
        residual = state is not None and state.get("kind") == "residual"
        last = connection.execute(
            "SELECT r.profile FROM recalls r JOIN partitions s ON s.no = r.partition "
            "WHERE s.tenant = ? AND (? IS NULL OR r.partition = ?) AND (r.profile = 'paper') = ? "
            "ORDER BY r.no DESC LIMIT 1",
            (tenant, partition, partition, residual),
        ).fetchone()
        profile = last[0] if last else "paper" if residual else "default"
        connection.execute("UPDATE policies SET profile = ? WHERE rowid = ?", (profile, rowid))
        if partition is None and (state is None or state.get("shares", True) is not True):
            settled = json.dumps({"format": 1, "kind": "tenant", "shares": False})
            connection.execute("INSERT INTO policies (tenant, state, profile) VALUES (?, ?, '')", (tenant, settled))


def _object(text: str) -> dict[str, Any] | None:
    """The JSON object in a text, if there is one."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _model_calls(connection: sqlite3.Connection) -> None:
    for statement in _statements(_MODEL_CALLS):
        connection.execute(statement)


def _jobs(connection: sqlite3.Connection) -> None:
    for statement in _statements(_JOBS):
        connection.execute(statement)


def _records(connection: sqlite3.Connection) -> None:
    for statement in _statements(_RECORDS):
        connection.execute(statement)


def _statements(script: str) -> list[str]:
    """Statements one by one: `executescript` would commit the transaction they must stay in."""
    found, current = [], ""
    for line in script.splitlines(keepends=True):
        current += line
        if sqlite3.complete_statement(current):
            found.append(current)
            current = ""
    return found


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (
    _first_schema,
    _learning_log,
    _profiles,
    _model_calls,
    _jobs,
    _records,
)
"""Migration n is the n-th function, from 1. Never change one that was released; add the next."""


def migrate(connection: sqlite3.Connection, *, clock: Clock, to: int = len(MIGRATIONS)) -> None:
    """Bring the file up to date; several processes may try at once, one wins and the others find it done."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection)
        for number in range(version + 1, to + 1):
            step = MIGRATIONS[number - 1]
            step(connection)
            connection.execute(
                "INSERT INTO migrations VALUES (?, ?, ?)", (number, step.__name__.strip("_"), to_micros(clock()))
            )
            connection.execute(f"PRAGMA user_version = {number}")
        if version == 0:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables and application != APPLICATION_ID:
        raise StoreCorrupt("this SQLite file was not made by wellworn; give another path")
    if version > len(MIGRATIONS):
        raise StoreCorrupt(f"the file has schema {version}, this wellworn knows {len(MIGRATIONS)}; upgrade wellworn")
    return int(version)
