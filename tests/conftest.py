"""Settings for the whole suite: how hard the property tests try.

`make test` uses the profile `light`, `make test-all` uses `heavy` (`pytest --hypothesis-profile=heavy`): few and many
examples, the same ones on every run. To look for new ones, `pytest --hypothesis-profile=default`. Leave `max_examples`
out of a test's own settings unless it needs a number of its own.
"""

from __future__ import annotations

import ast
import atexit
import gc
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.testing
from hypothesis import HealthCheck, settings

from contract.postgres import postgres_server
from wellworn import Limits, ReplLimits
from wellworn.integrations import WAIT_S

__all__ = ["postgres_server"]

pytest.register_assert_rewrite("contract.models")  # before the first test imports it

# No test speaks TLS. Every httpx client reads all certificates that it can find, which takes longer than most tests.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = str(Path(__file__).parent)

# Servers listen for hooks in a folder of the user; those of tests, some of which are killed, do it in one of their own.
os.environ["XDG_RUNTIME_DIR"] = _room = tempfile.mkdtemp(prefix="ww")
atexit.register(shutil.rmtree, _room, ignore_errors=True)

# By default a search in several steps may take a second, a program two. On a busy machine they must not decide a test.
(Limits.__init__.__kwdefaults__ or {})["timeout_s"] = 600.0
(ReplLimits.__init__.__kwdefaults__ or {})["program_s"] = 60.0

# An agent's turn waits less than two seconds for a locked file. Only `test_locked_file` asks for that.
SHIPPED_WAIT_S = dict(WAIT_S)
WAIT_S.update(dict.fromkeys(WAIT_S, 60.0))

# A `CliRunner` builds all commands anew for every line, which takes longer than most of them run.
vars(typer.testing)["_get_command"] = cache(typer.main.get_command)

_parse = ast.parse


def _parse_again(*args: Any, **kwargs: Any) -> Any:
    """CPython 3.11.7 may refuse a sound source with a SystemError while another thread parses (gh-106905). Hypothesis
    parses the source of a state machine."""
    try:
        return _parse(*args, **kwargs)
    except SystemError:
        return _parse(*args, **kwargs)


ast.parse = _parse_again

QUIET = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)

settings.register_profile(
    "light",
    max_examples=15,
    stateful_step_count=20,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=QUIET,
)
settings.register_profile(
    "heavy",
    max_examples=150,
    stateful_step_count=50,
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=True,
    suppress_health_check=QUIET,
)
settings.load_profile("light")

gc.disable()  # until all tests are collected: what their modules import stays to the end


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture
def full_disk() -> Callable[..., AbstractContextManager[None]]:
    """A disk on which no file grows beyond so many bytes."""
    import resource  # not on Windows

    @contextmanager
    def full(most_bytes: int = 0) -> Iterator[None]:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return full


_ALL_SLOW = re.compile(r"^pytestmark = .*\bslow\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`make test` does not import modules whose tests are all slow: their frameworks take seconds to import."""
    if config.getoption("markexpr") != "not slow" or collection_path.suffix != ".py":
        return None
    return True if _ALL_SLOW.search(collection_path.read_text(encoding="utf-8")) else None


# -- faults ------------------------------------------------------------------------------------------------------------

_TABLE = Path(__file__).parent.parent / "docs" / "security.md"
_BETWEEN = re.compile(r"(?<=<!-- faults -->\n).*?(?=<!-- end of faults -->)", re.S)


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Callable[[str, int], None]:
    """Counts faults of a kind that a test makes; all tests together give the table of docs/security.md."""

    def count(what: str, number: int) -> None:
        request.node.user_properties.append(("fault", (what, number)))

    return count


def pytest_terminal_summary(terminalreporter: Any) -> None:  # the reporter has no public type
    """Print the table of faults; `make faults` also writes it into the documentation."""
    reports = terminalreporter.stats.get("passed", [])
    counted: Counter[str] = Counter()
    for report in reports:
        for name, value in report.user_properties:
            if name == "fault":
                counted[value[0]] += value[1]
    if not counted or terminalreporter.stats.get("failed"):
        return
    rows = [f"| {what} | {number:,} | 0 | 0 | 0 |" for what, number in sorted(counted.items())]
    table = "\n".join(["| fault | times | lost | leaked | hung |", "|---|---|---|---|---|", *rows, ""])
    terminalreporter.write_line(f"\n{table}")
    if os.environ.get("WELLWORN_FAULTS") == "write":
        _TABLE.write_text(_BETWEEN.sub(lambda _: table, _TABLE.read_text(encoding="utf-8")), encoding="utf-8")


@pytest.fixture
def redis_server() -> Iterator[Any]:
    """A Redis server of its own, on a socket in a short path: a long one is no address."""
    redis = pytest.importorskip("redis", reason="needs the extra redis")
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("needs the program redis-server")
    with tempfile.TemporaryDirectory() as folder:
        socket = f"{folder}/s"
        quiet = ["--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder, "--logfile", "/dev/null"]
        with subprocess.Popen([program, *quiet]) as process:
            client = redis.Redis(unix_socket_path=socket, retry=None)
            for _ in range(200):
                try:
                    client.ping()
                    break
                except redis.ConnectionError:
                    time.sleep(0.05)
            yield client
            client.close()
            process.terminate()
