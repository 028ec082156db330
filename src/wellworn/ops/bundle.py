"""What an export carries, and the receipts of writing and loading one. Knows no format and no store.

A bundle can be checked for coherence, moved into a scope, given other ids, and scrubbed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from wellworn.core.errors import TransferError
from wellworn.core.values import Entry, Link, Partition, Scope
from wellworn.ingest.remember import scrubbed_entry
from wellworn.ingest.scrub import Scrubber, Scrubbing, scrubbed_json, texts_in
from wellworn.ops.learning_log import OutcomeLine, RecallLine, TenantLine
from wellworn.ops.lines import TurnLine, settled
from wellworn.store.port import EmbeddingModel, Replaced, SessionHead, Vector


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
    """What a load added; `skipped` entries were there already, `edited` ones were changed by hand in the export;
    `problems` names each file of a folder that could not be read, and why."""

    entries: int = 0
    skipped: int = 0
    edited: int = 0
    links: int = 0
    turns: int = 0
    versions: int = 0
    outcomes: int = 0
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Bundle:
    """Everything that was read from an export, every value checked, nothing written yet."""

    model: EmbeddingModel | None = None
    entries: list[Entry] = field(default_factory=list)
    vectors: dict[str, Vector] = field(default_factory=dict)
    """By entry id; made by `model`."""
    links: list[Link] = field(default_factory=list)
    turns: list[TurnLine] = field(default_factory=list)
    sessions: list[SessionHead] = field(default_factory=list)
    """How far reflection on them has come; not in the oldest exports."""
    replaced: list[Replaced] = field(default_factory=list)
    """Older states of the entries, oldest first."""
    edited: frozenset[str] = frozenset()
    """Ids of entries that someone changed after they were exported."""
    recalls: list[RecallLine] = field(default_factory=list)
    outcomes: list[OutcomeLine] = field(default_factory=list)
    """In the order they were told."""
    tenants: list[TenantLine] = field(default_factory=list)


def coherent(bundle: Bundle, *, where: str) -> Bundle:
    """The bundle, if its parts fit together: ids once, links, turns and old versions of entries that are in it."""
    for problem in _misfits(bundle):
        raise TransferError(f"{where}: {problem}")
    return bundle


def _misfits(bundle: Bundle) -> Iterator[str]:
    home: dict[str, Partition] = {}
    for entry in bundle.entries:
        if entry.id in home:
            yield f"entry {entry.id} is there twice"
        if entry.valid_to is not None and entry.valid_to <= entry.valid_from:
            yield f"entry {entry.id} has a valid_to that is not after its valid_from"
        home[entry.id] = entry.partition
    for old in bundle.replaced:
        if home.get(old.entry.id) != old.entry.partition:
            yield f"an old version is of entry {old.entry.id}, which is not here, or on another partition"
    for link in bundle.links:
        source, target = home.get(link.source), home.get(link.target)
        if link.source == link.target:
            yield f"entry {link.source} is linked to itself"
        if source is None or target is None:
            yield f"link {link.source} {link.type} {link.target} names an entry that is not here"
        elif source.tenant != target.tenant:
            yield f"link {link.source} {link.type} {link.target} leads from one tenant to another"
    yield from _session_misfits(bundle, home)
    yield from _log_misfits(bundle, home)


def _session_misfits(bundle: Bundle, home: dict[str, Partition]) -> Iterator[str]:
    turns: dict[tuple[Partition, str], int] = {}
    for turn in bundle.turns:
        session = (turn.partition, turn.session_id)
        if turn.number < turns.get(session, 0):
            yield f"turn {turn.number} of session {turn.session_id!r} is there twice or out of order"
        if turn.entry_id is not None and home.get(turn.entry_id) != turn.partition:
            yield f"turn {turn.number} of session {turn.session_id!r} names an entry that is not here"
        turns[session] = turn.number + 1
    for head in bundle.sessions:
        if turns.get((head.partition, head.id)) != head.turns or head.reflected > head.turns:
            yield f"session {head.id!r} has not the turns that its line speaks of"


def _log_misfits(bundle: Bundle, home: dict[str, Partition]) -> Iterator[str]:
    shown: dict[str, set[str]] = {}
    for recall in bundle.recalls:
        if recall.id in shown:
            yield f"recall {recall.id} is there twice"
        shown[recall.id] = set(recall.entries[: recall.shown])
        for entry_id in recall.entries:
            partition = home.get(entry_id)
            if partition is None or partition.tenant != recall.partition.tenant:
                yield f"recall {recall.id} names entry {entry_id}, which is not here, or of another tenant"
    for outcome in bundle.outcomes:
        if outcome.recall not in shown or not shown[outcome.recall].issuperset(outcome.value.get("entries", ())):
            yield f"an outcome is of recall {outcome.recall}, which is not here or did not show what is cited"


def rehomed(bundle: Bundle, scope: Scope) -> Bundle:
    """The same inside one scope: what is on a partition that the scope sees stays there, all else goes to its home.

    But what was learned elsewhere is not this scope's: its log stays out, and so do the settings of tenants.
    """
    seen, home = frozenset(scope.partitions()), scope.home()

    def place(partition: Partition) -> Partition:
        return partition if partition in seen else home

    heads = [replace(head, partition=place(head.partition)) for head in bundle.sessions]
    met = Counter((head.partition, head.id) for head in heads)
    recalls = [recall for recall in bundle.recalls if recall.partition in seen]
    known = {recall.id for recall in recalls}
    return replace(
        bundle,
        entries=[replace(entry, partition=place(entry.partition)) for entry in bundle.entries],
        turns=[replace(turn, partition=place(turn.partition)) for turn in bundle.turns],
        sessions=[head for head in heads if met[head.partition, head.id] == 1],  # of two that met, neither says it all
        replaced=[
            replace(old, entry=replace(old.entry, partition=place(old.entry.partition))) for old in bundle.replaced
        ],
        recalls=recalls,
        outcomes=[outcome for outcome in bundle.outcomes if outcome.recall in known],
        tenants=[],
    )


def renamed(bundle: Bundle, new_ids: dict[str, str]) -> Bundle:
    """The same with other ids wherever the old ones stood; links that would then join an entry to itself are gone."""

    def name(entry_id: str) -> str:
        return new_ids.get(entry_id, entry_id)

    def cited(outcome: OutcomeLine) -> OutcomeLine:
        return replace(outcome, value={"entries": [*map(name, outcome.value["entries"])]})

    links = [replace(link, source=name(link.source), target=name(link.target)) for link in bundle.links]
    return replace(
        bundle,
        entries=[replace(entry, id=name(entry.id)) for entry in bundle.entries],
        vectors={name(entry_id): vector for entry_id, vector in bundle.vectors.items()},
        links=[link for link in links if link.source != link.target],
        turns=[replace(turn, entry_id=name(turn.entry_id) if turn.entry_id else None) for turn in bundle.turns],
        replaced=[replace(old, entry=replace(old.entry, id=name(old.entry.id))) for old in bundle.replaced],
        edited=frozenset(map(name, bundle.edited)),
        recalls=[replace(recall, entries=[*map(name, recall.entries)]) for recall in bundle.recalls],
        outcomes=[cited(outcome) if outcome.kind == "cited" else outcome for outcome in bundle.outcomes],
    )


def cleaned(bundle: Bundle, scrubbing: Scrubbing) -> Bundle:
    """The bundle with every text scrubbed; vectors of texts that changed are left out, to be made anew."""
    if not scrubbing.on:
        return bundle
    for partition in dict.fromkeys(entry.partition for entry in bundle.entries):
        entries = [entry for entry in bundle.entries if entry.partition == partition]
        told = [turn.text for turn in bundle.turns if turn.partition == partition]
        texts = [[entry.text, entry.title, entry.evidence, entry.metadata] for entry in entries]
        scrubbing.expect(partition, texts_in([texts, told]))

    def turn(one: TurnLine) -> TurnLine:
        scrub = scrubbing.stored(one.partition)
        speaker = None if one.speaker is None else scrub(one.speaker)
        return replace(one, text=scrub(one.text), role=scrub(one.role), speaker=speaker)

    def refined(outcome: OutcomeLine) -> OutcomeLine:
        return replace(outcome, value=scrubbed_json(outcome.value, scrubbing.asked(None)))

    entries = [_scrubbed(entry, scrubbing.stored(entry.partition)) for entry in bundle.entries]
    changed = {new.id for old, new in zip(bundle.entries, entries, strict=True) if new != old}
    return replace(
        bundle,
        entries=entries,
        vectors={entry_id: vector for entry_id, vector in bundle.vectors.items() if entry_id not in changed},
        turns=[turn(one) for one in bundle.turns],
        replaced=[
            replace(old, entry=_scrubbed(old.entry, scrubbing.stored(old.entry.partition))) for old in bundle.replaced
        ],
        recalls=[replace(one, query=scrubbing.asked(one.partition)(one.query)) for one in bundle.recalls],
        outcomes=[refined(outcome) if outcome.kind == "refined" else outcome for outcome in bundle.outcomes],
    )


def _scrubbed(entry: Entry, scrub: Scrubber) -> Entry:
    clean = scrubbed_entry(entry, scrub)
    return entry if clean == entry else settled(clean)
