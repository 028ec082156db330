"""No call crosses a tenant or a user, whatever the order of calls."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.world import Clock, partition_picture
from wellworn import Memory, NotFound, Scope
from wellworn.core.values import Partition

SCOPES = [
    Scope(tenant="acme", user="ada"),
    Scope(tenant="acme", user="ben"),
    Scope(tenant="rival", user="ada"),
    Scope(tenant="acme", agent="ada"),
    Scope(tenant="acme", user="ada", org="all"),
    Scope(tenant="acme", user="ben", org="all"),
    Scope(tenant="acme' OR '1'='1", user="ada"),
    Scope(tenant="acme", user="ada%"),
]
WORDS = ["bees", "tea", "owls", "rain"]

scopes = st.sampled_from(SCOPES)
words = st.sampled_from(WORDS)
picks = st.integers(0, 10_000)

ACTIONS = ["remember", "share", "turn", "recall", "read", "edit", "link", "supersede"]
ACTIONS += ["forget id", "forget session", "forget all"]
calls = st.tuples(st.sampled_from(ACTIONS), scopes, words, picks)


class World:
    """A memory, every id that was ever given out with the partition it lies on, and a way to act on any of them."""

    def __init__(self, mem: Memory) -> None:
        self.mem = mem
        self.home: dict[str, Partition] = {}

    def keep(self, ids: list[str], scope: Scope, layer: str | None = None) -> None:
        for entry_id in ids:
            assert self.home.setdefault(entry_id, scope.home(layer)) == scope.home(layer)

    def share(self, scope: Scope, word: str, pick: int) -> None:
        if scope.org is not None:
            self.keep(self.mem.remember(f"{word} {pick % 9}", scope=scope, layer="org", tags=[word, "t"]), scope, "org")

    def act(self, action: str, scope: Scope, word: str, pick: int) -> None:
        chosen = list(self.home)[pick % len(self.home)] if self.home else "nothing"
        other = list(self.home)[pick // 7 % len(self.home)] if self.home else "nothing"
        seen = self.home.get(chosen) in scope.partitions()
        both = seen and self.home.get(other) in scope.partitions()
        mem = self.mem
        acts: dict[str, Callable[[], Any]] = {  # whatever the verb answers
            "remember": lambda: self.keep(mem.remember(f"{word} {pick % 9}", scope=scope, tags=[word, "t"]), scope),
            "share": lambda: self.share(scope, word, pick),
            "turn": lambda: self.keep([mem.session(scope=scope, session_id=word).add("user", f"{word} said")], scope),
            "recall": lambda: self.check_recall(scope, word, pick),
            "read": lambda: self.guarded(seen, chosen, lambda: self.check_read(scope, chosen)),
            "edit": lambda: self.guarded(seen, chosen, lambda: mem.edit(chosen, scope=scope, text=f"{word} {pick}")),
            "link": lambda: self.guarded(both, chosen, lambda: mem.link(chosen, other, "supports", scope=scope)),
            "supersede": lambda: self.guarded(both, chosen, lambda: mem.supersede(chosen, other, scope=scope)),
            "forget id": lambda: self.guarded(seen, chosen, lambda: mem.forget(ids=[chosen], scope=scope, turns=True)),
            "forget session": lambda: mem.forget(session_id=word, scope=scope),
            "forget all": lambda: mem.forget(everything=True, scope=scope),
        }
        with suppress(ValueError):  # InvalidInput: the same text again, an entry linked to itself
            acts[action]()

    def guarded(self, seen: bool, entry_id: str, call: Callable[[], Any]) -> None:
        """A call on ids the scope does not see must find nothing; on others it may (they can be forgotten by now)."""
        if seen:
            with suppress(NotFound):
                call()
        else:
            with pytest.raises((NotFound, ValueError)):
                call()

    def check_recall(self, scope: Scope, word: str, pick: int) -> None:
        options: list[dict[str, Any]] = [{}, {"tags": "t"}, {"session_id": word}, {"kind": "note"}]  # filters
        for hit in self.mem.recall(word, scope=scope, k=50, **options[pick % 4]):
            assert hit.entry.partition in scope.partitions()
            assert self.home[hit.entry.id] == hit.entry.partition
        for entry in self.mem.entries(scope=scope, limit=1000):
            assert entry.partition in scope.partitions()
        for event in self.mem.admin.events(scope=scope, limit=1000):
            assert event.tenant == scope.tenant

    def check_read(self, scope: Scope, entry_id: str) -> None:
        assert self.mem.get(entry_id, scope=scope).partition == self.home[entry_id]
        for version in self.mem.history(entry_id, scope=scope):
            assert version.entry.partition == self.home[entry_id]
        for link in self.mem.links(entry_id, scope=scope):
            assert {self.home[link.source], self.home[link.target]} <= set(scope.partitions())

    def beyond(self, scope: Scope) -> dict[Partition, Any]:  # a picture of every partition out of the scope's sight
        links_apart = {"links": None}  # an entry in sight may be linked with one that is not
        return {
            partition: partition_picture(self.mem, partition) | links_apart
            for partition in self.mem.engine.store.partitions()
            if partition not in scope.partitions() and self.mem.engine.store.counts([partition])["entries"]
        }  # a partition without entries may be there for the log of someone's recalls, which is written in the background


def run(mem: Memory, steps: list[tuple[str, Scope, str, int]]) -> None:
    world = World(mem)
    for action, scope, word, pick in steps:
        before = world.beyond(scope)
        world.act(action, scope, word, pick)
        assert world.beyond(scope) == before
    assert mem.verify().ok


@given(steps=st.lists(calls, min_size=5, max_size=25))
def test_no_order_of_calls_crosses_a_tenant_or_a_user(steps: list[tuple[str, Scope, str, int]]) -> None:
    clock = Clock()
    with Memory.open(":memory:", embedder="hash:8", clock=lambda: clock.forward(minutes=2)) as mem:
        run(mem, steps)


def test_scopes_that_look_alike_are_kept_apart() -> None:
    alike = ["ada", "Ada", "ada ", " ada", "ada\n", "adа", "ad\u0061\u0301", "ad\u00e1", "ada%", "ada_", "ada'--"]
    alike += ["ada\x1f", "*"]
    with Memory.open(":memory:", embedder=None) as mem:
        for number, name in enumerate(alike):
            mem.remember(f"word{number}", scope=Scope(tenant="acme", user=name))
            mem.remember(f"word{number}", scope=Scope(tenant=name, user="acme"))
        for number, name in enumerate(alike):
            for scope in (Scope(tenant="acme", user=name), Scope(tenant=name, user="acme")):
                assert [entry.text for entry in mem.entries(scope=scope)] == [f"word{number}"]


def test_an_id_of_another_tenant_is_as_unknown_as_one_that_never_was() -> None:
    with Memory.open(":memory:", embedder=None) as mem:
        (theirs,) = mem.remember("theirs", scope=SCOPES[2])
        messages = []
        for entry_id in (theirs, "00000000-0000-7000-8000-000000000000"):
            with pytest.raises(NotFound) as error:
                mem.get(entry_id, scope=SCOPES[0])
            messages.append(str(error.value).replace(entry_id, "ID"))
        assert messages[0] == messages[1]
