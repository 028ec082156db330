"""Which rows are of a month or day that the query names. Works on spans of time, so that a whole bank is cheap."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from wellworn.ingest.dates import NamedDate
from wellworn.ingest.terms import Question
from wellworn.search.bank import Bank

Times = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def of_named_dates(question: Question, bank: Bank, rows: npt.NDArray[np.intp] | None = None) -> tuple[Mask, Mask]:
    """For each row (None: of the whole bank) whether it is of a month named, and whether it is of a day named."""
    at = np.concatenate([partition.at for partition in bank.partitions]) if rows is None else bank.column("at", rows)
    moments = at.astype(np.int64)
    in_month = in_day = np.zeros(len(moments), dtype=bool)
    if len(moments):
        for named in question.dates:
            in_month = in_month | _within(moments, *_months(named, moments))
            in_day = in_day | (_within(moments, *_days(named, moments)) if named.day else False)
    return in_month, in_day


def _months(named: NamedDate, moments: Times) -> tuple[npt.NDArray[np.datetime64], npt.NDArray[np.datetime64]]:
    """Begin and end of the month in its year, or in every year there is something of."""
    if named.year is not None:
        years = np.array([named.year - 1970])
    else:
        first, last = np.array([moments.min(), moments.max()]).astype("datetime64[us]").astype("datetime64[Y]")
        years = np.arange(first.astype(np.int64), last.astype(np.int64) + 1)
    months = (12 * years + named.month - 1).astype("datetime64[M]")
    return months, months + 1


def _days(named: NamedDate, moments: Times) -> tuple[npt.NDArray[np.datetime64], npt.NDArray[np.datetime64]]:
    """Begin and end of the day in each of those months that has it."""
    months, after = _months(named, moments)
    days = months.astype("datetime64[D]") + ((named.day or 1) - 1)
    days = days[days < after.astype("datetime64[D]")]
    return days, days + 1


def _within(moments: Times, begins: npt.NDArray[np.datetime64], ends: npt.NDArray[np.datetime64]) -> Mask:
    """Whether each moment lies in one of the spans, which are in order and apart."""
    if not len(begins):
        return np.zeros(len(moments), dtype=bool)
    begin, end = (times.astype("datetime64[us]").astype(np.int64) for times in (begins, ends))
    place = np.searchsorted(begin, moments, side="right") - 1
    inside: Mask = (place >= 0) & (moments < end[place])
    return inside
