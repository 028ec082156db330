"""What only SQLite can see of its file: pages, references, side tables and counters; and mending those."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator

from wellworn.store.port import Flaw

_ORPHANS = {
    # check name: (what the row is, query for its subjects, statement that drops them)
    "index_without_entry": (
        "an index record of no entry",
        "SELECT entry FROM index_records WHERE entry NOT IN (SELECT no FROM entries)",
        "DELETE FROM index_records WHERE entry NOT IN (SELECT no FROM entries)",
    ),
    "vector_without_entry": (
        "a vector of no entry",
        "SELECT entry FROM new_vectors WHERE entry NOT IN (SELECT no FROM entries)",
        "DELETE FROM new_vectors WHERE entry NOT IN (SELECT no FROM entries)",
    ),
    "tag_without_entry": (
        "a tag of no entry",
        "SELECT entry FROM entry_tags WHERE entry NOT IN (SELECT no FROM entries)",
        "DELETE FROM entry_tags WHERE entry NOT IN (SELECT no FROM entries)",
    ),
    "link_without_end": (
        "a link with a missing end",
        "SELECT source || '→' || target FROM links WHERE source NOT IN (SELECT no FROM entries) "
        "OR target NOT IN (SELECT no FROM entries)",
        "DELETE FROM links WHERE source NOT IN (SELECT no FROM entries) OR target NOT IN (SELECT no FROM entries)",
    ),
    "version_without_entry": (
        "an old version of no entry",
        "SELECT no FROM replaced WHERE entry NOT IN (SELECT no FROM entries)",
        "DELETE FROM replaced WHERE entry NOT IN (SELECT no FROM entries)",
    ),
    "record_without_partition": (
        "a record of no partition",
        "SELECT no FROM records WHERE partition IS NOT NULL AND partition NOT IN (SELECT no FROM partitions)",
        "DELETE FROM records WHERE partition IS NOT NULL AND partition NOT IN (SELECT no FROM partitions)",
    ),
    "record_without_entry": (
        "a record of an entry that is gone",
        "SELECT record FROM record_entries WHERE entry NOT IN (SELECT no FROM entries)",
        "DELETE FROM records WHERE no IN "
        "(SELECT record FROM record_entries WHERE entry NOT IN (SELECT no FROM entries))",
    ),
    "turn_count": (
        "the count of its turns is not that of the turns",
        "SELECT no FROM sessions WHERE turns <> "
        "coalesce((SELECT max(number) + 1 FROM turns WHERE turns.session = sessions.no), 0)",
        "UPDATE sessions SET turns = "
        "coalesce((SELECT max(number) + 1 FROM turns WHERE turns.session = sessions.no), 0)",
    ),
    "removed_but_there": (
        "an entry counted as removed is there",
        "SELECT entry FROM removed WHERE entry IN (SELECT no FROM entries)",
        "DELETE FROM removed WHERE entry IN (SELECT no FROM entries)",
    ),
    "count_behind": (
        "an entry is ahead of its partition's count",
        "SELECT e.id FROM entries e JOIN partitions s ON s.no = e.partition WHERE e.seq > s.seq OR e.index_seq > e.seq",
        "UPDATE partitions SET seq = max(seq, (SELECT coalesce(max(max(e.seq, e.index_seq)), 0) + 1 FROM entries e "
        "WHERE e.partition = partitions.no))",
    ),
}


def check_tables(db: sqlite3.Connection) -> Iterator[Flaw]:
    """Every flaw of the file itself."""
    for (message,) in db.execute("PRAGMA integrity_check"):
        if message != "ok":
            yield Flaw(check="pages", subject="file", problem=str(message), repairable=False)
    for table, row, parent, _ in db.execute("PRAGMA foreign_key_check").fetchall():
        if (table, parent) == ("entries", "partitions"):
            yield Flaw(check="partition", subject=f"row {row}", problem="an entry on no partition", repairable=False)
        elif table in ("turns", "sessions"):
            yield Flaw(check="turn", subject=f"{table} row {row}", problem=f"no such {parent}", repairable=False)
    for check, (problem, query, _) in _ORPHANS.items():
        for (subject,) in db.execute(query).fetchall():
            yield Flaw(check=check, subject=f"row {subject}", problem=problem, repairable=True)
    yield from (flaw for _, flaw in _tag_flaws(db))


def _tag_flaws(db: sqlite3.Connection) -> Iterator[tuple[tuple[int, int, list[str]], Flaw]]:
    """Entries whose tag rows differ from the tags they carry."""
    rows = db.execute(
        """
        SELECT e.no, e.partition, e.id, e.tags,
               coalesce((SELECT json_group_array(t.tag) FROM entry_tags t WHERE t.entry = e.no AND t.partition = e.partition), '[]')
        FROM entries e WHERE e.tags <> '[]' OR EXISTS (SELECT 1 FROM entry_tags t WHERE t.entry = e.no)
        """
    )
    for no, partition, entry_id, tags, rows_of_it in rows:
        wanted = json.loads(tags)
        if sorted(wanted) != sorted(json.loads(rows_of_it)):
            flaw = Flaw(check="tags", subject=entry_id, problem="the tag index disagrees", repairable=True)
            yield (no, partition, wanted), flaw


def mend_tables(db: sqlite3.Connection) -> list[Flaw]:
    """Drop what hangs on nothing, rebuild the tag index; returns what was mended."""
    mended = [flaw for flaw in check_tables(db) if flaw.repairable]
    for (no, partition, tags), _ in list(_tag_flaws(db)):
        db.execute("DELETE FROM entry_tags WHERE entry = ?", (no,))
        db.executemany("INSERT OR IGNORE INTO entry_tags VALUES (?, ?, ?)", [(partition, tag, no) for tag in tags])
    for _, _, statement in _ORPHANS.values():
        db.execute(statement)
    return mended
