"""The schema, as numbered migrations: each runs once, in one transaction, and only adds.

A server of the release before goes on working while and after a migration runs. Columns hold what those of SQLite hold
(see `store.convert`), except that row numbers of a record are an array and vectors are pgvector's.
"""

from __future__ import annotations

import re

from wellworn.core.errors import StoreCorrupt
from wellworn.store.postgres.connection import SCHEMA as DEFAULT_SCHEMA
from wellworn.store.postgres.connection import Pool
from wellworn.store.postgres.db import PostgresDb
from wellworn.store.sql import schema as sql

_OTHER_WORDS = {
    r"no INTEGER PRIMARY KEY( AUTOINCREMENT)?": "no BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    r"vector BLOB": "vector vector",
    r"rows BLOB": "rows BIGINT[]",
    r"\bINTEGER\b": "BIGINT",
    r"\bREAL\b": "DOUBLE PRECISION",
    r"\bBLOB\b": "BYTEA",
    r"\bTEXT\b": 'TEXT COLLATE "C"',
    r"\) WITHOUT ROWID": ")",
    r"ifnull\(": "coalesce(",
    r"\((near_[ab]), partition\)": r"(\1, partition, entry)",  # SQLite has the row number in every index
}
SCHEMA = sql.SCHEMA
for words, other in _OTHER_WORDS.items():
    SCHEMA = re.sub(words, other, SCHEMA)
SCHEMA += """
CREATE INDEX records_with_rows ON records USING gin (rows) WHERE rows IS NOT NULL;
CREATE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION 'records of events, calls, recalls and outcomes are append-only'; END $$;
""" + "".join(
    f"CREATE TRIGGER {trigger} ON records FOR EACH ROW WHEN ({of}) EXECUTE FUNCTION append_only();\n"
    for trigger, of in sql.APPEND_ONLY.items()
)

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

# Both ends of what a role writes belong to its tenants. The first wall looked at one end of some rows, let a role put
# a number into `versions`, and looked for `tenant_roles` among the role's own temporary tables first.
#
# An entry, its index record and its tags are written in one statement: only a function that is volatile sees the entry.
_ENTRY = "EXISTS (SELECT 1 FROM entries e WHERE e.no = {})"
BOTH_ENDS = (
    """
CREATE FUNCTION holds(place BIGINT, asked BIGINT) RETURNS BOOLEAN LANGUAGE sql VOLATILE AS
  $$ SELECT EXISTS (SELECT 1 FROM entries WHERE no = asked AND partition = place) $$;
DO $$ BEGIN
  EXECUTE format('ALTER FUNCTION holds SET search_path = %I, pg_temp', current_schema());
  EXECUTE format('ALTER FUNCTION may_see SET search_path = %I, pg_temp', current_schema());
END $$;
ALTER TABLE versions ENABLE ROW LEVEL SECURITY;
CREATE POLICY wall ON versions FOR SELECT USING (TRUE);
"""
    + "".join(
        f"ALTER POLICY wall ON {table} WITH CHECK ({condition});\n"
        for table, condition in {
            "index_records": "holds(partition, entry)",
            "entry_tags": "holds(partition, entry)",
            "removed": "holds(partition, entry)",
            "record_entries": f"EXISTS (SELECT 1 FROM records r WHERE r.no = record) AND {_ENTRY.format('entry')}",
            "turns": "EXISTS (SELECT 1 FROM sessions n WHERE n.no = session) "
            f"AND (entry IS NULL OR {_ENTRY.format('entry')})",
            "records": "may_see(tenant) AND (partition IS NULL OR EXISTS "
            "(SELECT 1 FROM partitions p WHERE p.no = records.partition AND p.tenant = records.tenant)) "
            f"AND NOT EXISTS (SELECT 1 FROM unnest(rows) AS w (no) WHERE NOT {_ENTRY.format('w.no')})",
        }.items()
    )
    # What roles wrote before with one end elsewhere. Nothing is read where there are no roles.
    + "".join(
        f"{statement} AND EXISTS (SELECT 1 FROM tenant_roles);\n"
        for statement in (
            "DELETE FROM record_entries d USING records r, entries e, partitions p "
            "WHERE r.no = d.record AND e.no = d.entry AND p.no = e.partition AND p.tenant <> r.tenant",
            "UPDATE turns t SET entry = NULL FROM sessions n, partitions s, entries e, partitions p WHERE n.no = t.session "
            "AND s.no = n.partition AND e.no = t.entry AND p.no = e.partition AND p.tenant <> s.tenant",
            "DELETE FROM entry_tags t USING entries e WHERE e.no = t.entry AND e.partition <> t.partition",
            "DELETE FROM index_records i USING entries e WHERE e.no = i.entry AND e.partition <> i.partition",
            "ALTER TABLE records DISABLE TRIGGER USER; "
            "DELETE FROM records r USING partitions p WHERE p.no = r.partition AND p.tenant <> r.tenant",
        )
    )
    + "ALTER TABLE records ENABLE TRIGGER USER;\n"
)

MIGRATIONS = (SCHEMA + KEY + WALL + WORDS, "; ".join(sql.PARTS).replace("BLOB", "BYTEA"), BOTH_ENDS)
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
