"""One write transaction on the SQLite file: the `Tx` port, statement by statement.

Entries, turns and jobs are here; links, vectors and learning in the `tx_` files beside.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from wellworn.core.clock import to_micros
from wellworn.core.values import Entry, Partition, Turn
from wellworn.store.owned import checked_call, own_body, own_job, own_record
from wellworn.store.port import (
    Call,
    Event,
    IndexRecord,
    Job,
    Neighbour,
    NewEntry,
    Record,
    Removed,
    Replaced,
    Selection,
    SessionHead,
    Vector,
)
from wellworn.store.sqlite import calls as ledger
from wellworn.store.sqlite import changes, jobs, learning_log, records, sessions
from wellworn.store.sqlite.queries import entries_by_id, matching, numbered_by_id, partition_no_of, partitions_of
from wellworn.store.sqlite.rows import ENTRY_COLUMNS, entry_row, index_row, snapshot_of, vector_blob
from wellworn.store.sqlite.tx_learning import LearningTx
from wellworn.store.sqlite.tx_links import LinksTx
from wellworn.store.sqlite.tx_vectors import VectorsTx

_INSERT_ENTRY = (
    f"INSERT INTO entries (partition, seq, index_seq, {', '.join(ENTRY_COLUMNS)}) "
    f"VALUES ({', '.join('?' * (len(ENTRY_COLUMNS) + 3))})"
)
_UPDATE_ENTRY = f"UPDATE entries SET seq = ?, {', '.join(f'{column} = ?' for column in ENTRY_COLUMNS)} WHERE no = ?"
_INSERT_INDEX = """
INSERT INTO index_records (entry, partition, near_a, near_b, length, chars, traits, speaker, terms, counts, vector)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


