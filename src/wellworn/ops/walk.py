"""A store read page by page, so that no caller ever holds it whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wellworn.core.values import Entry, Partition
from wellworn.store.port import Selection, StoreReader

PAGE = 500


def pages(store: StoreReader, partition: Partition, *, size: int = PAGE) -> Iterator[list[tuple[int, Entry]]]:
    """Every entry of a partition with its row number, in row order; entries added meanwhile come last."""
    after = 0
    while page := store.select([partition], Selection(), after=after, limit=size):
        yield page
        after = page[-1][0]


def entry_total(store: StoreReader, partitions: Sequence[Partition]) -> int:
    return store.counts(partitions)["entries"] if partitions else 0
