"""Short codes of a large partition's vectors, which are scanned instead of the vectors: the extra `scale` (FAISS).

A code is 4 bits for every 4 numbers of a vector (product quantisation). A scan of all codes names the rows that are
probably nearest; their exact scores are computed from the vectors. Codes lie in the order of the rows, so that a new row
is one more code, and a row that is gone is a code of zeros. Knows nothing about scores other than the cosine.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

LEAST_ROWS = 200_000
"""Rows from which codes are used: fewer vectors are multiplied in 15 ms."""
_TRAINED_ON = 20_000

Matrix = npt.NDArray[np.float32]
Table = npt.NDArray[np.uint8]


@cache
def _faiss() -> Any:
    """The library, or None where the extra is not installed."""
    try:
        import faiss
    except ImportError:
        return None
    return faiss


def usable(rows: int, width: int) -> bool:
    """Whether a partition of so many vectors has codes."""
    return rows >= LEAST_ROWS and width > 0 and width % 8 == 0 and _faiss() is not None


class Codes:
    """The codes of a partition's rows, from the first on."""

    def __init__(self, width: int) -> None:
        faiss = _faiss()
        self._index = faiss.IndexPQFastScan(width, width // 4, 4, faiss.METRIC_INNER_PRODUCT)

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @classmethod
    def trained(cls, vectors: Matrix) -> Codes:
        """Codes fitted to some of these vectors; `follow` encodes them."""
        made = cls(vectors.shape[1])
        step = max(1, len(vectors) // _TRAINED_ON)
        made._index.train(np.ascontiguousarray(vectors[::step][:_TRAINED_ON]))
        return made

    @classmethod
    def of(cls, width: int, size: int, table: Table, book: Matrix) -> Codes:
        """What `table` and `book` were taken from."""
        faiss, made = _faiss(), cls(width)
        index = made._index
        faiss.copy_array_to_vector(np.array(book), index.pq.centroids)
        index.is_trained, index.ntotal = True, size
        index.ntotal2 = -(-size // index.bbs) * index.bbs
        index.codes.resize(len(table))
        made.table[:] = table
        return made

    @property
    def table(self) -> Table:
        """All codes, in the library's order."""
        found: Table = _faiss().rev_swig_ptr(self._index.codes.get(), self._index.codes.nbytes())
        return found

    @property
    def book(self) -> Matrix:
        """What the codes stand for."""
        found: Matrix = _faiss().vector_to_array(self._index.pq.centroids)
        return found

    def follow(self, vectors: Matrix) -> None:
        """Encode the rows that are new."""
        if len(vectors) > len(self):
            self._index.add(np.ascontiguousarray(vectors[len(self) :]))

    def clear(self, rows: Sequence[int]) -> None:
        """Nothing of these rows is left."""
        packer = self._index.get_CodePacker()
        blocks, nothing = self.table.reshape(-1, packer.block_size), np.zeros(packer.code_size, dtype=np.uint8)
        for row in rows:
            if row < len(self):  # block by block: the library refuses places far behind the first one
                packer.pack_1(nothing, row % packer.nvec, blocks[row // packer.nvec][None])

    def nearest(self, query: Matrix, count: int) -> npt.NDArray[np.intp]:
        """About the `count` rows of the highest cosine, in no order; rows that are gone may be among them."""
        rows = self._index.search(query[None], min(count, len(self)))[1][0]
        found: npt.NDArray[np.intp] = rows[rows >= 0].astype(np.intp)
        return found
