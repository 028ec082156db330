"""Which turns of a session may become memories: what people said, and nothing that was put there by memory itself.

System text, tool output and recalled memories are never extracted: they would come back as new facts, be recalled, and
come back again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from wellworn.core.values import Entry, Turn

RECALLED_TAG = "recalled"
"""A turn with this tag holds recalled memories and is not reflected on."""
_SILENT_ROLES = frozenset({"system", "developer", "tool", "function", "tool_result"})
_FENCED = re.compile(r"<(memories|memory-context)\b[^>]*>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)


def readable(turns: Sequence[Turn], entries: Mapping[str, Entry]) -> list[Turn]:
    """The turns to read, with every block of recalled memories cut out; `entries` are their episodes by id."""
    kept = []
    for turn in turns:
        entry = entries.get(turn.entry_id or "")
        if turn.role.strip().lower() in _SILENT_ROLES or (entry is not None and RECALLED_TAG in entry.tags):
            continue
        said = _FENCED.sub(" ", turn.text).strip() if "<" in turn.text else turn.text.strip()
        if said:
            kept.append(replace(turn, text=said))
    return kept
