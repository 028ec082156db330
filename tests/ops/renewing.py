"""Stores of an older release, and processes that renew their vectors: imported by children, so it says what they do."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any

from wellworn import Memory, Scope
from wellworn.models.hashing import HashEmbedder
from wellworn.models.port import Embedder
from wellworn.ops import reembed

ADA, EVE = Scope(tenant="acme", user="ada"), Scope(tenant="other", user="eve")
PARTS = 5
"""Parts of 128 that 600 entries are renewed in."""
Embed = Callable[[Embedder, Sequence[str]], Any]  # what `embedded` returns


class Former(HashEmbedder):
    """Makes the vectors of an older release, as far as their name goes."""

    def __init__(self, name: str = "static:of old", width: int = 16) -> None:
        super().__init__(width)
        self._name = name

    @property
    def name(self) -> str:
        return self._name


def make_old(location: str, *, entries: int = 600, former: Former | None = None, **settings: Any) -> None:
    """A store of so many entries, two of them of Ada's and Eve's that tests ask for."""
    with Memory(location, embedder=former or Former(), background=False, **settings) as memory:
        told = [f"Box {number} is green." for number in range(entries - 3)]
        told.append("The kayak hangs in the garage. It needs a new seat.")
        memory.remember_many(told, scope=ADA)
        memory.remember_many(["Eve keeps bees in Ghent.", "Eve sold her piano."], scope=EVE)


def watched(before: Callable[[int], object]) -> Callable[[], int]:
    """From now on call this ahead of each batch that is embedded, with the number of texts before; what comes says how many
    there were."""
    module = vars(reembed)
    embed: Embed = module["embedded"]
    count = 0

    def watching(embedder: Embedder, texts: Sequence[str]) -> Any:
        nonlocal count
        before(count)
        count += len(texts)
        return embed(embedder, texts)

    module["embedded"] = watching
    return lambda: count


def die_after(location: str, texts: int, settings: dict[str, Any], telling: Any) -> None:
    """Renew in this process, and be killed in the part that follows so many texts."""
    watched(lambda before: os.kill(os.getpid(), signal.SIGKILL) if before >= texts else None)
    with Memory(location, background=False, **settings) as memory:
        memory.jobs.run(scope=ADA)
    telling.send("it lived")


def renew(location: str, telling: Any) -> None:
    """Renew in the background of this process, and tell how many texts it embedded; the route before, and that after."""
    count = watched(lambda before: None)
    with Memory(location) as memory:
        telling.send("open")
        while memory.recall("kayak seat", scope=ADA).route != "hybrid":
            time.sleep(0.01)
        telling.send(count())
