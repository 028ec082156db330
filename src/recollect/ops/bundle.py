"""What an export carries, and the receipts of writing and loading one. Knows no format and no store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from recollect.errors import TransferError
from recollect.stores.base import Model, Replaced, Vector
from recollect.types import Entry, Link, Scope, Shelf, Turn


@dataclass(frozen=True, kw_only=True)
class Written:
    """What an export wrote, and where."""

    path: str
    format: str
    entries: int
    links: int = 0
    turns: int = 0
    versions: int = 0
    bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """What a load added; `skipped` entries were there already, `edited` ones were changed by hand in the export."""

    entries: int = 0
    skipped: int = 0
    edited: int = 0
    links: int = 0
    turns: int = 0
    versions: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Bundle:
    """Everything that was read from an export, every value checked, nothing written yet."""

    entries: list[Entry]
    vectors: dict[str, Vector] = field(default_factory=dict)
    """By entry id; made by `model`."""
    model: Model | None = None
    links: list[Link] = field(default_factory=list)
    turns: list[tuple[Shelf, Turn]] = field(default_factory=list)
    replaced: list[Replaced] = field(default_factory=list)
    """Older states of the entries, oldest first."""
    edited: frozenset[str] = frozenset()
    """Ids of entries that someone changed after they were exported."""


def coherent(bundle: Bundle, *, where: str) -> Bundle:
    """The bundle, if its parts fit together: ids once, links, turns and old versions of entries that are in it."""
    for problem in _misfits(bundle):
        raise TransferError(f"{where}: {problem}")
    return bundle


def _misfits(bundle: Bundle) -> Iterator[str]:
    shelf_of: dict[str, Shelf] = {}
    for entry in bundle.entries:
        if entry.id in shelf_of:
            yield f"entry {entry.id} is there twice"
        if entry.valid_to is not None and entry.valid_to <= entry.valid_from:
            yield f"entry {entry.id} has a valid_to that is not after its valid_from"
        shelf_of[entry.id] = entry.shelf
    for old in bundle.replaced:
        if shelf_of.get(old.entry.id) != old.entry.shelf:
            yield f"an old version is of entry {old.entry.id}, which is not here, or on another shelf"
    for link in bundle.links:
        yield from _link_misfits(link, shelf_of)
    yield from _turn_misfits(bundle.turns, shelf_of)


def _link_misfits(link: Link, shelf_of: dict[str, Shelf]) -> Iterator[str]:
    source, target = shelf_of.get(link.source), shelf_of.get(link.target)
    if link.source == link.target:
        yield f"entry {link.source} is linked to itself"
    if source is None or target is None:
        yield f"link {link.source} {link.type} {link.target} names an entry that is not here"
    elif source.tenant != target.tenant:
        yield f"link {link.source} {link.type} {link.target} leads from one tenant to another"


def _turn_misfits(turns: list[tuple[Shelf, Turn]], shelf_of: dict[str, Shelf]) -> Iterator[str]:
    last: dict[tuple[Shelf, str], int] = {}
    for shelf, turn in turns:
        session = (shelf, turn.session_id)
        if turn.number <= last.get(session, -1):
            yield f"turn {turn.number} of session {turn.session_id!r} is there twice or out of order"
        if turn.entry_id is not None and shelf_of.get(turn.entry_id) != shelf:
            yield f"turn {turn.number} of session {turn.session_id!r} names an entry that is not here"
        last[session] = turn.number


def rehomed(bundle: Bundle, scope: Scope) -> Bundle:
    """The same within a scope: what lies on a shelf the scope sees stays there, all else goes to its home shelf."""
    seen, home = frozenset(scope.shelves()), scope.home()

    def place(shelf: Shelf) -> Shelf:
        return shelf if shelf in seen else home

    return replace(
        bundle,
        entries=[replace(entry, shelf=place(entry.shelf)) for entry in bundle.entries],
        turns=[(place(shelf), turn) for shelf, turn in bundle.turns],
        replaced=[replace(old, entry=replace(old.entry, shelf=place(old.entry.shelf))) for old in bundle.replaced],
    )


def renamed(bundle: Bundle, new_ids: dict[str, str]) -> Bundle:
    """The same with other ids wherever the old ones stood; links that would then join an entry to itself are gone."""

    def name(entry_id: str) -> str:
        return new_ids.get(entry_id, entry_id)

    links = [replace(link, source=name(link.source), target=name(link.target)) for link in bundle.links]
    return replace(
        bundle,
        entries=[replace(entry, id=name(entry.id)) for entry in bundle.entries],
        vectors={name(entry_id): vector for entry_id, vector in bundle.vectors.items()},
        links=[link for link in links if link.source != link.target],
        turns=[
            (shelf, replace(turn, entry_id=name(turn.entry_id) if turn.entry_id else None))
            for shelf, turn in bundle.turns
        ],
        replaced=[replace(old, entry=replace(old.entry, id=name(old.entry.id))) for old in bundle.replaced],
        edited=frozenset(name(entry_id) for entry_id in bundle.edited),
    )
