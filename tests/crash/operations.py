"""Everything that writes, as operations that can be done again after they were cut short.

`work` runs in a process that dies at one of its events: a statement of SQLite, a thousand steps inside one, a file that is
opened, renamed or removed; or at the byte at which a file would grow beyond a size. So a point is a number, never a time.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import signal
import sqlite3
import sys
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from wellworn import Memory, NotFound, Scope, WellwornError
from wellworn.ingest import forget, remember
from wellworn.ops import bundle, doctor
from wellworn.ops.backup import check, list_backups, restore
from wellworn.ops.retention import RetentionPolicy
from wellworn.store import sqlite
from wellworn.store.sql import tx
from wellworn.store.sqlite import SqliteStore, connection, driver, salvage
from wellworn.tasks import ReasoningBank, Work
from wellworn.tasks.items import domain_tags

ADA, BEN, EVE = (Scope(tenant=t, user=u) for t, u in (("acme", "ada"), ("acme", "ben"), ("rival", "eve")))
SOLVER = Scope(tenant="acme", agent="solver")
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
OLD_KEY, NEW_KEY = b"0" * 64, b"1" * 64
OLD_FILE = Path(__file__).parent.parent / "store" / "recollect-0.1.db.gz"
FACTS = tuple(f"Ada has {n} sheep in field {n}." for n in range(6))
SECRET = "Zwölfuhrläuten"
"""In everything that operations of forgetting forget."""
OTHERS = ("Ben keeps owls.", "Eve keeps bees.")
MORE = tuple(f"Ship {n} carries {n} crates of tea." for n in range(24))
SMALL = ((remember, "BATCH_ENTRIES", 6), (forget, "MOST_AT_ONCE", 3), (tx, "SLICE", 3), (bundle, "SLICE", 7))
"""Numbers of rows that are written at once, so small that every operation needs several transactions."""
_FILE_EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.chmod", "shutil.copyfile"}


def opened(folder: Path, **settings: Any) -> Memory:  # the settings of Memory
    how = {"embedder": "hash:8", "durability": "normal", "background": False, **settings}
    return Memory(folder / "memory.db", **how)


def fill(folder: Path, **settings: Any) -> None:
    """People of two tenants, a session, an older version, a link, an outcome. Always the same bytes."""
    numbers = count(1)
    repeatable = {"clock": lambda: NOON, "new_id": lambda: f"00000000-0000-7000-8000-{next(numbers):012d}"}
    with opened(folder, **repeatable, **settings) as mem:
        ids = mem.remember_many(FACTS, scope=ADA)
        mem.edit(ids[0], title="sheep", scope=ADA)
        mem.link(ids[0], ids[1], "supports", scope=ADA)
        session = mem.session("monday", scope=ADA)
        for n in range(4):
            session.add("user", f"I saw {SECRET} number {n}.")
        mem.outcome(mem.recall("sheep", scope=ADA).id, cited=[0], scope=ADA)
        for text, scope in zip(OTHERS, (BEN, EVE), strict=True):
            mem.remember(text, scope=scope)


@dataclass(frozen=True, kw_only=True)
class Operation:
    work: Callable[[Path], None]
    prepare: Callable[[Path], None] = fill
    kept: Sequence[str] = (*FACTS, *OTHERS)
    """What is there whenever it dies, and afterwards."""
    forgets: bool = False
    """Whether it forgets all that holds the secret."""
    opens: Sequence[dict[str, Any]] = field(default_factory=lambda: [{}])
    """Settings of which one opens the file whenever it dies."""


# -- what is done ------------------------------------------------------------------------------------------------------


def _write(folder: Path) -> None:
    with opened(folder) as mem:
        for text in MORE[:4]:
            mem.remember(text, tags=["tea"], scope=ADA)


def _write_many(folder: Path) -> None:
    with opened(folder) as mem:
        mem.remember_many(MORE, scope=ADA)


def _talk(folder: Path) -> None:
    with opened(folder) as mem:
        session = mem.session("tuesday", scope=ADA)
        for n in range(len(session.turns()), 4):
            session.add("user", f"I live in town {n}.")
        session.end()
        held = len(mem.jobs.list(state="running", scope=ADA))  # by a process that died: until some hours from now
    later = timedelta(hours=2 * (1 + held))
    with opened(folder, clock=lambda: datetime.now(UTC) + later) as mem:
        mem.jobs.run(scope=ADA)


def _change(folder: Path) -> None:
    with opened(folder) as mem:
        first, second, third = (entry.id for entry in mem.entries(scope=ADA, kind="note", limit=3))
        mem.edit(third, tags=["moved"], scope=ADA)
        mem.supersede(first, second, scope=ADA)
        mem.link(second, third, "supports", scope=ADA)
        mem.unlink(second, third, "supports", scope=ADA)


def _learn(folder: Path) -> None:
    with opened(folder) as mem:
        for _ in range(3):
            mem.outcome(mem.recall("sheep", scope=ADA).id, cited=[0], scope=ADA)
        mem.learning.relearn(scope=ADA)


def _forget_ids(folder: Path) -> None:
    with opened(folder) as mem:
        found = [entry.id for entry in mem.entries(scope=ADA, kind="episode")]
        if found:
            mem.forget(found, turns=True, scope=ADA)
        elif mem.session("monday", scope=ADA).turns():
            mem.forget(session_id="monday", scope=ADA)


def _forget_session(folder: Path) -> None:
    with opened(folder) as mem:
        mem.forget(session_id="monday", scope=ADA)


def _forget_person(folder: Path) -> None:
    with opened(folder) as mem:
        mem.forget(everything=True, scope=ADA)


def _erase(folder: Path) -> None:
    with opened(folder) as mem, suppress(NotFound):  # it was done before the end came
        mem.admin.erase(scope=ADA)


def _with_policy(folder: Path) -> None:
    fill(folder)
    with opened(folder) as mem:
        for entry in mem.entries(scope=ADA, kind="episode"):
            mem.edit(entry.id, at="2020-01-01", scope=ADA)
        mem.admin.retention(RetentionPolicy(kinds={"episode": 30.0}), scope=ADA)


def _expire(folder: Path) -> None:
    with opened(folder) as mem:
        mem.admin.expire(scope=ADA)


def _with_export(folder: Path) -> None:
    fill(folder)
    with Memory(folder / "from.db", embedder="hash:8", durability="normal", background=False) as mem:
        mem.remember_many(MORE, scope=ADA)
        mem.admin.export(folder / "in.jsonl")
        mem.admin.export(folder / "notes")
    (folder / "from.db").unlink()


def _load(folder: Path) -> None:
    with opened(folder) as mem:
        mem.admin.load(folder / "in.jsonl")


def _load_notes(folder: Path) -> None:
    with opened(folder) as mem:
        mem.admin.load(folder / "notes")


def _export(folder: Path) -> None:
    with opened(folder) as mem:
        mem.admin.export(folder / "out.jsonl")
    with Memory(":memory:", embedder="hash:8", background=False) as other:
        other.admin.load(folder / "out.jsonl")


def _backup(folder: Path) -> None:
    for one in list_backups(folder / "memory.db.backups"):
        check(Path(one.path))
    with opened(folder) as mem:
        mem.admin.backup(keep=2)


def _with_backup(folder: Path) -> None:
    fill(folder)
    with opened(folder) as mem:
        mem.admin.backup()
        mem.remember(MORE[0], scope=ADA)


def _restore(folder: Path) -> None:
    (one,) = list_backups(folder / "memory.db.backups")
    restore(Path(one.path), folder / "memory.db", force=True)


def _rekey(folder: Path) -> None:
    try:
        encrypted = SqliteStore(folder / "memory.db", key=OLD_KEY)
    except WellwornError:
        return  # it has the new key already
    encrypted.rekey(NEW_KEY)
    encrypted.close()


def _encrypt(folder: Path) -> None:
    if (folder / "memory.db").read_bytes()[:16] == driver.PLAIN_HEADER:
        driver.encrypt_file(folder / "memory.db", NEW_KEY)


def _reembed(folder: Path) -> None:
    with opened(folder, embedder="hash:16", reembedding=True) as mem:
        mem.admin.reembed()


def _attempt(folder: Path) -> None:
    """Tasks of two attempts, of which one succeeds."""

    def agent(work: Work) -> object:
        step = {"tool": f"{work.query}{work.number}", "args": {"x": work.number}, "ok": work.number == 1}
        return {"query": work.query, "steps": [step], "used": list(range(len(work.hits)))}

    with opened(folder) as mem:
        bank = ReasoningBank(mem, scope=SOLVER)
        bank.resume(idle_s=0.0)
        over = {task.query for task in bank.tasks() if task.state == "reinforced"}
        for name in ("sort", "count"):
            if name not in over:
                bank.matts_parallel(task_id=name, query=name, execute=agent, k=2, concurrency=1)


def _with_duplicates(folder: Path) -> None:
    fill(folder)
    with opened(folder) as mem:
        for number in range(9):
            text = f"Read the {'abc'[number % 3]} row first" + "." * (number // 3)
            tags = domain_tags(f"shop.{'abc'[number % 3]}")
            mem.remember(text, scope=SOLVER, kind="strategy", evidence=str(number), tags=tags)


def _consolidate(folder: Path) -> None:
    with opened(folder) as mem:
        ReasoningBank(mem, scope=SOLVER).consolidate()
        lines = [len(one.evidence.split("\n")) for one in mem.entries(scope=SOLVER) if one.state == "active"]
        assert lines == [3, 3, 3], "the evidence of each is kept once"


def _damaged(folder: Path) -> None:
    fill(folder)
    with closing(sqlite3.connect(folder / "memory.db")) as db:
        db.execute("UPDATE index_records SET length = length + 1")
        db.execute("DELETE FROM entry_tags")
        db.commit()


def _repair(folder: Path) -> None:
    with opened(folder) as mem:
        mem.admin.repair()


def _rescue(folder: Path) -> None:
    doctor.rescue(folder / "memory.db")
    with opened(folder) as mem:
        mem.admin.repair()


def _former(folder: Path) -> None:
    (folder / "memory.db").write_bytes(gzip.decompress(OLD_FILE.read_bytes()))


def _migrate(folder: Path) -> None:
    with opened(folder, embedder="hash:16"):
        pass


OPERATIONS: dict[str, Operation] = {
    "create a file": Operation(work=_write, prepare=lambda folder: None, kept=()),
    "remember": Operation(work=_write),
    "remember many": Operation(work=_write_many),
    "session, end, reflect": Operation(work=_talk),
    "edit, supersede, link": Operation(work=_change),
    "outcome, relearn": Operation(work=_learn),
    "forget ids": Operation(work=_forget_ids, forgets=True),
    "forget a session": Operation(work=_forget_session, forgets=True),
    "forget a person": Operation(work=_forget_person, kept=OTHERS, forgets=True),
    "erase": Operation(work=_erase, kept=OTHERS, forgets=True),
    "expire": Operation(work=_expire, prepare=_with_policy, forgets=True),
    "load": Operation(work=_load, prepare=_with_export),
    "load notes": Operation(work=_load_notes, prepare=_with_export),
    "export": Operation(work=_export),
    "backup": Operation(work=_backup, prepare=_with_backup),
    "restore": Operation(work=_restore, prepare=_with_backup),
    "rekey": Operation(
        work=_rekey, prepare=lambda folder: fill(folder, key=OLD_KEY), opens=[{"key": OLD_KEY}, {"key": NEW_KEY}]
    ),
    "encrypt": Operation(work=_encrypt, opens=[{}, {"key": NEW_KEY}]),
    "reembed": Operation(work=_reembed, opens=[{}, {"embedder": "hash:16"}]),
    "tasks": Operation(work=_attempt),
    "consolidate": Operation(work=_consolidate, prepare=_with_duplicates),
    "repair": Operation(work=_repair, prepare=_damaged),
    "rescue": Operation(work=_rescue, prepare=_damaged),
    "migrate": Operation(work=_migrate, prepare=_former, kept=(), opens=[{"embedder": "hash:16"}]),
}


# -- dying -------------------------------------------------------------------------------------------------------------


class Events:
    """Counts what the process does, and kills it at a number."""

    def __init__(self, at: int) -> None:
        self.at, self.count = at, 0

    def __call__(self, *_: object) -> int:
        self.count += 1
        if self.count == self.at:
            os.kill(os.getpid(), signal.SIGKILL)
        return 0

    def watch(self) -> None:
        connect = driver.connect

        def watched(*args: Any, **options: Any) -> sqlite3.Connection:  # those of `connect`
            made = connect(*args, **options)
            made.set_trace_callback(self)
            made.set_progress_handler(self, 1000)
            return made

        for module in (connection, salvage, sqlite):
            module.connect = watched  # type: ignore[attr-defined]
        sys.addaudithook(lambda event, _: self() and None if event in _FILE_EVENTS else None)


def run(name: str, folder: Path, at: int, most_bytes: int | None, full: bool) -> tuple[int, str]:
    """Do an operation and die at an event, or when a file grows too long; or, with `full`, find the disk full then.

    Returns how many events there were, and what went wrong, if it lives.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN if full else signal.SIG_DFL)
    for module, constant, number in SMALL:
        setattr(module, constant, number)
    events, problem = Events(at), ""
    events.watch()
    if most_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, resource.RLIM_INFINITY))
    try:
        OPERATIONS[name].work(folder)
    except WellwornError as error:
        problem = type(error).__name__
    except BaseException as error:
        problem = f"outside our errors: {error!r:.300}"
    return events.count, problem


def serve() -> None:
    """For each line of JSON with the arguments of `run`, do it in a fork, and say how that ended and what it returned."""
    for line in sys.stdin:
        name, folder, *how = json.loads(line)
        reading, writing = os.pipe()
        if not (pid := os.fork()):
            os.write(writing, json.dumps(run(name, Path(folder), *how)).encode())
            os._exit(0)
        os.close(writing)
        _, status = os.waitpid(pid, 0)
        with os.fdopen(reading) as told:
            print(json.dumps([os.waitstatus_to_exitcode(status), told.read()]), flush=True)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    serve()
