"""Results as tables for people, JSON for programs, and a drawing."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as RichTable

Row = dict[str, str | int | float]

FORMAT = 1
RESULTS = "results.json"


@dataclass(frozen=True, kw_only=True)
class Table:
    """The results of one subject; every row has the same columns. `says` is what a reader must know of the method."""

    subject: str
    says: str
    rows: list[Row]


def as_json(tables: Sequence[Table], *, sizes: Sequence[int], quick: bool) -> dict[str, Any]:
    """Everything that was measured, and where."""
    return {
        "format": FORMAT,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": quick,
        "sizes": list(sizes),
        "machine": {
            "processor": platform.machine(),
            "cores": os.cpu_count(),
            "load_1min": round(os.getloadavg()[0], 2),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "sqlite": sqlite3.sqlite_version,
            "blas_threads": os.environ.get("OPENBLAS_NUM_THREADS", "default"),
        },
        "subjects": {table.subject: {"method": table.says, "rows": table.rows} for table in tables},
    }


def write_json(results: dict[str, Any], folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / RESULTS
    path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def show(table: Table, console: Console) -> None:
    """One table; numbers to three significant digits."""
    drawn = RichTable(title=table.subject, caption=table.says, caption_justify="left", title_justify="left")
    for column in table.rows[0]:
        drawn.add_column(column, justify="left" if isinstance(table.rows[0][column], str) else "right")
    for row in table.rows:
        drawn.add_row(*(_shown(column, value) for column, value in row.items()))
    console.print(drawn)


def _shown(column: str, value: str | int | float) -> str:
    if isinstance(value, str):
        return value
    if column == "ratio":
        return f"{value:.2f}×"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def note(text: str) -> None:
    """Progress, kept apart from results."""
    print(text, file=sys.stderr, flush=True)
