"""The tables, as numbered migrations: each runs once, in one transaction, and only adds.

A server of the release before goes on working while and after a migration runs. Columns hold what those of SQLite hold
(see `store.convert`), except that row numbers of a record are an array and vectors are pgvector's.
"""

from __future__ import annotations

from wellworn.core.errors import StoreCorrupt
from wellworn.store.postgres.connection import SCHEMA as DEFAULT_SCHEMA
from wellworn.store.postgres.connection import Pool
from wellworn.store.postgres.db import PostgresDb

SCHEMA = """
-- One row per (tenant, layer, id). `seq` counts the transactions that changed the partition.
CREATE TABLE partitions (
  no BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant TEXT COLLATE "C" NOT NULL, layer TEXT COLLATE "C" NOT NULL, layer_id TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL DEFAULT 0,
  hidden BOOLEAN NOT NULL DEFAULT FALSE   -- being removed: it no longer has a name
);
CREATE UNIQUE INDEX partitions_by_name ON partitions (tenant, layer, layer_id) WHERE NOT hidden;
CREATE INDEX partitions_hidden ON partitions (no) WHERE hidden;

-- The model whose vectors are in index_records, and one that is being moved to.
CREATE TABLE models (
  no BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name TEXT NOT NULL, width INTEGER NOT NULL, current BOOLEAN NOT NULL DEFAULT FALSE,
  UNIQUE (name, width)
);

CREATE TABLE entries (
  no BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL UNIQUE,
  partition BIGINT NOT NULL REFERENCES partitions (no) ON DELETE CASCADE,
  seq BIGINT NOT NULL,           -- the partition's count at the last change of this entry
  index_seq BIGINT NOT NULL,     -- … at the last change of its text, index or vector
  kind TEXT NOT NULL, state TEXT NOT NULL, trust TEXT NOT NULL,
  confidence DOUBLE PRECISION NOT NULL, repeats BIGINT NOT NULL, usage_count BIGINT NOT NULL,
  success_count BIGINT NOT NULL, failure_count BIGINT NOT NULL, token_count BIGINT NOT NULL,
  at BIGINT NOT NULL, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL,
  valid_from BIGINT NOT NULL, valid_to BIGINT,
  thread BIGINT, position BIGINT,
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
  entry BIGINT PRIMARY KEY REFERENCES entries (no) ON DELETE CASCADE,
  partition BIGINT NOT NULL,
  near_a BIGINT NOT NULL, near_b BIGINT NOT NULL,
  length BIGINT NOT NULL, chars BIGINT NOT NULL, traits BIGINT NOT NULL, speaker BIGINT NOT NULL,
  terms BYTEA NOT NULL, counts BYTEA NOT NULL,
  vector vector                  -- NULL: the store has no embedding model
);
CREATE INDEX index_records_near_a ON index_records (near_a, partition) WHERE near_a <> 0;
CREATE INDEX index_records_near_b ON index_records (near_b, partition) WHERE near_b <> 0;

-- Vectors of the model that is being moved to, until it takes over.
CREATE TABLE new_vectors (
  entry BIGINT PRIMARY KEY REFERENCES entries (no) ON DELETE CASCADE,
  model BIGINT NOT NULL REFERENCES models (no) ON DELETE CASCADE,
  vector vector NOT NULL
);

CREATE TABLE entry_tags (
  partition BIGINT NOT NULL, tag TEXT NOT NULL, entry BIGINT NOT NULL REFERENCES entries (no) ON DELETE CASCADE,
  PRIMARY KEY (partition, tag, entry)
);
CREATE INDEX entry_tags_by_entry ON entry_tags (entry);

CREATE TABLE links (
  source BIGINT NOT NULL REFERENCES entries (no) ON DELETE CASCADE,
  target BIGINT NOT NULL REFERENCES entries (no) ON DELETE CASCADE,
  type TEXT NOT NULL, confidence DOUBLE PRECISION NOT NULL, automatic SMALLINT NOT NULL, created_at BIGINT NOT NULL,
  PRIMARY KEY (source, target, type)
);
CREATE INDEX links_by_target ON links (target);
CREATE INDEX links_by_hand ON links (source) WHERE automatic = 0;
CREATE INDEX links_by_hand_to ON links (target) WHERE automatic = 0;

CREATE TABLE replaced (
  no BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  entry BIGINT NOT NULL REFERENCES entries (no) ON DELETE CASCADE,
  change TEXT NOT NULL, changed_at BIGINT NOT NULL, snapshot TEXT NOT NULL
);
CREATE INDEX replaced_by_entry ON replaced (entry);

CREATE TABLE sessions (
  no BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  partition BIGINT NOT NULL REFERENCES partitions (no) ON DELETE CASCADE,
  session_id TEXT COLLATE "C" NOT NULL, created_at BIGINT NOT NULL,
  turns BIGINT NOT NULL DEFAULT 0,        -- the next free number
  reflected BIGINT NOT NULL DEFAULT 0,    -- turns below it have been reflected on
  touched_at BIGINT NOT NULL DEFAULT 0, ended_at BIGINT,
  UNIQUE (partition, session_id)
);
CREATE INDEX sessions_unreflected ON sessions (touched_at) WHERE reflected < turns;
CREATE TABLE turns (
  no BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  session BIGINT NOT NULL REFERENCES sessions (no) ON DELETE CASCADE,
  number BIGINT NOT NULL, role TEXT NOT NULL, speaker TEXT, at BIGINT NOT NULL,
  entry BIGINT REFERENCES entries (no) ON DELETE SET NULL,
  text TEXT NOT NULL,
  UNIQUE (session, number)
);
CREATE INDEX turns_by_entry ON turns (entry) WHERE entry IS NOT NULL;

-- Row numbers that are gone, so that other processes drop them from memory. Never reused.
CREATE TABLE removed (
  partition BIGINT NOT NULL REFERENCES partitions (no) ON DELETE CASCADE,
  seq BIGINT NOT NULL, entry BIGINT NOT NULL,
  PRIMARY KEY (partition, seq, entry)
);

-- What mechanisms write down about their own work: jobs, learned states, model calls, events, logged recalls, tasks.
-- Goes with its partition, its session, or an entry that it names; its body goes with an entry of its rows.
CREATE TABLE records (
  no BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant TEXT COLLATE "C" NOT NULL,
  partition BIGINT REFERENCES partitions (no) ON DELETE CASCADE,  -- NULL: of the tenant as a whole
  kind TEXT NOT NULL, key TEXT, state TEXT NOT NULL, session TEXT,  -- key NULL: a line of a log
  due_at BIGINT, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL,
  names TEXT NOT NULL,                                            -- ids of entries, as in record_entries
  body TEXT NOT NULL, blob BYTEA,
  rows BIGINT[]                                                   -- row numbers of entries that the body tells of
);
CREATE UNIQUE INDEX records_by_key ON records (kind, key, tenant, coalesce(partition, 0)) WHERE key IS NOT NULL;
CREATE INDEX records_of_tenant ON records (tenant, kind, no);
CREATE INDEX records_of_partition ON records (partition, kind, no) WHERE partition IS NOT NULL;
CREATE INDEX records_of_session ON records (tenant, session) WHERE session IS NOT NULL;
CREATE INDEX records_with_rows ON records USING gin (rows) WHERE rows IS NOT NULL;
CREATE INDEX records_due ON records (due_at) WHERE due_at IS NOT NULL;
CREATE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION 'records of events, calls, recalls and outcomes are append-only'; END $$;
CREATE TRIGGER records_keep_their_rows BEFORE DELETE ON records FOR EACH ROW
  WHEN (OLD.kind IN ('event', 'call')) EXECUTE FUNCTION append_only();
CREATE TRIGGER records_keep_their_words BEFORE UPDATE ON records FOR EACH ROW
  WHEN (OLD.kind IN ('event', 'call', 'outcome') OR (OLD.kind = 'recall' AND NEW.body <> '{}'))
  EXECUTE FUNCTION append_only();
CREATE TABLE record_entries (
  record BIGINT NOT NULL REFERENCES records (no) ON DELETE CASCADE,
  entry BIGINT NOT NULL REFERENCES entries (no) ON DELETE CASCADE,
  PRIMARY KEY (record, entry)
);
CREATE INDEX record_entries_by_entry ON record_entries (entry);
"""

