"""Flipped bytes and torn logs: each is noticed or changes nothing that was said, and none locks a neighbour."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from crash.operations import ADA, FACTS, MORE, NEW_KEY, OTHERS, SECRET, fill, opened
from wellworn import Memory, WellwornError
from wellworn.ops.doctor import rescue
from wellworn.store.port import Selection

pytestmark = [pytest.mark.crash, pytest.mark.slow]
PAGE = 4096
SAID = (*FACTS, *OTHERS, *(f"I saw {SECRET} number {n}." for n in range(4)))


def said_in(mem: Memory) -> list[str]:
    """Texts of all entries and turns."""
    store = mem.engine.store
    found = [entry.text for _, entry in store.select(None, Selection(), limit=1000)]
    for head in store.sessions(ADA.home()):
        found += [turn.text for turn in store.turns(ADA.home(), head.id)]
    return sorted(found)


@pytest.mark.parametrize(("key", "flips"), [(None, 500), (NEW_KEY, 60)], ids=["plain", "encrypted"])
def test_a_flipped_byte_is_noticed_or_harmless_and_locks_no_neighbour(
    key: bytes | None, flips: int, tmp_path: Path, tally: Callable[[str, int], None]
) -> None:
    """What lies on other pages is readable as it is, or after a rescue of a plain file."""
    fill(tmp_path, key=key)
    path, dice = tmp_path / "memory.db", random.Random(1)
    whole = path.read_bytes()
    with opened(tmp_path, key=key) as mem:
        wanted = said_in(mem)
    for number in range(flips):
        place = dice.randrange(len(whole))
        content = bytearray(whole)
        content[place] ^= 1 << dice.randrange(8)
        path.write_bytes(content)
        noticed, found = False, list[str]()
        try:
            with opened(tmp_path, key=key) as mem:
                found = said_in(mem)
                noticed = not mem.verify().ok
        except WellwornError:
            noticed = True
        assert noticed or found == wanted, f"flip {number} at {place} changed what was said, and nobody noticed"
        if noticed and key is None and not found:
            rescue(path)
            with opened(tmp_path) as mem:
                found = said_in(mem)
        page = whole[place // PAGE * PAGE :][:PAGE]
        locked = {text for text in wanted if text.encode() not in page} - set(found)
        assert key is not None or not locked, f"flip {number} at {place} locks {locked}"
        for left in tmp_path.glob("memory.db*"):
            left.unlink()
    tally("flipped bytes", flips)


def test_a_torn_log_gives_what_was_written_before_the_tear(tmp_path: Path, tally: Callable[[str, int], None]) -> None:
    living, torn = tmp_path / "living", tmp_path / "torn"
    for folder in (living, torn):
        folder.mkdir()
    fill(living)
    with opened(living) as mem:
        before = said_in(mem)
        for text in MORE:
            mem.remember(text, scope=ADA)
        kept, log = ((living / f"memory.db{ending}").read_bytes() for ending in ("", "-wal"))
    dice = random.Random(2)
    for number in range(60):
        tear = dice.randrange(len(log))
        damaged = bytearray(log)
        if number % 2:
            damaged[tear] ^= 1 << dice.randrange(8)
        (torn / "memory.db").write_bytes(kept)
        (torn / "memory.db-wal").write_bytes(damaged if number % 2 else log[:tear])
        with opened(torn) as mem:
            new = [text for text in MORE if text in said_in(mem)]
            assert new == [*MORE[: len(new)]]  # a beginning of what was written
            assert set(before) <= set(said_in(mem))
            assert mem.verify().ok
        for left in torn.iterdir():
            left.unlink()
    tally("torn or flipped logs", 60)
