"""Indexes of large partitions in files beside the store, so that opening maps them instead of reading every row.

A file is a cache: it can be deleted at any time, and one that does not fit is. It fits when its token is the one that the
store has for its partition; what changed since comes from the store, as for an index in memory. Pages are mapped privately:
what a process changes stays its own.

The file holds vectors and hashes of terms. What is forgotten is taken out of the file in place, before the forgetting is
acknowledged, and the token changes. An encrypted store has no such files, nor has one that is no file.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from wellworn.core.clock import system_clock
from wellworn.core.errors import WellwornError
from wellworn.core.values import Partition
from wellworn.search.partition import PartitionIndex
from wellworn.store.port import Delta, Record, Store

LEAST_ROWS = 50_000
"""Rows of a partition from which it has a file: fewer are read in a second."""
CHANGED_SHARE = 8
"""A file is written anew when one row in so many has changed since."""
KIND = "index_file"
"""The kind of record that holds the token of a partition's file."""
_FORMAT = 1
_ALIGNED = 4096
_SPARE = 8
"""One place in so many is left free behind the rows, so that adding some does not move all."""
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


class IndexFiles:
    """The index files of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        path = Path(store.location)
        usable = os.name == "posix" and "://" not in store.location and path.is_file()
        folder = path.with_name(f"{path.name}-index") if usable else None
        if folder is not None and folder.is_dir():
            self._sweep(folder)
        self._folder = None if store.encrypted else folder

    def _path(self, partition: Partition) -> Path | None:
        """Where the file of a partition is or would be. Its name tells nobody's."""
        if self._folder is None:
            return None
        named = "\x1f".join((partition.tenant, partition.layer, partition.layer_id))
        return self._folder / hashlib.blake2b(named.encode(), digest_size=16).hexdigest()

    def load(self, partition: Partition, empty: PartitionIndex) -> PartitionIndex:
        """The index of a partition from its file, or the empty one when there is none that fits."""
        path = self._path(partition)
        if path is None or not path.exists():
            return empty
        with suppress(OSError, ValueError, KeyError, TypeError):
            layout = _read_layout(path)
            same = (layout.partition_no, layout.width, tuple(layout.weights)) == (
                *(empty.partition_no, empty.width, empty.neighbour_weights),
            )
            if same and layout.token == self._token(partition):
                return _index(layout, _mapped(path, layout, "c"))
        _delete(path)
        return empty

    def save(self, partition: Partition, index: PartitionIndex) -> None:
        """Write the file of a large partition if it has none or an old one. A failure is logged: it is a cache."""
        path = self._path(partition)
        if path is None or index.held < LEAST_ROWS or CHANGED_SHARE * index.unsaved <= index.held:
            return
        token, made = secrets.token_hex(16), path.with_suffix(f".{os.getpid()}")
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            self._keep_token(partition, token)  # from here on a former file does not fit
            _write(made, index, token)
            made.replace(path)
        except (OSError, WellwornError) as error:
            _log.warning("no index file for a partition of %d entries: %s", index.held, error)
            _delete(made)
            return
        index.unsaved = 0
        self.erase(partition)  # what another process forgot while this one wrote

    def erase(self, partition: Partition) -> None:
        """Take out of the file what is gone from the store; the whole file when the partition is gone."""
        path = self._path(partition)
        if path is None or not path.exists():
            return
        try:
            layout = _read_layout(path)
            (head,) = self._store.heads([partition])
            if head is None or head.partition_no != layout.partition_no or layout.token != self._token(partition):
                _delete(path)
                return
            removed = self._store.delta(layout.partition_no, layout.seq, limit=1).removed
            numbers = _mapped(path, layout, "r")["no"]
            held = numbers[np.isin(numbers, np.array(removed, dtype=np.int64))].tolist() if removed else []
            if 8 * len(held) > layout.size:
                _delete(path)
            elif held:
                token = secrets.token_hex(16)
                self._keep_token(partition, token)
                _erase_rows(path, layout, held, token)
        except (OSError, ValueError, KeyError, TypeError, WellwornError) as error:
            _log.warning("an index file is deleted, it could not be brought up to date: %s", error)
            _delete(path)

    def _token(self, partition: Partition) -> str | None:
        found = self._store.record(partition, KIND, KIND)
        return None if found is None else str(found.body.get("token"))

    def _keep_token(self, partition: Partition, token: str) -> None:
        now: datetime = system_clock()
        record = Record(partition=partition, kind=KIND, key=KIND, body={"token": token}, created_at=now, updated_at=now)
        with self._store.transact() as tx:
            tx.put_records([record])

    def _count(self, partition_no: int) -> int:
        """How many changes a partition has seen; 0 when it is gone."""
        return self._store.delta(partition_no, 0, limit=1).seq

    def _sweep(self, folder: Path) -> None:
        """Delete files of partitions that are gone, what a crash left half written, and all of a store that was
        encrypted since."""
        for path in folder.iterdir():
            try:
                left = self._store.encrypted or path.suffix != "" or not self._count(_read_layout(path).partition_no)
            except (OSError, ValueError, KeyError, TypeError, WellwornError):
                left = True
            if left:
                _delete(path)