# The key with which texts are sealed, itself sealed with the user's (see `seal`). At most one row.
KEY = """
CREATE TABLE data_key (one BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (one), salt BYTEA NOT NULL, sealed BYTEA NOT NULL);
"""

# The second wall: a role that is not the owner sees the rows of its tenants only, whatever statement it sends. It is by
# role because a setting could be changed by whoever can send a statement.
WALL = """
CREATE TABLE tenant_roles (role NAME NOT NULL, tenant TEXT COLLATE "C" NOT NULL, PRIMARY KEY (role, tenant));
CREATE FUNCTION may_see(asked TEXT) RETURNS BOOLEAN LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS
  $$ SELECT EXISTS (SELECT 1 FROM tenant_roles WHERE role = session_user AND tenant = asked) $$;
ALTER TABLE tenant_roles ENABLE ROW LEVEL SECURITY;
ALTER TABLE models ENABLE ROW LEVEL SECURITY;
CREATE POLICY wall ON models FOR SELECT USING (TRUE);
ALTER TABLE data_key ENABLE ROW LEVEL SECURITY;
CREATE POLICY wall ON data_key FOR SELECT USING (TRUE);
""" + "".join(
    f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY; CREATE POLICY wall ON {table} USING ({condition});\n"
    for table, condition in {
        "partitions": "may_see(tenant)",
        "records": "may_see(tenant)",
        **{
            table: f"EXISTS (SELECT 1 FROM partitions p WHERE p.no = {table}.partition)"
            for table in ("entries", "index_records", "entry_tags", "sessions", "removed")
        },
        **{
            table: f"EXISTS (SELECT 1 FROM entries e WHERE e.no = {table}.entry)"
            for table in ("new_vectors", "replaced", "record_entries")
        },
        "links": "EXISTS (SELECT 1 FROM entries e WHERE e.no = links.source) "
        "AND EXISTS (SELECT 1 FROM entries e WHERE e.no = links.target)",
        "turns": "EXISTS (SELECT 1 FROM sessions n WHERE n.no = turns.session)",
    }.items()
)

