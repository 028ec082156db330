"""Indexes of large partitions in files beside the store, so that opening maps them instead of reading every row.

A file is a cache: it can be deleted at any time, and one that does not fit is. It fits when its token is the one that the
store has for its partition; what changed since comes from the store, as for an index in memory. Pages are mapped privately:
what a process changes stays its own.

The file holds vectors and hashes of terms. What is forgotten is taken out of the file in place, before the forgetting is
acknowledged, and the token changes. An encrypted store has no such files, nor has one that is no file.

Processes do not wait for each other. Who writes or changes a file does so under a name of its own and gives it its name at
the end; who forgets deletes all that is under such names. So a race or a crash costs a file and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import stat
import string
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import IO, Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from wellworn.core.clock import system_clock
from wellworn.core.dataclass import dataclass
from wellworn.core.errors import WellwornError
from wellworn.core.values import Partition
from wellworn.search.partition import PartitionIndex
from wellworn.store.port import PAGE, Delta, Record, RecordFilter, Store

LEAST_ROWS = 1_000
"""Rows of a partition from which it has a file: fewer are read in some 20 ms."""
CHANGED_SHARE = 8
"""A file is written anew when one row in so many has changed since."""
KIND = "index_file"
"""The kind of record that holds the token of a partition's file."""
_FORMAT = 3
_ALIGNED = 4096
_SPARE = 8
"""One place in so many is left free behind the rows, so that adding some does not move all."""
_BAD = (OSError, ValueError, LookupError, TypeError)
"""What reading a damaged file may raise."""
_log = logging.getLogger("wellworn.search")
Array = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class _Layout:
    """What a file says of itself."""

    format: int
    token: str
    partition_no: int
    seq: int
    size: int
    width: int
    weights: tuple[float, float]
    """Of neighbours, see `PartitionIndex`."""
    arrays: dict[str, tuple[int, str, list[int]]]
    """Name → offset, type and shape."""
    sums: dict[str, int]
    """Name → checksum; of vectors there is none, since opening does not read them (`IndexFiles.differs` does)."""


