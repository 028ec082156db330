"""Records in memory. Those in here are never changed and shared between copies; the port hands out copies."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from wellworn.core.values import Partition
from wellworn.store.owned import own_body
from wellworn.store.port import Record


@dataclass(kw_only=True)
class Records:
    """The records of a whole store, in the order they were first put."""

    by_key: dict[tuple[Partition, str, str], Record] = field(default_factory=dict)

    def copy(self) -> Records:
        return Records(by_key=dict(self.by_key))

    def listed(
        self,
        *,
        tenant: str | None,
        partition: Partition | None,
        kinds: Sequence[str] | None,
        states: Sequence[str] | None,
    ) -> Iterator[Record]:
        """Those put first last."""
        for record in reversed(self.by_key.values()):
            if (
                tenant in (None, record.partition.tenant)
                and partition in (None, record.partition)
                and (kinds is None or record.kind in kinds)
                and (states is None or record.state in states)
            ):
                yield record

    def bodies(self, partition: Partition, kind: str, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        found = {key: self.by_key.get((partition, kind, key)) for key in keys}
        return {key: own_body(one.body, kind, key) for key, one in found.items() if one is not None}

    def put(self, record: Record) -> None:
        key = (record.partition, record.kind, record.key)
        old = self.by_key.get(key)
        self.by_key[key] = record if old is None else replace(record, created_at=old.created_at)

    def drop(self, partition: Partition, kind: str, key: str) -> bool:
        return self.by_key.pop((partition, kind, key), None) is not None

    def drop_partition(self, partition: Partition) -> int:
        return self._drop(lambda record: record.partition == partition)

    def forget_sessions(self, partition: Partition, gone: Collection[str]) -> int:
        return self._drop(lambda record: record.partition == partition and record.session in gone)

    def forget_entries(self, gone: Collection[str]) -> int:
        return self._drop(lambda record: any(name in gone for name in record.names))

    def _drop(self, goes: Callable[[Record], bool]) -> int:
        keys = [key for key, record in self.by_key.items() if goes(record)]
        for key in keys:
            del self.by_key[key]
        return len(keys)
