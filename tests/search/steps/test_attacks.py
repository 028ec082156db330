"""Whatever a program does, the host is unharmed and the caller gets the chain of evidence without it."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from wellworn import Memory, Models, RecallResult, Recursion, ReplLimits, Scope
from wellworn.models import ScriptedModel

from .world import QUESTION, SCOPE, filled

pytest.importorskip("pydantic_monty", reason="the sandbox is an extra")
pytestmark = pytest.mark.slow

BOB = Scope(tenant="other", user="bob")
SECRET = "Bob's secret is a film about Leland."
LIMITS = ReplLimits(
    iterations=2, timeout_s=6, program_s=0.25, memory_bytes=20_000_000, calls=60, model_calls=8, tokens=30_000
)
GROWTH_BYTES = 60_000_000
"""What a host may grow by: what is handed over is held for a moment."""


WORKER_BYTES = 100_000_000
"""What the sandbox's own process takes, empty, and a margin: its limit counts the program's values."""


@contextlib.contextmanager
def watched(me: psutil.Process, mine: set[int]) -> Iterator[list[int]]:
    """How much memory the processes below this one have, but for those that were there, every 20 ms."""
    peaks: list[int] = []
    own = me.cmdline()
    done = threading.Event()

    def look() -> None:
        while not done.wait(0.02):
            with contextlib.suppress(psutil.Error):
                new = [child for child in me.children() if child.pid not in mine]
                # A child that has not begun its own program yet is a copy of this process, and counts as large.
                peaks.extend(child.memory_info().rss for child in new if child.cmdline() != own)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield peaks
    finally:
        done.set()
        thread.join()


def corpus() -> dict[str, str]:
    text = (Path(__file__).parent / "attacks.txt").read_text(encoding="utf-8")
    parts = [part.partition("\n") for part in text.split("\n## ")[1:]]
    return {name.strip(): program for name, _, program in parts}


ATTACKS = corpus()


def attacked(memory: Memory, model: ScriptedModel) -> RecallResult:
    found = memory.reason(QUESTION, scope=SCOPE)
    assert found.explored is not None
    assert found.conclusion
    assert found.path[0].entry.title == "Leland"
    assert not found.model, "the chain speaks for itself"
    return found.explored


def test_the_corpus_is_large_and_its_names_are_its_own() -> None:
    text = (Path(__file__).parent / "attacks.txt").read_text(encoding="utf-8")
    assert len(ATTACKS) == text.count("\n## ") >= 60


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_contained(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    scripts: dict[str, str] = {"repl_query": "I do not know."}
    model = ScriptedModel({"repl": lambda _: scripts["repl"], "repl_query": lambda _: scripts["repl_query"]})
    with filled(recursion=Recursion(models=Models(root=model, repl=LIMITS))) as memory:
        (theirs,) = memory.remember(SECRET, scope=BOB, tags=["bobs"])
        scripts["repl"] = f"```python\n{ATTACKS[name].replace('BOBS_ID', theirs)}\n```"
        me = psutil.Process(os.getpid())
        mine = {child.pid for child in me.children()}  # of other tests in this process
        before = me.memory_info().rss
        with watched(me, mine) as peaks:
            result = attacked(memory, model)
        assert max(peaks, default=0) < LIMITS.memory_bytes + WORKER_BYTES
        assert me.memory_info().rss - before < GROWTH_BYTES
        assert result.problem
        assert result.confidence == 0.0
        assert theirs not in result.chunk_ids
        assert result.content is None
        assert not any("secret" in message.text for request in model.requests for message in request.messages)
        assert memory.recall(QUESTION, scope=SCOPE).hits, "the memory goes on working"
    assert not list(tmp_path.iterdir())
    assert not [child for child in me.children() if child.pid not in mine and child.status() != psutil.STATUS_ZOMBIE]
