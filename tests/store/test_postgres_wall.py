"""Row-level security: a role of one tenant reaches nothing of another, by our code or by SQL; migrations only add."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import pytest

from contract.builders import (
    add,
    drop,
    ids_on,
    make_link,
    make_new_entry,
    make_partition,
    make_record,
    make_turn,
    put,
    write,
)
from contract.postgres import Server
from wellworn import Memory, Scope
from wellworn.core.errors import StoreError
from wellworn.store.port import RecordFilter, Selection, Store

psycopg = pytest.importorskip("psycopg")

from wellworn.store.postgres import PostgresStore, schema  # noqa: E402  # only where psycopg is

HERE, RIVAL = make_partition(), make_partition(tenant="rival")
TABLES = ("partitions", "entries", "index_records", "entry_tags", "links", "replaced", "sessions", "turns", "records")


def fill(store: Store) -> None:
    for partition in (HERE, RIVAL):
        ids = [f"{partition.tenant} {n}" for n in range(2)]
        add(store, *(make_new_entry(id, partition=partition, tags=["x"]) for id in ids))
        with store.transact() as tx:
            tx.add_links([make_link(ids[0], ids[1])])
            tx.add_turn(partition, make_turn(0, entry_id=ids[0]))
            tx.update(tx.get([partition], ids)[ids[0]], change="edited")
            tx.put_records([make_record("t", partition=partition, names=(ids[0],))])


@contextmanager
def behind_a_wall(url: str) -> Iterator[tuple[Store, str, Any]]:
    """A store with two tenants, the URL of a role that is allowed one of them, and a connection of that role."""
    name = url.rpartition("=")[2]
    bare, role = url.rpartition("&")[0], f"{name}_acme"
    with closing(PostgresStore(url)) as owner, psycopg.connect(bare, autocommit=True) as admin:
        fill(owner)
        admin.execute(f"CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {name} TO {role}")
        admin.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {name} TO {role}")
        admin.execute(f"INSERT INTO {name}.tenant_roles VALUES ('{role}', 'acme')")
        of_role = bare.replace("postgres@", f"{role}@")
        with psycopg.connect(of_role, autocommit=True, options=f"-c search_path={name},public") as db:
            yield owner, url.replace("postgres@", f"{role}@"), db


@pytest.fixture
def walled(postgres_server: Server) -> Iterator[tuple[Store, str, Any]]:
    with behind_a_wall(postgres_server.url()) as parts:
        yield parts


@contextmanager
def as_owner(url: str) -> Iterator[Any]:
    """A connection that no wall stops."""
    name = url.rpartition("=")[2]
    bare = url.rpartition("&")[0]
    with psycopg.connect(bare, autocommit=True, options=f"-c search_path={name},public") as admin:
        yield admin


def owner_of(url: str) -> str:
    """The URL of the owner, of a role's."""
    return f"postgresql://postgres@{url.partition('@')[2]}"


