"""Opening a memory in Postgres: bad URLs, secrets, a server that goes away, too few connections, forks."""

from __future__ import annotations

import logging
import os
import signal
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Cli
from contract.builders import make_new_entry, make_partition, make_turn, write
from contract.postgres import Server
from wellworn import Memory
from wellworn.core.errors import (
    InvalidInput,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreUnreachable,
    WellwornError,
    WrongKey,
)
from wellworn.core.locks import patience
from wellworn.store.port import Selection, Store, Tx

psycopg = pytest.importorskip("psycopg")

from wellworn.store.postgres import PostgresStore, connection  # noqa: E402  # only where psycopg is

SECRET = "hunter2-very-secret"
HERE = make_partition()


@pytest.mark.parametrize(
    ("url", "error", "said"),
    [
        ("postgresql://ada:{}@/postgres?host={}/nowhere", StoreError, "check that the server runs"),
        ("postgresql://nobody_here:{}@/postgres?host={}", StoreError, "nobody_here"),
        ("postgresql://postgres:{}@/no_such_base?host={}", StoreError, "no_such_base"),
        ("postgresql://postgres:{}@/postgres?host={}&schema=Bad-Name", InvalidInput, "'Bad-Name'"),
        ("postgresql://postgres:{}@/postgres?host={}&pool_size=none", InvalidInput, "'none'"),
        ("postgresql://postgres:{}@/postgres?host={}&halfvec=maybe", InvalidInput, "'maybe'"),
        ("postgresql://postgres:{}@/postgres?host={}&no_such_option=1", InvalidInput, "postgresql://user:password@"),
        ("postgresql://postgres@/postgres?password={}&host={}&schema=pg_catalog", StoreCorrupt, "?schema="),
        ("postgresql://postgres:{}%ZZ@/postgres?host={}", InvalidInput, "%XX"),
        ("mysql://root:{}@{}", InvalidInput, "mysql://"),
    ],
)
def test_a_wrong_url_is_one_error_without_the_password(
    url: str,
    error: type[WellwornError],
    said: str,
    postgres_server: Server,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(connection, "CONNECT_TIMEOUT_S", 0.5)
    caplog.set_level(logging.DEBUG)
    with pytest.raises(error) as caught:
        Memory(url.format(SECRET, postgres_server.folder))
    shown = "".join(traceback.format_exception(caught.value)) + caplog.text
    assert said in str(caught.value)
    assert SECRET not in shown.replace(url.format(SECRET, postgres_server.folder), "")


def test_the_password_is_never_shown(postgres_server: Server, tmp_path: Any) -> None:
    url = postgres_server.url().replace("postgres@", f"postgres:{SECRET}@")
    with Memory(url, embedder="hash") as mem:
        assert SECRET not in repr(mem) + mem.engine.store.location
    cli = Cli(tmp_path / "unused.db")
    said = [cli("--db", url, *command) for command in (("remember", "Ada lives in Oslo."), ("list",), ("doctor",))]
    said += [
        cli("--db", url, *command) for command in (("backup", "list"), ("connect", "cursor"), ("list", "--user", "x"))
    ]
    assert [one.code for one in said] == [0, 0, 0, 2, 2, 0]
    assert "Oslo" in said[1].out
    assert [one for one in said if SECRET in one.out + one.err] == []
    assert "postgres:***@" in said[0].err


def test_texts_are_sealed_with_the_key(postgres_server: Server) -> None:
    url, key, other = postgres_server.url(), "a long passphrase", "b" * 64
    with Memory(url, embedder="hash", key=key) as mem:
        ada = mem.for_user("ada")
        (first,) = ada.remember("Ada likes zqxmarker.")
        ada.edit(first, text="Ada likes zqxmarker and tea.", title="zqxmarker")
        ada.session("monday").add("user", "I like zqxmarker too.")
        ada.recall("zqxmarker?")
        mem.engine.store.rekey(other)  # type: ignore[attr-defined]  # of both stores, not of the port
    for wrong in (None, key):
        with pytest.raises(WrongKey, match="key"):
            Memory(url, embedder="hash", key=wrong)
    with Memory(url, embedder="hash", key=other) as mem:
        ada = mem.for_user("ada")
        assert ada.recall("Who likes tea?")[0].text == "Ada likes zqxmarker and tea."
        assert ada.history(first)[0].entry.text == "Ada likes zqxmarker."
        assert (mem.engine.store.encrypted, mem.verify().ok) == (True, True)
        with pytest.raises(InvalidInput, match="plain"):
            mem.admin.export("never.jsonl")
    bare, _, schema = url.rpartition("&schema=")
    with psycopg.connect(bare) as db:
        tables = db.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)).fetchall()
        for (table,) in tables:
            assert "zqxmarker" not in str(db.execute(f"SELECT t::text FROM {schema}.{table} t").fetchall()), table
    with Memory(postgres_server.url(), embedder="hash") as mem:
        mem.for_user("ada").remember("plain")
        plain = mem.engine.store.location
    with pytest.raises(WrongKey, match="not encrypted"):
        Memory(plain, embedder="hash", key=key)


@pytest.fixture
def store(postgres_server: Server) -> Any:
    with closing(PostgresStore(postgres_server.url(pool_size=2))) as made:
        yield made


