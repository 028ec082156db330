"""Export and import: one lossless file of JSON lines, or a Markdown folder for people (see `markdown`).

A load into a scope writes nothing outside of it: entries of partitions that the scope sees return to them, all others go
to its home partition, with their ids where those are free and new ones where not.

A move to another engine is an export, a load, the other records, and a proof that all of it arrived. What is there already
is skipped, so a move that was cut short is finished by the same call. A target with anything that the source does not have
is refused. Row numbers are an engine's own: the learning log carries entry ids instead, and states are learned
again from it. Stop whoever writes to the source first.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count, islice
from pathlib import Path
from typing import Any, BinaryIO

from wellworn.core.clock import Clock
from wellworn.core.dataclass import dataclass
from wellworn.core.errors import EmbedderMismatch, InvalidInput, StoreCorrupt, TransferError
from wellworn.core.plain import to_plain
from wellworn.core.values import Entry, Link, Partition, Progress, Scope, unwatched
from wellworn.ingest.remember import Writer
from wellworn.learning.records import OUTCOME, POLICY, RECALL
from wellworn.ops import lines as json_lines
from wellworn.ops.backup import place_of
from wellworn.ops.bundle import Bundle, Loaded, Written, admit, coherent
from wellworn.ops.files import beside, clean_up, explained, notes_of, open_plain, scratch
from wellworn.ops.markdown import export_folder, load_folder
from wellworn.store.events import EVENT
from wellworn.store.port import EmbeddingModel, Record, RecordFilter, Replaced, SessionHead, Store, StoreReader
from wellworn.store.sqlite import SqliteStore

__all__ = ["Loaded", "Written", "export_to", "load_from"]


def export_to(
    store: Store,
    path: Path,
    *,
    scope: Scope | None,
    vectors: bool,
    clock: Clock,
    plain: bool = False,
    progress: Progress = unwatched,
) -> Written:
    """Write the whole store, a tenant (a scope without a layer) or the partitions a scope sees, to a file or folder.

    A name that ends in `.jsonl` is a JSONL file, and a name without an ending a Markdown folder.
    """
    in_lines = path.suffix == ".jsonl"
    if path.suffix and not in_lines and not path.is_dir():  # `backup.json` is hardly meant to become a folder
        raise InvalidInput("path", f"{path.name!r} does not tell the format", "end it in .jsonl, or name a folder")
    if store.encrypted and not plain:
        problem = "this store is encrypted and an export would not be"
        raise InvalidInput("plain", problem, "make a backup, or say plain=True (--plain)")
    if in_lines and path.is_dir():
        raise TransferError(f"{path} is a folder; name a file to export to, as in {path / 'memory.jsonl'}")
    clean_up(store)
    note, now = notes_of(store), clock()

    def write(reader: StoreReader, partitions: Sequence[Partition]) -> Written:
        if not in_lines:
            return export_folder(reader, path, partitions=partitions, note=note, progress=progress)
        with beside(path, note) as file:
            done = export_file(reader, file, partitions=partitions, vectors=vectors, now=now, progress=progress)
        return replace(done, path=str(path))

    return _exported(store, scope, write)


def export_into(store: Store, file: BinaryIO, *, scope: Scope | None, vectors: bool, now: datetime) -> Written:
    """Write what `export_to` writes to a `.jsonl` file into an open one, from its beginning."""
    clean_up(store)

    def write(reader: StoreReader, partitions: Sequence[Partition]) -> Written:
        file.seek(0)
        file.truncate()
        return export_file(reader, file, partitions=partitions, vectors=vectors, now=now)

    return _exported(store, scope, write)


def _exported(
    store: Store, scope: Scope | None, write: Callable[[StoreReader, Sequence[Partition]], Written]
) -> Written:
    """What `write` wrote of the partitions that a scope sees, at one moment."""

    def exported(store: Store) -> Written:
        with store.snapshot() as reader:  # others may write meanwhile
            seen = frozenset(reader.covered(scope))
            done = write(reader, [partition for partition in reader.partitions() if partition in seen])
        return replace(done, unreadable=done.unreadable + len(store.damaged()))

    try:
        return exported(store)
    except StoreCorrupt:
        if not isinstance(store, SqliteStore):
            raise
    with scratch() as folder:  # broken pages: what is readable of the file
        copy = Path(folder) / "salvaged.db"
        lost = store.salvage_to(copy).lost
        salvaged = store.like(copy)
        try:
            salvaged.check(mend=True)
            written = exported(salvaged)
        finally:
            salvaged.close()
    return replace(written, unreadable=written.unreadable + sum(lost.values()))


def load_from(
    store: Store,
    writer: Writer,
    path: Path,
    *,
    relearn: Callable[[str], None],
    scope: Scope | None,
    parts: Mapping[str, bytes] | None = None,
    progress: Progress = unwatched,
) -> Loaded:
    """Read an export into the store: a file, or a folder of Markdown. The learning log that came with it is learned
    again."""
    if not path.exists():
        raise TransferError(f"there is no {path} to load")
    if path.is_dir():
        return load_folder(store, writer, path, scope=scope, progress=progress)
    bundle = replace(read_file(path), parts=parts)
    loaded = admit(bundle, store, writer, scope=scope, progress=progress)
    learned = {recall.partition.tenant for recall in bundle.recalls} | {one.tenant for one in bundle.tenants}
    for tenant in sorted(learned if scope is None else learned & {scope.tenant}):
        relearn(tenant)
    return loaded


# -- moving to another engine ------------------------------------------------------------------------------------------

PAGE = 500
_NOT_COPIED = frozenset({RECALL, OUTCOME, POLICY, "index_file"})
"""Kinds that the export carries, that are made anew, or that tell of files of the source."""
_LEFT_BY_A_MOVE = ((EVENT, "load"), (EVENT, "relearn"))


@dataclass(frozen=True, kw_only=True)
class Moved(Loaded):
    """What a move brought, and the hash of the lines that are in both stores now."""

    records: int
    lines: int
    sha256: str


def move(
    source: Store,
    target: Store,
    writer: Writer,
    *,
    relearn: Callable[[str], None],
    clock: Clock,
    plain: bool = False,
    progress: Progress = unwatched,
) -> Moved:
    """Copy everything of one store into another, whose writer is given; `plain` lets that of an encrypted store pass through a
    plain temporary file."""
    if place_of(source) == place_of(target):
        raise InvalidInput("target", f"{target.location!r} is the source itself", "name another store")
    vectors, there = source.model(), target.model()
    if vectors is not None and there is not None and vectors.key != there.key:
        raise EmbedderMismatch(*vectors.key, *there.key)

    def part(number: int) -> Progress:
        """The progress of one of four walks as progress of all."""
        return lambda done, total: progress(number * total + done, 4 * total)

    def exported(store: Store, path: Path, number: int, plain: bool) -> list[bytes]:
        export_to(store, path, scope=None, vectors=True, clock=clock, plain=plain, progress=part(number))
        with path.open("rb") as file:
            lines = file.readlines()[1:-1]  # without the header and the seal, which hold times and counts
        return sorted(hashlib.sha256(line).digest() for line in lines)

    with scratch() as folder:
        wanted = exported(source, Path(folder) / "source.jsonl", 0, plain)
        foreign = {*exported(target, Path(folder) / "before.jsonl", 1, True)} - {*wanted}
        records = (one for one in _lacking(source, target) if (one.kind, one.state) not in _LEFT_BY_A_MOVE)
        if count := len(foreign) + sum(1 for _ in records):
            raise TransferError(
                f"{target.location} holds {count:,} lines or records that {source.location} does not: one of them has "
                "changed since they were copied, or it is another memory; move into a store that is empty"
            )
        path = Path(folder) / "source.jsonl"
        loaded: Loaded = load_from(
            target, writer, path, relearn=relearn, scope=None, parts=_parts_of(source), progress=part(2)
        )
        copied = _copy_records(source, target)
        missing = {*wanted} - {*exported(target, Path(folder) / "target.jsonl", 3, True)}
    if missing:
        raise TransferError(
            f"{len(missing):,} of {len(wanted):,} lines of {source.location} are not in {target.location}: they were there "
            "already in another form, or changed meanwhile; move into a store that is empty"
        )
    sha256 = hashlib.sha256(b"".join(wanted)).hexdigest()
    return Moved(**vars(loaded), records=copied, lines=len(wanted), sha256=sha256)


def _parts_of(store: Store) -> dict[str, bytes]:
    """The vectors of sentences by entry id: an export leaves them out."""
    found: dict[str, bytes] = {}
    for page in store.pages(None):
        parts = store.parts([no for no, _ in page])
        found.update((entry.id, parts[no]) for no, entry in page if no in parts)
    return found


def _copy_records(source: Store, target: Store) -> int:
    """Jobs, tasks, events, model calls and settings that the target does not have in this state, a page a transaction."""
    copied, lacking = 0, _lacking(target, source)
    while page := [*islice(lacking, PAGE)]:
        with target.transact() as tx:
            copied += sum(no is not None for no in tx.put_records(page))
    return copied


def _lacking(store: Store, other: Store) -> Iterator[Record]:
    """The records to be moved that another store has and this one does not have in this state, oldest first."""
    there = Counter(map(_digest, _records(store)))
    for record in _records(other):
        digest = _digest(record)
        there[digest] -= 1
        if there[digest] < 0:
            yield record


def _records(store: Store) -> Iterator[Record]:
    every = store.every_record(RecordFilter())
    return (record for record in every if record.kind not in _NOT_COPIED and not record.rows)


def _digest(record: Record) -> bytes:
    return hashlib.sha256(json.dumps(to_plain(replace(record, no=0)), sort_keys=True).encode()).digest()


# -- the lossless file -------------------------------------------------------------------------------------------------
#
# One UTF-8 file, one JSON object a line, sealed by a hash.
#
#     {"wellworn_export": 3, "created_at": "…", "model": {"name": "…", "width": 256} | null}
#     {"type": "entry", …every field…, "vector": "<base64 of little-endian float32>" | null}
#     {"type": "replaced", "entry": {…an older state…}, "change": "edited", "changed_at": "…"}
#     {"type": "turn", "partition": {…}, "session_id": "…", "number": 0, …}
#     {"type": "session", "partition": {…}, "id": "…", "turns": 1, "reflected": 0, …}
#     {"type": "link", "link": {"source": "…", "target": "…", "type": "supports", …}}
#     {"type": "recall" | "outcome" | "tenant", …} the learning log: see `lines`
#     {"type": "end", "lines": <lines before this one>, "sha256": "<hash of all bytes before this line>"}
#
# The file appears under its name only when it is whole. A load checks every line and the seal before anything is
# written, and holds the whole content in memory. Files of version 2 (another word for partition), which release 0.1 wrote, are
# read too. The audit log, jobs, records and model calls are the store's own and stay there.

VERSION, VERSIONS = 3, (2, 3)
MAX_LINE_BYTES = 32_000_000


# -- writing -----------------------------------------------------------------------------------------------------


class _Sealed:
    """A file under way: counts its lines by type and hashes its bytes. Leaves out what could not be loaded again."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self.lines: dict[str, int] = {}
        self.bytes = 0
        self.left_out = 0

    def keep(self, type_: str, kind: type[Any], values: dict[str, Any], **more: Any) -> bool:  # JSON values
        """Write a line if a load would accept it; a damaged store may hold what it would not."""
        try:
            value = json_lines.value_of(kind, values, type_)
            if isinstance(value, Entry):
                coherent(Bundle(entries=[value]), where=type_)
        except TransferError:
            self.left_out += 1
            return False
        self.write(type_, {"type": type_, **({type_: values} if kind is Link else values), **more})
        return True

    def write(self, type_: str, values: dict[str, Any]) -> None:
        line = json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        self._file.write(line)
        self._hash.update(line)
        self.bytes += len(line)
        self.lines[type_] = self.lines.get(type_, 0) + 1

    def seal(self) -> None:
        self.write("end", _end(sum(self.lines.values()), self._hash.hexdigest()))


