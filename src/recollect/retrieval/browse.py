"""Rows of a bank in an order of their own: newest first, or nearest to a vector. Knows no query and no profile."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import numpy.typing as npt

from recollect.clock import to_micros
from recollect.retrieval.bank import Bank

Rows = npt.NDArray[np.intp]
Cosines = npt.NDArray[np.float32]


def newest(bank: Bank, moment: datetime) -> Rows:
    """Rows that begin their thread or have none and are valid at a moment, whatever their state; newest first.

    Of two that happened at once the one stored later comes first.
    """
    micros = to_micros(moment)
    found = [
        np.flatnonzero(
            shelf.alive & (shelf.position <= 0) & (shelf.valid_from <= micros) & (micros < shelf.valid_to)
        ) + start
        for shelf, start in zip(bank.shelves, bank.starts, strict=False)
    ]  # fmt: skip
    if not found:
        return np.empty(0, dtype=np.intp)
    rows = np.concatenate(found)
    return rows[np.lexsort((bank.column("no", rows), bank.column("at", rows)))[::-1]]


def nearest(bank: Bank, vector: npt.NDArray[np.float32], moment: datetime, k: int) -> tuple[Rows, Cosines]:
    """The k rows valid at a moment whose vectors have the highest cosine with this one, and those cosines.

    Of two that are equally near the one stored first comes first.
    """
    if not bank.shelves or k < 1:
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.float32)
    score = np.concatenate([shelf.vectors @ vector for shelf in bank.shelves])
    live = bank.live(moment)
    rows = np.flatnonzero(np.concatenate([shelf.alive for shelf in bank.shelves]) if live is None else live)
    if k < len(rows):
        least = np.partition(score[rows], len(rows) - k)[len(rows) - k]
        rows = rows[score[rows] >= least]  # more than k when several are as near as the last
    rows = rows[np.lexsort((bank.column("no", rows), -score[rows]))[:k]]
    return rows, score[rows]
