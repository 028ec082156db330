"""Thousands of malformed calls of every public verb: each ends with one of our errors, and none writes a part of it."""

from __future__ import annotations

import inspect
import math
import os
import random
import sqlite3
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest

from memory.world import ADA, BEN, OpenMemory, picture
from wellworn import Memory, Scope, WellwornError
from wellworn.ingest.validate import Details
from wellworn.search.filters import FilterOptions

CALLS = 10_000
LONGEST_MESSAGE = 1000
CHANGES = ("text", "title", "tags", "kind", "state", "confidence", "trust", "at", "valid_from", "valid_to", "metadata")
OPEN_KEYWORDS: Mapping[str, tuple[str, ...]] = {
    "details": tuple(get_type_hints(Details)),
    "filters": tuple(get_type_hints(FilterOptions)),
    "common": tuple(get_type_hints(Details)),
    "changes": CHANGES,
    "layers": ("team", "org"),
}
NOT_CALLED = {"close", "open"}
GIVEN: dict[str, dict[str, Any]] = {"edit": {"text": "y"}, "forget": {"everything": True}, "outcome": {"cited": [0]}}
"""What a verb needs beside its required arguments."""


class Hostile:
    """A value that cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


def nested(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"a": [value]}
    return value


def odd_values(folder: Path) -> list[Any]:
    """What a caller may give by mistake or on purpose."""
    pipe = folder / "pipe.jsonl"
    os.mkfifo(pipe)
    return [
        *(None, True, False, 0, 1, -1, 5, 2**31, 2**63, 10**5000, 0.5, -0.0, math.nan, math.inf, 1e308),
        *("", " ", "\x00", "half \ud83d", "x", "fact", "a fine text", "x" * 1_100_000, "語" * 400_000),
        *(b"", b"bytes", bytearray(b"x"), object(), Hostile(), len, int, Memory, ..., range(3), iter([]), count()),
        *([], [None], [[]], ["x"], [5], [0], [("x", ["y"])], [("x", "y")], [("x",)], ["ab"], [count()], (), {1}, {}),
        *({"a": 1}, {5: 5}, {"text": "x"}, nested(100_000), [nested(100_000)], ["x" * 1_000_000], [10**5000]),
        *(np.zeros(3), np.float32(0.5), np.array(["fact", "note"]), np.array([[0]])),
        *(
            datetime.min,
            datetime.max,
            datetime.now(UTC),
            timedelta(days=-1),
            timedelta.max,
            "2026-01-01",
            "10000-01-01",
        ),
        *(ADA, BEN, Scope(tenant="acme"), ADA.home(), pipe, str(pipe), Path("/dev/zero"), "/dev/null", folder),
        *(folder / "new.jsonl", folder / "none" / "x.jsonl", Path("x" * 5000), "x" * 5000 + ".jsonl", "a\x00.jsonl"),
    ]


def sensible_values(folder: Path, ids: list[str]) -> dict[str, Any]:
    """A right value for every name that some verb needs, so that one wrong value meets right ones."""
    first, second = ids
    return {
        "text": "a fine text",
        "items": ["a fine text"],
        "query": "Where is the tea?",
        "session_id": "monday",
        "id": first,
        "old": first,
        "source": first,
        "target": second,
        "new": second,
        "type": "supports",
        "recall_id": "no-such-recall",
        "user": "ada",
        "scope": ADA,
        "on": True,
        "path": folder / "some.jsonl",
    }


def verbs(mem: Memory) -> dict[str, Callable[..., Any]]:
    """Every public verb by its name."""
    found: dict[str, Callable[..., Any]] = {}
    for prefix, thing in (("", mem), ("learning.", mem.learning), ("jobs.", mem.jobs), ("admin.", mem.admin)):
        for name, verb in inspect.getmembers(thing, inspect.ismethod):
            if not name.startswith("_") and name not in NOT_CALLED:
                found[prefix + name] = verb
    return found


def keywords_of(verb: Callable[..., Any]) -> tuple[list[str], list[str]]:
    """The names that a verb needs, and those that it also takes."""
    needed: list[str] = []
    others: list[str] = []
    for name, one in inspect.signature(verb).parameters.items():
        if one.kind is one.VAR_KEYWORD:
            others += OPEN_KEYWORDS[name]
        elif one.kind is not one.VAR_POSITIONAL:
            (needed if one.default is one.empty else others).append(name)
    return needed, others


def call(verb: Callable[..., Any], given: dict[str, Any]) -> Any:  # what the verb answers
    ahead = [n for n, one in inspect.signature(verb).parameters.items() if one.kind is one.POSITIONAL_ONLY]
    return verb(*[given[name] for name in ahead], **{name: value for name, value in given.items() if name not in ahead})


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_malformed_calls_raise_only_documented_errors(
    opened: OpenMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tally: Callable[[str, int], None], seed: int
) -> None:
    monkeypatch.chdir(tmp_path)
    chance = random.Random(seed)
    mem = opened(tmp_path / "memory.db", background=False)
    odd, public = odd_values(tmp_path), verbs(mem)
    ids = mem.remember_many(["Tea is in the left cupboard.", "Ada likes tea."], scope=ADA)
    sensible = sensible_values(tmp_path, ids)
    refused = 0
    watching = sqlite3.connect(tmp_path / "memory.db")
    seen = watching.execute("PRAGMA data_version").fetchone()
    before = picture(mem)
    for number in range(CALLS // 2):
        name = chance.choice(sorted(public))
        needed, others = keywords_of(public[name])
        some = chance.sample(others, chance.randint(0, min(2, len(others))))
        given = {one: chance.choice(odd) for one in dict.fromkeys([*needed, *some])}
        if chance.random() < 0.7:
            given |= {one: sensible[one] for one in needed}
        if callable(given.get("progress")):  # what it does is the caller's own
            del given["progress"]
        if "scope" in others and "scope" not in given and chance.random() < 0.9:
            given["scope"] = ADA
        shown = f"call {number} of seed {seed}: {name}({', '.join(given)})"
        said = ""
        try:
            call(public[name], given)
        except WellwornError as error:
            said = str(error)
        except BaseException as error:
            raise AssertionError(f"{shown} raised {type(error).__name__}") from error
        mem.engine.learner.log.flush()  # else its thread writes recalls some time later
        version = watching.execute("PRAGMA data_version").fetchone()
        after = before if version == seen else picture(mem)
        seen = version
        assert not said or after == before, f"{shown} was refused and wrote"
        assert len(said) <= LONGEST_MESSAGE, shown
        before, refused = after, refused + bool(said)
    assert refused > CALLS // 4
    watching.close()
    assert mem.verify().ok
    tally("malformed calls", CALLS // 2)
