"""The receipt of a forget counts the logged recalls that went: those that showed an entry, or all of the partition's."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from contract.builders import NOON, make_new_entry, make_partition, make_vector
from wellworn.core.values import Receipt, Scope
from wellworn.ingest.forget import Forgetter
from wellworn.learning.records import LoggedRecall, add_outcome, add_recalls, logged_recall
from wellworn.store.events import events
from wellworn.store.port import Store
from wellworn.store.sqlite import SqliteStore

SECRET = "zqxmarker"


def make_recall(
    id: str, *, nos: Sequence[int] = (1, 2, 3), names: Sequence[str] = ("words", "meaning"), **given: Any
) -> LoggedRecall:  # any field of LoggedRecall
    """A logged recall of these rows; its numbers depend on the id alone."""
    defaults: dict[str, Any] = {  # the fields of LoggedRecall
        "partition": make_partition(),
        "at": NOON,
        "query": f"the query of {id}",
        "profile": "chat",
        "level": "base",
        "shown": min(2, len(nos)),
        "base": make_vector(f"base {id}", width=len(nos)),
        "features": make_vector(f"features {id}", width=len(nos) * len(names)).reshape(len(nos), len(names)),
    }
    return LoggedRecall(id=id, nos=list(nos), names=list(names), **(defaults | given))


class NoCaches:
    def forget(self, partitions: object) -> int:
        return 0


def forget(store: Store, *, ids: list[str] | None = None) -> Receipt:
    forgetter = Forgetter(store, NoCaches(), clock=lambda: NOON)
    scope = Scope(tenant="acme", user="ada")
    return forgetter.forget(scope=scope, ids=ids, session_id=None, everything=ids is None, layer=None, turns=None)


def filled(store: Store) -> Store:
    mine = [make_recall("r", nos=[1], query=SECRET), make_recall("s", nos=[2]), make_recall("t", nos=[3])]
    with store.transact() as tx:
        tx.add(make_new_entry("a"))
        add_recalls(tx, [*mine, make_recall("other", nos=[4], partition=make_partition("ben"))])
        add_outcome(tx, "r", mine[0].partition, "refined", {"query": SECRET}, NOON)
    return store


def test_the_receipt_counts_logged_recalls() -> None:
    with closing(filled(SqliteStore(":memory:"))) as store:
        assert forget(store, ids=["a"]).recalls == 0  # they stay, without their queries
        receipt = forget(store)
        assert (receipt.entries, receipt.recalls, receipt.scrubbed) == (0, 3, True)
        assert events(store, "acme")[0].detail == {"recalls": 3}
        assert logged_recall(store, "other") is not None


def test_forgotten_queries_are_not_in_the_files(tmp_path: Path) -> None:
    with closing(filled(SqliteStore(tmp_path / "memory.db"))) as store:
        assert SECRET.encode() in b"".join(file.read_bytes() for file in tmp_path.iterdir())
        forget(store)
        assert SECRET.encode() not in b"".join(file.read_bytes() for file in tmp_path.iterdir())