def export_file(
    store: StoreReader,
    file: BinaryIO,
    *,
    partitions: Sequence[Partition],
    vectors: bool,
    now: datetime,
    progress: Progress = unwatched,
) -> Written:
    """Write the partitions to an open file; links to entries elsewhere are left out."""
    model = store.model() if vectors else None
    header = {"wellworn_export": VERSION, "created_at": now.astimezone(UTC).isoformat(), "model": to_plain(model)}
    out = _Sealed(file)
    out.write("header", header)
    ids = _write_entries(out, store, partitions, model, progress)
    _write_turns(out, store, partitions, ids)
    _write_links(out, store, ids)
    for line in json_lines.log_lines(store, partitions, ids):
        out.write(line["type"], line)
    out.seal()
    lines = {"entries": "entry", "links": "link", "turns": "turn", "versions": "replaced", "outcomes": "outcome"}
    counts = {name: out.lines.get(type_, 0) for name, type_ in lines.items()}
    return Written(path="", format="jsonl", bytes=out.bytes, unreadable=out.left_out, **counts)


def _write_entries(
    out: _Sealed, store: StoreReader, partitions: Sequence[Partition], model: EmbeddingModel | None, progress: Progress
) -> dict[str, None]:
    """Entries in row order, each followed by its older states; returns their ids in that order."""
    total, width = store.counts(partitions)["entries"], model.width if model else 0
    ids: dict[str, None] = {}
    for partition in partitions:
        for page in store.pages([partition]):
            stored = store.index_of([no for no, _ in page]) if model else {}
            for no, entry in page:
                _, vector = stored.get(no, (None, None))
                if vector is not None and (vector.shape != (width,) or not json_lines.is_unit_or_zero(vector)):
                    vector = None
                numbers = None if vector is None else json_lines.float_bytes(vector)
                if out.keep("entry", Entry, to_plain(entry), vector=to_plain(numbers)):
                    ids[entry.id] = None
                    for old in store.replaced(entry.id):
                        out.keep("replaced", Replaced, to_plain(old))
            progress(len(ids), max(total, len(ids)))
    return ids


