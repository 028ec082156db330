"""The tables, the same for every SQL engine, in the words of SQLite. What an engine alone has stands in its own `schema`.

Numbers inside: times are microseconds since 1970 in UTC; hashes are signed 64-bit; vectors little-endian float32;
terms little-endian uint64 ascending, counts little-endian uint16; lists and objects are JSON.
"""

SCHEMA = """
-- One row per (tenant, layer, id). `seq` counts the transactions that changed the partition. One that is being removed
-- has no layer, see `sql.db`.
CREATE TABLE partitions (
  no INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant TEXT NOT NULL, layer TEXT NOT NULL, layer_id TEXT NOT NULL,
  seq INTEGER NOT NULL DEFAULT 0,
  UNIQUE (tenant, layer, layer_id)
);
CREATE INDEX partitions_hidden ON partitions (no) WHERE layer = '';

-- The model whose vectors are in index_records, and one that is being moved to.
CREATE TABLE models (
  no INTEGER PRIMARY KEY, name TEXT NOT NULL, width INTEGER NOT NULL, current BOOLEAN NOT NULL DEFAULT FALSE,
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
CREATE INDEX entries_by_partition ON entries (partition, no);
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
CREATE INDEX records_of_tenant ON records (tenant, kind, no);
CREATE INDEX records_of_partition ON records (partition, kind, no) WHERE partition IS NOT NULL;
CREATE INDEX records_of_session ON records (tenant, session) WHERE session IS NOT NULL;
CREATE INDEX records_due ON records (due_at) WHERE due_at IS NOT NULL;
CREATE TABLE record_entries (
  record INTEGER NOT NULL REFERENCES records (no) ON DELETE CASCADE,
  entry INTEGER NOT NULL REFERENCES entries (no) ON DELETE CASCADE,
  PRIMARY KEY (record, entry)
) WITHOUT ROWID;
CREATE INDEX record_entries_by_entry ON record_entries (entry);
"""

PARTS = (
    # The vectors of the sentences of a text, see `language.parts`. NULL: it has one sentence, or nobody read them.
    "ALTER TABLE index_records ADD COLUMN parts BLOB",
    "ALTER TABLE new_vectors ADD COLUMN parts BLOB",
)
"""What later releases added, for new stores as for old ones."""

APPEND_ONLY = {
    "records_keep_their_rows BEFORE DELETE": "OLD.kind IN ('event', 'call')",
    "records_keep_their_words BEFORE UPDATE": "OLD.kind IN ('event', 'call', 'outcome') OR (OLD.kind = 'recall' AND NEW.body <> '{}')",
}
"""The triggers, and the records that they let nobody delete or change."""
