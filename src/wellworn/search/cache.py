"""Whole entries that were read lately: a bounded cache, so that text stays on disk and hot text does not."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Sequence

from wellworn.core.locks import ForkLock
from wellworn.core.values import Entry, Partition, filled
from wellworn.store.port import Store

MAX_ENTRIES = 500
MAX_BYTES = 5_000_000


class EntryCache:
    """Entries by row number, least recently used first out. A changed entry has another count and is read again."""

    def __init__(self, store: Store, *, max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES) -> None:
        self._store = store
        self._max_entries, self._max_bytes = max_entries, max_bytes
        self._held: OrderedDict[int, tuple[int, Entry]] = OrderedDict()
        self._bytes = 0
        self._forgettings = 0
        self._lock = ForkLock()

    def __len__(self) -> int:
        return len(self._held)

    def read(self, nos: Sequence[int], seqs: Sequence[int]) -> dict[int, Entry]:
        """The entries of these rows as of these counts, from memory or the store; rows just removed are left out."""
        found: dict[int, Entry] = {}
        with self._lock:
            forgettings = self._forgettings
            for no, seq in zip(nos, seqs, strict=True):
                held = self._held.get(no)
                if held is not None and held[0] == seq:
                    self._held.move_to_end(no)
                    found[no] = _own_copy(held[1])
        missing = [no for no in nos if no not in found]
        if missing:
            read = self._store.read(missing)
            found.update(read)
            counts = dict(zip(nos, seqs, strict=True))
            with self._lock:
                if self._forgettings == forgettings:  # else one of them may be among what was forgotten meanwhile
                    for no, entry in read.items():
                        self._keep(no, counts[no], _own_copy(entry))
        return found

    def _keep(self, no: int, seq: int, entry: Entry) -> None:
        self._drop(no)
        self._held[no] = (seq, entry)
        self._bytes += _size(entry)
        while self._held and (len(self._held) > self._max_entries or self._bytes > self._max_bytes):
            self._drop(next(iter(self._held)))

    def _drop(self, no: int) -> None:
        held = self._held.pop(no, None)
        if held is not None:
            self._bytes -= _size(held[1])

    def forget(self, partitions: Sequence[Partition]) -> int:
        """Drop everything of these partitions; returns how many entries that was."""
        with self._lock:
            self._forgettings += 1
            gone = [no for no, (_, entry) in self._held.items() if entry.partition in partitions]
            for no in gone:
                self._drop(no)
        return len(gone)

    def drop(self, nos: Sequence[int]) -> None:
        """Drop these rows, which are gone from the store."""
        with self._lock:
            self._forgettings += 1
            for no in nos:
                self._drop(no)

    def clear(self) -> None:
        with self._lock:
            self._forgettings += 1
            self._held.clear()
            self._bytes = 0


def _size(entry: Entry) -> int:
    return 2 * len(entry.text) + 2 * len(entry.evidence) + 1000


def _own_copy(entry: Entry) -> Entry:
    """A copy whose lists the caller may change without changing ours."""
    metadata = copy.deepcopy(entry.metadata) if entry.metadata else {}
    return filled(
        Entry, **{**entry.__dict__, "tags": [*entry.tags], "turn_refs": [*entry.turn_refs], "metadata": metadata}
    )