def _write_turns(out: _Sealed, store: StoreReader, partitions: Sequence[Partition], ids: dict[str, None]) -> None:
    for partition in partitions:
        for head in store.sessions(partition):
            said = 0
            for turn in store.turns(partition, head.id):
                values = {"partition": to_plain(partition), **to_plain(turn)}
                if turn.entry_id not in ids:
                    values["entry_id"] = None  # the entry was forgotten and the turn kept
                if out.keep("turn", json_lines.TurnLine, values):
                    said = turn.number + 1
            if said:
                read = min(max(head.reflected, 0), said)
                out.write("session", {"type": "session", **to_plain(replace(head, turns=said, reflected=read))})


def _write_links(out: _Sealed, store: StoreReader, ids: dict[str, None], size: int = 500) -> None:
    """Each link once, with its source, if its target is in the export too."""
    ordered = list(ids)
    for start in range(0, len(ordered), size):
        sources = set(ordered[start : start + size])
        for link in store.links(ordered[start : start + size]):
            if link.source in sources and link.target in ids and link.source != link.target:
                out.keep("link", Link, to_plain(link))


# -- reading -----------------------------------------------------------------------------------------------------------


def read_file(path: Path) -> Bundle:
    """The content of an export: every value and the seal are checked, then how the values fit together."""
    with explained(f"cannot read {path}"), open_plain(path) as file:
        return coherent(_content(file, path), where=str(path))


