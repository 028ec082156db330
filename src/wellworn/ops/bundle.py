"""What an export carries, and the receipts of writing and loading one. Knows no format and no store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from wellworn.core.errors import TransferError
from wellworn.core.values import Entry, Link, Partition, Scope, Turn
from wellworn.learning.state import Tenant
from wellworn.ops.log_lines import OutcomeLine, RecallLine
from wellworn.store.port import Model, Replaced, SessionHead, Vector


@dataclass(frozen=True, kw_only=True)
class Written:
    """What an export wrote, and where."""

    path: str
    format: str
    entries: int
    links: int = 0
    turns: int = 0
    versions: int = 0
    outcomes: int = 0
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
    outcomes: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Bundle:
    """Everything that was read from an export, every value checked, nothing written yet."""

    entries: list[Entry]
    vectors: dict[str, Vector] = field(default_factory=dict)
    """By entry id; made by `model`."""
    model: Model | None = None
    links: list[Link] = field(default_factory=list)
    turns: list[tuple[Partition, Turn]] = field(default_factory=list)
    sessions: list[SessionHead] = field(default_factory=list)
    """How far reflection on them has come; not in exports of before there was any."""
    replaced: list[Replaced] = field(default_factory=list)
    """Older states of the entries, oldest first."""
    edited: frozenset[str] = frozenset()
    """Ids of entries that someone changed after they were exported."""
    recalls: list[RecallLine] = field(default_factory=list)
    outcomes: list[OutcomeLine] = field(default_factory=list)
    """In the order they were told."""
    tenants: dict[str, Tenant] = field(default_factory=dict)


def coherent(bundle: Bundle, *, where: str) -> Bundle:
    """The bundle, if its parts fit together: ids once, links, turns and old versions of entries that are in it."""
    for problem in _misfits(bundle):
        raise TransferError(f"{where}: {problem}")
    return bundle


def _misfits(bundle: Bundle) -> Iterator[str]:
    partition_of: dict[str, Partition] = {}
    for entry in bundle.entries:
        if entry.id in partition_of:
            yield f"entry {entry.id} is there twice"
        if entry.valid_to is not None and entry.valid_to <= entry.valid_from:
            yield f"entry {entry.id} has a valid_to that is not after its valid_from"
        partition_of[entry.id] = entry.partition
    for old in bundle.replaced:
        if partition_of.get(old.entry.id) != old.entry.partition:
            yield f"an old version is of entry {old.entry.id}, which is not here, or on another partition"
    for link in bundle.links:
        yield from _link_misfits(link, partition_of)
    yield from _turn_misfits(bundle.turns, partition_of)
    yield from _session_misfits(bundle)
    yield from _log_misfits(bundle, partition_of)


def _link_misfits(link: Link, partition_of: dict[str, Partition]) -> Iterator[str]:
    source, target = partition_of.get(link.source), partition_of.get(link.target)
    if link.source == link.target:
        yield f"entry {link.source} is linked to itself"
    if source is None or target is None:
        yield f"link {link.source} {link.type} {link.target} names an entry that is not here"
    elif source.tenant != target.tenant:
        yield f"link {link.source} {link.type} {link.target} leads from one tenant to another"


def _turn_misfits(turns: list[tuple[Partition, Turn]], partition_of: dict[str, Partition]) -> Iterator[str]:
    last: dict[tuple[Partition, str], int] = {}
    for partition, turn in turns:
        session = (partition, turn.session_id)
        if turn.number <= last.get(session, -1):
            yield f"turn {turn.number} of session {turn.session_id!r} is there twice or out of order"
        if turn.entry_id is not None and partition_of.get(turn.entry_id) != partition:
            yield f"turn {turn.number} of session {turn.session_id!r} names an entry that is not here"
        last[session] = turn.number


def _session_misfits(bundle: Bundle) -> Iterator[str]:
    turns = {(partition, turn.session_id): turn.number + 1 for partition, turn in bundle.turns}
    for head in bundle.sessions:
        if turns.get((head.partition, head.id)) != head.turns or head.reflected > head.turns:
            yield f"session {head.id!r} has not the turns that its line speaks of"


def _log_misfits(bundle: Bundle, partition_of: dict[str, Partition]) -> Iterator[str]:
    rows: dict[str, set[str]] = {}
    for line in bundle.recalls:
        if line.recall.id in rows:
            yield f"recall {line.recall.id} is there twice"
        rows[line.recall.id] = set(line.entries[: line.recall.shown])
        for entry_id in line.entries:
            partition = partition_of.get(entry_id)
            if partition is None or partition.tenant != line.recall.partition.tenant:
                yield f"recall {line.recall.id} names entry {entry_id}, which is not here, or of another tenant"
    for told in bundle.outcomes:
        if not rows.get(told.recall, set()).issuperset(told.value.get("entries", ())) or told.recall not in rows:
            yield f"an outcome is of recall {told.recall}, which is not here or did not show what is cited"


def rehomed(bundle: Bundle, scope: Scope) -> Bundle:
    """The same within a scope: what lies on a partition the scope sees stays there, all else goes to its home partition.

    But what was learned elsewhere is not this scope's: its log stays out, and so do the settings of tenants.
    """
    seen, home = frozenset(scope.partitions()), scope.home()

    def place(partition: Partition) -> Partition:
        return partition if partition in seen else home

    heads = [replace(head, partition=place(head.partition)) for head in bundle.sessions]
    met = Counter((head.partition, head.id) for head in heads)
    recalls = [line for line in bundle.recalls if line.recall.partition in seen]
    return replace(
        bundle,
        entries=[replace(entry, partition=place(entry.partition)) for entry in bundle.entries],
        turns=[(place(partition), turn) for partition, turn in bundle.turns],
        sessions=[head for head in heads if met[head.partition, head.id] == 1],  # of two that met, neither says it all
        replaced=[
            replace(old, entry=replace(old.entry, partition=place(old.entry.partition))) for old in bundle.replaced
        ],
        recalls=recalls,
        outcomes=[told for told in bundle.outcomes if told.recall in {line.recall.id for line in recalls}],
        tenants={},
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
            (partition, replace(turn, entry_id=name(turn.entry_id) if turn.entry_id else None))
            for partition, turn in bundle.turns
        ],
        replaced=[replace(old, entry=replace(old.entry, id=name(old.entry.id))) for old in bundle.replaced],
        edited=frozenset(name(entry_id) for entry_id in bundle.edited),
        recalls=[replace(line, entries=[name(entry_id) for entry_id in line.entries]) for line in bundle.recalls],
        outcomes=[
            replace(told, value={"entries": [name(entry_id) for entry_id in told.value["entries"]]})
            if told.kind == "cited"
            else told
            for told in bundle.outcomes
        ],
    )
