"""Dossiers in memory. Those in here are never changed and shared between copies; the port hands out copies."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from recollect.stores.base import Dossier
from recollect.stores.owned import own_body
from recollect.types import Shelf


@dataclass(kw_only=True)
class Dossiers:
    """The dossiers of a whole store, in the order they were first put."""

    by_key: dict[tuple[Shelf, str, str], Dossier] = field(default_factory=dict)

    def copy(self) -> Dossiers:
        return Dossiers(by_key=dict(self.by_key))

    def listed(self, *, tenant: str | None, shelf: Shelf | None, kinds: Sequence[str] | None,
               states: Sequence[str] | None) -> Iterator[Dossier]:  # fmt: skip
        """Those put first last."""
        for dossier in reversed(self.by_key.values()):
            if (
                tenant in (None, dossier.shelf.tenant)
                and shelf in (None, dossier.shelf)
                and (kinds is None or dossier.kind in kinds)
                and (states is None or dossier.state in states)
            ):
                yield dossier

    def bodies(self, shelf: Shelf, kind: str, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        found = {key: self.by_key.get((shelf, kind, key)) for key in keys}
        return {key: own_body(one.body, kind, key) for key, one in found.items() if one is not None}

    def put(self, dossier: Dossier) -> None:
        key = (dossier.shelf, dossier.kind, dossier.key)
        old = self.by_key.get(key)
        self.by_key[key] = dossier if old is None else replace(dossier, created_at=old.created_at)

    def drop(self, shelf: Shelf, kind: str, key: str) -> bool:
        return self.by_key.pop((shelf, kind, key), None) is not None

    def drop_shelf(self, shelf: Shelf) -> int:
        return self._drop(lambda dossier: dossier.shelf == shelf)

    def forget_sessions(self, shelf: Shelf, gone: Collection[str]) -> int:
        return self._drop(lambda dossier: dossier.shelf == shelf and dossier.session in gone)

    def forget_entries(self, gone: Collection[str]) -> int:
        return self._drop(lambda dossier: any(name in gone for name in dossier.names))

    def _drop(self, goes: Callable[[Dossier], bool]) -> int:
        keys = [key for key, dossier in self.by_key.items() if goes(dossier)]
        for key in keys:
            del self.by_key[key]
        return len(keys)
