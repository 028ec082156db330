"""The vectors of large partitions in Qdrant, which names the rows that are probably nearest: the extra `qdrant`.

A partition has a collection of its own. Points are numbered like the rows of the store, and have a vector and its checksum,
no text. The store stays the truth: a partition is compared with it when it is loaded, and what is forgotten is deleted here
before the forgetting is acknowledged. While Qdrant fails, vectors are multiplied in this process; where they have left
memory, only words are searched. Afterwards partitions are compared again. Of a file, collections of partitions that are gone
are deleted at opening and after a failure; in a database a role may not see all partitions.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from zlib import crc32

import numpy as np

from wellworn.core.errors import InvalidInput, MissingExtra, StoreError
from wellworn.core.values import Partition
from wellworn.models.port import Matrix
from wellworn.search.mapped import anonymous_name
from wellworn.search.partition import PartitionIndex
from wellworn.store.port import Delta, Store

LEAST_ROWS = 200_000
"""Rows of a partition from which its vectors are kept there: fewer are multiplied in 15 ms."""
TIMEOUT_S = 5
REST_S = 30.0
_PAGE = 1000
_log = logging.getLogger("wellworn.search")
T = TypeVar("T")


class QdrantVectors:
    """Vectors of one store in a Qdrant: a URL, a client, or a folder for its local mode."""

    def __init__(
        self, client: Any, *, store: Store, name: str, sees_all: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`name` tells the store from others that use the same Qdrant; `sees_all`: it has no partitions that are hidden."""
        try:
            from qdrant_client import QdrantClient, models
        except ImportError:
            raise MissingExtra("vectors in Qdrant", "qdrant") from None
        self._owned = isinstance(client, str | Path)
        remedy = "use a URL such as http://localhost:6333, a folder or a QdrantClient"
        if isinstance(client, str) and "://" in client:
            try:
                client = QdrantClient(url=client, timeout=TIMEOUT_S)
            except Exception as error:  # of the client or its transport, which name no common type
                raise InvalidInput("qdrant", f"{client!r:.80} is no address of a Qdrant: {error}", remedy) from error
        elif isinstance(client, str | Path) and Path(client).name and ":" not in Path(client).name:
            try:
                Path(client).mkdir(mode=0o700, parents=True, exist_ok=True)
                client = QdrantClient(path=str(client))
            except (OSError, RuntimeError) as error:
                problem = f"{str(client)!r} cannot be opened: {error}"
                raise InvalidInput("qdrant", problem, "use another folder, or a server by its URL") from error
        elif not isinstance(client, QdrantClient):
            raise InvalidInput("qdrant", f"{client!r:.80} is no Qdrant", remedy)
        self._client, self._models, self._store, self._clock = client, models, store, clock
        self._prefix = f"wellworn-{name}-"
        self._current: set[Partition] = set()
        """Partitions whose points are those of the store, as far as this process knows."""
        self._rest_until, self._sees_all, self._swept = float("-inf"), sees_all, not sees_all
        self._try(lambda: None, None)

    def close(self) -> None:
        """Close a client that was made here."""
        if self._owned:
            self._client.close()

    def relieve(self, partition: Partition, index: PartitionIndex) -> None:
        """Nothing: points are compared with an index that has the vectors."""

    def is_behind(self, partition: Partition, index: PartitionIndex) -> bool:
        """Whether a partition must be compared, and Qdrant does not rest."""
        large = index.held >= LEAST_ROWS and index.width > 0
        return large and partition not in self._current and self._clock() >= self._rest_until

    def follow(self, partition: Partition, index: PartitionIndex, delta: Delta) -> None:
        """Bring the points of a partition up to date with its index, to which a delta was just applied."""
        known = partition in self._current and index.elsewhere is not None  # set by the last call for this very index
        index.elsewhere = None
        self._current.discard(partition)
        if index.held < LEAST_ROWS or not index.width:
            return
        if self._try(lambda: self._follow(partition, index, delta if known else None), False):
            self._current.add(partition)
            index.elsewhere = partial(self.nearest, partition)

    def _follow(self, partition: Partition, index: PartitionIndex, delta: Delta | None) -> bool:
        """Without a delta every point is compared."""
        if delta is not None:
            changed, gone, there = [slim.no for slim in delta.rows], delta.removed, dict[int, int]()
        else:
            self._make(partition, index.width)
            changed, there = index.nos(), dict(self._points(partition))
            gone = [*there.keys() - changed]
        self._remove(partition, gone)
        for start in range(0, len(changed), _PAGE):
            places = np.array(index.rows_of(changed[start : start + _PAGE]), dtype=np.intp)
            found = zip(index.no[places].tolist(), index.vectors_of(places), strict=True)
            rows = [(no, vector, total) for no, vector in found if there.get(no) != (total := crc32(vector.tobytes()))]
            if rows:
                points = self._models.Batch(
                    ids=[no for no, _, _ in rows],
                    vectors=[vector.tolist() for _, vector, _ in rows],
                    payloads=[{"crc32": total} for _, _, total in rows],
                )
                self._client.upsert(self._collection(partition), points=points, wait=True)
        return True

    def erase(self, partition: Partition) -> None:
        """Delete the points whose rows are gone from the store."""
        if not self._try(lambda: self._erase(partition), False):
            self._current.discard(partition)

    def _erase(self, partition: Partition) -> bool:
        if self._client.collection_exists(self._collection(partition)):
            nos = [no for no, _ in self._points(partition)]
            for start in range(0, len(nos), _PAGE):
                page = nos[start : start + _PAGE]
                self._remove(partition, [*{*page} - self._store.alive(page)])
        return True

    def nearest(
        self, partition: Partition, vector: Matrix, count: int, *, among: Sequence[int] | None = None
    ) -> list[int] | None:
        """About the `count` row numbers of the highest cosine; None: nobody knows."""
        if partition not in self._current:
            return None

        def found() -> list[int]:
            models, asked = self._models, {"query": np.asarray(vector).tolist(), "limit": count}
            if among is not None:
                asked["query_filter"] = models.Filter(must=[models.HasIdCondition(has_id=[*among])])
            answer = self._client.query_points(self._collection(partition), **asked, with_payload=False)
            return [int(point.id) for point in answer.points]

        return self._try(found, None)

    def _make(self, partition: Partition, width: int) -> None:
        name, models = self._collection(partition), self._models
        there = self._client.collection_exists(name)
        if there and self._client.get_collection(name).config.params.vectors.size != width:
            there = not self._client.delete_collection(name)
        if not there:
            config = models.VectorParams(size=width, distance=models.Distance.DOT)
            self._client.create_collection(name, vectors_config=config)

    def _points(self, partition: Partition) -> Iterator[tuple[int, int]]:
        """Number and checksum of the points of a partition."""
        after = None
        while True:
            page, after = self._client.scroll(self._collection(partition), limit=_PAGE, offset=after)
            yield from ((int(point.id), int(point.payload["crc32"])) for point in page)
            if after is None:
                return

    def _remove(self, partition: Partition, nos: Sequence[int]) -> None:
        for start in range(0, len(nos), _PAGE):
            selected = self._models.PointIdsList(points=[*nos[start : start + _PAGE]])
            self._client.delete(self._collection(partition), points_selector=selected, wait=True)

    def _collection(self, partition: Partition) -> str:
        return f"{self._prefix}{anonymous_name(partition)}"

    def _sweep(self) -> None:
        """Delete collections of partitions that are gone, or too small by now to be compared again."""
        made = [one.name for one in self._client.get_collections().collections if one.name.startswith(self._prefix)]
        there = {self._collection(one): one for one in self._store.partitions()} if made else {}
        for name in made:
            if name not in there or self._store.counts([there[name]], only=["entries"])["entries"] < LEAST_ROWS:
                self._client.delete_collection(name)
        self._swept = True

    def _try(self, ask: Callable[[], T], otherwise: T) -> T:
        """The answer, or `otherwise` while Qdrant fails or rests."""
        if self._clock() < self._rest_until:
            return otherwise
        try:
            if not self._swept:
                self._sweep()
            return ask()
        except StoreError:
            raise
        except Exception as error:  # of the client, its transport, or whatever client was given
            self._current.clear()
            self._rest_until, self._swept = self._clock() + REST_S, not self._sees_all
            _log.warning("Qdrant failed, it is searched and deleted from later: %s", type(error).__name__)
            return otherwise
