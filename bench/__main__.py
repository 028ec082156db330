"""`python -m bench [SUBJECT …] [--sizes 1000,10000,100000] [--json] [--quick] [--out DIR]`."""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy loads, for wellworn and for the floor alike

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from bench import bank, consolidation, forget, fresh, ingest, learn, middleware, recall, recursive, remember
from bench.banks import Banks
from bench.plot import Points, svg
from bench.report import Table, as_json, note, show, write_json

SUBJECTS = (
    "recall",
    "recursive",
    "remember",
    "ingest",
    "memory",
    "import",
    "forget",
    "learn",
    "middleware",
    "bank",
    "consolidation",
)
SIZES = [1_000, 10_000, 100_000]
QUICK_SIZES = [200, 1_000]
FORGET_SIZE = 10_000
LEARN_SIZE = 10_000
TURN_SIZE = 10_000
SESSIONS = [1, 50, 150]
PLOT = "cost_vs_size.svg"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    options = _options(arguments)
    subjects = SUBJECTS if "all" in options.subjects else tuple(s for s in SUBJECTS if s in options.subjects)
    sizes = options.sizes or (QUICK_SIZES if options.quick else SIZES)
    console = Console(width=None if sys.stdout.isatty() else 150)
    tables = []
    with tempfile.TemporaryDirectory(prefix="wellworn-bench-") as scratch:
        calls = _calls(Banks.beside(Path(scratch)), sizes, quick=options.quick)
        for subject in subjects:
            note(f"measuring {subject} …")
            tables.append(calls[subject]())
            if not options.json:
                show(tables[-1], console)
    results = as_json(tables, sizes=sizes, quick=options.quick)
    note(f"wrote {write_json(results, options.out)}")
    lines = _lines(tables)
    if lines:
        drawing = svg(lines, title="Cost against size (p50)", x="entries in the bank", y="ms")
        (options.out / PLOT).write_text(drawing, encoding="utf-8")
        note(f"wrote {options.out / PLOT}")
    if options.json:
        print(json.dumps(results, ensure_ascii=False))
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Speed and size, as ratios to a bare baseline."
    )
    parser.add_argument(
        "subjects",
        nargs="*",
        default="all",
        metavar="SUBJECT",
        choices=[*SUBJECTS, "all"],
        help=f"{', '.join(SUBJECTS)} or all (the default)",
    )
    parser.add_argument("--sizes", type=_sizes, help="entries in the banks, as in 1000,10000,100000")
    parser.add_argument("--json", action="store_true", help="print the results as JSON instead of tables")
    parser.add_argument("--quick", action="store_true", help="small and few, to see that everything runs")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out", help="folder for the results")
    return parser.parse_args(arguments)


def _sizes(text: str) -> list[int]:
    found = sorted({int(part) for part in text.split(",")})
    if not found or found[0] < 100:
        raise argparse.ArgumentTypeError("sizes begin at 100")
    return found


def _calls(banks: Banks, sizes: list[int], *, quick: bool) -> dict[str, Callable[[], Table]]:
    """What to run for each subject: how much, in quick and in full mode."""
    recalls, adds, batch, repeats = (20, 10, 500, 1) if quick else (200, 200, 5_000, 5)
    forget_size, forgotten = (1_000, [1, 100]) if quick else (FORGET_SIZE, [1, 1_000])
    return {
        "recall": lambda: recall.measure(banks, sizes, recalls),
        "recursive": lambda: recursive.measure(banks, sizes, recalls // 2),
        "remember": lambda: remember.measure(banks, sizes, adds),
        "ingest": lambda: ingest.measure(banks, sizes, batch, repeats),
        "memory": lambda: fresh.measure_memory({size: banks.path("sessions", size) for size in sizes}),
        "import": lambda: fresh.measure_import(2 if quick else 9),
        "forget": lambda: forget.measure(banks, forget_size, forgotten, 2 if quick else 5),
        "middleware": lambda: middleware.measure(
            banks, 1_000 if quick else TURN_SIZE, recalls, [1, 3] if quick else SESSIONS
        ),
        "consolidation": lambda: consolidation.measure(banks.scratch, sizes),
        "learn": lambda: learn.measure(banks, 1_000 if quick else LEARN_SIZE, recalls),
        "bank": lambda: bank.measure(banks, recalls, 200 if quick else bank.SIZE),
    }


def _lines(tables: Sequence[Table]) -> dict[str, Points]:
    """Whatever was measured at several sizes: recall, remember and consolidate, each with its floor."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for table in tables:
        for row in table.rows:
            if table.subject == "consolidation" and row["duplicates"] == consolidation.DUPLICATES[0]:
                for name, column in (("consolidate, CPU", "first_cpu_s"), ("bare product", "floor_cpu_s")):
                    point = (float(row["entries"]), 1000 * float(row[column]))
                    lines.setdefault(name, []).append(point)
                continue
            where = row.get("bank") or row.get("durability")
            if not where or row.get("call") not in ("recall", "remember"):
                continue
            size = float(row["entries"])
            lines.setdefault(f"{row['call']}, {where}", []).append((size, float(row["p50_ms"])))
            if where != "notes":
                bare = "bare scan" if row["call"] == "recall" else f"bare commit, {where}"
                lines.setdefault(bare, []).append((size, float(row["floor_p50_ms"])))
    return dict(lines)


if __name__ == "__main__":
    raise SystemExit(main())
