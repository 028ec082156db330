"""A file of recollect 0.1 opens, with everything in it.

`recollect-0.1.db.gz` was written by recollect 0.1 itself: two tenants; notes, one of them edited, one superseded, one
forgotten; a link; a session that was reflected on and one whose reflection waits as a job; fifteen outcomes; a task of
the bank; a model call. It was checkpointed, vacuumed and packed with gzip.
"""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from wellworn import Memory, Scope
from wellworn.core.errors import StoreCorrupt
from wellworn.store.port import RecordFilter
from wellworn.store.sqlite import SqliteStore
from wellworn.store.sqlite.schema import APPLICATION_ID, VERSION
from wellworn.tasks import ReasoningBank

FILE = Path(__file__).with_name("recollect-0.1.db.gz")
ADA, BEN, EVE = (
    Scope(tenant=tenant, user=user) for tenant, user in (("acme", "ada"), ("acme", "ben"), ("rival", "eve"))
)
SOLVER = Scope(tenant="acme", agent="solver")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "old.db"
    path.write_bytes(gzip.decompress(FILE.read_bytes()))
    return path


def opened(path: Path) -> Memory:
    return Memory.open(path, embedder="hash:16", background=False)


def query(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(sql).fetchall()


def schema_of(path: Path) -> set[str]:
    """Names of tables, indexes and triggers."""
    found = query(path, "SELECT type || ' ' || name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
    return {str(name) for (name,) in found}


def test_entries_links_versions_and_sessions_are_there(path: Path) -> None:
    with opened(path) as mem:
        assert mem.admin.stats(scope=ADA).entries == 29
        (edited,) = (entry for entry in mem.entries(scope=ADA, limit=100) if entry.title == "orchard")
        assert [version.change for version in mem.history(edited.id, scope=ADA)][-1] == "edited"
        states = {entry.state for entry in mem.entries(scope=ADA, limit=100)}
        assert "active" in states
        links = {link.type for entry in mem.entries(scope=ADA, limit=100) for link in mem.links(entry.id, scope=ADA)}
        assert {"supports", "supersedes"} <= links
        assert mem.sessions(scope=ADA) == ["monday"]
        turns = mem.session(scope=ADA, session_id="monday").turns()
        assert turns[2].text == "My sister Mia has a cat called Momo."
        assert "Momo" in mem.recall("What is the cat of Mia called?", scope=ADA).hits[0].entry.text
        assert mem.recall("kites", scope=EVE).hits[0].entry.title == "kites"
        assert mem.recall("kites", scope=BEN, k=1).hits[0].entry.title != "kites"
        assert mem.verify().ok, str(mem.verify())


def test_learning_jobs_costs_events_and_tasks_go_on(path: Path) -> None:
    with opened(path) as mem:
        before = mem.learning.status(scope=ADA)
        assert before.outcomes == 14
        mem.learning.relearn(scope=ADA)
        assert mem.learning.status(scope=ADA).outcomes == 14
        mem.outcome(mem.recall("bees hive", scope=ADA).id, cited=[0])
        assert mem.learning.status(scope=ADA).outcomes == 15
        jobs = {job.state: job for job in mem.jobs.list(scope=ADA)}
        assert {*jobs} == {"queued", "done"}
        assert mem.jobs.run(scope=ADA) == 1
        assert {job.state for job in mem.jobs.list(scope=ADA)} == {"done"}
        (total,) = mem.admin.costs(scope=ADA)
        assert (total.calls, total.input_tokens) == (1, 1000)
        assert total.usd == pytest.approx(0.015)
        events = mem.admin.events(scope=ADA, limit=1000)
        assert {"remember", "edit", "supersede", "link", "forget", "reflect"} <= {event.action for event in events}
        assert [event.at for event in events if event.action == "remember"][-1].year == 2026
        assert [task.task_id for task in ReasoningBank(mem, scope=SOLVER).tasks()] == ["t1"]


def test_a_forgotten_session_takes_its_records_along(path: Path) -> None:
    with opened(path) as mem:
        wanted = RecordFilter(tenant="acme", session="monday")
        assert {record.kind for record in mem.engine.store.records(wanted)} == {"job", "spent"}
        mem.forget(session_id="monday", scope=ADA)
        assert mem.engine.store.records(wanted) == []
        assert mem.verify().ok


def test_the_tables_are_those_of_a_new_file(path: Path, tmp_path: Path) -> None:
    for _ in range(2):  # the second opening finds it done
        with closing(SqliteStore(path)) as store:
            assert store.check() == []
            assert store.stale_index
    opened(path).close()  # writes the index anew
    SqliteStore(tmp_path / "new.db").close()
    assert schema_of(path) == schema_of(tmp_path / "new.db")
    assert query(path, "PRAGMA application_id") == [(APPLICATION_ID,)]
    assert query(path, "PRAGMA user_version") == [(VERSION,)]


def test_a_file_that_cannot_be_read_stays_as_it_was(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = query(path, "SELECT name, sql FROM sqlite_master ORDER BY name")

    def fail(*_: object) -> None:
        raise OSError("killed")

    monkeypatch.setattr("wellworn.store.sqlite.schema._recalls", fail)
    with pytest.raises(OSError, match="killed"):
        SqliteStore(path)
    assert query(path, "SELECT name, sql FROM sqlite_master ORDER BY name") == before
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 4")
    with pytest.raises(StoreCorrupt, match=r"open it once with recollect 0\.1"):
        SqliteStore(path)
    newer, foreign = tmp_path / "newer.db", tmp_path / "foreign.db"
    SqliteStore(newer).close()
    for file, sql in ((newer, "PRAGMA user_version = 99"), (foreign, "CREATE TABLE things (no INTEGER)")):
        with closing(sqlite3.connect(file)) as db:
            db.execute(sql)
    with pytest.raises(StoreCorrupt, match="upgrade wellworn"):
        SqliteStore(newer)
    with pytest.raises(StoreCorrupt, match="was not made by wellworn"):
        SqliteStore(foreign)