class SqliteTx(LinksTx, VectorsTx, LearningTx):
    """Writes of one transaction."""

    # -- entries -------------------------------------------------------------------------------------------------

    def find_same(self, partition: Partition, content_hash: str) -> Entry | None:
        row = self._db.execute(
            "SELECT id FROM entries WHERE partition = ? AND content_hash = ? AND state IN ('active', 'flagged')",
            (self._known_partition(partition), content_hash),
        ).fetchone()
        return None if row is None else self.get([partition], [row[0]])[row[0]]

    def get(self, partitions: Sequence[Partition], ids: Sequence[str]) -> dict[str, Entry]:
        found, nos = numbered_by_id(self._db, partitions, ids)
        self._own.update(nos)
        return found

    def add(self, record: NewEntry) -> None:
        entry = record.entry
        self._check_width(record.vector)
        partition_no = self._partition_no(entry.partition)
        seq = self._seq(partition_no)
        no = self._db.execute(_INSERT_ENTRY, (partition_no, seq, seq, *entry_row(entry))).lastrowid
        assert no is not None  # noqa: S101  an INSERT always has one
        self._nos[entry.id] = no
        if entry.state in ("active", "flagged"):
            self._latest[entry.partition] = Neighbour(id=entry.id, at=entry.at, tags=[*entry.tags])
        self._db.execute(_INSERT_INDEX, (no, partition_no, *index_row(record.index, record.vector)))
        if entry.tags:
            self._db.executemany(
                "INSERT INTO entry_tags VALUES (?, ?, ?)", [(partition_no, tag, no) for tag in entry.tags]
            )

    def update(
        self,
        entry: Entry,
        *,
        change: str | None,
        index: IndexRecord | None = None,
        vector: Vector | None = None,
        before: Entry | None = None,
    ) -> None:
        self._check_width(vector)
        partition_no = self._partition_no(entry.partition)
        no = self._row_no(entry.id, partition_no)
        if change is not None:
            old = before or entries_by_id(self._db, [entry.partition], [entry.id])[entry.id]
            self._keep_replaced(no, Replaced(entry=old, change=change, changed_at=entry.updated_at))
        self._latest.clear()  # it may be the latest, and no longer offered
        seq = self._seq(partition_no)
        if before is None:
            self._db.execute(_UPDATE_ENTRY, (seq, *entry_row(entry), no))
        else:
            changes.write(self._db, no, seq, before, entry)
        if before is None or before.tags != entry.tags:
            self._db.execute("DELETE FROM entry_tags WHERE entry = ?", (no,))
            self._db.executemany(
                "INSERT INTO entry_tags VALUES (?, ?, ?)", [(partition_no, tag, no) for tag in entry.tags]
            )
        if index is not None:
            self.put_index([(no, index)])
        if index is not None or vector is not None:  # an old vector would be one of another text
            self._db.execute("UPDATE index_records SET vector = ? WHERE entry = ?", (vector_blob(vector), no))
            self._db.execute("UPDATE entries SET index_seq = ? WHERE no = ?", (seq, no))
            self._db.execute("DELETE FROM new_vectors WHERE entry = ?", (no,))

    def count_use(self, nos: Sequence[int], at: datetime) -> None:
        # Only these columns: writing all of a row would write all of its indexes too.
        moment = to_micros(at)
        there = self._partitions_of(dict.fromkeys(nos))
        self._db.executemany(
            "UPDATE entries SET seq = ?, usage_count = usage_count + 1, updated_at = max(updated_at, ?) WHERE no = ?",
            [(self._seq(partition_no), moment, no) for no, partition_no in there.items()],
        )

    def alive(self, nos: Sequence[int]) -> set[int]:
        return set(self._partitions_of(dict.fromkeys(nos)))

    def _partitions_of(self, nos: Iterable[int]) -> dict[int, int]:
        """Those of the row numbers that are there, each with its partition; rows met in this transaction are known."""
        known = self._partition_of
        unknown = [no for no in nos if no not in known]
        found = partitions_of(self._db, unknown, likely=next(iter(self._numbers.values()), -1)) if unknown else {}
        known.update(found)
        return found if len(found) == len(known) else {no: known[no] for no in nos if no in known}

    def remove(self, partition: Partition, selection: Selection) -> Removed:
        partition_no = partition_no_of(self._db, partition)
        if partition_no is None:
            return Removed()
        where, values = matching(selection)
        rows = self._db.execute(
            f"SELECT e.no, e.id FROM entries e WHERE e.partition = ?{where} ORDER BY e.no", (partition_no, *values)
        ).fetchall()
        if not rows:
            return Removed()
        self._latest.clear()
        seq = self._seq(partition_no)
        counted = {"index_records": 0, "vectors": 0, "links": 0, "versions": 0, "records": 0}
        for no, entry_id in rows:
            for table, number in self._hanging_on(no).items():
                counted[table] += number
            counted["records"] += records.forget_entry(self._db, no)
            self._db.execute("DELETE FROM entries WHERE no = ?", (no,))
            self._nos.pop(entry_id, None)
            self._own.pop((entry_id, partition_no), None)
            self._partition_of.pop(no, None)
            self._db.execute("INSERT INTO removed VALUES (?, ?, ?)", (partition_no, seq, no))
        learning_log.blank_queries(self._db, partition_no, {no for no, _ in rows})
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

    def drop_partition(self, partition: Partition) -> Removed:
        partition_no = partition_no_of(self._db, partition)
        if partition_no is None:
            return Removed()
        entries = self.remove(partition, Selection())
        turns = self.remove_turns(partition)
        recalls = learning_log.recalls_on(self._db, partition_no)
        jobs_left, records_left = jobs.count_on(self._db, partition_no), records.count_on(self._db, partition_no)
        self._db.execute("DELETE FROM partitions WHERE no = ?", (partition_no,))
        self._recalls.clear()
        self._numbers.pop(partition, None)
        self._seqs.pop(partition_no, None)
        return Removed(
            ids=entries.ids,
            entries=entries.entries,
            index_records=entries.index_records,
            vectors=entries.vectors,
            links=entries.links,
            versions=entries.versions,
            turns=turns.turns,
            sessions=turns.sessions,
            recalls=recalls,
            jobs=turns.jobs + jobs_left,
            records=entries.records + turns.records + records_left,
        )

    def add_replaced(self, replaced: Replaced) -> None:
        self._keep_replaced(self._row_no(replaced.entry.id, self._partition_no(replaced.entry.partition)), replaced)

    def _keep_replaced(self, no: int, replaced: Replaced) -> None:
        self._db.execute(
            "INSERT INTO replaced (entry, change, changed_at, snapshot) VALUES (?, ?, ?, ?)",
            (no, replaced.change, to_micros(replaced.changed_at), snapshot_of(replaced.entry)),
        )

    def audit(self, event: Event) -> None:
        self._db.execute(
            "INSERT INTO audit (at, tenant, action, entry_id, detail) VALUES (?, ?, ?, ?, ?)",
            (
                to_micros(event.at),
                event.tenant,
                event.action,
                event.entry_id,
                json.dumps(event.detail) if event.detail else "{}",
            ),
        )

    # -- turns ---------------------------------------------------------------------------------------------------

    def open_session(self, partition: Partition, session_id: str, at: datetime) -> int:
        return sessions.open_session(self._db, self._partition_no(partition), session_id, at)

    def add_turn(self, partition: Partition, turn: Turn, *, touched_at: datetime | None = None) -> None:
        sessions.add_turn(self._db, self._partition_no(partition), turn, touched_at or turn.at)

    def remove_turns(
        self, partition: Partition, *, session_id: str | None = None, entry_ids: Sequence[str] | None = None
    ) -> Removed:
        return sessions.remove_turns(self._db, self._known_partition(partition), session_id, entry_ids)

    def session(self, partition: Partition, session_id: str) -> SessionHead | None:
        return sessions.head(self._db, partition, session_id)

    def mark_session(
        self, partition: Partition, session_id: str, *, reflected: int | None = None, ended_at: datetime | None = None
    ) -> None:
        sessions.mark(self._db, partition, session_id, reflected, ended_at)

    # -- model calls ---------------------------------------------------------------------------------------------

    def add_calls(self, calls: Sequence[Call]) -> None:
        ledger.add(self._db, [checked_call(call) for call in calls])

    # -- jobs ----------------------------------------------------------------------------------------------------

    def add_job(self, job: Job) -> bool:
        own = own_job(job)
        return jobs.add(self._db, self._partition_no(job.partition), own)

    def claim_job(
        self,
        worker: str,
        now: datetime,
        lease_until: datetime,
        *,
        kinds: Sequence[str] | None = None,
        tenant: str | None = None,
        id: str | None = None,
    ) -> Job | None:
        return jobs.claim(self._db, worker, now, lease_until, kinds=kinds, tenant=tenant, id=id)

    def job(self, id: str) -> Job | None:
        return jobs.by_id(self._db, id)

    def put_job(self, job: Job) -> None:
        jobs.put(self._db, own_job(job))

    def prune_jobs(self, before: datetime) -> int:
        return jobs.prune(self._db, before)

    # -- records ------------------------------------------------------------------------------------------------

    def put_record(self, record: Record) -> bool:
        own = own_record(record)
        named = records.rows_named(self._db, own)
        if len(named) < len(own.names):
            return False
        records.put(self._db, self._partition_no(own.partition), own, named)
        return True

    def put_bodies(self, partition: Partition, kind: str, bodies: Mapping[str, dict[str, Any]], at: datetime) -> None:
        own = {key: own_body(body, kind, key) for key, body in bodies.items()}
        records.put_bodies(self._db, self._partition_no(partition), kind, own, at)

    def bodies(self, partition: Partition, kind: str, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        return records.bodies(self._db, partition, kind, keys)

    def record(self, partition: Partition, kind: str, key: str) -> Record | None:
        return records.by_key(self._db, partition, kind, key)

    def drop_record(self, partition: Partition, kind: str, key: str) -> bool:
        return records.drop(self._db, partition, kind, key)