def _write(path: Path, index: PartitionIndex, token: str) -> None:
    by_row, others = index.arrays()
    size = len(index)
    places: dict[str, tuple[int, str, list[int]]] = {}
    end = 2 * _ALIGNED
    for name, array in (*by_row.items(), *others.items()):
        rows = len(array) + (len(array) // _SPARE if name in by_row else 0)
        shape = [rows, *array.shape[1:]]
        places[name] = (end, array.dtype.str, shape)
        end += -(-int(np.prod(shape)) * array.dtype.itemsize // _ALIGNED) * _ALIGNED
    layout = _Layout(
        format=_FORMAT,
        token=token,
        partition_no=index.partition_no,
        seq=index.known_seq,
        size=size,
        width=index.width,
        weights=index.neighbour_weights,
        arrays=places,
    )
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.truncate(max(end, 2 * _ALIGNED))
        for name, array in (*by_row.items(), *others.items()):
            file.seek(places[name][0])
            if array.size:
                file.write(np.ascontiguousarray(array).data)
        file.seek(0)
        file.write(_header(layout))
        file.flush()
        os.fsync(file.fileno())


def _header(layout: _Layout) -> bytes:
    text = json.dumps(vars(layout)).encode()
    if len(text) > 2 * _ALIGNED:
        raise ValueError(f"a header of {len(text)} bytes is too long")
    return text.ljust(2 * _ALIGNED)


def _read_layout(path: Path) -> _Layout:
    with path.open("rb") as file:
        layout = _Layout(**json.loads(file.read(2 * _ALIGNED)))
        size = os.fstat(file.fileno()).st_size
    ends = [offset + int(np.prod(shape)) * np.dtype(kind).itemsize for offset, kind, shape in layout.arrays.values()]
    if layout.format != _FORMAT or max(ends) > size:
        raise ValueError("it is cut, or of another release")
    return layout


def _mapped(path: Path, layout: _Layout, mode: Any) -> Mapping[str, Array]:  # "c", "r" or "r+"
    whole = np.memmap(path, dtype=np.uint8, mode=mode)
    return {name: _part(whole, *place) for name, place in layout.arrays.items()}


def _part(whole: Array, offset: int, kind: str, shape: Sequence[int]) -> Array:
    dtype = np.dtype(kind)
    return np.asarray(whole[offset : offset + int(np.prod(shape)) * dtype.itemsize]).view(dtype).reshape(shape)


def _index(layout: _Layout, arrays: Mapping[str, Array]) -> PartitionIndex:
    near, far = layout.weights
    return PartitionIndex.of(layout.partition_no, (near, far), layout.seq, layout.size, arrays)


def _erase_rows(path: Path, layout: _Layout, nos: Sequence[int], token: str) -> None:
    """Take rows out of a file in place, as they are taken out of an index in memory."""
    arrays = _mapped(path, layout, "r+")
    index = _index(layout, arrays)
    index.apply(Delta(seq=layout.seq, rows=[], removed=[*nos]), compact=False)
    if "table" in arrays:
        if index.codes is None:
            raise ValueError("its codes cannot be read without the extra scale")
        arrays["table"][:] = index.codes.table
    del index, arrays
    with path.open("r+b") as file:
        file.write(_header(_Layout(**{**vars(layout), "token": token})))
        file.flush()
        os.fsync(file.fileno())


def _delete(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)