class IndexFiles:
    """The index files of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._database = Path(store.location).resolve()
        usable = os.name == "posix" and not store.remote and self._database.is_file()
        self._folder = self._database.with_name(f"{self._database.name}-index") if usable else None
        if self._folder is not None and self._is_ours(self._folder):
            self._sweep(self._folder)
        if store.encrypted:
            self._folder = None

    def _is_ours(self, folder: Path) -> bool:
        """Whether a folder is one, not a link to one, and of this user or the database's."""
        try:
            found = folder.lstat()
            return stat.S_ISDIR(found.st_mode) and found.st_uid in (os.geteuid(), self._database.stat().st_uid)
        except OSError:
            return False

    def _path(self, partition: Partition) -> Path | None:
        """Where the file of a partition is or would be. Its name tells nobody's."""
        return None if self._folder is None else self._folder / anonymous_name(partition)

    def load(self, partition: Partition, empty: PartitionIndex) -> PartitionIndex:
        """The index of a partition from its file, or the empty one when there is none that fits."""
        path = self._path(partition)
        if path is None or not self._is_ours(path.parent):
            return empty
        try:
            layout, arrays = _read(path, "c")
            _check(layout, arrays)
            found = (layout.partition_no, layout.width, tuple(layout.weights))
            if found == (empty.partition_no, empty.width, empty.neighbour_weights):
                index = _index(layout, arrays)
                if layout.token == self._token(partition):  # last: nobody had begun to change what was read
                    return index
        except FileNotFoundError:
            return empty
        except _BAD as error:
            _log.info("an index file is read from the store again: %s", error)
        _delete(path)
        return empty

    def save(self, partition: Partition, index: PartitionIndex) -> None:
        """Write the file of a large partition if it has none or an old one. A failure is logged: it is a cache."""
        path = self._path(partition)
        if path is None or index.held < LEAST_ROWS or CHANGED_SHARE * index.unsaved <= index.held:
            return
        if index.fetch is not None:  # its vectors are elsewhere
            return
        token = os.urandom(16).hex()
        made = path.with_suffix(f".{token}")
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            if not self._is_ours(path.parent):
                return
            with open(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
                # Who forgets from here on deletes this file. What was forgotten before is asked for now.
                since = self._store.delta(index.partition_no, index.known_seq, limit=1)
                if since.seq and not since.removed:
                    _write(file, index, token)
                    if self._keep_token(partition, index.partition_no, token):  # now a former file does not fit
                        made.replace(path)
                        index.unsaved = 0
        except (OSError, ValueError, WellwornError) as error:
            _log.warning("no index file for a partition of %d entries: %s", index.held, error)
        _delete(made)

    def erase(self, partition: Partition) -> None:
        """Take out of the file what is gone from the store; the whole file when the partition is gone."""
        path = self._path(partition)
        if path is None or not self._is_ours(path.parent):
            return
        token = os.urandom(16).hex()
        mine = path.with_suffix(f".{token}")
        try:
            for made in path.parent.glob(f"{path.name}.*"):
                _delete(made)
            if self._store.heads([partition]) == [None]:
                _delete(path)
            layout, arrays = _read(path, "r")
            if not self._gone(partition, layout, arrays):
                return
            path.rename(mine)
            layout, arrays = _read(mine, "r+")
            _check(layout, arrays)
            held = self._gone(partition, layout, arrays)
            if 8 * len(held) <= layout.size and self._keep_token(partition, layout.partition_no, token):
                _erase_rows(mine, layout, arrays, held, token)
                mine.replace(path)
        except FileNotFoundError:
            pass  # there is none, or someone who forgot too has deleted it
        except (*_BAD, WellwornError) as error:
            _log.warning("an index file is deleted, it could not be brought up to date: %s", error)
            _delete(path)
        _delete(mine)

    def differs(self, partition: Partition) -> bool:
        """Whether a file has other vectors than the store: opening does not read them."""
        path, other = self._path(partition), set[int]()
        if path is None or not self._is_ours(path.parent):
            return False
        try:
            layout, arrays = _read(path, "r")
            _check(layout, arrays)
            if layout.token != self._token(partition):
                return False
            rows = np.flatnonzero(arrays["alive"][: layout.size])
            for page in np.array_split(rows, len(rows) // PAGE + 1):
                nos = arrays["no"][page].tolist()
                stored = self._store.vectors(nos)
                held = zip(nos, arrays["vectors"][page], strict=True)
                other |= {no for no, vector in held if no in stored and not np.array_equal(vector, stored[no])}
            since = self._store.delta(layout.partition_no, layout.seq, vectors=False, words=False) if other else None
        except _BAD:  # it is thrown away when it is opened
            return False
        return since is not None and not other <= {slim.no for slim in since.rows}

    def drop(self, partition: Partition) -> None:
        """Delete the file of a partition."""
        path = self._path(partition)
        if path is not None and self._is_ours(path.parent):
            _delete(path)

    def _gone(self, partition: Partition, layout: _Layout, arrays: Mapping[str, Array]) -> list[int]:
        """Rows of a file that are gone from the store; a file that does not fit is an error."""
        (head,) = self._store.heads([partition])
        if head is None or head.partition_no != layout.partition_no or layout.token != self._token(partition):
            raise ValueError("it is not of this state of the store")
        removed = self._store.delta(layout.partition_no, layout.seq, limit=1).removed
        numbers = arrays["no"]
        if removed and _sum(numbers) != layout.sums["no"]:
            raise ValueError("its row numbers are damaged")
        return numbers[np.isin(numbers, np.array(removed, dtype=np.int64))].tolist() if removed else []

    def _token(self, partition: Partition) -> str | None:
        found = self._store.record(partition, KIND, KIND)
        return None if found is None else str(found.body.get("token"))

    def _keep_token(self, partition: Partition, partition_no: int, token: str) -> bool:
        """Write the token of a file into the store; False when the partition is gone, which stays so."""
        now: datetime = system_clock()
        record = Record(partition=partition, kind=KIND, key=KIND, body={"token": token}, created_at=now, updated_at=now)
        with self._store.transact() as tx:
            (head,) = tx.heads([partition])
            if head is None or head.partition_no != partition_no:
                return False
            tx.put_records([record])
        return True

    def _sweep(self, folder: Path) -> None:
        """Bring up to date what a crash left, and delete files of partitions that are gone, of another store, and all
        of a store that was encrypted since."""
        with suppress(OSError, WellwornError):
            paths = [path for path in folder.iterdir() if _is_name(path.stem)]
            known = self._store.records(RecordFilter(kinds=[KIND])) if paths and not self._store.encrypted else []
            there = {self._path(record.partition): record.partition for record in known if record.partition is not None}
            for path in paths:
                if path in there:
                    self.erase(there[path])
                else:
                    _delete(path)
            if self._store.encrypted:
                folder.rmdir()  # only an empty one


def _write(file: IO[bytes], index: PartitionIndex, token: str) -> None:
    by_row, others = index.arrays()
    places: dict[str, tuple[int, str, list[int]]] = {}
    end = 2 * _ALIGNED
    for name, array in (*by_row.items(), *others.items()):
        rows = len(array) + (len(array) // _SPARE if name in by_row else 0)
        shape = [rows, *array.shape[1:]]
        places[name] = (end, array.dtype.str, shape)
        end += -(-int(np.prod(shape)) * array.dtype.itemsize // _ALIGNED) * _ALIGNED
    file.truncate(max(end, 2 * _ALIGNED))
    sums: dict[str, int] = {}
    for name, array in (*by_row.items(), *others.items()):
        offset, kind, shape = places[name]
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        file.seek(offset)
        file.write(data)
        if name != "vectors":
            sums[name] = crc32(bytes(int(np.prod(shape)) * np.dtype(kind).itemsize - data.nbytes), crc32(data))
    layout = _Layout(
        format=_FORMAT,
        token=token,
        partition_no=index.partition_no,
        seq=index.known_seq,
        size=len(index),
        width=index.width,
        weights=index.neighbour_weights,
        arrays=places,
        sums=sums,
    )
    _write_header(file, layout)


def _write_header(file: IO[bytes], layout: _Layout) -> None:
    text = json.dumps(vars(layout)).encode()
    if len(text) > 2 * _ALIGNED - 8:
        raise ValueError(f"a header of {len(text)} bytes is too long")
    file.seek(0)
    file.write(b"%08x" % crc32(text) + text.ljust(2 * _ALIGNED - 8))
    file.flush()
    os.fsync(file.fileno())


def _read(path: Path, mode: Any) -> tuple[_Layout, Mapping[str, Array]]:  # "c", "r" or "r+"
    how = (os.O_RDWR if mode == "r+" else os.O_RDONLY) | os.O_NOFOLLOW | os.O_NONBLOCK
    with open(os.open(path, how), "r+b" if mode == "r+" else "rb") as file:
        head = file.read(2 * _ALIGNED)
        text = head[8:].rstrip()
        if crc32(text) != int(head[:8], 16):
            raise ValueError("its header is damaged, or of another release")
        layout = _Layout(**json.loads(text))
        whole = np.memmap(file, dtype=np.uint8, mode=mode)
    if layout.format != _FORMAT:
        raise ValueError("it is of another release")
    return layout, {name: _part(whole, *place) for name, place in layout.arrays.items()}


def _part(whole: Array, offset: int, kind: str, shape: Sequence[int]) -> Array:
    dtype = np.dtype(kind)
    return np.asarray(whole[offset : offset + int(np.prod(shape)) * dtype.itemsize]).view(dtype).reshape(shape)


def _sum(array: Array) -> int:
    return crc32(array.reshape(-1).view(np.uint8).data)


def _check(layout: _Layout, arrays: Mapping[str, Array]) -> None:
    if len(arrays["vectors"]) < layout.size:
        raise ValueError("it has fewer vectors than rows")
    for name, expected in layout.sums.items():
        if _sum(arrays[name]) != expected:
            raise ValueError(f"its {name} are damaged")


def _index(layout: _Layout, arrays: Mapping[str, Array]) -> PartitionIndex:
    near, far = layout.weights
    return PartitionIndex.of(layout.partition_no, (near, far), layout.seq, layout.size, arrays)


def _erase_rows(path: Path, layout: _Layout, arrays: Mapping[str, Array], nos: Sequence[int], token: str) -> None:
    """Take rows out of a file in place, as they are taken out of an index in memory."""
    index = _index(layout, arrays)
    index.apply(Delta(seq=layout.seq, rows=[], removed=[*nos]), compact=False)
    sums = {name: _sum(arrays[name]) for name in layout.sums}
    with path.open("r+b") as file:
        _write_header(file, replace(layout, token=token, sums=sums))


def anonymous_name(partition: Partition) -> str:
    """What stands for a partition outside the store."""
    named = "\x1f".join((partition.tenant, partition.layer, partition.layer_id))
    return hashlib.blake2b(named.encode(), digest_size=16).hexdigest()


def _is_name(name: str) -> bool:
    return len(name) == 32 and {*name} <= {*string.hexdigits}


def _delete(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        _log.warning("an index file cannot be deleted, delete it: %s", error)
