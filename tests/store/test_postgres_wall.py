"""Row-level security: a role of one tenant reaches nothing of another, by our code or by SQL; migrations only add."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
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


@pytest.fixture
def walled(postgres_server: Server) -> Iterator[tuple[Store, str, Any]]:
    """A store with two tenants, the URL of a role that is allowed one of them, and a connection of that role."""
    url = postgres_server.url()
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
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.execute(forged)
    assert len(ids_on(owner, RIVAL)) == 2


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
