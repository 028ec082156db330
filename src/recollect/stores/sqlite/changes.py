"""Writing what differs between two states of an entry, and nothing else: each column that is set costs its indexes."""

from __future__ import annotations

import sqlite3
from functools import lru_cache

from recollect.stores.sqlite.rows import ENTRY_COLUMNS, entry_row
from recollect.types import Entry


def write(db: sqlite3.Connection, no: int, seq: int, before: Entry, after: Entry) -> None:
    """Bring a row from one state of its entry to the next; `seq` is the count of the change."""
    row = entry_row(after)
    old, new = vars(before), vars(after)
    changed = tuple([place for place, name in enumerate(ENTRY_COLUMNS) if old[name] != new[name]])
    if before.text != after.text and before.evidence == after.evidence:  # kept as nothing where it is the text
        changed += (ENTRY_COLUMNS.index("evidence"),)
    db.execute(_update(changed), (seq, *(row[place] for place in changed), no))


@lru_cache(maxsize=64)
def _update(places: tuple[int, ...]) -> str:
    """The statement that sets these of the columns."""
    columns = "".join(f", {ENTRY_COLUMNS[place]} = ?" for place in places)
    return f"UPDATE entries SET seq = ?{columns} WHERE no = ?"
