"""What only SQLite can see of its file: pages, references, side tables and counters; and mending those.

Rows that cannot be read are mended too: what an entry or a turn says stays as far as it is readable, its damaged fields
get their defaults; older versions, links and records that cannot be read are dropped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from wellworn.core.clock import from_micros
from wellworn.core.errors import StoreCorrupt
from wellworn.core.hashes import thread_of
from wellworn.store import convert
from wellworn.store.damage import TROUBLE
from wellworn.store.port import Flaw
from wellworn.store.sqlite.db import BROKEN, SqliteDb, translation

_NO_ENTRY = "entry NOT IN (SELECT no FROM entries)"
_NO_END = "source NOT IN (SELECT no FROM entries) OR target NOT IN (SELECT no FROM entries)"
_NO_PARTITION = "partition IS NOT NULL AND partition NOT IN (SELECT no FROM partitions)"
_TURNS = "coalesce((SELECT max(number) + 1 FROM turns WHERE turns.session = sessions.no), 0)"
_IS_LIST = "typeof(e.tags) = 'text' AND json_valid(e.tags)"
_TAGS = f"json_each(iif({_IS_LIST}, e.tags, '[]'))"
_NO_EPISODE = f"entry IS NOT NULL AND {_NO_ENTRY} AND session IN (SELECT no FROM sessions)"
_SAID_AGAIN = f"""
INSERT OR IGNORE INTO entries (
  no, id, partition, seq, index_seq, kind, state, trust, confidence, repeats, usage_count, success_count, failure_count,
  token_count, at, created_at, updated_at, valid_from, thread, position, session_id, turn_refs, content_hash, source,
  speaker, title, tags, metadata, text
)
SELECT t.entry, lower(printf('%s-%s-4%.3s-8%.3s-%s', hex(randomblob(4)), hex(randomblob(2)), hex(randomblob(2)),
  hex(randomblob(2)), hex(randomblob(6)))), p.no, p.seq + 1, p.seq + 1, 'episode', 'active', 'untrusted', 0.5, 0, 0, 0, 0,
  0, t.at, t.at, t.at, t.at, thread_of('session', s.session_id),
  t.number, s.session_id, json_array(t.number), 'of turn ' || t.no, t.role, t.speaker, '', '[]', '{{}}', t.text