def test_a_server_that_was_restarted_is_found_again(store: Store, postgres_server: Server) -> None:
    write(store, lambda tx: tx.add(make_new_entry("a")))

    def act(tx: Tx) -> None:
        tx.add(make_new_entry("cut"))
        postgres_server.stop(signal.SIGQUIT)
        tx.select(None, Selection())

    with pytest.raises(StoreUnreachable, match="lost"):
        write(store, act)
    with pytest.raises(StoreUnreachable, match="check that the server runs"), patience(0.2):
        store.partitions()
    postgres_server.start()
    write(store, lambda tx: tx.add(make_new_entry("b")))
    assert [entry.id for _, entry in store.select([HERE], Selection())] == ["a", "b"]


OTHERS = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"


@pytest.mark.parametrize("reads", [True, False], ids=["read", "write"])
def test_a_cut_before_the_next_call_is_not_noticed(store: Store, postgres_server: Server, reads: bool) -> None:
    write(store, lambda tx: tx.add(make_new_entry("a")))
    with psycopg.connect(postgres_server.url().partition("&")[0]) as other:
        other.execute(f"SELECT pg_terminate_backend(pid, 5000) {OTHERS}")
    if reads:
        assert len(store.select([HERE], Selection())) == 1
    write(store, lambda tx: tx.add(make_new_entry("b")))
    assert len(store.select([HERE], Selection())) == 2


def while_it_waits(url: str, schema: str, act: Callable[[], Any], do: str) -> Any:
    """The result of a call during which the server does something to its connection, because the call waits for a lock."""
    with ThreadPoolExecutor() as threads, psycopg.connect(url.partition("&")[0], autocommit=True) as other:
        with other.transaction():
            other.execute(f"LOCK TABLE {schema}.entries")
            found, until = threads.submit(act), time.monotonic() + 300
            while not other.execute(f"SELECT {do} {OTHERS} AND wait_event_type = 'Lock'").fetchall():
                assert time.monotonic() < until
                time.sleep(0.01)
        return found.result(300)


def test_a_read_that_is_cut_is_made_again(postgres_server: Server) -> None:
    url = postgres_server.url(schema="cut")
    with closing(PostgresStore(url)) as store:
        write(store, lambda tx: tx.add(make_new_entry("a")))
        read = partial(store.select, [HERE], Selection())
        found = while_it_waits(url, "cut", read, "pg_terminate_backend(pid, 5000)")
        assert [entry.id for _, entry in found] == ["a"]


def test_a_database_that_is_too_slow_is_one_clear_error_and_keeps_nothing(postgres_server: Server) -> None:
    """A statement that takes longer than the server's time-out is cancelled by it, as it is here."""
    url = postgres_server.url(schema="timed")
    with Memory(url, embedder="hash", background=False) as mem:
        ada = mem.for_user("ada")
        ada.remember("Ada keeps bees.")
        for act in (lambda: ada.remember("Ada plays chess."), ada.entries):
            with pytest.raises(StoreBusy, match="statement_timeout"):
                while_it_waits(url, "timed", act, "pg_cancel_backend(pid)")
        assert [entry.text for entry in ada.entries()] == ["Ada keeps bees."]
        ada.remember("Ada plays chess.")
        assert len(ada.entries()) == 2


def test_a_database_that_does_not_answer_cuts_a_recall_and_nothing_else(postgres_server: Server) -> None:
    url = postgres_server.url(schema="slow")
    with Memory(url, embedder="hash", background=False) as mem:
        ada = mem.for_user("ada")
        ada.remember("Ada keeps bees.")
        with psycopg.connect(url.partition("&")[0]) as other:
            other.execute("LOCK TABLE slow.partitions")
            late = ada.recall("What does Ada keep?", deadline_s=0.2)
        assert (late.hits, late.cut) == ([], True)
        assert ada.recall("What does Ada keep?")[0].text == "Ada keeps bees."


@pytest.mark.parametrize("command", ["create", "list"])
def test_a_backup_of_a_database_needs_a_folder(postgres_server: Server, tmp_path: Path, command: str) -> None:
    done = Cli(tmp_path / "unused.db")("--db", postgres_server.url(schema="kept"), "backup", command)
    assert done.code == 2
    assert "--folder" in done.err


def test_too_few_connections_are_one_clear_error(store: Store) -> None:
    with store.snapshot(), store.snapshot(), pytest.raises(StoreBusy, match="pool_size"), patience(0.05):
        store.partitions()
    assert store.partitions() == []


def test_a_statement_that_failed_cannot_be_committed(store: Store) -> None:
    def act(tx: Tx) -> None:
        tx.add_turn(HERE, make_turn(0))
        with suppress(Exception):  # somebody swallows whatever the driver raises
            tx.add_turn(HERE, make_turn(0))

    with pytest.raises(StoreError):
        write(store, act)
    assert store.turns(HERE, "monday") == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_child_has_connections_of_its_own(store: Store) -> None:
    write(store, lambda tx: tx.add(make_new_entry("a")))
    child = os.fork()
    if child == 0:
        try:
            write(store, lambda tx: tx.add(make_new_entry("of the child")))
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    write(store, lambda tx: tx.add(make_new_entry("b")))
    assert len(store.select([HERE], Selection())) == 3
