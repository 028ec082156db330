"""One write transaction on the SQLite file: the `Tx` port, statement by statement.

Entries, turns and jobs are here; links, vectors and learning in the `tx_` files beside.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from recollect.clock import to_micros
from recollect.stores.base import (
    Call,
    Dossier,
    Event,
    IndexRecord,
    Job,
    Neighbour,
    Record,
    Removed,
    Replaced,
    Selection,
    SessionHead,
    Vector,
)
from recollect.stores.owned import checked_call, own_body, own_dossier, own_job
from recollect.stores.sqlite import calls as ledger
from recollect.stores.sqlite import changes, dossiers, jobs, learning_log, sessions
from recollect.stores.sqlite.queries import entries_by_id, matching, numbered_by_id, shelf_no_of, shelves_of
from recollect.stores.sqlite.rows import (
    ENTRY_COLUMNS,
    entry_row,
    index_row,
    snapshot_of,
    vector_blob,
)
from recollect.stores.sqlite.tx_learning import LearningTx
from recollect.stores.sqlite.tx_links import LinksTx
from recollect.stores.sqlite.tx_vectors import VectorsTx
from recollect.types import Entry, Shelf, Turn

_INSERT_ENTRY = (
    f"INSERT INTO entries (shelf, seq, index_seq, {', '.join(ENTRY_COLUMNS)}) "
    f"VALUES ({', '.join('?' * (len(ENTRY_COLUMNS) + 3))})"
)
_UPDATE_ENTRY = f"UPDATE entries SET seq = ?, {', '.join(f'{column} = ?' for column in ENTRY_COLUMNS)} WHERE no = ?"
_INSERT_INDEX = """
INSERT INTO index_records (entry, shelf, near_a, near_b, length, chars, traits, speaker, terms, counts, vector)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


