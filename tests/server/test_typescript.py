"""The TypeScript client: it installs, builds and passes its own tests against this service."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "typescript"
_OLDEST_NODE = (20, 3)
_UNREACHABLE = re.compile(
    r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|SOCKET_TIMEOUT|code E(401|403|5\d\d)"
)


def run(folder: Path, *command: str, timeout_s: float) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "WELLWORN_PYTHON": sys.executable}
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.run(command, cwd=folder, env=environment, text=True, timeout=timeout_s, **streams)


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A copy of the package with its development tools."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("needs node and npm")
    version = run(tmp_path, "node", "--version", timeout_s=300).stdout.strip()
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < _OLDEST_NODE:
        pytest.skip(f"needs node 20.3 or newer, this is {version}")
    folder = tmp_path / "typescript"
    shutil.copytree(CLIENT, folder, ignore=shutil.ignore_patterns("node_modules", "dist", "build", "schema.ts"))
    quick = ("--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=1", "--fetch-retry-mintimeout=1000")
    try:
        done = run(folder, "npm", "install", *quick, timeout_s=150)
    except subprocess.TimeoutExpired:
        pytest.skip("npm install took too long")
    if done.returncode and _UNREACHABLE.search(done.stdout):
        pytest.skip("the npm registry cannot be reached")
    assert done.returncode == 0, done.stdout
    return folder


@pytest.mark.slow
def test_the_typescript_client_builds_and_passes_its_tests(installed: Path) -> None:
    built = run(installed, "npm", "run", "build", timeout_s=500)
    assert built.returncode == 0, built.stdout
    tested = run(installed, "npm", "test", timeout_s=500)
    assert tested.returncode == 0, tested.stdout[-20_000:]
