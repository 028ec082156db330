"""Export and import by format: `jsonl`, one lossless file, or `markdown`, a folder for people. Knows neither's details.

A load into a scope writes nothing outside of it: entries of partitions that the scope sees return to them, all others go
to its home partition, with their ids where those are free and new ones where not.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from wellworn.core.clock import Clock
from wellworn.core.errors import InvalidInput, StoreCorrupt, TransferError
from wellworn.core.values import Progress, Scope
from wellworn.ingest.remember import Writer
from wellworn.ingest.validate import shown
from wellworn.ops.bundle import Loaded, Written, admit
from wellworn.ops.jsonl import export_file, read_file
from wellworn.ops.markdown import export_folder, load_folder
from wellworn.store.port import Store
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
    chosen = _checked_format(format) or _format_of(path)
    if store.encrypted and not plain:
        problem = "this store is encrypted and an export would not be"
        raise InvalidInput("plain", problem, "make a backup, or say plain=True (--plain)")
    options: dict[str, Any] = {
        "scope": scope,
        "chosen": chosen,
        "vectors": vectors,
        "now": clock(),
        "progress": progress,
    }
    try:
        return _exported(store, path, **options)
    except StoreCorrupt:
        if not isinstance(store, SqliteStore):
            raise
    with tempfile.TemporaryDirectory(prefix="wellworn-") as folder:  # broken pages: what is readable of the file
        copy = Path(folder) / "salvaged.db"
        lost = store.salvage_to(copy).lost
        salvaged = store.like(copy)
        try:
            salvaged.check(mend=True)
            written = _exported(salvaged, path, **options)
        finally:
            salvaged.close()
    return replace(written, unreadable=written.unreadable + sum(lost.values()))


def _exported(
    store: Store,
    path: Path,
    *,
    scope: Scope | None,
    chosen: str,
    vectors: bool,
    now: datetime,
    progress: Progress | None,
) -> Written:
    with store.snapshot() as reader:  # others may write meanwhile
        seen = frozenset(reader.covered(scope))
        partitions = [partition for partition in reader.partitions() if partition in seen]
        if chosen == "jsonl":
            done = export_file(reader, path, partitions=partitions, vectors=vectors, now=now, progress=progress)
        else:
            done = export_folder(reader, path, partitions=partitions, progress=progress)
    return replace(done, unreadable=done.unreadable + len(store.damaged()))


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
