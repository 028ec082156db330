"""Writers of several tenants work at once, and whoever follows the changes of a partition misses none."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import Any

import pytest

from contract.builders import make_new_entry, make_partition, make_record
from contract.postgres import Server
from wellworn.core.errors import StoreBusy, StoreError
from wellworn.core.locks import patience
from wellworn.store import choose_store
from wellworn.store.port import Selection, Store

pytest.importorskip("psycopg")

LONG_S = 300.0


@pytest.fixture
def store(postgres_server: Server) -> Any:
    with closing(choose_store(postgres_server.url(), durability="normal")) as made:
        yield made


@pytest.mark.parametrize("same_process", [True, False])
@pytest.mark.parametrize(
    ("held", "wanted", "waits"), [("one", "one", True), ("one", "two", False), (None, "one", True), ("one", None, True)]
)
def test_who_waits_for_whom(store: Store, held: str, wanted: str, waits: bool, same_process: bool) -> None:
    there, go = threading.Event(), threading.Event()
    other = store if same_process else choose_store(store.location, durability="normal")

    def hold() -> None:
        with other.transact(tenant=held):
            there.set()
            go.wait(LONG_S)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert there.wait(LONG_S)
        if waits:
            with pytest.raises(StoreBusy), patience(0.05), store.transact(tenant=wanted):
                pass
        else:
            with store.transact(tenant=wanted) as tx:
                tx.put_records([make_record("t", partition=make_partition(tenant=wanted))])
    finally:
        go.set()
        thread.join(LONG_S)
        if not same_process:
            other.close()
    with store.transact(tenant=wanted):
        pass


def test_a_transaction_of_a_tenant_writes_to_no_other(store: Store) -> None:
    with pytest.raises(StoreError, match="'one'"), store.transact(tenant="one") as tx:
        tx.add(make_new_entry("a", partition=make_partition(tenant="two")))
    assert store.partitions() == []


def test_nobody_who_follows_a_partition_misses_a_change(store: Store) -> None:
    homes = [make_partition(tenant=tenant) for tenant in ("one", "two", "three")]
    stop = threading.Event()
    seen: dict[Any, set[int]] = {home: set() for home in homes}

    def add(number: int) -> None:
        with closing(choose_store(store.location, durability="normal")) as mine:
            for turn in range(15):
                home = homes[(number + turn) % 3]
                with mine.transact(tenant=home.tenant) as tx:
                    tx.add(make_new_entry(f"{number} {turn}", partition=home))
                    tx.add(make_new_entry(f"{number} {turn} more", partition=home))

    def follow() -> None:
        known = dict.fromkeys(homes, 0)
        while True:
            last = stop.is_set()
            for home, head in zip(homes, store.heads(homes), strict=True):
                if head is not None and head.seq > known[home]:
                    delta = store.delta(head.partition_no, known[home])
                    seen[home] |= {slim.no for slim in delta.rows}
                    known[home] = delta.seq
            if last:
                return

    writers = [threading.Thread(target=add, args=(number,)) for number in range(4)]
    reader = threading.Thread(target=follow)
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join(LONG_S)
    stop.set()
    reader.join(LONG_S)
    assert sum(map(len, seen.values())) == 120
    assert seen == {home: {no for no, _ in store.select([home], Selection())} for home in homes}