def test_a_role_sees_its_own_tenant_only(walled: tuple[Store, str, Any]) -> None:
    owner, url, db = walled
    with closing(PostgresStore(url)) as store:
        assert store.partitions() == [HERE]
        assert ids_on(store, HERE, RIVAL) == ["acme 0", "acme 1"]
        assert [one.tenant for one in store.records(RecordFilter())] == ["acme"]
        add(store, make_new_entry("acme 2"))
        lines = put(store, *(make_record("", kind="line", state=str(n)) for n in range(40)))
        assert [one.no for one in store.records(RecordFilter(kinds=["line"], order="oldest"))] == lines
        assert drop(store, kinds=["line"]) == 40
        for refused in (
            lambda: add(store, make_new_entry("forged", partition=RIVAL)),
            lambda: put(store, make_record("t", partition=None, tenant="rival")),
        ):
            with pytest.raises(StoreError):
                refused()
        assert write(store, lambda tx: tx.remove(RIVAL, Selection())).entries == 0
        assert write(store, lambda tx: tx.remove(HERE, Selection(ids=["acme 2"]))).entries == 1
    for table in TABLES:
        ((mine,),) = db.execute(f"SELECT count(*) FROM {table}").fetchall()
        assert mine == (2 if table in ("entries", "index_records", "entry_tags") else 1), table
        rival = "WHERE tenant = 'rival'" if table in ("partitions", "records") else ""
        if rival:
            assert db.execute(f"UPDATE {table} SET tenant = tenant {rival}").rowcount == 0
    assert db.execute("SELECT * FROM tenant_roles").fetchall() == []
    for forged in (
        "INSERT INTO tenant_roles VALUES (session_user, 'rival')",
        "INSERT INTO models (name, width) VALUES ('x', 1)",
        "INSERT INTO data_key (salt, sealed) VALUES ('', '')",
        "INSERT INTO versions (no) VALUES (99)",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.execute(forged)
    assert len(ids_on(owner, RIVAL)) == 2


# -- both ends of every reference ---------------------------------------------------------------------------------------

_TABLES = (
    "SELECT relname, relrowsecurity FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
)
_COLUMNS = """
SELECT a.attrelid::regclass::text, a.attname, a.atttypid::regtype::text FROM pg_attribute a
JOIN pg_class c ON c.oid = a.attrelid AND c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace
WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attidentity = ''
"""
_REFERENCES = """
SELECT conrelid::regclass::text, attname, confrelid::regclass::text FROM pg_constraint
JOIN pg_attribute ON attrelid = conrelid AND attnum = conkey[1] WHERE contype = 'f' AND connamespace = current_schema()::regnamespace
"""
_ANY_VALUE = {
    "bigint": "1",
    "integer": "1",
    "bigint[]": "NULL",
    "double precision": "1",
    "boolean": "FALSE",
    "bytea": "''",
    "text": "'x'",
    "vector": "'[1]'",
    "timestamp with time zone": "now()",
    "name": "session_user",
}
"""By type of column, what any row may hold there."""


class Catalogue:
    """Which columns of a schema refer to other rows, as the database tells it.

    A column refers where it has a foreign key, where it is a number and has the name of a column that has one, and where it
    is a list of numbers: that is of entries.
    """

    def __init__(self, admin: Any) -> None:
        self.walled: dict[str, bool] = dict(admin.execute(_TABLES).fetchall())
        self.types: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for table, column, type_ in admin.execute(_COLUMNS).fetchall():
            self.types[table][column] = type_
        keys = admin.execute(_REFERENCES).fetchall()
        by_name = {column: target for _, column, target in keys}
        self.targets = {(table, column): target for table, column, target in keys}
        for table, columns in self.types.items():
            for column, type_ in columns.items():
                if type_ == "bigint[]":
                    self.targets[table, column] = "entries"
                elif type_ == "bigint" and column in by_name:
                    self.targets[table, column] = by_name[column]


def hidden_rows(admin: Any, db: Any, tables: dict[str, bool]) -> dict[str, int]:
    """How many rows of each table the role does not see."""
    count = "SELECT count(*) FROM {}"
    return {
        one: admin.execute(count.format(one)).fetchone()[0] - db.execute(count.format(one)).fetchone()[0]
        for one in tables
    }


def refused(db: Any, statement: str) -> bool:
    """Whether the wall stops a statement, which leaves nothing behind; anything else may stop it, too."""
    try:
        with db.transaction(force_rollback=True):
            db.execute(statement)
    except psycopg.errors.InsufficientPrivilege:
        return True
    except psycopg.Error:
        pass
    return False


def test_no_column_takes_a_row_of_another_tenant(walled: tuple[Store, str, Any]) -> None:
    _, url, db = walled
    with as_owner(owner_of(url)) as admin:
        catalogue = Catalogue(admin)
        own, rival = dict[str, int](), dict[str, int]()
        for target in {*catalogue.targets.values()}:
            seen = {no for (no,) in db.execute(f"SELECT no FROM {target}").fetchall()}
            others = {no for (no,) in admin.execute(f"SELECT no FROM {target}").fetchall()} - seen
            own[target] = max(seen, default=1)
            rival |= {target: max(others)} if others else {}
    assert {"partitions", "entries", "sessions", "records"} <= rival.keys()
    forged = {(table, column): str(rival[to]) for (table, column), to in catalogue.targets.items() if to in rival}
    forged |= {(table, "tenant"): "'rival'" for table, columns in catalogue.types.items() if "tenant" in columns}
    holes = list[str]()
    for (table, column), value in forged.items():
        types = catalogue.types[table]
        row = {
            name: str(own[catalogue.targets[table, name]])
            if (table, name) in catalogue.targets and type_ == "bigint"
            else "'acme'"
            if name == "tenant"
            else _ANY_VALUE[type_]
            for name, type_ in types.items()
        }
        value = f"ARRAY[{value}::bigint]" if types[column] == "bigint[]" else value
        insert = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({{}})"
        if table != "tenant_roles":
            assert not refused(db, insert.format(", ".join(row.values()))), f"{table} takes no row of its own"
            (has_rows,) = db.execute(f"SELECT EXISTS (SELECT 1 FROM {table})").fetchone()
            holes += [f"UPDATE {table}.{column}"] * (
                has_rows and not refused(db, f"UPDATE {table} SET {column} = {value}")
            )
        holes += [f"INSERT {table}.{column}"] * (
            not refused(db, insert.format(", ".join({**row, column: value}.values())))
        )
    assert holes == []


def test_every_table_has_a_wall(walled: tuple[Store, str, Any]) -> None:
    _, url, _ = walled
    with as_owner(owner_of(url)) as admin:
        assert [one for one, has_wall in Catalogue(admin).walled.items() if not has_wall] == []


def test_a_memory_works_behind_the_wall(walled: tuple[Store, str, Any]) -> None:
    _, url, db = walled
    with Memory(owner_of(url), embedder="hash", background=False):
        pass  # the owner says which model it is
    with Memory(url, embedder="hash", background=False) as memory:
        ada = memory.for_scope(Scope(tenant="acme", user="ada"))
        ada.session("lunch").add("user", "My sister sells cheese at the market in Delft.")
        ids = [ada.remember(f"Shelf {n} holds {n} cheeses.")[0] for n in range(20)]
        ada.remember_many([f"Crate {n} holds {n} apples." for n in range(20)])
        found = ada.recall("Which shelf holds the cheeses?")
        assert found.hits
        assert ada.outcome(found.id, cited=[0])
        assert ada.edit(ids[0], text="Shelf 0 holds none.").text == "Shelf 0 holds none."
        assert ada.forget([ids[1]]).entries == 1
        assert ada.recall("Which shelf holds the cheeses?").hits
        assert db.execute("SELECT count(*) FROM records WHERE cardinality(rows) > 0").fetchone() != (0,)
        assert ada.forget(everything=True).entries >= 39


def test_a_role_that_deletes_everything_deletes_its_own(walled: tuple[Store, str, Any]) -> None:
    _, url, db = walled
    with as_owner(owner_of(url)) as admin:
        tables = Catalogue(admin).walled
        before = hidden_rows(admin, db, tables)
        assert before["entries"] == before["entry_tags"] == 2
        for table in tables:
            db.execute(f"DELETE FROM {table}")
        assert hidden_rows(admin, db, tables) == before
        assert db.execute("SELECT count(*) FROM entries").fetchone() == (0,)


def test_a_table_of_the_role_s_own_does_not_take_the_place_of_ours(walled: tuple[Store, str, Any]) -> None:
    _, _, db = walled
    db.execute("CREATE TEMP TABLE tenant_roles (role NAME, tenant TEXT); GRANT ALL ON pg_temp.tenant_roles TO PUBLIC")
    db.execute("INSERT INTO pg_temp.tenant_roles VALUES (session_user, 'rival')")
    assert db.execute("SELECT tenant FROM partitions").fetchall() == [("acme",)]
    (own,) = db.execute("SELECT no FROM partitions").fetchone()
    db.execute(
        "CREATE TEMP TABLE entries AS SELECT n AS no, %s::bigint AS partition FROM generate_series(1, 9) n", [own]
    )
    (schema_name,) = db.execute("SELECT current_schema()").fetchone()
    forged = [
        refused(db, f"INSERT INTO {schema_name}.entry_tags VALUES ({own}, 'forged', {entry})") for entry in range(1, 10)
    ]
    assert forged.count(False) == 2  # its own two


@pytest.mark.parametrize("in_slices", [False, True])
def test_a_forget_leaves_the_records_of_other_tenants(
    walled: tuple[Store, str, Any], monkeypatch: pytest.MonkeyPatch, in_slices: bool
) -> None:
    """Also where somebody who is behind no wall has named them."""
    owner, url, _ = walled
    put(owner, make_record("secret", partition=RIVAL, kind="api_key"))
    with as_owner(owner_of(url)) as admin:
        admin.execute("INSERT INTO record_entries SELECT r.no, e.no FROM records r, entries e WHERE r.kind = 'api_key'")
    if in_slices:
        number, _ = write(owner, lambda tx: tx.hide_partition(HERE))
        owner.clear_hidden(number)
    else:
        assert write(owner, lambda tx: tx.remove(HERE, Selection())).entries == 2
    assert [one.key for one in owner.records(RecordFilter(kinds=["api_key"]))] == ["secret"]
    assert ids_on(owner, HERE) == []


def test_a_database_of_the_release_before_gets_the_wall(
    postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres_server.url()
    with ExitStack() as opened:
        with monkeypatch.context() as before:
            before.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:-1])
            _, _, db = opened.enter_context(behind_a_wall(url))
        admin = opened.enter_context(as_owner(url))
        ((entry, record, place),) = admin.execute(
            "SELECT e.no, r.no, r.partition FROM entries e, records r WHERE e.id = 'rival 0' AND r.tenant = 'rival'"
        ).fetchall()
        db.execute("INSERT INTO record_entries SELECT %s, max(no) FROM entries", [record])
        db.execute("INSERT INTO entry_tags SELECT no, 'forged', %s FROM partitions", [entry])
        db.execute("UPDATE turns SET entry = %s", [entry])
        db.execute(
            "INSERT INTO records (tenant, partition, kind, state, created_at, updated_at, names, body) "
            "VALUES ('acme', %s, 'event', '', 0, 0, '[]', '{}')",
            [place],
        )
        owner = opened.enter_context(closing(PostgresStore(url)))
        assert [one.key for one in owner.records(RecordFilter(tenant="rival"))] == ["t"]
        (mixed,) = admin.execute(
            "SELECT (SELECT count(*) FROM entry_tags WHERE tag = 'forged') + (SELECT count(*) FROM record_entries) - 2 "
            "+ (SELECT count(*) FROM turns t JOIN sessions n ON n.no = t.session JOIN entries e ON e.no = t.entry "
            "WHERE e.partition <> n.partition) + (SELECT count(*) FROM records WHERE kind = 'event')"
        ).fetchone()
        assert mixed == 0
        assert refused(db, f"INSERT INTO record_entries SELECT {record}, max(no) FROM entries")
        assert write(owner, lambda tx: tx.drop_partition(RIVAL)).entries == 2


def test_a_migration_adds_to_what_is_there(postgres_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    url = postgres_server.url()
    old = PostgresStore(url)
    fill(old)
    with monkeypatch.context() as later:
        later.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, "ALTER TABLE entries ADD COLUMN mood TEXT"))
        with closing(old), closing(PostgresStore(url)) as new, closing(PostgresStore(url)) as again:
            add(old, make_new_entry("of the release before"))
            add(new, make_new_entry("of a later one"))
            assert len(ids_on(again, HERE)) == len(ids_on(old, HERE)) == 4
    with pytest.raises(StoreError, match="upgrade wellworn"):
        PostgresStore(url)