class SqliteTx(LinksTx, VectorsTx, LearningTx):
    """Writes of one transaction."""

    # -- entries -------------------------------------------------------------------------------------------------

    def find_same(self, shelf: Shelf, content_hash: str) -> Entry | None:
        row = self._db.execute(
            "SELECT id FROM entries WHERE shelf = ? AND content_hash = ? AND state IN ('active', 'flagged')",
            (self._known_shelf(shelf), content_hash),
        ).fetchone()
        return None if row is None else self.get([shelf], [row[0]])[row[0]]

    def get(self, shelves: Sequence[Shelf], ids: Sequence[str]) -> dict[str, Entry]:
        found, nos = numbered_by_id(self._db, shelves, ids)
        self._own.update(nos)
        return found

    def add(self, record: Record) -> None:
        entry = record.entry
        self._check_width(record.vector)
        shelf_no = self._shelf_no(entry.shelf)
        seq = self._seq(shelf_no)
        no = self._db.execute(_INSERT_ENTRY, (shelf_no, seq, seq, *entry_row(entry))).lastrowid
        assert no is not None  # noqa: S101  an INSERT always has one
        self._nos[entry.id] = no
        if entry.state in ("active", "flagged"):
            self._latest[entry.shelf] = Neighbour(id=entry.id, at=entry.at, tags=[*entry.tags])
        self._db.execute(_INSERT_INDEX, (no, shelf_no, *index_row(record.index, record.vector)))
        if entry.tags:
            self._db.executemany("INSERT INTO entry_tags VALUES (?, ?, ?)", [(shelf_no, tag, no) for tag in entry.tags])

    def update(self, entry: Entry, *, change: str | None, index: IndexRecord | None = None,
               vector: Vector | None = None, before: Entry | None = None) -> None:  # fmt: skip
        self._check_width(vector)
        shelf_no = self._shelf_no(entry.shelf)
        no = self._row_no(entry.id, shelf_no)
        if change is not None:
            old = before or entries_by_id(self._db, [entry.shelf], [entry.id])[entry.id]
            self._keep_replaced(no, Replaced(entry=old, change=change, changed_at=entry.updated_at))
        self._latest.clear()  # it may be the latest, and no longer offered
        seq = self._seq(shelf_no)
        if before is None:
            self._db.execute(_UPDATE_ENTRY, (seq, *entry_row(entry), no))
        else:
            changes.write(self._db, no, seq, before, entry)
        if before is None or before.tags != entry.tags:
            self._db.execute("DELETE FROM entry_tags WHERE entry = ?", (no,))
            self._db.executemany("INSERT INTO entry_tags VALUES (?, ?, ?)", [(shelf_no, tag, no) for tag in entry.tags])
        if index is not None:
            self.put_index([(no, index)])
        if index is not None or vector is not None:  # an old vector would be one of another text
            self._db.execute("UPDATE index_records SET vector = ? WHERE entry = ?", (vector_blob(vector), no))
            self._db.execute("UPDATE entries SET index_seq = ? WHERE no = ?", (seq, no))
            self._db.execute("DELETE FROM new_vectors WHERE entry = ?", (no,))

    def count_use(self, nos: Sequence[int], at: datetime) -> None:
        # Only these columns: writing all of a row would write all of its indexes too.
        moment = to_micros(at)
        there = self._shelves_of(dict.fromkeys(nos))
        self._db.executemany(
            "UPDATE entries SET seq = ?, usage_count = usage_count + 1, updated_at = max(updated_at, ?) WHERE no = ?",
            [(self._seq(shelf_no), moment, no) for no, shelf_no in there.items()],
        )

    def alive(self, nos: Sequence[int]) -> set[int]:
        return set(self._shelves_of(dict.fromkeys(nos)))

    def _shelves_of(self, nos: Iterable[int]) -> dict[int, int]:
        """Those of the row numbers that are there, each with its shelf; rows met in this transaction are known."""
        known = self._shelf_of
        unknown = [no for no in nos if no not in known]
        found = shelves_of(self._db, unknown, likely=next(iter(self._numbers.values()), -1)) if unknown else {}
        known.update(found)
        return found if len(found) == len(known) else {no: known[no] for no in nos if no in known}

    def remove(self, shelf: Shelf, selection: Selection) -> Removed:
        shelf_no = shelf_no_of(self._db, shelf)
        if shelf_no is None:
            return Removed()
        where, values = matching(selection)
        rows = self._db.execute(
            f"SELECT e.no, e.id FROM entries e WHERE e.shelf = ?{where} ORDER BY e.no",
            (shelf_no, *values),
        ).fetchall()
        if not rows:
            return Removed()
        self._latest.clear()
        seq = self._seq(shelf_no)
        counted = {"index_records": 0, "vectors": 0, "links": 0, "versions": 0, "dossiers": 0}
        for no, entry_id in rows:
            for table, number in self._hanging_on(no).items():
                counted[table] += number
            counted["dossiers"] += dossiers.forget_entry(self._db, no)
            self._db.execute("DELETE FROM entries WHERE no = ?", (no,))
            self._nos.pop(entry_id, None)
            self._own.pop((entry_id, shelf_no), None)
            self._shelf_of.pop(no, None)
            self._db.execute("INSERT INTO removed VALUES (?, ?, ?)", (shelf_no, seq, no))
        learning_log.blank_queries(self._db, shelf_no, {no for no, _ in rows})
        return Removed(ids=[entry_id for _, entry_id in rows], entries=len(rows), **counted)

    def _hanging_on(self, no: int) -> dict[str, int]:
        """Rows that go with an entry."""
        row = self._db.execute(
            """
            SELECT (SELECT count(*) FROM index_records WHERE entry = ?1),
                   (SELECT count(vector) FROM index_records WHERE entry = ?1)
                     + (SELECT count(*) FROM new_vectors WHERE entry = ?1),
                   (SELECT count(*) FROM links WHERE source = ?1) + (SELECT count(*) FROM links WHERE target = ?1),
                   (SELECT count(*) FROM replaced WHERE entry = ?1)
            """,
            (no,),
        ).fetchone()
        return dict(zip(("index_records", "vectors", "links", "versions"), row, strict=True))

    def drop_shelf(self, shelf: Shelf) -> Removed:
        shelf_no = shelf_no_of(self._db, shelf)
        if shelf_no is None:
            return Removed()
        entries = self.remove(shelf, Selection())
        turns = self.remove_turns(shelf)
        recalls = learning_log.recalls_on(self._db, shelf_no)
        jobs_left, dossiers_left = jobs.count_on(self._db, shelf_no), dossiers.count_on(self._db, shelf_no)
        self._db.execute("DELETE FROM shelves WHERE no = ?", (shelf_no,))
        self._recalls.clear()
        self._numbers.pop(shelf, None)
        self._seqs.pop(shelf_no, None)
        return Removed(
            ids=entries.ids, entries=entries.entries, index_records=entries.index_records, vectors=entries.vectors,
            links=entries.links, versions=entries.versions, turns=turns.turns, sessions=turns.sessions,
            recalls=recalls, jobs=turns.jobs + jobs_left,
            dossiers=entries.dossiers + turns.dossiers + dossiers_left,
        )  # fmt: skip

    def add_replaced(self, replaced: Replaced) -> None:
        self._keep_replaced(self._row_no(replaced.entry.id, self._shelf_no(replaced.entry.shelf)), replaced)

    def _keep_replaced(self, no: int, replaced: Replaced) -> None:
        self._db.execute(
            "INSERT INTO replaced (entry, change, changed_at, snapshot) VALUES (?, ?, ?, ?)",
            (no, replaced.change, to_micros(replaced.changed_at), snapshot_of(replaced.entry)),
        )

    def audit(self, event: Event) -> None:
        self._db.execute(
            "INSERT INTO audit (at, tenant, action, entry_id, detail) VALUES (?, ?, ?, ?, ?)",
            (to_micros(event.at), event.tenant, event.action, event.entry_id,
             json.dumps(event.detail) if event.detail else "{}"),
        )  # fmt: skip

    # -- turns ---------------------------------------------------------------------------------------------------

    def open_session(self, shelf: Shelf, session_id: str, at: datetime) -> int:
        return sessions.open_session(self._db, self._shelf_no(shelf), session_id, at)

    def add_turn(self, shelf: Shelf, turn: Turn, *, touched_at: datetime | None = None) -> None:
        sessions.add_turn(self._db, self._shelf_no(shelf), turn, touched_at or turn.at)

    def remove_turns(self, shelf: Shelf, *, session_id: str | None = None,
                     entry_ids: Sequence[str] | None = None) -> Removed:  # fmt: skip
        return sessions.remove_turns(self._db, self._known_shelf(shelf), session_id, entry_ids)

    def session(self, shelf: Shelf, session_id: str) -> SessionHead | None:
        return sessions.head(self._db, shelf, session_id)

    def mark_session(self, shelf: Shelf, session_id: str, *, reflected: int | None = None,
                     ended_at: datetime | None = None) -> None:  # fmt: skip
        sessions.mark(self._db, shelf, session_id, reflected, ended_at)

    # -- model calls ---------------------------------------------------------------------------------------------

    def add_calls(self, calls: Sequence[Call]) -> None:
        ledger.add(self._db, [checked_call(call) for call in calls])

    # -- jobs ----------------------------------------------------------------------------------------------------

    def add_job(self, job: Job) -> bool:
        own = own_job(job)
        return jobs.add(self._db, self._shelf_no(job.shelf), own)

    def claim_job(self, worker: str, now: datetime, lease_until: datetime, *, kinds: Sequence[str] | None = None,
                  tenant: str | None = None, id: str | None = None) -> Job | None:  # fmt: skip
        return jobs.claim(self._db, worker, now, lease_until, kinds=kinds, tenant=tenant, id=id)

    def job(self, id: str) -> Job | None:
        return jobs.by_id(self._db, id)

    def put_job(self, job: Job) -> None:
        jobs.put(self._db, own_job(job))

    def prune_jobs(self, before: datetime) -> int:
        return jobs.prune(self._db, before)

    # -- dossiers ------------------------------------------------------------------------------------------------

    def put_dossier(self, dossier: Dossier) -> bool:
        own = own_dossier(dossier)
        named = dossiers.rows_named(self._db, own)
        if len(named) < len(own.names):
            return False
        dossiers.put(self._db, self._shelf_no(own.shelf), own, named)
        return True

    def put_bodies(self, shelf: Shelf, kind: str, bodies: Mapping[str, dict[str, Any]], at: datetime) -> None:
        own = {key: own_body(body, kind, key) for key, body in bodies.items()}
        dossiers.put_bodies(self._db, self._shelf_no(shelf), kind, own, at)

    def bodies(self, shelf: Shelf, kind: str, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        return dossiers.bodies(self._db, shelf, kind, keys)

    def dossier(self, shelf: Shelf, kind: str, key: str) -> Dossier | None:
        return dossiers.by_key(self._db, shelf, kind, key)

    def drop_dossier(self, shelf: Shelf, kind: str, key: str) -> bool:
        return dossiers.drop(self._db, shelf, kind, key)
