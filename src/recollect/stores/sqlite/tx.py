"""One write transaction on the SQLite file: the `Tx` port, statement by statement."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from recollect.clock import from_micros, to_micros
from recollect.errors import StoreError
from recollect.stores.base import (
    Call,
    Dossier,
    Event,
    IndexRecord,
    Job,
    LoggedRecall,
    Model,
    Neighbour,
    Record,
    Removed,
    Replaced,
    Selection,
    SessionHead,
    Vector,
)
from recollect.stores.logged import own_recall
from recollect.stores.owned import checked_call, own_body, own_dossier, own_job
from recollect.stores.sqlite import calls as ledger
from recollect.stores.sqlite import changes, dossiers, jobs, learning_log, sessions
from recollect.stores.sqlite.queries import alive, entries_by_id, in_parts, marks, matching, numbered_by_id, shelf_no_of
from recollect.stores.sqlite.rows import (
    ENTRY_COLUMNS,
    entry_row,
    index_from,
    index_row,
    list_from,
    snapshot_of,
    vector_blob,
)
from recollect.types import Entry, Link, Shelf, Turn

_INSERT_ENTRY = (
    f"INSERT INTO entries (shelf, seq, index_seq, {', '.join(ENTRY_COLUMNS)}) "
    f"VALUES ({', '.join('?' * (len(ENTRY_COLUMNS) + 3))})"
)
_UPDATE_ENTRY = f"UPDATE entries SET seq = ?, {', '.join(f'{column} = ?' for column in ENTRY_COLUMNS)} WHERE no = ?"
_INSERT_INDEX = """
INSERT INTO index_records (entry, shelf, near_a, near_b, length, chars, traits, speaker, terms, counts, vector)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_SHARING_A_SKETCH = " UNION ALL ".join(
    f"SELECT * FROM (SELECT i.entry FROM index_records i CROSS JOIN entries e ON e.no = i.entry "
    f"WHERE i.{column} = ? AND i.{column} <> 0 AND i.shelf = ? AND e.state IN ('active', 'flagged') "
    "ORDER BY i.entry DESC LIMIT ?)"
    for column in ("near_a", "near_b")
)

RECENT_PER_TAG = 64
"""Entries looked at per tag: a tag that ten thousand entries have must not make the next one slow."""


