"""A logged recall with arrays of its own, and of the shape that its rows and names give: what every store keeps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from wellworn.core.errors import StoreError
from wellworn.store.port import LoggedRecall


def own_recall(recall: LoggedRecall) -> LoggedRecall:
    """A copy that shares nothing that can be changed; refused when the arrays do not fit."""
    rows, names = len(recall.nos), len(recall.names)
    base = np.array(recall.base, dtype=np.float32, order="C")
    features = np.array(recall.features, dtype=np.float32, order="C")
    if base.shape != (rows,) or features.shape != (rows, names):
        raise StoreError(
            f"recall {recall.id!r} has {rows} rows and {names} features, "
            f"but base scores of shape {base.shape} and features of shape {features.shape}"
        )
    if not 0 <= recall.shown <= rows:
        raise StoreError(f"recall {recall.id!r} cannot have shown {recall.shown} of {rows} rows")
    nos = [int(no) for no in recall.nos]
    return replace(recall, nos=nos, base=base, names=list(recall.names), features=features)
