"""Entries and recalls by the beginning of their id, as git names commits; and the last recall of a user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from wellworn.core.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from wellworn.memory import Memory

LISTED = 8
"""How many matches of an ambiguous id are listed."""
RECENT = 500
"""How many of the last recalls can be named by the beginning of their id."""


def entry_id(memory: Memory, start: str) -> str:
    """The id of the one visible entry whose id begins like this; a range query, so nothing else is read."""
    from wellworn.store.values import Selection

    if not start or memory.scope is None:
        return start
    found = memory.engine.store.select(memory.scope.partitions(), Selection(id_prefix=start), limit=LISTED + 1)
    return _the_one("ID", start, {entry.id: entry.text for _, entry in found})


def entry_ids(memory: Memory, starts: Iterable[str]) -> list[str]:
    return [entry_id(memory, start) for start in starts]


def recall_id(memory: Memory, start: str | None) -> str:
    """The id of the recall that begins like this, among the last ones; of the very last without a beginning."""
    from wellworn.learning.records import last_recalls

    if memory.scope is None:
        return start or ""
    recalls = last_recalls(memory.engine.store, memory.scope.home(), limit=1 if start is None else RECENT)
    if start is None:
        if not recalls:
            home = memory.scope.home()
            raise NotFound("recall", "--last", f"{home.layer} {home.layer_id} has asked nothing yet")
        return next(iter(recalls))
    return _the_one("RECALL", start, {id: query for id, query in recalls.items() if id.startswith(start)})


def _the_one(field: str, start: str, texts: Mapping[str, str]) -> str:
    """The only match; an id that matches nothing is returned as it is, and gets the facade's own error."""
    if start in texts or not texts:
        return start
    if len(texts) == 1:
        return next(iter(texts))
    listed = "; ".join(f"{id} ({' '.join(text.split())[:40]})" for id, text in list(texts.items())[:LISTED])
    more = " …" if len(texts) > LISTED else ""
    raise InvalidInput(field, f"{start!r} is the beginning of several ids: {listed}{more}", "give more of it")