def _content(file: BinaryIO, path: Path) -> Bundle:
    """What stands between the first line and the last, which must count and hash everything before it."""
    line = file.readline(MAX_LINE_BYTES)
    bundle, hashed = Bundle(model=_model_in(line, path)), hashlib.sha256(line)
    for number in count(2):
        where, line = f"{path}: line {number}", file.readline(MAX_LINE_BYTES)
        if not line.endswith(b"\n"):
            raise TransferError(f"{path} is cut short: it does not end with an end line; export it again")
        values = _json_of(line, where)
        if isinstance(values, dict) and values.get("type") == "end":
            if values == _end(number - 1, hashed.hexdigest()) and not file.read(1):
                break
            raise TransferError(f"{path} is damaged: its lines are not those that its end line states")
        hashed.update(line)
        _keep(bundle, values, where)
    return bundle


def _end(lines: int, sha256: str) -> dict[str, Any]:
    return {"type": "end", "lines": lines, "sha256": sha256}


_TYPES: Mapping[str, tuple[str, type[Any]]] = {
    "entry": ("entries", Entry),
    "replaced": ("replaced", Replaced),
    "turn": ("turns", json_lines.TurnLine),
    "session": ("sessions", SessionHead),
    "link": ("links", Link),
    "recall": ("recalls", json_lines.RecallLine),
    "outcome": ("outcomes", json_lines.OutcomeLine),
    "tenant": ("tenants", json_lines.TenantLine),
}
"""By type of line: the list of the bundle that it goes to, and what it holds."""


def _keep(bundle: Bundle, values: Any, where: str) -> None:
    """Add one line to the bundle."""
    if not isinstance(values, dict) or not isinstance(type_ := values.pop("type", None), str):
        raise TransferError(f"{where}: has no type")
    if type_ not in _TYPES:
        raise TransferError(f"{where}: {type_!r} is not a type of line")
    if type_ == "outcome" and values.get("kind") in json_lines.OLD_KINDS:
        return
    vector = values.pop("vector", None) if type_ == "entry" else None
    name, kind = _TYPES[type_]
    value = json_lines.value_of(kind, values.get("link") if type_ == "link" else values, where)
    getattr(bundle, name).append(value)
    if vector is not None:
        with json_lines.placed(f"{where}: vector"):
            if bundle.model is None:
                raise InvalidInput("vector", "has no model to belong to")
            bundle.vectors[value.id] = json_lines.vector_of(vector, bundle.model.width)


def _model_in(line: bytes, path: Path) -> EmbeddingModel | None:
    """The model of the vectors, if the first line says that this is an export we can read."""
    where = f"{path}: line 1"
    values = _json_of(line, where) if b"_export" in line else {}
    named = [key for key in values if key.endswith("_export")] if isinstance(values, dict) else []
    if not named:
        raise TransferError(f"{path} is not a wellworn export: its first line has no 'wellworn_export'")
    version = values[named[0]]  # the product had another name before version 3
    if version not in VERSIONS:
        raise TransferError(f"{path} is of export version {version}; this release reads versions 2 and {VERSION}")
    model = values.get("model")
    return None if model is None else json_lines.value_of(EmbeddingModel, model, where)


def _json_of(line: bytes, where: str) -> Any:  # any JSON value
    try:
        return json.loads(line.decode(), object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise TransferError(f"{where}: is not readable JSON: {error}") from None


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a key is there twice")
    return values


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")
