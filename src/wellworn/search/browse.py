"""Rows of a bank in an order of their own: newest first, or nearest to a vector. Knows no query and no profile."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import numpy.typing as npt

from wellworn.core.clock import to_micros
from wellworn.search.bank import Bank

Rows = npt.NDArray[np.intp]
Cosines = npt.NDArray[np.float32]


def newest(bank: Bank, moment: datetime) -> Rows:
    """Rows that begin their thread or have none and are valid at a moment, whatever their state; newest first.

    Of two that happened at once the one stored later comes first.
    """
    micros = to_micros(moment)
    found = [
        np.flatnonzero(
            partition.alive
            & (partition.position <= 0)
            & (partition.valid_from <= micros)
            & (micros < partition.valid_to)
        )
        + start
        for partition, start in zip(bank.partitions, bank.starts, strict=False)
    ]
    if not found:
        return np.empty(0, dtype=np.intp)
    rows = np.concatenate(found)
    return rows[np.lexsort((bank.column("no", rows), bank.column("at", rows)))[::-1]]


def nearest(bank: Bank, vector: npt.NDArray[np.float32], moment: datetime, k: int) -> tuple[Rows, Cosines]:
    """The k rows valid at a moment whose vectors have the highest cosine with this one, and those cosines.

    Of two that are equally near the one stored first comes first.
    """
    if not bank.partitions or k < 1:
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.float32)
    score = np.concatenate([partition.vectors @ vector for partition in bank.partitions])
    live = bank.live(moment)
    rows = np.flatnonzero(np.concatenate([partition.alive for partition in bank.partitions]) if live is None else live)
    if k < len(rows):
        least = np.partition(score[rows], len(rows) - k)[len(rows) - k]
        rows = rows[score[rows] >= least]  # more than k when several are as near as the last
    rows = rows[np.lexsort((bank.column("no", rows), -score[rows]))[:k]]
    return rows, score[rows]
