"""Files of older schemas are brought up to date with all that is in them; files of newer ones are refused."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from wellworn.core.clock import system_clock, to_micros
from wellworn.core.errors import StoreCorrupt
from wellworn.learning.state import loads_tenant
from wellworn.store.port import Selection, SessionHead
from wellworn.store.sqlite import SqliteStore, connection
from wellworn.store.sqlite.schema import MIGRATIONS, migrate
from wellworn.testing.builders import (
    MODEL,
    NOON,
    make_call,
    make_entry,
    make_event,
    make_link,
    make_new_entry,
    make_partition,
    make_recall,
    make_vector,
    minutes_later,
)
from wellworn.testing.store.calls import book
from wellworn.testing.store.learning_log import log, put, tell, told

PARTITION = make_partition()
NAMES = ["first_schema", "learning_log", "profiles", "model_calls", "jobs", "records"]


def fresh(path: Path, *, to: int = len(MIGRATIONS)) -> None:
    """A file with the schema of that number and nothing in it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        migrate(db, clock=lambda: NOON, to=to)


def one(path: Path, query: str) -> object:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(query).fetchone()[0]


def schema_of(path: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()


def applied(path: Path) -> list[tuple[int, str]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute("SELECT number, name FROM migrations ORDER BY number").fetchall()


@pytest.fixture
def first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that a store of schema 1 has written to, with something in every table."""
    path = tmp_path / "first.db"
    with monkeypatch.context() as patch:
        patch.setattr(connection, "migrate", lambda db, clock: migrate(db, clock=clock, to=1))
        store = SqliteStore(path, durability="normal")
    with store.transact() as tx:
        tx.use_model(MODEL)
        tx.add(make_new_entry("a", tags=["x"], vector=make_vector("a"), metadata={"k": "ü"}))
        tx.add(make_new_entry("b", vector=make_vector("b")))
        tx.add(make_new_entry("c", vector=make_vector("c")))
        tx.update(make_entry("a", tags=["y"]), change="tagged")
        tx.add_links([make_link("a", "b")])
        tx.audit(make_event("furnish"))
    store.close()
    with closing(sqlite3.connect(path)) as db, db:  # sessions and a removal, as the store of that schema wrote them
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("INSERT INTO sessions VALUES (1, 1, 'monday', ?)", (to_micros(NOON),))
        db.execute("INSERT INTO sessions VALUES (2, 1, 'empty', ?)", (to_micros(NOON),))
        for number, minute in [(0, 7), (3, 5)]:
            at = to_micros(minutes_later(minute))
            db.execute(
                "INSERT INTO turns (session, number, role, at, entry, text) VALUES (1, ?, 'user', ?, NULL, 'hello')",
                (number, at),
            )
        db.execute("INSERT INTO removed SELECT partition, seq, no FROM entries WHERE id = 'c'")
        db.execute("DELETE FROM entries WHERE id = 'c'")
    assert one(path, "PRAGMA user_version") == 1
    assert applied(path) == [(1, "first_schema")]
    return path


def contents(store: SqliteStore) -> dict[str, object]:
    (head,) = store.heads([PARTITION])
    assert head is not None
    return {
        "head": head,
        "delta": store.delta(head.partition_no, 0),
        "entries": store.select([PARTITION], Selection()),
        "links": store.links(["a"]),
        "replaced": store.replaced("a"),
        "turns": store.turns(PARTITION, "monday"),
        "events": store.events("acme"),
        "model": store.model(),
        "counts": store.counts([PARTITION]),
    }


def test_a_file_of_the_first_schema_is_upgraded_with_all_that_is_in_it(
    first: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(connection, "migrate", lambda db, clock: None)
        with closing(SqliteStore(first)) as old:
            before = contents(old)
    with closing(SqliteStore(first)) as store:
        assert contents(store) == before
        assert [entry.id for _, entry in store.select([PARTITION], Selection())] == ["a", "b"]
        assert not list(store.check())
    assert one(first, "PRAGMA user_version") == len(MIGRATIONS)
    assert applied(first) == list(enumerate(NAMES, start=1))


def test_an_upgraded_file_keeps_the_learning_log(first: Path) -> None:
    with closing(SqliteStore(first)) as store:
        log(store, make_recall("r"))
        tell(store, "r", "ignored")
        put(store, "acme", PARTITION, "state")
    with closing(SqliteStore(first)) as store:
        assert told(store) == [("r", "ignored")]
        with store.transact() as tx:
            removed = tx.drop_partition(PARTITION)
        assert (removed.entries, removed.recalls) == (2, 1)
        assert store.policy("acme", PARTITION) is None


def test_sessions_of_an_old_file_have_ended_and_are_reflected_on_only_when_asked(first: Path) -> None:
    with closing(SqliteStore(first)) as store:
        latest = minutes_later(7)
        monday = SessionHead(partition=PARTITION, id="monday", turns=4, reflected=0, touched_at=latest, ended_at=latest)
        assert store.session(PARTITION, "monday") == monday
        assert store.idle_sessions(latest) == []
        empty = SessionHead(partition=PARTITION, id="empty", turns=0, touched_at=NOON, ended_at=NOON)
        assert store.session(PARTITION, "empty") == empty
        with store.transact() as tx:
            assert tx.open_session(PARTITION, "monday", NOON) == 4


@pytest.fixture
def second(tmp_path: Path) -> Path:
    """A file of schema 2 with the states that its release kept, one for a partition and one for a tenant."""
    path = tmp_path / "second.db"
    fresh(path, to=2)
    kept: dict[str, dict[str, Any] | None] = {
        "acme": {"shares": True, "users": 1},
        "closed": {"shares": False},
        "broken": None,
        "papers": {},
    }
    with closing(sqlite3.connect(path)) as db, db:
        for tenant, prior in kept.items():
            db.execute("INSERT INTO partitions (tenant, layer, layer_id) VALUES (?, 'user', 'ada')", (tenant,))
            text = "{" if prior is None else json.dumps({"format": 1, "kind": "prior", **prior})
            if tenant != "papers":
                db.execute("INSERT INTO policies VALUES (?, NULL, ?)", (tenant, text))
        db.execute("INSERT INTO partitions (tenant, layer, layer_id) VALUES ('acme', 'user', 'bob')")
        nos = {f"{t}/{i}": no for no, t, i in db.execute("SELECT no, tenant, layer_id FROM partitions")}
        for name, state in (("acme/ada", "person"), ("acme/bob", "person"), ("papers/ada", "residual")):
            tenant = name.partition("/")[0]
            db.execute("INSERT INTO policies VALUES (?, ?, ?)", (tenant, nos[name], json.dumps({"kind": state})))
        for number, profile in enumerate(["reasoningbank", "paper"]):  # what served Bob, and then the paper's
            db.execute(
                "INSERT INTO recalls (id, partition, at, query, profile, level, shown, nos, base, names, features) "
                "VALUES (?, ?, 0, '', ?, 'base', 0, '', '', '[]', '')",
                (f"r{number}", nos["acme/bob"], profile),
            )
    assert one(path, "PRAGMA user_version") == 2
    return path


def test_learned_states_of_the_second_schema_go_to_the_profile_they_were_made_with(second: Path) -> None:
    with closing(SqliteStore(second)) as store:
        ada, bob, papers = make_partition("ada"), make_partition("bob"), make_partition("ada", tenant="papers")
        assert store.policy("acme", ada) == store.policy("acme", bob, profile="reasoningbank") == '{"kind": "person"}'
        assert store.policy("acme", bob) is store.policy("acme", ada, profile="paper") is None
        assert store.policy("papers", papers, profile="paper") == '{"kind": "residual"}'
        assert json.loads(store.policy("acme", None, profile="reasoningbank") or "{}")["users"] == 1
        assert not list(store.check())
    assert one(second, "SELECT count(*) FROM policies WHERE partition IS NOT NULL") == 3


def test_who_had_opted_out_in_the_second_schema_stays_out_with_every_profile(second: Path) -> None:
    with closing(SqliteStore(second)) as store:
        settled = {tenant: store.policy(tenant, None, profile="") for tenant in ("acme", "closed", "broken", "papers")}
    assert settled["acme"] is settled["papers"] is None
    for tenant in ("closed", "broken"):
        assert loads_tenant(settled[tenant]).shares is False


def test_a_blank_file_gets_the_newest_schema_at_once(tmp_path: Path) -> None:
    path = tmp_path / "blank.db"
    path.touch()
    SqliteStore(path, clock=lambda: NOON).close()
    assert applied(path) == list(enumerate(NAMES, start=1))
    assert one(path, "SELECT max(applied_at) FROM migrations") == to_micros(NOON)


def test_every_way_leads_to_the_same_schema(first: Path, tmp_path: Path) -> None:
    SqliteStore(first).close()
    SqliteStore(tmp_path / "blank.db").close()
    assert schema_of(first) == schema_of(tmp_path / "blank.db")


def test_opening_a_file_that_is_up_to_date_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    fresh(path)
    before = schema_of(path), one(path, "SELECT group_concat(applied_at) FROM migrations")
    SqliteStore(path, clock=system_clock).close()
    assert (schema_of(path), one(path, "SELECT group_concat(applied_at) FROM migrations")) == before


def test_a_migration_that_fails_leaves_the_file_as_it_was(first: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(db: sqlite3.Connection) -> None:
        MIGRATIONS[1](db)
        raise RuntimeError

    before = schema_of(first)
    steps: tuple[Callable[[sqlite3.Connection], None], ...] = (MIGRATIONS[0], broken)
    with monkeypatch.context() as patch:
        patch.setattr("wellworn.store.sqlite.schema.MIGRATIONS", steps)
        with pytest.raises(RuntimeError):
            SqliteStore(first)
    assert schema_of(first) == before
    assert one(first, "PRAGMA user_version") == 1
    SqliteStore(first).close()
    assert applied(first) == list(enumerate(NAMES, start=1))


def test_a_file_of_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "newer.db"
    fresh(path)
    newer = len(MIGRATIONS) + 1
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"PRAGMA user_version = {newer}")
    with pytest.raises(StoreCorrupt, match="upgrade wellworn"):
        SqliteStore(path)
    assert one(path, "PRAGMA user_version") == newer


def test_a_sqlite_file_of_someone_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE theirs (a)")
    with pytest.raises(StoreCorrupt, match="not made by wellworn"):
        SqliteStore(path)


@pytest.mark.parametrize("table", ["recalls", "outcomes"])
def test_the_learning_log_cannot_be_rewritten(tmp_path: Path, table: str) -> None:
    path = tmp_path / "memory.db"
    with closing(SqliteStore(path)) as store:
        log(store, make_recall("r"))
        tell(store, "r", "ignored")
    with closing(sqlite3.connect(path)) as db, pytest.raises(sqlite3.IntegrityError, match="append-only"):
        db.execute(f"UPDATE {table} SET at = 0")


def test_a_log_that_hangs_on_nothing_is_found_and_dropped(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with closing(SqliteStore(path)) as store:
        log(
            store,
            make_recall("kept"),
            make_recall("partitionless", partition=make_partition("bob")),
            make_recall("gone"),
        )
        for recall_id in ("kept", "partitionless", "gone"):
            tell(store, recall_id, "ignored")
        for partition in (None, PARTITION, make_partition("bob")):
            put(store, "acme", partition, "state")
        with closing(sqlite3.connect(path)) as db:  # foreign keys are off unless asked for
            db.execute("DELETE FROM recalls WHERE id = 'gone'")
            db.execute("DELETE FROM partitions WHERE layer_id = 'bob'")
            db.commit()
        found = [flaw.check for flaw in store.check()]
        assert found == ["recall_without_partition", "outcome_without_recall", "policy_without_partition"]
        assert [flaw.check for flaw in store.mend()] == found
        assert not list(store.check())
        assert told(store) == [("kept", "ignored")]
        assert store.policy("acme", None) == store.policy("acme", PARTITION) == "state"
    assert one(path, "SELECT count(*) FROM outcomes") == 1
    assert one(path, "SELECT count(*) FROM policies") == 2


@pytest.mark.parametrize("change", ["UPDATE calls SET usd = 0", "UPDATE calls SET session = 'x'", "DELETE FROM calls"])
def test_the_ledger_cannot_be_rewritten(tmp_path: Path, change: str) -> None:
    path = tmp_path / "memory.db"
    with closing(SqliteStore(path)) as store:
        book(store, make_call(session="monday"))
    with closing(sqlite3.connect(path)) as db, pytest.raises(sqlite3.IntegrityError, match="append-only"):
        db.execute(change)