FROM (SELECT * FROM turns WHERE {_NO_EPISODE}) t JOIN sessions s ON s.no = t.session JOIN partitions p ON p.no = s.partition
"""
"""Whether it was trusted is lost with the entry. Its hash, index record and vector are made as those of any other."""
ORPHANS = {
    # check name: (what the row is, its subject, where it is, what mends it: else the row is dropped)
    "turn_without_entry": ("its entry is gone, so it is not recalled", "no", f"turns WHERE {_NO_EPISODE}", _SAID_AGAIN),
    "index_without_entry": ("an index record of no entry", "entry", f"index_records WHERE {_NO_ENTRY}", ""),
    "vector_without_entry": ("a vector of no entry", "entry", f"new_vectors WHERE {_NO_ENTRY}", ""),
    "tag_without_entry": ("a tag of no entry", "entry", f"entry_tags WHERE {_NO_ENTRY}", ""),
    "link_without_end": ("a link with a missing end", "source || '→' || target", f"links WHERE {_NO_END}", ""),
    "version_without_entry": ("an old version of no entry", "no", f"replaced WHERE {_NO_ENTRY}", ""),
    "record_without_partition": ("a record of no partition", "no", f"records WHERE {_NO_PARTITION}", ""),
    "record_without_entry": (
        "a record of an entry that is gone",
        "record",
        f"record_entries WHERE {_NO_ENTRY}",
        f"DELETE FROM records WHERE no IN (SELECT record FROM record_entries WHERE {_NO_ENTRY})",
    ),
    "turn_count": (
        "the count of its turns is not that of the turns",
        "no",
        f"sessions WHERE turns <> {_TURNS}",
        f"UPDATE sessions SET turns = {_TURNS}",
    ),
    "removed_but_there": (
        "an entry counted as removed is there",
        "entry",
        "removed WHERE entry IN (SELECT no FROM entries)",
        "",
    ),
    "count_behind": (
        "an entry is ahead of its partition's count",
        "e.id",
        "entries e JOIN partitions s ON s.no = e.partition WHERE e.seq > s.seq OR e.index_seq > e.seq",
        "UPDATE partitions SET seq = max(seq, (SELECT coalesce(max(max(e.seq, e.index_seq)), 0) + 1 FROM entries e "
        "WHERE e.partition = partitions.no))",
    ),
    "tags": (
        "the tag index disagrees",
        "e.id",
        f"entries e WHERE {_IS_LIST} AND (SELECT json_group_array(value) FROM (SELECT value FROM {_TAGS} ORDER BY value)) <> "
        "(SELECT json_group_array(tag) FROM (SELECT tag FROM entry_tags t WHERE t.entry = e.no AND t.partition = e.partition "
        "ORDER BY tag))",
        f"DELETE FROM entry_tags; INSERT OR IGNORE INTO entry_tags SELECT e.partition, value, e.no FROM entries e, {_TAGS}",
    ),
}


def check_tables(db: SqliteDb) -> Iterator[Flaw]:
    """Every flaw of the file itself. Where a broken page stops the search, that is the last one."""
    try:
        yield from _flaws(db)
    except BROKEN as error:
        if not isinstance(translation(error), StoreCorrupt):
            raise
        yield Flaw(check="pages", subject="file", problem=f"a page cannot be read: {error}", repairable=False)


def _flaws(db: SqliteDb) -> Iterator[Flaw]:
    for (message,) in db.execute("PRAGMA integrity_check"):
        if message != "ok":
            yield Flaw(check="pages", subject="file", problem=str(message), repairable=False)
    for table, row, parent, _ in db.execute("PRAGMA foreign_key_check").fetchall():
        if (table, parent) == ("entries", "partitions"):
            yield Flaw(check="partition", subject=f"row {row}", problem="an entry on no partition", repairable=False)
        elif table in ("turns", "sessions") and parent != "entries":
            problem = f"its {parent[:-1]} is gone; restore a backup"
            yield Flaw(check="turn", subject=f"{table} row {row}", problem=problem, repairable=False)
    for check, (problem, column, where, _) in ORPHANS.items():
        for (subject,) in db.ask(f"SELECT {column} FROM {where}"):
            yield Flaw(check=check, subject=f"row {subject}", problem=problem, repairable=True)


def _json(text: object) -> Any:  # any JSON value
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def mend_tables(db: SqliteDb) -> list[Flaw]:
    """Mend rows that cannot be read, drop what hangs on nothing, rebuild the tag index; returns what was mended."""
    triggers = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:  # logs are append-only for everybody else
        db.execute(f"DROP TRIGGER {name}")
    mended = [*_mend_rows(db), *(flaw for flaw in _flaws(db) if flaw.repairable)]
    for _, statement in triggers:
        db.execute(statement)
    db.create_function("thread_of", 2, thread_of)
    for _, _, where, statement in ORPHANS.values():
        for one in (statement or f"DELETE FROM {where}").split(";"):
            db.execute(one)
    return mended


# -- rows that cannot be read ------------------------------------------------------------------------------------

_DEFAULTS: dict[str, Any] = {
    "confidence": 0.5,
    "kind": "note",
    "state": "active",
    "trust": "untrusted",
    "metadata": "{}",
    "source": "repair",
    "role": "user",
}
_JSON_TYPES = {"turn_refs": list, "tags": list, "metadata": dict}
_TIMES = ("at", "created_at", "updated_at", "valid_from")
_DROPPED: dict[str, tuple[str, Callable[[tuple[Any, ...]], object]]] = {
    "replaced": (
        "SELECT r.rowid, r.snapshot, r.change, r.changed_at, 't', 'user', 'u', r.no FROM replaced r",
        convert.replaced_from,
    ),
    "records": (
        convert.SELECT_RECORD.replace("SELECT", "SELECT r.rowid,", 1),
        lambda row: convert.record_from(row, None),
    ),
}
_LINKS = "SELECT source, target, type, 's', 't', type, confidence, automatic, created_at FROM links"


def _mend_rows(db: SqliteDb) -> Iterator[Flaw]:
    query = f"SELECT e.no, {convert.SELECT_ENTRY} FROM entries e JOIN partitions s ON s.no = e.partition"
    yield from _mend_fields(db, "entries", query, convert.ENTRY_COLUMNS, convert.entry_from)
    columns = ("number", "role", "text", "at", "speaker")
    query = f"SELECT no, {', '.join(columns)}, NULL FROM turns"
    yield from _mend_fields(db, "turns", query, columns, partial(convert.turn_from, session_id=""))
    for table, (query, make) in _DROPPED.items():
        for no, *row in db.ask(query):
            if not _readable(make, row):
                db.execute(f"DELETE FROM {table} WHERE rowid = ?", (no,))
                yield _mended(f"{table} row {no}", "it could not be read and is dropped")
    for source, target, type_, *row in db.ask(_LINKS):
        if not _readable(convert.link_from, row):
            db.execute("DELETE FROM links WHERE source = ? AND target = ? AND type IS ?", (source, target, type_))
            yield _mended(f"link {source}→{target}", "it could not be read and is dropped")


def _mend_fields(
    db: SqliteDb, table: str, query: str, columns: Sequence[str], make: Callable[[tuple[Any, ...]], object]
) -> Iterator[Flaw]:
    """Give defaults to the fields that cannot be read, of rows whose words can."""
    for no, *row in db.ask(query):
        if _readable(make, row):
            continue
        fixed = _fixed(dict(zip(columns, row, strict=False)))
        if isinstance(fixed.get("id", ""), str) and isinstance(fixed["text"], str):
            setters = ", ".join(f"{name} = ?" for name in fixed)
            db.execute(f"UPDATE OR IGNORE {table} SET {setters} WHERE no = ?", (*fixed.values(), no))
            yield _mended(f"{table} row {no}", "its unreadable fields have their defaults now")


def _mended(subject: str, problem: str) -> Flaw:
    return Flaw(check="readable", subject=subject, problem=problem, repairable=True)


def _readable(make: Callable[[tuple[Any, ...]], object], row: Sequence[Any]) -> bool:
    try:
        make(tuple(row))
    except TROUBLE:
        return False
    return True


def _fixed(row: dict[str, Any]) -> dict[str, Any]:
    """The row with defaults for what cannot be read."""
    first = next((value for name in _TIMES if _is_time(value := row.get(name))), 0)
    for name, value in row.items():
        if isinstance(value, bytes) and name not in _JSON_TYPES:
            row[name] = value = value.decode("utf-8", "replace")
        default: Any = ""
        sound = isinstance(value, str) or name in ("id", "text")
        if name in (*_TIMES, "valid_to"):
            sound, default = _is_time(value), first
        elif name in _JSON_TYPES:
            sound, default = isinstance(_json(value), _JSON_TYPES[name]), "[]"
        elif name in ("confidence", "thread", "position") or name.endswith(("count", "repeats", "number")):
            sound, default = isinstance(value, int | float), 0
        if not sound:
            row[name] = None if name in convert.MAYBE else _DEFAULTS.get(name, default)
    return row


def _is_time(value: object) -> bool:
    return isinstance(value, int) and _readable(lambda row: from_micros(row[0]), [value])
