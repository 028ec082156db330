"""A partition's strategies and guardrails as arrays: what comparing and choosing need, without their texts.

Texts are read a page at a time and dropped again, so a large bank costs its vectors and a few numbers an entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wellworn.core.clock import to_micros
from wellworn.core.values import Entry, Partition
from wellworn.ingest.hashing import hash64
from wellworn.store.port import Selection, Store
from wellworn.tasks.consolidation.alike import Floats, Ints
from wellworn.tasks.consolidation.stance import stance_of
from wellworn.tasks.domains import domain_of
from wellworn.tasks.items import ITEM_KINDS

PAGE = 1000
LIVE = ("active", "flagged")
CONSOLIDATED = "consolidated"
"""Key of an entry's metadata: the run that changed it last and kept it."""
PROMOTED = "promoted"
"""Key of an entry's metadata: when it was promoted, and to what."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """One row an entry, in order of their ids."""

    ids: list[str]
    vectors: Floats
    """Shape (n, d); zeros for an entry without a vector."""
    realms: Ints
    """Rows of different domains are not compared: the narrower one may well say otherwise."""
    groups: Ints
    """Kind, trust and stance: only rows of one group can be duplicates."""
    confidence: Floats
    usage: Ints
    created: Ints
    """Microseconds, as below."""
    updated: Ints
    promoted: Ints
    """1 where it is, 0 where not."""
    hashes: list[str]
    """Of their texts, to know an entry again that was changed meanwhile."""

    def __len__(self) -> int:
        return len(self.ids)

    def unchanged(self, row: int, entry: Entry) -> bool:
        """Whether an entry still says what it said when it was read, in the same domain and of the same kind."""
        if to_micros(entry.updated_at) == self.updated[row] and entry.content_hash == self.hashes[row]:
            return True
        return entry.content_hash == self.hashes[row] and codes_of(entry) == (self.realms[row], self.groups[row])


def live_pages(store: Store, partition: Partition) -> Iterator[list[tuple[int, Entry]]]:
    """The partition's strategies and guardrails that are active or up for review, a page at a time, with row numbers."""
    selection = Selection(kinds=ITEM_KINDS, states=LIVE)
    page = store.select([partition], selection, limit=PAGE)
    while page:
        yield page
        page = store.select([partition], selection, after=page[-1][0], limit=PAGE)


def read_rows(store: Store, partition: Partition, *, progress: Callable[[int], None] | None = None) -> Rows:
    """Everything there is to consolidate on a partition. What was flagged waits for people, but is still compared."""
    ids: list[str] = []
    hashes: list[str] = []
    width = 0 if (model := store.model()) is None else model.width
    vectors: list[Floats] = []
    codes: list[Ints] = [np.zeros((0, 2), dtype=np.int64)]
    numbers: list[npt.NDArray[np.float64]] = [np.zeros((0, 5))]
    for page in live_pages(store, partition):
        entries = [entry for _, entry in page]
        vectors.append(_vectors(store, [no for no, _ in page], width))
        ids += [entry.id for entry in entries]
        hashes += [entry.content_hash for entry in entries]
        codes.append(np.array([codes_of(entry) for entry in entries], dtype=np.int64))
        numbers.append(np.array([_numbers(entry) for entry in entries], dtype=np.float64))
        if progress is not None:
            progress(len(ids))
    order = sorted(range(len(ids)), key=ids.__getitem__)
    coded, table = np.concatenate(codes)[order], np.concatenate(numbers)[order]
    together = np.concatenate([np.zeros((0, width), dtype=np.float32), *vectors])
    vectors.clear()  # they are most of what a run holds: never three times
    return Rows(
        ids=[ids[place] for place in order],
        hashes=[hashes[place] for place in order],
        vectors=together if order == [*range(len(ids))] else together[order],
        realms=coded[:, 0],
        groups=coded[:, 1],
        confidence=table[:, 0].astype(np.float32),
        usage=table[:, 1].astype(np.int64),
        created=table[:, 2].astype(np.int64),
        updated=table[:, 3].astype(np.int64),
        promoted=table[:, 4].astype(np.int64),
    )


def _vectors(store: Store, nos: Sequence[int], width: int) -> Floats:
    """Of a page; zeros where there is none."""
    found = np.zeros((len(nos), width), dtype=np.float32)
    stored = store.vectors(nos)
    for place, no in enumerate(nos):
        if no in stored:
            found[place] = stored[no]
    return found


def codes_of(entry: Entry) -> tuple[int, int]:
    """Realm and group of an entry, as this process numbers them."""
    realm = hash64(domain_of(entry.tags)) >> 1
    return realm, hash((realm, entry.kind, entry.trust, stance_of(entry).key))


def _numbers(entry: Entry) -> tuple[float, ...]:
    return (
        entry.confidence,
        entry.usage_count,
        to_micros(entry.created_at),
        to_micros(entry.updated_at),
        PROMOTED in entry.metadata,
    )