class SqliteTx:
    """Writes of one transaction. The shelf's count is raised once, at its first change."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._numbers: dict[Shelf, int] = {}
        self._seqs: dict[int, int] = {}
        self._nos: dict[str, int] = {}
        self._own: dict[tuple[str, int], int] = {}
        """Row numbers of entries that were read, by id and shelf."""
        self._latest: dict[Shelf, Neighbour] = {}
        self._model: tuple[int, Model] | None = None
        self._model_known = False

    # -- shelves -------------------------------------------------------------------------------------------------

    def _shelf_no(self, shelf: Shelf) -> int:
        """The shelf's number; made when new."""
        number = self._numbers.get(shelf)
        if number is None:
            number = shelf_no_of(self._db, shelf)
            if number is None:
                number = self._db.execute(
                    "INSERT INTO shelves (tenant, layer, layer_id) VALUES (?, ?, ?)",
                    (shelf.tenant, shelf.layer, shelf.layer_id),
                ).lastrowid
                assert number is not None  # noqa: S101  an INSERT always has one
            self._numbers[shelf] = number
        return number

    def _known_shelf(self, shelf: Shelf) -> int:
        """The shelf's number, or one that no shelf has: looking makes no shelf."""
        number = self._numbers.get(shelf) or shelf_no_of(self._db, shelf)
        if number is None:
            return -1
        self._numbers[shelf] = number
        return number

    def _seq(self, shelf_no: int) -> int:
        """The count that this transaction's changes on the shelf carry."""
        seq = self._seqs.get(shelf_no)
        if seq is None:
            (seq,) = self._db.execute(
                "UPDATE shelves SET seq = seq + 1 WHERE no = ? RETURNING seq", (shelf_no,)
            ).fetchone()
            self._seqs[shelf_no] = seq
        return seq

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
        for part in in_parts(nos):
            rows = self._db.execute(
                f"SELECT no, shelf FROM entries WHERE no IN ({marks(part)})", tuple(part)
            ).fetchall()
            self._db.executemany(
                "UPDATE entries SET seq = ?, usage_count = usage_count + 1, updated_at = max(updated_at, ?) "
                "WHERE no = ?",
                [(self._seq(shelf_no), moment, no) for no, shelf_no in rows],
            )

    def alive(self, nos: Sequence[int]) -> set[int]:
        return alive(self._db, nos)

    def _row_no(self, entry_id: str, shelf_no: int) -> int:
        if (known := self._own.get((entry_id, shelf_no))) is not None:
            return known
        row = self._db.execute("SELECT no FROM entries WHERE id = ? AND shelf = ?", (entry_id, shelf_no)).fetchone()
        if row is None:
            raise StoreError(f"no entry {entry_id!r} on this shelf to change")
        self._nos[entry_id] = no = int(row[0])
        return no

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

    # -- links and neighbours ------------------------------------------------------------------------------------

    def add_links(self, links: Sequence[Link]) -> int:
        return len({(link.source, link.target, link.type) for link in links if self._add_link(link)})

    def _add_link(self, link: Link) -> int:
        if link.source == link.target:
            raise StoreError(f"entry {link.source!r} cannot be linked to itself")
        return self._db.execute(
            "INSERT INTO links VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET automatic = 0, "
            "confidence = excluded.confidence, created_at = excluded.created_at "
            "WHERE automatic = 1 AND excluded.automatic = 0",
            (self._no_of(link.source), self._no_of(link.target), link.type, link.confidence, link.automatic,
             to_micros(link.created_at)),
        ).rowcount  # fmt: skip

    def _no_of(self, entry_id: str) -> int:
        """The row number of an entry; those met in this transaction are known."""
        no = self._nos.get(entry_id)
        if no is None:
            row = self._db.execute("SELECT no FROM entries WHERE id = ?", (entry_id,)).fetchone()
            if row is None:
                raise StoreError(f"no entry {entry_id!r} to link")
            no = self._nos[entry_id] = int(row[0])
        return no

    def remove_link(self, source: str, target: str, type_: str) -> bool:
        return bool(
            self._db.execute(
                "DELETE FROM links WHERE source = (SELECT no FROM entries WHERE id = ?) "
                "AND target = (SELECT no FROM entries WHERE id = ?) AND type = ?",
                (source, target, type_),
            ).rowcount
        )

    def latest(self, shelf: Shelf) -> Neighbour | None:
        if shelf in self._latest:
            return self._latest[shelf]
        found = self._neighbours("e.shelf = ?", (self._known_shelf(shelf),), 1)
        return found[0] if found else None

    def session_tail(self, shelf: Shelf, session_id: str, limit: int) -> list[Neighbour]:
        return self._neighbours("e.shelf = ? AND e.session_id = ?", (self._known_shelf(shelf), session_id), limit)

    def sharing_tags(self, shelf: Shelf, tags: Sequence[str], at_least: int, limit: int) -> list[Neighbour]:
        shelf_no = self._known_shelf(shelf)
        shared: Counter[int] = Counter()
        for tag in dict.fromkeys(tags):
            rows = self._db.execute(
                "SELECT entry FROM entry_tags WHERE shelf = ? AND tag = ? ORDER BY entry DESC LIMIT ?",
                (shelf_no, tag, RECENT_PER_TAG),
            )
            shared.update(no for (no,) in rows)
        found = [no for no, number in shared.items() if number >= at_least]
        return (
            self._neighbours("e.no IN (SELECT value FROM json_each(?))", (json.dumps(found),), limit) if found else []
        )

    def near(self, shelf: Shelf, near: tuple[int, int], limit: int) -> list[Neighbour]:
        shelf_no = self._known_shelf(shelf)
        sharing = self._db.execute(_SHARING_A_SKETCH, (near[0], shelf_no, limit, near[1], shelf_no, limit)).fetchall()
        if not sharing:
            return []
        found = {no for (no,) in sharing}
        rows = self._db.execute(
            """
            SELECT e.no, e.id, e.at, e.tags, i.near_a, i.near_b, i.length, i.chars, i.traits, i.speaker, i.terms,
                   i.counts
            FROM entries e JOIN index_records i ON i.entry = e.no
            WHERE e.no IN (SELECT value FROM json_each(?)) ORDER BY e.no DESC LIMIT ?
            """,
            (json.dumps(list(found)), limit),
        )
        return [self._neighbour(no, id_, at, tags, index_from(index)) for no, id_, at, tags, *index in rows]

    def _neighbours(self, condition: str, values: tuple[Any, ...], limit: int) -> list[Neighbour]:
        rows = self._db.execute(
            f"SELECT e.no, e.id, e.at, e.tags FROM entries e WHERE {condition} "
            "AND e.state IN ('active', 'flagged') ORDER BY e.no DESC LIMIT ?",
            (*values, limit),
        )
        return [self._neighbour(*row) for row in rows]

    def _neighbour(self, no: int, entry_id: str, at: int, tags: str, index: IndexRecord | None = None) -> Neighbour:
        self._nos[entry_id] = no
        return Neighbour(id=entry_id, at=from_micros(at), tags=list_from(tags), index=index)

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

    # -- vectors and index ---------------------------------------------------------------------------------------

    def _current(self) -> tuple[int, Model] | None:
        if not self._model_known:
            row = self._db.execute("SELECT no, name, width FROM models WHERE current = 1").fetchone()
            self._model = None if row is None else (row[0], Model(name=row[1], width=row[2]))
            self._model_known = True
        return self._model

    def model(self) -> Model | None:
        current = self._current()
        return None if current is None else current[1]

    def _check_width(self, vector: Vector | None) -> None:
        if vector is None:
            return
        current = self._current()
        if current is None:
            raise StoreError("the store has no embedding model, but a vector was given")
        if vector.shape != (current[1].width,):
            raise StoreError(f"a vector of shape {vector.shape} does not fit {current[1].name} ({current[1].width})")

    def put_vectors(self, model: Model, vectors: Sequence[tuple[int, Vector]]) -> int:
        current = self._current()
        if current is not None and current[1] == model:
            return sum(self._put_current_vector(no, vector) for no, vector in vectors)
        model_no = self._model_no(model)
        for _, vector in vectors:
            if vector.shape != (model.width,):
                raise StoreError(f"a vector of shape {vector.shape} does not fit {model.name} ({model.width})")
        return sum(
            self._db.execute(
                "INSERT OR REPLACE INTO new_vectors SELECT no, ?, ? FROM entries WHERE no = ?",
                (model_no, vector_blob(vector), no),
            ).rowcount
            for no, vector in vectors
        )

    def _put_current_vector(self, no: int, vector: Vector) -> int:
        self._check_width(vector)
        changed = self._db.execute("UPDATE index_records SET vector = ? WHERE entry = ?", (vector_blob(vector), no))
        if changed.rowcount:
            self._touch_index(no)
        return changed.rowcount

    def _model_no(self, model: Model) -> int:
        self._db.execute("INSERT OR IGNORE INTO models (name, width) VALUES (?, ?)", (model.name, model.width))
        row = self._db.execute(
            "SELECT no FROM models WHERE name = ? AND width = ?", (model.name, model.width)
        ).fetchone()
        return int(row[0])

    def put_index(self, records: Sequence[tuple[int, IndexRecord]]) -> None:
        for no, record in records:
            *values, _ = index_row(record, None)
            self._db.execute(
                """
                INSERT INTO index_records (entry, shelf, near_a, near_b, length, chars, traits, speaker, terms, counts)
                SELECT no, shelf, ?, ?, ?, ?, ?, ?, ?, ? FROM entries WHERE no = ?
                ON CONFLICT (entry) DO UPDATE SET near_a = excluded.near_a, near_b = excluded.near_b,
                  length = excluded.length, chars = excluded.chars, traits = excluded.traits,
                  speaker = excluded.speaker, terms = excluded.terms, counts = excluded.counts
                """,
                (*values, no),
            )
            self._touch_index(no)

    def _touch_index(self, no: int) -> None:
        row = self._db.execute("SELECT shelf FROM entries WHERE no = ?", (no,)).fetchone()
        if row is not None:
            seq = self._seq(row[0])
            self._db.execute("UPDATE entries SET seq = ?, index_seq = ? WHERE no = ?", (seq, seq, no))

    def use_model(self, model: Model) -> None:
        current = self._current()
        model_no = self._model_no(model)
        if current is None or current[1] != model:
            self._db.execute(
                "UPDATE index_records SET vector = (SELECT vector FROM new_vectors v "
                "WHERE v.entry = index_records.entry AND v.model = ?)",
                (model_no,),
            )
            for (shelf_no,) in self._db.execute("SELECT no FROM shelves").fetchall():
                seq = self._seq(shelf_no)
                self._db.execute("UPDATE entries SET seq = ?, index_seq = ? WHERE shelf = ?", (seq, seq, shelf_no))
        self._db.execute("DELETE FROM new_vectors")
        self._db.execute("DELETE FROM models WHERE no <> ?", (model_no,))
        self._db.execute("UPDATE models SET current = 1 WHERE no = ?", (model_no,))
        self._model_known = False

    def audit(self, event: Event) -> None:
        self._db.execute(
            "INSERT INTO audit (at, tenant, action, entry_id, detail) VALUES (?, ?, ?, ?, ?)",
            (to_micros(event.at), event.tenant, event.action, event.entry_id,
             json.dumps(event.detail) if event.detail else "{}"),
        )  # fmt: skip

    # -- learning ------------------------------------------------------------------------------------------------

    def add_recalls(self, recalls: Sequence[LoggedRecall]) -> None:
        for recall in [own_recall(recall) for recall in recalls]:
            if not learning_log.has_recall(self._db, recall.id):
                learning_log.add_recall(self._db, self._shelf_no(recall.shelf), recall)

    def logged_recall(self, recall_id: str) -> LoggedRecall | None:
        found = learning_log.recall_by_id(self._db, recall_id)
        if found is None:
            return None
        recall, self._numbers[recall.shelf] = found
        return recall

    def add_outcome(self, recall_id: str, kind: str, value: dict[str, Any], at: datetime) -> int | None:
        return learning_log.add_outcome(self._db, recall_id, kind, value, at)

    def policy(self, tenant: str, shelf: Shelf | None, *, profile: str = "default") -> str | None:
        return learning_log.policy(self._db, tenant, shelf, profile)

    def policies(self, shelf: Shelf, *, profile: str = "default") -> tuple[str | None, str | None]:
        return learning_log.policies(self._db, shelf, profile)

    def put_policy(self, tenant: str, shelf: Shelf | None, state: str, *, profile: str = "default") -> None:
        if shelf is not None and shelf.tenant != tenant:
            raise StoreError(f"shelf {shelf} is not of tenant {tenant!r}")
        learning_log.put_policy(self._db, tenant, None if shelf is None else self._shelf_no(shelf), state, profile)

    def drop_policies(self, tenant: str, *, profile: str | None = None) -> int:
        return learning_log.drop_policies(self._db, tenant, profile)

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
