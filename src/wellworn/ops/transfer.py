"""Export and import by format: `jsonl`, one lossless file, or `markdown`, a folder for people.

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
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from wellworn.core.clock import EPOCH, Clock
from wellworn.core.dataclass import dataclass
from wellworn.core.errors import EmbedderMismatch, InvalidInput, StoreCorrupt, TransferError
from wellworn.core.plain import to_plain
from wellworn.core.values import Entry, Link, Partition, Progress, Scope, unwatched
from wellworn.ingest.remember import Writer
from wellworn.ingest.validate import shown
from wellworn.learning.records import OUTCOME, POLICY, RECALL
from wellworn.ops import lines as json_lines
from wellworn.ops.bundle import Bundle, Loaded, Written, admit, coherent
from wellworn.ops.files import beside, open_plain, scratch
from wellworn.ops.markdown import export_folder, load_folder
from wellworn.store.events import EVENT
from wellworn.store.port import EmbeddingModel, Record, RecordFilter, Replaced, SessionHead, Store, StoreReader
from wellworn.store.sqlite import SqliteStore

__all__ = ["FORMATS", "Loaded", "Written", "export_to", "load_from"]

FORMATS = ("jsonl", "markdown")


def export_to(
    store: Store,
    path: Path,
    *,
    format: str | None,
    scope: Scope | None,
    vectors: bool,
    clock: Clock,
    plain: bool = False,
    progress: Progress = unwatched,
) -> Written:
    """Write the whole store, a tenant (a scope without a layer) or the partitions a scope sees, to a file or folder.

    Without a format, a name that ends in `.jsonl` is a JSONL file, and a name without an ending a Markdown folder.
    """
    chosen, now = _checked_format(format) or _format_of(path), clock()
    if store.encrypted and not plain:
        problem = "this store is encrypted and an export would not be"
        raise InvalidInput("plain", problem, "make a backup, or say plain=True (--plain)")

    def exported(store: Store) -> Written:
        with store.snapshot() as reader:  # others may write meanwhile
            seen = frozenset(reader.covered(scope))
            partitions = [partition for partition in reader.partitions() if partition in seen]
            if chosen == "jsonl":
                done = export_file(reader, path, partitions=partitions, vectors=vectors, now=now, progress=progress)
            else:
                done = export_folder(reader, path, partitions=partitions, progress=progress)
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
    format: str | None,
    scope: Scope | None,
    progress: Progress = unwatched,
) -> Loaded:
    """Read an export, or a folder of notes, into the store; without a format, a folder is Markdown. The learning log that
    came with it is learned again."""
    if not path.exists():
        raise TransferError(f"there is no {path} to load")
    chosen = _checked_format(format) or ("markdown" if path.is_dir() else "jsonl")
    if path.is_dir() != (chosen == "markdown"):
        raise TransferError(f"{path} is not a {'folder' if chosen == 'markdown' else 'file'}, as {chosen} needs")
    if chosen == "markdown":
        return load_folder(store, writer, path, scope=scope, progress=progress)
    bundle = read_file(path)
    loaded = admit(bundle, store, writer, scope=scope, progress=progress)
    learned = {recall.partition.tenant for recall in bundle.recalls} | {one.tenant for one in bundle.tenants}
    for tenant in sorted(learned if scope is None else learned & {scope.tenant}):
        relearn(tenant)
    return loaded


def _format_of(path: Path) -> str:
    if path.suffix == ".jsonl":
        return "jsonl"
    if path.suffix and not path.is_dir():  # `backup.json` is hardly meant to become a folder
        raise InvalidInput("path", f"{path.name!r} does not tell the format", "end it in .jsonl, or name the format")
    return "markdown"


def _checked_format(format: str | None) -> str | None:
    if format is not None and (not isinstance(format, str) or format not in FORMATS):
        raise InvalidInput("format", f"{shown(format)} is not a format", f"use {' or '.join(FORMATS)}")
    return format


# -- moving to another engine ------------------------------------------------------------------------------------------

PAGE = 500
_NOT_COPIED = frozenset({RECALL, OUTCOME, POLICY, "index_file"})
"""Kinds that the export carries, that are made anew, or that tell of files of the source."""


@dataclass(frozen=True, kw_only=True)
class Moved:
    """What a move brought, and the hash of the lines that are in both stores now."""

    entries: int
    skipped: int
    links: int
    turns: int
    versions: int
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
    if _place_of(source) == _place_of(target):
        raise InvalidInput("target", f"{target.location!r} is the source itself", "name another store")
    vectors, there = source.model(), target.model()
    if vectors is not None and there is not None and vectors.key != there.key:
        raise EmbedderMismatch(*vectors.key, *there.key)

    def part(number: int) -> Progress:
        """The progress of one of four walks as progress of all."""
        return lambda done, total: progress(number * total + done, 4 * total)

    def exported(store: Store, path: Path, number: int, plain: bool) -> list[bytes]:
        export_to(
            store, path, format="jsonl", scope=None, vectors=True, clock=clock, plain=plain, progress=part(number)
        )
        with path.open("rb") as file:
            lines = file.readlines()[1:-1]  # without the header and the seal, which hold times and counts
        return sorted(hashlib.sha256(line).digest() for line in lines)

    with scratch() as folder:
        wanted = exported(source, Path(folder) / "source.jsonl", 0, plain)
        foreign = {*exported(target, Path(folder) / "before.jsonl", 1, True)} - {*wanted}
        if count := len(foreign) + _foreign_records(source, target):
            raise TransferError(
                f"{target.location} holds {count:,} lines or records that {source.location} does not: one of them has "
                "changed since they were copied, or it is another memory; move into a store that is empty"
            )
        path = Path(folder) / "source.jsonl"
        loaded: Loaded = load_from(target, writer, path, relearn=relearn, format="jsonl", scope=None, progress=part(2))
        records = _copy_records(source, target)
        missing = {*wanted} - {*exported(target, Path(folder) / "target.jsonl", 3, True)}
    if missing:
        raise TransferError(
            f"{len(missing):,} of {len(wanted):,} lines of {source.location} are not in {target.location}: they were there "
            "already in another form, or changed meanwhile; move into a store that is empty"
        )
    return Moved(
        entries=loaded.entries,
        skipped=loaded.skipped,
        links=loaded.links,
        turns=loaded.turns,
        versions=loaded.versions,
        records=records,
        lines=len(wanted),
        sha256=hashlib.sha256(b"".join(wanted)).hexdigest(),
    )


def _foreign_records(source: Store, target: Store) -> int:
    """Audit events that only the target has, and records with a key that are newer there or not in the source at all."""
    events, keyed = set(), {}
    for one in _records(source):
        if one.key:
            keyed[_name_of(one)] = one.updated_at
        elif one.kind == EVENT:
            events.add(_digest(one))
    foreign = 0
    for one in _records(target):
        if one.key:
            foreign += keyed.get(_name_of(one), EPOCH) < one.updated_at
        elif one.kind == EVENT and one.state not in ("load", "relearn"):  # a move leaves these itself
            foreign += _digest(one) not in events
    return foreign


def _copy_records(source: Store, target: Store) -> int:
    """Jobs, tasks, events, model calls and settings that the target does not have in this state, a page a transaction."""
    copied, there = 0, Counter(map(_digest, _records(target)))

    def is_new(record: Record) -> bool:
        digest = _digest(record)
        there[digest] -= 1
        return there[digest] < 0

    wanted = filter(is_new, _records(source))
    while page := [*islice(wanted, PAGE)]:
        with target.transact() as tx:
            copied += sum(no is not None for no in tx.put_records(page))
    return copied


def _records(store: Store) -> Iterator[Record]:
    """The records that a move copies, oldest first."""
    every = store.every_record(RecordFilter())
    return (record for record in every if record.kind not in _NOT_COPIED and not record.rows)


def _name_of(record: Record) -> tuple[str, Partition | None, str, str]:
    return record.tenant, record.partition, record.kind, record.key


def _digest(record: Record) -> bytes:
    return hashlib.sha256(json.dumps(to_plain(replace(record, no=0)), sort_keys=True).encode()).digest()


def _place_of(store: Store) -> str:
    return str(store.path) if isinstance(store, SqliteStore) else store.location


# -- the lossless file -------------------------------------------------------------------------------------------------
#
# One UTF-8 file, one JSON object a line, sealed by a hash.
#
#     {"wellworn_export": 3, "created_at": "…", "model": {"name": "…", "width": 256} | null}
#     {"type": "entry", …every field…, "vector": "<base64 of little-endian float32>" | null}
#     {"type": "replaced", "entry": {…an older state…}, "change": "edited", "changed_at": "…"}
#     {"type": "turn", "partition": {…}, "session_id": "…", "number": 0, …}
#     {"type": "session", "partition": {…}, "session_id": "…", "turns": 1, "reflected": 0, …}
#     {"type": "link", "link": {"source": "…", "target": "…", "type": "supports", …}}
#     {"type": "recall" | "outcome" | "tenant", …} the learning log: see `lines`
#     {"type": "end", "lines": <lines before this one>, "sha256": "<hash of all bytes before this line>"}
#
# The file appears under its name only when it is whole. A load checks the seal, then every line, before anything is
# written, and holds the whole content in memory. Files of version 1 (no learning log) and 2 (another word for partition)
# are read too. The audit log, jobs, records and model calls are the store's own and stay there.

VERSION = 3
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
        self.write(type_, {"type": type_, **values, **more})
        return True

    def write(self, type_: str, values: dict[str, Any]) -> None:
        line = json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        self._file.write(line)
        self._hash.update(line)
        self.bytes += len(line)
        self.lines[type_] = self.lines.get(type_, 0) + 1

    def seal(self) -> None:
        self.write("end", {"type": "end", "lines": sum(self.lines.values()), "sha256": self._hash.hexdigest()})


def export_file(
    store: StoreReader,
    path: Path,
    *,
    partitions: Sequence[Partition],
    vectors: bool,
    now: datetime,
    progress: Progress = unwatched,
) -> Written:
    """Write the partitions to a file, replacing one of that name; links to entries elsewhere are left out."""
    if path.is_dir():
        raise TransferError(f"{path} is a folder; name a file to export to, as in {path / 'memory.jsonl'}")
    model = store.model() if vectors else None
    with beside(path) as file:
        out = _Sealed(file)
        header_model = None if model is None else to_plain(model)
        made = now.astimezone(UTC).isoformat()
        out.write("header", {"wellworn_export": VERSION, "created_at": made, "model": header_model})
        ids = _write_entries(out, store, partitions, model, progress)
        _write_turns(out, store, partitions, ids)
        _write_links(out, store, ids)
        for line in json_lines.log_lines(store, partitions, ids):
            out.write(line["type"], line)
        out.seal()
    counts = out.lines
    return Written(
        path=str(path),
        format="jsonl",
        entries=counts.get("entry", 0),
        links=counts.get("link", 0),
        turns=counts.get("turn", 0),
        versions=counts.get("replaced", 0),
        outcomes=counts.get("outcome", 0),
        bytes=out.bytes,
        unreadable=out.left_out,
    )


def _write_entries(
    out: _Sealed, store: StoreReader, partitions: Sequence[Partition], model: EmbeddingModel | None, progress: Progress
) -> dict[str, None]:
    """Entries in row order, each followed by its older states; returns their ids in that order."""
    total = store.counts(partitions)["entries"]
    ids: dict[str, None] = {}
    for partition in partitions:
        for page in store.pages([partition]):
            stored = store.index_of([no for no, _ in page]) if model else {}
            for no, entry in page:
                _, vector = stored.get(no, (None, None))
                whole = vector is not None and model is not None and vector.shape == (model.width,)
                numbers = (
                    json_lines.float_bytes(vector)
                    if vector is not None and whole and json_lines.is_unit_or_zero(vector)
                    else None
                )
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
                out.write(
                    "session",
                    {"type": "session", **json_lines.plain_session(replace(head, turns=said, reflected=read))},
                )


def _write_links(out: _Sealed, store: StoreReader, ids: dict[str, None], size: int = 500) -> None:
    """Each link once, with its source, if its target is in the export too."""
    ordered = list(ids)
    for start in range(0, len(ordered), size):
        sources = set(ordered[start : start + size])
        for link in store.links(ordered[start : start + size]):
            if link.source in sources and link.target in ids and link.source != link.target:
                out.keep("link", _LinkLine, {"link": to_plain(link)})


# -- reading -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Header:
    """The first line, without the version."""

    created_at: datetime
    model: EmbeddingModel | None


@dataclass(frozen=True, kw_only=True)
class _LinkLine:
    link: Link


json_lines.RULES[_Header] = {"model": json_lines.or_none(json_lines.checked)}
json_lines.RULES[_LinkLine] = {"link": json_lines.checked}


def read_file(path: Path) -> Bundle:
    """The content of an export: its seal checked first, then every value, then how they fit together."""
    try:
        with open_plain(path) as file:
            bundle = Bundle(model=_check_header(file, path))
            _check_seal(file, path)
            for number, line in _content(file, path):
                where = f"{path}: line {number}"
                _keep(bundle, _json_of(line, where), where)
    except OSError as error:
        raise TransferError(f"cannot read {path}: {error.strerror or error}") from error
    return coherent(bundle, where=str(path))


_TYPES: Mapping[str, tuple[str, type[Any]]] = {
    "entry": ("entries", Entry),
    "replaced": ("replaced", Replaced),
    "turn": ("turns", json_lines.TurnLine),
    "session": ("sessions", SessionHead),
    "link": ("links", _LinkLine),
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
    value = json_lines.value_of(kind, values, where)
    getattr(bundle, name).append(value.link if type_ == "link" else value)
    if vector is not None:
        with json_lines.placed(f"{where}: vector"):
            if bundle.model is None:
                raise InvalidInput("vector", "has no model to belong to")
            bundle.vectors[value.id] = json_lines.vector_of(vector, bundle.model.width)


def _check_header(file: BinaryIO, path: Path) -> EmbeddingModel | None:
    """The model of the vectors, if the first line says that this is an export we can read."""
    where = f"{path}: line 1"
    line = next(_lines(file, path), b"")
    values = _json_of(line, where) if b"_export" in line else {}
    named = [key for key in values if key.endswith("_export")] if isinstance(values, dict) else []
    if not named:
        raise TransferError(f"{path} is not a wellworn export: its first line has no 'wellworn_export'")
    version = values.pop(named[0])  # the product had another name before version 3
    if isinstance(version, bool) or version not in range(1, VERSION + 1):
        raise TransferError(f"{path} is of export version {version}; this release reads up to version {VERSION}")
    return json_lines.value_of(_Header, values, where).model


def _check_seal(file: BinaryIO, path: Path) -> None:
    """The last line must count and hash everything before it."""
    hashed, count, last = hashlib.sha256(), 0, b""
    for line in _lines(file, path):
        hashed.update(last)
        count += bool(last)
        last = line
    where = f"{path}: last line"
    values = _json_of(last, where) if last.endswith(b"\n") else None
    if not isinstance(values, dict) or values.get("type") != "end":
        raise TransferError(f"{path} is cut short: it does not end with an end line; export it again")
    if values != {"type": "end", "lines": count, "sha256": hashed.hexdigest()}:
        raise TransferError(f"{path} is damaged: its lines do not have the hash that its end line states")


def _lines(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """Every line from the start, its line end included."""
    file.seek(0)
    while line := file.readline(MAX_LINE_BYTES + 1):
        if len(line) > MAX_LINE_BYTES:
            raise TransferError(f"{path} has a line of more than {MAX_LINE_BYTES:,} bytes")
        yield line


def _content(file: BinaryIO, path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines between the first and the last, numbered from 1 over the whole file."""
    before: bytes | None = None
    for number, line in enumerate(_lines(file, path)):
        if before is not None and number > 1:
            yield number, before
        before = line


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
