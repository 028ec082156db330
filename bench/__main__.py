"""`python -m bench [SUBJECT …] [--sizes 1000,10000] [--json] [--quick] [--svg FILE]`."""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy loads, for wellworn and for the baselines alike

import argparse
import json
import platform
import sys
import tempfile
from pathlib import Path

from evals.report import Report, Table
from rich.console import Console

from bench.plot import growth
from bench.subjects import Bench

SUBJECTS = {
    "recall": Bench.recall,
    "remember": Bench.remember,
    "outcome": Bench.outcome,
    "forget": Bench.forget,
    "import": Bench.imports,
    "scale": Bench.scale,
}


def _plotted(table: Table) -> str:
    """The growth of recall, add, forget and open that `scale` measured."""
    found = {name: [float(str(row[place])) for row in table.rows] for place, name in enumerate(table.columns)}
    lines = {"recall": found["recall ms"], "add one": found["add ms"], "forget one": found["forget ms"]}
    lines["open and recall"] = [1000 * seconds for seconds in found["open s"]]
    return growth([int(size) for size in found["entries"]], lines, title="CPU time by the number of entries")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=f"{', '.join(SUBJECTS)}; all without")
    parser.add_argument("--sizes", default="1000,10000", help="entries in the memories, as in 1000,10000,100000")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--quick", action="store_true", help="small and few, to see that everything runs")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="also plot the growth that `scale` measured")
    options = parser.parse_args()
    unknown = set(options.subjects) - set(SUBJECTS)
    if unknown:
        parser.error(f"unknown subject {min(unknown)!r}; known are {', '.join(SUBJECTS)}")
    sizes = (200,) if options.quick else tuple(int(size) for size in options.sizes.split(","))
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder=Path(folder), sizes=sizes, rounds=10 if options.quick else 200)
        tables = [SUBJECTS[name](bench) for name in options.subjects or SUBJECTS]
    if options.svg is not None:
        options.svg.write_text(_plotted(next(table for table in tables if "open s" in table.columns)))
    about = {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
    report = Report(name="bench", about=about, tables=tables)
    if options.json:
        print(json.dumps(report.as_json(), indent=1))
    else:
        report.print(Console(width=None if sys.stdout.isatty() else 150))


if __name__ == "__main__":
    main()
