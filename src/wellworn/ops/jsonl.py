"""The lossless export: one UTF-8 file, one JSON object a line, sealed by a hash.

    {"wellworn_export": 2, "created_at": "…", "model": {"name": "…", "width": 256} | null}
    {"type": "entry", …every field…, "vector": "<base64 of little-endian float32>" | null}
    {"type": "replaced", "entry": {…an older state…}, "change": "edited", "changed_at": "…"}
    {"type": "turn", "partition": {…}, "session_id": "…", "number": 0, …}
    {"type": "session", "partition": {…}, "session_id": "…", "turns": 1, "reflected": 0, …}
    {"type": "link", "link": {"source": "…", "target": "…", "type": "supports", …}}
    {"type": "recall" | "outcome" | "tenant", …} the learning log: see `log_lines`
    {"type": "end", "lines": <lines before this one>, "sha256": "<hash of all bytes before this line>"}

The file appears under its name only when it is whole. A load checks the seal, then every line, before anything is
written. Files of version 1 have no learning log. The audit log, jobs, records and model calls are the store's own
and stay there. A load holds the whole file's content in memory.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from wellworn.core.clock import NewId
from wellworn.core.errors import InvalidInput, TransferError
from wellworn.core.values import Entry, Link, Partition, Progress, Scope, Turn
from wellworn.ingest.remember import Writer
from wellworn.ingest.validate import checked_line
from wellworn.learning.state import Tenant
from wellworn.ops import plain
from wellworn.ops.admit import admit
from wellworn.ops.bundle import Bundle, Loaded, Written, coherent
from wellworn.ops.folder import beside
from wellworn.ops.log_lines import OutcomeLine, RecallLine, log_lines, outcome_of, recall_of, tenant_of
from wellworn.ops.plain import Fields
from wellworn.ops.walk import entry_total, pages
from wellworn.store.port import Model, Replaced, SessionHead, Store, Vector

VERSION = 2
READABLE = (1, 2)
MAX_LINE_BYTES = 32_000_000
MAX_WIDTH = 65_536


# -- writing -----------------------------------------------------------------------------------------------------


class _Sealed:
    """A file under way: counts its lines by type and hashes its bytes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self.lines: dict[str, int] = {}
        self.bytes = 0

    def write(self, type_: str, values: dict[str, Any]) -> None:
        line = json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        self._file.write(line)
        self._hash.update(line)
        self.bytes += len(line)
        self.lines[type_] = self.lines.get(type_, 0) + 1

    def seal(self) -> None:
        self.write("end", {"type": "end", "lines": sum(self.lines.values()), "sha256": self._hash.hexdigest()})


def export_file(
    store: Store,
    path: Path,
    *,
    partitions: Sequence[Partition],
    vectors: bool,
    now: datetime,
    progress: Progress | None = None,
) -> Written:
    """Write the partitions to a file, replacing one of that name; links to entries elsewhere are left out."""
    if path.is_dir():
        raise TransferError(f"{path} is a folder; name a file to export to, as in {path / 'memory.jsonl'}")
    model = store.model() if vectors else None
    with beside(path) as file:
        out = _Sealed(file)
        header_model = None if model is None else {"name": model.name, "width": model.width}
        out.write("header", {"wellworn_export": VERSION, "created_at": plain.plain_time(now), "model": header_model})
        ids = _write_entries(out, store, partitions, model, progress)
        _write_turns(out, store, partitions, ids)
        _write_links(out, store, ids)
        for line in log_lines(store, partitions, ids):
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
    )


def _write_entries(
    out: _Sealed, store: Store, partitions: Sequence[Partition], model: Model | None, progress: Progress | None
) -> dict[str, None]:
    """Entries in row order, each followed by its older states; returns their ids in that order."""
    total = entry_total(store, partitions)
    ids: dict[str, None] = {}
    for partition in partitions:
        for page in pages(store, partition):
            stored = store.index_of([no for no, _ in page]) if model else {}
            for no, entry in page:
                ids[entry.id] = None
                _, vector = stored.get(no, (None, None))
                encoded = None if vector is None else plain.plain_vector(vector)
                out.write("entry", {"type": "entry", **plain.plain_entry(entry), "vector": encoded})
                for old in store.replaced(entry.id):
                    out.write("replaced", {"type": "replaced", **plain.plain_replaced(old)})
            if progress is not None:
                progress(len(ids), max(total, len(ids)))
    return ids


def _write_turns(out: _Sealed, store: Store, partitions: Sequence[Partition], ids: dict[str, None]) -> None:
    for partition in partitions:
        for session_id in store.sessions(partition):
            for turn in store.turns(partition, session_id):
                values = plain.plain_turn(partition, turn)
                if turn.entry_id not in ids:
                    values["entry_id"] = None  # the entry was forgotten and the turn kept
                out.write("turn", {"type": "turn", **values})
            head = store.session(partition, session_id)
            if head is not None and head.turns:
                out.write("session", {"type": "session", **plain.plain_session(head)})


