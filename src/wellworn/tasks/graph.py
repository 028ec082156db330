"""Walks over the links between entries: what follows from, is needed for, or is made possible by an entry.

The links are those of the memory (`Memory.link`); this module follows them. A path is as sure as the product of its
links' confidences; of several paths to an entry the surest is told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wellworn.core.errors import InvalidInput
from wellworn.core.values import Entry, Link, LinkType

LINKS: tuple[LinkType, ...] = ("entails", "contradicts", "refines", "requires", "enables")
MAX_HOPS = 8


@dataclass(frozen=True, kw_only=True)
class Path:
    """A way from one entry to another: `ids` one longer than `types`."""

    ids: tuple[str, ...]
    types: tuple[str, ...]
    confidence: float
    entry: Entry
    """Where it ends."""

    @property
    def hops(self) -> int:
        return len(self.types)


def checked_types(types: Sequence[str] | None) -> tuple[str, ...]:
    wanted = LINKS if types is None else tuple(types)
    unknown = [type_ for type_ in wanted if type_ not in LINKS]
    if unknown:
        raise InvalidInput("types", f"{unknown[0]!r} is not a link between strategies", f"use {', '.join(LINKS)}")
    return wanted


def walk(
    start: str,
    *,
    links_of: Callable[[Sequence[str]], Sequence[Link]],
    seen_of: Callable[[Sequence[str]], dict[str, Entry]],
    types: Sequence[str] | None = None,
    hops: int = 2,
    min_confidence: float = 0.0,
) -> list[Path]:
    """The entries that can be reached from one in so many hops, the surest first; then the nearer, then by id.

    Links are followed the way they point. `seen_of` says which entries may be entered.
    """
    if not 1 <= hops <= MAX_HOPS:
        raise InvalidInput("hops", f"{hops} is not from 1 to {MAX_HOPS}")
    wanted = checked_types(types)
    best: dict[str, tuple[float, tuple[str, ...], tuple[str, ...]]] = {start: (1.0, (start,), ())}
    entries: dict[str, Entry] = {}
    ahead = [start]
    for _ in range(hops):
        starts = {id: best[id] for id in ahead}
        found = [link for link in links_of(ahead) if link.source in starts and link.type in wanted]
        entries.update(seen_of(sorted({link.target for link in found} - entries.keys())))
        ahead = []
        for link in sorted(found, key=lambda link: (link.source, link.target, link.type)):
            sure, ids, steps = starts[link.source]
            way = (sure * link.confidence, (*ids, link.target), (*steps, link.type))
            if link.target in ids or link.target not in entries or way[0] < min_confidence:
                continue
            if link.target not in best or way[0] > best[link.target][0]:
                best[link.target] = way
                ahead.append(link.target)
        ahead = list(dict.fromkeys(ahead))
        if not ahead:
            break
    paths = [
        Path(ids=ids, types=steps, confidence=sure, entry=entries[id])
        for id, (sure, ids, steps) in best.items()
        if id != start
    ]
    return sorted(paths, key=lambda path: (-path.confidence, path.hops, path.ids))
