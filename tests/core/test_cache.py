"""What was made of texts is gone from memory when somebody is forgotten, by whatever process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from wellworn import Memory, Scope
from wellworn.core.cache import LruCache, forget_texts
from wellworn.ingest.statement import read
from wellworn.ingest.terms import read_question
from wellworn.search.steps.router import complexity
from wellworn.tasks.shell import checks, programs

ADA = Scope(user="ada")


def held(function: Any) -> int:
    """How many texts a function knows."""
    return int(function.cache_info().currsize)


@pytest.mark.parametrize("function", [read, read_question, complexity, checks, programs])
def test_a_text_is_known_until_texts_are_forgotten(function: Any) -> None:
    function("which heron nests by the zqx weir?")
    assert held(function)
    forget_texts()
    assert not held(function)


def test_a_cache_of_texts_is_emptied_another_is_not() -> None:
    numbers, texts = LruCache[str, int](9), LruCache[str, int](9, of_texts=True)
    for cache in (numbers, texts):
        cache.put("zqx", 1)
    forget_texts()
    assert (len(numbers), len(texts)) == (1, 0)


def test_forgetting_empties_what_was_compared() -> None:
    with Memory(":memory:") as mem:
        session = mem.session(scope=ADA, session_id="one")
        for text in ("I live in Oslo.", "I moved to Bergen last week."):
            session.add("user", text)
        assert held(read)
        mem.forget(everything=True, scope=ADA)
        assert not held(read)


def test_a_forget_elsewhere_empties_it_too(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Memory(path) as mem:
        (gone,) = mem.remember("My cello is called Zqx.", scope=ADA)
        mem.remember("I drink tea.", scope=ADA)
        checks("echo zqx")
        assert mem.recall("cello", scope=ADA)[0].entry.id == gone
        assert held(checks)
        code = f"from wellworn import *\nwith Memory({str(path)!r}) as m: m.forget(ids=[{gone!r}], scope=Scope(user='ada'))"
        subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
        assert gone not in {hit.entry.id for hit in mem.recall("cello", scope=ADA)}
        assert not held(checks)
