"""What needs an interpreter of its own: import time, first recall, memory taken. `python -m bench.fresh TASK …`."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from bench.report import Row, Table

IMPORT_AIM_CPU_S = 0.150
STATEMENTS = (
    "pass",
    "import numpy",
    "import wellworn",
    "from wellworn import Memory",
    "from wellworn import Memory, Scope; m = Memory.open(':memory:'); s = Scope(tenant='t', user='u'); "
    "m.remember('Ada likes tokio.', scope=s); m.recall('tokio', scope=s)",
)
SAYS_IMPORT = (
    f"Fresh interpreters, its own start not counted. CPU and wall medians. Aim: < {IMPORT_AIM_CPU_S:.3f} CPU s."
)
SAYS_MEMORY = (
    "A fresh process opens the file and recalls once; RSS added by that. `vectors_mb` is the float32 matrix alone, "
    "`peak_mb` the highest RSS while loading."
)


def measure_import(repeats: int) -> Table:
    """CPU and wall seconds of the statements a user begins with."""
    return Table(subject="import", says=SAYS_IMPORT, rows=[_import_row(s, repeats) for s in STATEMENTS[1:]])


def _import_row(statement: str, repeats: int) -> Row:
    script = (
        "import time; w, c = time.perf_counter(), time.process_time()\n"
        f"{statement}\n"
        "print(time.process_time() - c, time.perf_counter() - w)"
    )
    runs = [tuple(map(float, _python("-c", script).split())) for _ in range(repeats)]
    label = "Memory.open, remember, recall (static)" if "Memory.open" in statement else statement
    return {
        "statement": label,
        "cpu_s": median(cpu for cpu, _ in runs),
        "best_cpu_s": min(cpu for cpu, _ in runs),
        "wall_s": median(wall for _, wall in runs),
    }


def measure_memory(paths: dict[int, Path]) -> Table:
    """RSS and file size at each size."""
    return Table(subject="memory", says=SAYS_MEMORY, rows=[_memory_row(size, path) for size, path in paths.items()])


def _memory_row(size: int, path: Path) -> Row:
    found = json.loads(_python("-m", "bench.fresh", str(path)))
    added = found["rss_after_mb"] - found["rss_before_mb"]
    return {
        "entries": size,
        "rss_added_mb": added,
        "per_100k_mb": added * 100_000 / size,
        "vectors_mb": size * 256 * 4 / 1e6,
        "peak_mb": found["peak_mb"],
        "first_recall_s": found["first_recall_s"],
        "first_recall_cpu_s": found["first_recall_cpu_s"],
        "file_bytes_per_entry": round(path.stat().st_size / size),
    }


def _python(*arguments: str) -> str:
    return subprocess.run([sys.executable, *arguments], check=True, capture_output=True, text=True).stdout


def _load(path: Path) -> dict[str, float]:
    import psutil

    from bench.banks import SCOPE, open_memory

    process = psutil.Process()
    with open_memory(path) as memory:
        before = process.memory_info().rss
        wall, cpu = time.perf_counter(), time.process_time()
        memory.recall("what was it about", scope=SCOPE)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        after = process.memory_info().rss
    return {
        "rss_before_mb": before / 1e6,
        "rss_after_mb": after / 1e6,
        "peak_mb": _peak_bytes() / 1e6,
        "first_recall_s": wall,
        "first_recall_cpu_s": cpu,
    }


def _peak_bytes() -> int:
    """The highest RSS of this program alone: `ru_maxrss` would begin at that of the one which started it."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


if __name__ == "__main__":
    print(json.dumps(_load(Path(sys.argv[1]))))
