"""Export and import by format: `jsonl`, one lossless file, or `markdown`, a folder for people. Knows neither's details.

A load into a scope writes nothing outside of it: entries of partitions that the scope sees return to them, all others go
to its home partition, with their ids where those are free and new ones where not.

A move to another engine is an export, a load, the other records, and a proof that all of it arrived. What is there already
is skipped, so a move that was cut short is finished by the same call. Row numbers are an engine's own: the learning log
carries entry ids instead, and learned states are made anew from it. Stop whoever writes to the source first.
"""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import replace
from pathlib import Path

from wellworn.core.clock import Clock
from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput, StoreCorrupt, TransferError
from wellworn.core.values import Progress, Scope
from wellworn.ingest.remember import Writer
from wellworn.ingest.validate import shown
from wellworn.learning.records import OUTCOME, POLICY, RECALL
from wellworn.ops.bundle import Loaded, Written, admit
from wellworn.ops.jsonl import export_file, read_file
from wellworn.ops.markdown import export_folder, load_folder
from wellworn.store.port import Record, RecordFilter, Store
from wellworn.store.sqlite.store import SqliteStore

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
    progress: Progress | None = None,
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
    with tempfile.TemporaryDirectory(prefix="wellworn-") as folder:  # broken pages: what is readable of the file
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
    format: str | None,
    scope: Scope | None,
    progress: Progress | None = None,
) -> Loaded:
    """Read an export, or a folder of notes, into the store; without a format, a folder is Markdown."""
    if not path.exists():
        raise TransferError(f"there is no {path} to load")
    chosen = _checked_format(format) or ("markdown" if path.is_dir() else "jsonl")
    if path.is_dir() != (chosen == "markdown"):
        raise TransferError(f"{path} is not a {'folder' if chosen == 'markdown' else 'file'}, as {chosen} needs")
    if chosen == "markdown":
        return load_folder(store, writer, path, scope=scope, progress=progress)
    return admit(read_file(path), store, writer, scope=scope, progress=progress)


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
MOVED = "moved"
"""The kind of record that says how far the records of a source have come."""
_NOT_COPIED = frozenset({RECALL, OUTCOME, POLICY, MOVED, "index_file"})
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
    source: Store, target: Store, writer: Writer, *, clock: Clock, plain: bool = False, progress: Progress | None = None
) -> Moved:
    """Copy everything of one store into another, whose writer is given; `plain` lets that of an encrypted store pass through a
    plain temporary file."""
    if source.location == target.location:
        raise InvalidInput("target", f"{target.location!r} is the source itself", "name another store")

    def part(number: int) -> Progress | None:
        """The progress of one of three walks as progress of all."""
        return None if progress is None else lambda done, total: progress(number * total + done, 3 * total)

    def exported(store: Store, path: Path, number: int, plain: bool) -> list[bytes]:
        export_to(
            store, path, format="jsonl", scope=None, vectors=True, clock=clock, plain=plain, progress=part(number)
        )
        with path.open("rb") as file:
            lines = file.readlines()[1:-1]  # without the header and the seal, which hold times and counts
        return sorted(hashlib.sha256(line).digest() for line in lines)

    with tempfile.TemporaryDirectory(prefix="wellworn-") as folder:
        wanted = exported(source, Path(folder) / "source.jsonl", 0, plain)
        loaded: Loaded = load_from(
            target, writer, Path(folder) / "source.jsonl", format="jsonl", scope=None, progress=part(1)
        )
        records = _copy_records(source, target)
        missing = {*wanted} - {*exported(target, Path(folder) / "target.jsonl", 2, True)}
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


def _copy_records(source: Store, target: Store) -> int:
    """Jobs, tasks, events, model calls and settings, a page a transaction; it goes on where it was cut short."""
    copied, tenant = 0, "default"
    while True:
        done = next(iter(target.records(RecordFilter(kinds=[MOVED], keys=[source.location], tenant=tenant))), None)
        after = 0 if done is None else int(done.body["after"])
        page = source.records(RecordFilter(after=after, order="oldest", limit=PAGE))
        if not page:
            return copied
        chosen = [record for record in page if record.kind not in _NOT_COPIED and not record.rows]
        mark = Record(
            tenant=tenant,
            kind=MOVED,
            key=source.location,
            body={"after": page[-1].no},
            created_at=page[-1].created_at,
            updated_at=page[-1].updated_at,
        )
        with target.transact() as tx:
            copied += sum(no is not None for no in tx.put_records(chosen, replace=False))
            tx.put_records([mark])
