"""Backups of a store in use: one compressed file each, checked by restoring it before it counts.

    {"wellworn_backup": 1, "name": "memory", "created_at": "…", "bytes": …, "sha256": "…", "encrypted": false, …}
    <gzip of the database file>

The first line is JSON; what follows can be read without wellworn (`tail -n +2 FILE | gunzip > memory.db`). The copy is
one moment of the store and holds nothing that was forgotten. That of an encrypted store is encrypted with the same key. That of
a database is a file, too: restored, it is used as it is or moved to a database again.
Backups that were made before the last erasure of a person are removed once a newer one is checked.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO
from urllib.parse import parse_qsl, urlsplit

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput, OtherFile, StoreCorrupt, StoreError, TransferError, WrongKey
from wellworn.core.plain import from_plain, to_plain
from wellworn.ops.doctor import verify
from wellworn.ops.files import BEFORE_RESTORE, beside, explained, free_name, open_plain, scratch, sweep, take_place
from wellworn.store.events import EVENT
from wellworn.store.port import RecordFilter, Store
from wellworn.store.sql import SqlStore
from wellworn.store.sqlite import SqliteStore

VERSION = 1
ENDING = ".backup"
ERASE = "erase"
"""The action of the events that erasures write."""
_CHUNK = 1 << 20
_MOST_HEADER = 10_000


@dataclass(frozen=True, kw_only=True)
class Backup:
    """One backup: where it is, when it was made, and what is in it."""

    path: str
    name: str
    created_at: datetime
    entries: int
    bytes: int
    """Of the database."""
    sha256: str
    encrypted: bool
    store: str
    """Tells the file from others of its name: a hash of where it lies."""


@dataclass(frozen=True, kw_only=True)
class BackedUp:
    """What `create` did: the new backup (None when none was due) and the older ones that it removed."""

    made: Backup | None
    removed: tuple[str, ...] = ()
    kept: int = 0
    unsure: tuple[str, ...] = ()
    """From before the last erasure, of a file of the same name that may be another one: they were not removed."""


def folder_of(location: str | Path) -> Path:
    """Where the backups of a file lie unless another folder is named: beside it. A database has no such place."""
    if "://" in str(location):
        raise InvalidInput("folder", f"{str(location)!r} is not a file", "name a folder for its backups (--folder)")
    return Path(f"{os.path.realpath(location)}.backups")


def name_of(location: str | Path) -> str:
    """What the backups of a store are called: as its file, or as its database."""
    if "://" not in str(location):
        return Path(os.path.realpath(location)).stem
    return re.sub(r"\W+", "-", _database(str(location))).strip("-")


def _database(url: str) -> str:
    """What tells a database from others, however its URL is spelled: hosts with their ports, name and schema."""
    parts = urlsplit(url)
    given = dict(parse_qsl(parts.query))
    hosts = parts.netloc.rpartition("@")[2] or f"{given.get('host', '')}:{given.get('port', 5432)}"
    return f"{hosts.lower().replace(':5432', '')}{parts.path}/{given.get('schema', '')}"


def place_of(store: Store) -> str | Path:
    """The file itself, which stays the same after a change of the folder, or the URL."""
    return store.path if isinstance(store, SqliteStore) else store.location


def create(
    store: Store, folder: Path | None = None, *, now: datetime, keep: int | None = None, every: timedelta | None = None
) -> BackedUp:
    """Make a backup and check it. With `keep`, only so many stay; with `every`, one is made only when the last is that
    old, so that a schedule may ask often."""
    store.model()  # says that the store is closed, if it is
    if not isinstance(store, SqlStore) or store.location == ":memory:":
        raise InvalidInput("backup", f"{store.location!r} is not a file", "open the memory with a path")
    place = place_of(store)
    folder, name = folder or folder_of(place), name_of(place)
    if keep is not None and keep < 1:
        raise InvalidInput("keep", f"{keep} would keep none", "give at least 1")
    named = [one for one in list_backups(folder) if one.name == name]
    before = list_backups(folder, place)
    if every is not None and before and now - before[0].created_at < every:
        return BackedUp(made=None, kept=len(before))
    with explained(f"cannot write to {folder}"):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        sweep(folder)
    made = _made(store, folder, name, now)
    try:
        check(Path(made.path), open_store=store.like)
    except (TransferError, StoreError):
        Path(made.path).unlink(missing_ok=True)
        raise
    erasures = store.records(RecordFilter(kinds=[EVENT], states=[ERASE], limit=1))
    erased = erasures[0].created_at if erasures else None
    old = [
        one for place, one in enumerate(before, 2) if (keep and place > keep) or (erased and one.created_at < erased)
    ]
    for one in old:
        Path(one.path).unlink(missing_ok=True)
    return BackedUp(
        made=made,
        removed=tuple(one.path for one in old),
        kept=len(before) - len(old) + 1,
        unsure=tuple(one.path for one in named if one not in before and erased and one.created_at < erased),
    )


def list_backups(folder: Path, of: str | Path | None = None) -> list[Backup]:
    """The backups in a folder, newest first: of one store, or of all. What is no backup is passed over."""
    found: list[Backup] = []
    for path in sorted(folder.glob(f"*{ENDING}")) if folder.is_dir() else ():
        try:
            with open_plain(path) as file:
                found.append(_read_header(file, path))
        except (TransferError, OSError):
            continue
    if of is not None:
        # A file's own folder stays so when both are moved. A link may be the folder of several.
        own = "://" not in str(of) and folder.resolve() == folder_of(of)
        store, name = hash_of(of), name_of(of)
        found = [one for one in found if one.name == name and (own or one.store == store)]
    return sorted(found, key=lambda one: one.created_at, reverse=True)


def hash_of(location: str | Path) -> str:
    """Tells a store from others, however its location is spelled."""
    place = _database(str(location)) if "://" in str(location) else os.path.realpath(location)
    return hashlib.sha256(os.fsencode(place)).hexdigest()[:16]


def check(path: Path, *, open_store: Callable[[Path], SqlStore] = SqliteStore) -> Backup:
    """Restore a backup into a temporary file and verify everything in it; damage is an error that says what is wrong."""
    with _unpacked(path, None) as (header, file):
        try:
            store = open_store(file)
        except (StoreCorrupt, WrongKey) as error:
            if not header.encrypted or isinstance(error, OtherFile):
                raise
            raise WrongKey(f"{path} is encrypted: give its key (WELLWORN_KEY or WELLWORN_KEY_FILE)") from error
        try:
            report = verify(store, None)
            entries = store.counts(store.partitions())["entries"]
        finally:
            store.close()
    broken = [flaw for flaw in report.flaws if flaw.check in ("pages", "readable")]
    if broken or entries != header.entries:
        problem = f"{broken[0].subject}: {broken[0].problem}" if broken else f"{entries} of {header.entries} entries"
        raise TransferError(f"{path} does not restore to what was backed up: {problem}")
    return header


def restore(path: Path, target: Path, *, force: bool = False) -> tuple[Backup, Path | None]:
    """Write the database of a backup to a file. One that is there stays unless `force` is given; then it is kept as
    `<file>.before-restore`, which is returned too."""
    if target.exists() and not force:
        raise TransferError(f"{target} is there already; name another file, or use --force to replace it")
    target = Path(os.path.realpath(target))
    if target.exists() and not target.is_file():
        raise TransferError(f"cannot write {target}: it is not a plain file; give another path")
    with _unpacked(path, target) as (header, file):
        kept = free_name(Path(f"{target}.{BEFORE_RESTORE}"), target)
        take_place(file, target, kept)
    return header, kept if kept.exists() else None


def _made(store: SqlStore, folder: Path, name: str, now: datetime) -> Backup:
    while (path := folder / f"{name}-{now:%Y%m%dT%H%M%S%fZ}{ENDING}").exists():
        now += timedelta(microseconds=1)
    with scratch(path) as place:
        copy = Path(place) / "copy.db"
        try:
            entries = store.copy_to(copy)
        except StoreError as error:
            raise type(error)(f"cannot back up to {folder}: {error}") from error
        with copy.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        backup = Backup(
            path=str(path),
            name=name,
            created_at=now,
            entries=entries,
            bytes=copy.stat().st_size,
            sha256=digest,
            encrypted=store.encrypted,
            store=hash_of(place_of(store)),
        )
        values = {key: value for key, value in to_plain(backup).items() if key != "path"}
        with beside(path) as out, copy.open("rb") as file:
            out.write(json.dumps({"wellworn_backup": VERSION, **values}).encode() + b"\n")
            with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=6, mtime=0) as packed:
                shutil.copyfileobj(file, packed, _CHUNK)
    return backup


def _read_header(file: BinaryIO, path: Path) -> Backup:
    try:
        values = json.loads(file.readline(_MOST_HEADER))
        version = values.pop("wellworn_backup")
        backup = from_plain(Backup, {**values, "path": str(path)})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise TransferError(f"{path} is not a wellworn backup: its first line does not say so") from None
    if version != VERSION:
        raise TransferError(f"{path} is of backup version {version!r:.20}; this release reads version {VERSION}")
    return backup


@contextmanager
def _unpacked(path: Path, goal: Path | None) -> Iterator[tuple[Backup, Path]]:
    """The database of a backup in a temporary file, beside its goal if it has one, if it is what was backed up."""
    beside_goal = goal and goal.parent / "wellworn-restoring"
    with explained(f"cannot write {goal or tempfile.gettempdir()}"), scratch(beside_goal) as place:
        yield _unpack(path, target := Path(place) / "memory.db"), target


def _unpack(path: Path, target: Path) -> Backup:
    with explained(f"cannot unpack {path}"):
        file = open_plain(path)
    digest = hashlib.sha256()
    try:
        with file, target.open("wb") as out:
            header = _read_header(file, path)
            with gzip.GzipFile(fileobj=file) as packed:
                while chunk := packed.read(_CHUNK):
                    digest.update(chunk)
                    out.write(chunk)
            os.fchmod(out.fileno(), 0o600)
            os.fsync(out.fileno())
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TransferError(f"{path} is damaged: {error}") from error
    if digest.hexdigest() != header.sha256:
        raise TransferError(f"{path} is damaged: its content does not have the hash that its first line states")
    return header