def _write_links(out: _Sealed, store: Store, ids: dict[str, None], size: int = 500) -> None:
    """Each link once, with its source, if its target is in the export too."""
    ordered = list(ids)
    for start in range(0, len(ordered), size):
        sources = set(ordered[start : start + size])
        for link in store.links(ordered[start : start + size]):
            if link.source in sources and link.target in ids:
                out.write("link", {"type": "link", "link": plain.plain_link(link)})


# -- reading -----------------------------------------------------------------------------------------------------


@dataclass
class _Lines:
    """The lines of a file, sorted by type."""

    model: Model | None
    entries: list[Entry] = field(default_factory=list)
    vectors: dict[str, Vector] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    turns: list[tuple[Partition, Turn]] = field(default_factory=list)
    sessions: list[SessionHead] = field(default_factory=list)
    replaced: list[Replaced] = field(default_factory=list)
    recalls: list[RecallLine] = field(default_factory=list)
    outcomes: list[OutcomeLine] = field(default_factory=list)
    tenants: dict[str, Tenant] = field(default_factory=dict)

    def keep(self, values: object, where: str) -> None:
        fields = Fields(values, where)
        type_ = fields.take("type", lambda value: checked_line("type", value))
        if type_ == "entry":
            vector = fields.take("vector", self._vector)
            entry = plain.entry_of(fields)
            self.entries.append(entry)
            if vector is not None:
                self.vectors[entry.id] = vector
        elif type_ == "link":
            self.links.append(plain.link_of(fields.nested("link")))
            fields.done()
        elif type_ == "turn":
            self.turns.append(plain.turn_of(fields))
        elif type_ == "session":
            self.sessions.append(plain.session_of(fields))
        elif type_ == "replaced":
            self.replaced.append(plain.replaced_of(fields))
        elif type_ == "recall":
            self.recalls.append(recall_of(fields))
        elif type_ == "outcome":
            self.outcomes.append(outcome_of(fields))
        elif type_ == "tenant":
            self.tenants |= [tenant_of(fields)]
        else:
            raise TransferError(f"{where}: {type_!r} is not a type of line")

    def _vector(self, value: object) -> Vector | None:
        if value is None:
            return None
        if self.model is None:
            raise InvalidInput("vector", "has no model to belong to")
        return plain.vector_of(value, self.model.width)


def load_file(
    store: Store,
    writer: Writer,
    path: Path,
    *,
    scope: Scope | None = None,
    new_id: NewId | None = None,
    progress: Progress | None = None,
) -> Loaded:
    """Take a file into the store: where it came from, or all of it to the home partition of a scope."""
    return admit(read_file(path), store, writer, scope=scope, new_id=new_id, progress=progress)


def read_file(path: Path) -> Bundle:
    """The content of an export: its seal checked first, then every value, then how they fit together."""
    try:
        with path.open("rb") as file:
            model = _check_header(file, path)
            _check_seal(file, path)
            lines = _Lines(model=model)
            for number, line in _content(file, path):
                lines.keep(_json_of(line, f"{path}: line {number}"), f"{path}: line {number}")
    except OSError as error:
        raise TransferError(f"cannot read {path}: {error.strerror or error}") from error
    return coherent(
        Bundle(
            entries=lines.entries,
            vectors=lines.vectors,
            model=model,
            links=lines.links,
            turns=lines.turns,
            sessions=lines.sessions,
            replaced=lines.replaced,
            recalls=lines.recalls,
            outcomes=lines.outcomes,
            tenants=lines.tenants,
        ),
        where=str(path),
    )


def _check_header(file: BinaryIO, path: Path) -> Model | None:
    """The model of the vectors, if the first line says that this is an export we can read."""
    where = f"{path}: line 1"
    line = next(_lines(file, path), b"")
    if b"wellworn_export" not in line:
        raise TransferError(f"{path} is not a wellworn export: its first line has no 'wellworn_export'")
    fields = Fields(_json_of(line, where), where)
    version = fields.take("wellworn_export", plain.checked_count)
    if version not in READABLE:
        raise TransferError(f"{path} is of export version {version}; this release reads up to version {VERSION}")
    fields.take("created_at", plain.checked_time)
    model = fields.take("model", lambda value: None if value is None else _model_of(value, where))
    fields.done()
    return model


def _model_of(value: object, where: str) -> Model:
    fields = Fields(value, f"{where}: model")
    model = Model(
        name=fields.take("name", lambda name: checked_line("name", name)),
        width=fields.take("width", plain.checked_count),
    )
    fields.done()
    if not 1 <= model.width <= MAX_WIDTH:
        raise TransferError(f"{where}: a vector width of {model.width} is not from 1 to {MAX_WIDTH}")
    return model


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


def _json_of(line: bytes, where: str) -> Any:  # any JSON value: `Fields` checks it
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