# The terms of an entry as an index of a large partition has them: each as its eight bytes.
WORDS = """
CREATE FUNCTION words_of(terms BYTEA) RETURNS TEXT[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
  $$ SELECT string_to_array(rtrim(regexp_replace(encode(terms, 'hex'), '(.{16})', '\\1 ', 'g')), ' ') $$;
"""

MIGRATIONS = (SCHEMA, KEY, WALL, WORDS)
"""Never change one that was released; add the next."""


def migrate(pool: Pool, schema: str = DEFAULT_SCHEMA) -> None:
    """Bring the database up to date; several processes may try at once, one does it and the others find it done."""
    with pool.reading() as db:
        version = _version(db, schema)
        if version == len(MIGRATIONS):
            pool.know_vectors(db)
            return
    with pool.migrating() as db:
        version = _version(db, schema)
        if version == 0:
            db.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
            if not db.ask("SELECT 1 FROM pg_extension WHERE extname = 'vector'"):
                db.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
            db.execute("CREATE TABLE versions (no INTEGER PRIMARY KEY, at TIMESTAMPTZ NOT NULL DEFAULT now())")
        for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
            db.execute(script)
            db.run("INSERT INTO versions (no) VALUES (?)", (number,))
        pool.know_vectors(db)


def _version(db: PostgresDb, schema: str) -> int:
    """The number of the last migration that the schema has had; 0 when it is new."""
    there = db.ask("SELECT 1 FROM pg_tables WHERE schemaname = ? AND tablename = 'versions'", (schema,))
    if not there:
        if db.ask("SELECT 1 FROM pg_tables WHERE schemaname = ? LIMIT 1", (schema,)):
            raise StoreCorrupt(f"the schema {schema} was not made by wellworn; name another one with ?schema=…")
        return 0
    ((version,),) = db.ask("SELECT max(no) FROM versions")
    if version > len(MIGRATIONS):
        raise StoreCorrupt(f"the schema has version {version}, this wellworn knows {len(MIGRATIONS)}; upgrade wellworn")
    return int(version)
