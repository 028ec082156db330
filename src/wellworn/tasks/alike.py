"""The items of a partition as arrays, and which of them are alike: what a consolidation compares.

Similarities are computed a block of rows at a time, and only the nearest few of each row are kept, so memory grows with
the number of items and not with its square. Texts are read a page at a time and dropped again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wellworn.core.values import Entry, Partition
from wellworn.store.port import Selection, Store
from wellworn.tasks.advice import advice_of
from wellworn.tasks.items import ITEM_KINDS, LIVE, domain_of, pattern_of

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

PAGE = 1000
BLOCK = 256
NEAREST = 16
"""Neighbours of an item that are looked at. What is missed in a dense bank is found by a later run."""
_SLACK = np.float32(1e-6)
"""float32 products of unit vectors round by about this much."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """One row an item, in order of their ids."""

    ids: list[str]
    vectors: Floats
    """Shape (n, d); zeros for an item without a vector."""
    domains: Ints
    """Items of different domains are not compared: the narrower one may well say otherwise."""
    words: dict[int, list[str]]
    """Ids of items with the same content words, arguments and polarity, in the same domain, kind and trust."""


def live_pages(store: Store, partition: Partition) -> Iterator[list[tuple[int, Entry]]]:
    """A partition's strategies and guardrails that are active or up for review, with row numbers, a page at a time."""
    selection = Selection(kinds=ITEM_KINDS, states=LIVE)
    page = store.select([partition], selection, limit=PAGE)
    while page:
        yield page
        page = store.select([partition], selection, after=page[-1][0], limit=PAGE)


def read_rows(store: Store, partition: Partition, look: Callable[[Entry], None]) -> Rows:
    """Everything there is to consolidate in a partition; `look` sees each entry as it is read."""
    model = store.model()
    width = 0 if model is None else model.width
    ids: list[str] = []
    domains: list[int] = []
    words: dict[int, list[str]] = {}
    vectors = [np.zeros((0, width), dtype=np.float32)]
    for page in live_pages(store, partition):
        stored = store.index_of([no for no, _ in page])
        none = np.zeros(width, dtype=np.float32)
        found = [none if no not in stored or stored[no][1] is None else stored[no][1] for no, _ in page]
        vectors.append(np.array(found, dtype=np.float32).reshape(len(page), width))
        for _, entry in page:
            look(entry)
            ids.append(entry.id)
            domains.append(hash(domain_of(entry.tags)))
            said, pattern = advice_of(entry), pattern_of(entry)
            calls = pattern.key(entry.kind)
            prose = (said.content, said.arguments, said.against, said.unless)
            key = (domains[-1], entry.kind, entry.trust, (calls, frozenset(pattern.conditions)) if calls else prose)
            words.setdefault(hash(key), []).append(entry.id)
    order = sorted(range(len(ids)), key=ids.__getitem__)
    return Rows(
        ids=[ids[place] for place in order],
        vectors=np.concatenate(vectors)[order],
        domains=np.array(domains, dtype=np.int64)[order],
        words=words,
    )


def alike_pairs(rows: Rows, least: float, told: Callable[[int], None]) -> list[tuple[str, str, float]]:
    """Pairs of ids of one domain whose cosine is at least `least`, the nearest of each item; `told` hears how many
    rows are done."""
    found: dict[tuple[int, int], float] = {}
    order = np.argsort(rows.domains, kind="stable")
    done = 0
    for part in np.split(order, np.flatnonzero(np.diff(rows.domains[order])) + 1):
        for start in range(0, len(part), BLOCK):
            block = part[start : start + BLOCK]
            products = rows.vectors[block] @ rows.vectors[part].T
            products[np.arange(len(block)), start + np.arange(len(block))] = -1.0
            near = np.argsort(-products, axis=1, kind="stable")[:, :NEAREST]
            cosines = np.take_along_axis(products, near, axis=1)
            for place, column in zip(*np.nonzero(cosines >= np.float32(least) - _SLACK), strict=True):
                pair = sorted((int(block[place]), int(part[near[place, column]])))
                found[pair[0], pair[1]] = min(1.0, float(cosines[place, column]))
            done += len(block)
            told(done)
    return [(rows.ids[a], rows.ids[b], alike) for (a, b), alike in sorted(found.items())]
