"""Writing what differs between two states of an entry, and nothing else: each column that is set costs its indexes."""

from __future__ import annotations

import sqlite3
from functools import lru_cache

from wellworn.core.values import Entry
from wellworn.store.sqlite.rows import ENTRY_COLUMNS, column_of


def write(db: sqlite3.Connection, no: int, seq: int, before: Entry, after: Entry) -> None:
    """Bring a row from one state of its entry to the next; `seq` is the count of the change."""
    old, new = vars(before), vars(after)
    changed = tuple([name for name in ENTRY_COLUMNS if old[name] != new[name]])
    if before.text != after.text and before.evidence == after.evidence:  # kept as nothing where it is the text
        changed += ("evidence",)
    db.execute(_update(changed), (seq, *[column_of(after, name) for name in changed], no))


@lru_cache(maxsize=64)
def _update(columns: tuple[str, ...]) -> str:
    """The statement that sets these columns."""
    return f"UPDATE entries SET seq = ?{''.join(f', {column} = ?' for column in columns)} WHERE no = ?"
