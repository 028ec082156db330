"""What is remembered: entries, their versions and links, and the turns they came from."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from wellworn.core.fence import Item
from wellworn.core.types.scope import Partition
from wellworn.core.types.words import Kind, Layer, LinkType, State, Trust


@dataclass(frozen=True, kw_only=True, eq=False)
class Entry:
    """One remembered thing.

    `text` is what is recalled, `evidence` the verbatim source it rests on. `at` is when it happened, `created_at`
    when it was stored. It is valid in [`valid_from`, `valid_to`); no `valid_to` means still valid.
    """

    id: str
    partition: Partition
    kind: Kind
    text: str
    title: str = ""
    tags: list[str] = field(default_factory=list)
    evidence: str = ""
    source: str = "interaction"
    speaker: str | None = None
    session_id: str | None = None
    turn_refs: list[int] = field(default_factory=list)
    thread: int | None = None
    """Entries of one thread at positions one apart are neighbours: turns of a session, chunks of a text."""
    position: int | None = None
    confidence: float = 0.8
    trust: Trust = "trusted"
    state: State = "active"
    repeats: int = 0
    usage_count: int = 0
    success_count: int = 0
    failure_count: int = 0
    token_count: int = 0
    content_hash: str = ""
    at: datetime
    created_at: datetime
    updated_at: datetime
    valid_from: datetime
    valid_to: datetime | None = None
    metadata: dict[str, Any] = field(default_factory=dict)  # any JSON value: the caller's own

    @property
    def tenant(self) -> str:
        return self.partition.tenant

    @property
    def layer(self) -> Layer:
        return self.partition.layer

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Entry):
            return NotImplemented
        return all(getattr(self, f.name) == getattr(other, f.name) for f in fields(self))

    def __hash__(self) -> int:
        return hash(self.id)


@dataclass(frozen=True, kw_only=True)
class Link:
    """A typed edge from one entry to another, read "source TYPE target"."""

    source: str
    target: str
    type: LinkType
    confidence: float = 1.0
    automatic: bool = False
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One utterance of a session, verbatim: ground truth that nothing rewrites."""

    session_id: str
    number: int
    role: str
    text: str
    at: datetime
    speaker: str | None = None
    entry_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Version:
    """One state of an entry: as the change named made it stand, from then on until the next version."""

    number: int
    change: str
    changed_at: datetime
    entry: Entry

    @property
    def text(self) -> str:
        return self.entry.text


def fence_item(entry: Entry) -> Item:
    """What a prompt shows of an entry."""
    return Item(
        text=entry.text,
        kind=entry.kind,
        date=entry.at.date().isoformat(),
        speaker=entry.speaker,
        trusted=entry.trust == "trusted",
        flagged=entry.state == "flagged",
    )
