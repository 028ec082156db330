"""What makes a store a store: atomic transactions, threads, the audit log, closing, and lasting."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from wellworn.core.errors import StoreClosed, StoreError
from wellworn.store.port import Selection, Slim, Store
from wellworn.testing.builders import (
    MODEL,
    OTHER_MODEL,
    make_entry,
    make_event,
    make_index,
    make_link,
    make_new_entry,
    make_turn,
    make_vector,
    minutes_later,
)
from wellworn.testing.store.case import (
    EVERYTHING,
    OTHER_PARTITION,
    OTHER_TENANT,
    PARTITION,
    StoreCase,
    add,
    changes_since,
    ids_on,
    remove,
    seq_of,
    use,
)

THREADS = 8
EACH = 25
CALLS: dict[str, Callable[[Store], object]] = {
    "transact": lambda store: store.transact().__enter__(),
    "heads": lambda store: store.heads([PARTITION]),
    "delta": lambda store: store.delta(1, 0),
    "read": lambda store: store.read([1]),
    "get": lambda store: store.get([PARTITION], ["a"]),
    "where": lambda store: store.where(["a"]),
    "select": lambda store: store.select([PARTITION], EVERYTHING),
    "tagged": lambda store: store.tagged(1, ["x"]),
    "in_session": lambda store: store.in_session(1, "monday"),
    "links": lambda store: store.links(["a"]),
    "linked": lambda store: store.linked([1]),
    "replaced": lambda store: store.replaced("a"),
    "turns": lambda store: store.turns(PARTITION, "monday"),
    "sessions": lambda store: store.sessions(PARTITION),
    "partitions": lambda store: store.partitions(),
    "counts": lambda store: store.counts([PARTITION]),
    "events": lambda store: store.events("acme"),
    "logged_recall": lambda store: store.logged_recall("r"),
    "outcomes": lambda store: store.outcomes("acme"),
    "policy": lambda store: store.policy("acme", PARTITION),
    "spent": lambda store: store.spent("acme"),
    "jobs": lambda store: store.jobs(),
    "session": lambda store: store.session(PARTITION, "monday"),
    "idle_sessions": lambda store: store.idle_sessions(minutes_later(0)),
    "model": lambda store: store.model(),
    "without_vector": lambda store: store.without_vector(MODEL, after=0, limit=1),
    "vectors": lambda store: store.vectors([1]),
    "index_of": lambda store: store.index_of([1]),
    "check": lambda store: list(store.check()),
    "mend": lambda store: store.mend(),
    "scrub": lambda store: store.scrub(),
    "size_bytes": lambda store: store.size_bytes(),
}
"""Every method of the port, its `close` and `location` aside."""


class TroubleError(Exception):
    """Raised inside a transaction on purpose."""


class EngineContract(StoreCase):
    """All of a transaction or nothing of it, whoever else is writing, and for as long as was promised."""

    def test_a_block_that_raises_leaves_everything_as_it_was(self, embedding: Store) -> None:
        _furnish(embedding)
        before = _snapshot(embedding)
        with pytest.raises(TroubleError), embedding.transact() as tx:  # noqa: PT012
            tx.add(make_new_entry("c", vector=make_vector("c")))
            tx.update(make_entry("a", text="new"), change="edited", index=make_index("new"))
            tx.add_links([make_link("b", "c")])
            tx.remove_link("a", "b", "supports")
            tx.open_session(OTHER_PARTITION, "tuesday", minutes_later(0))
            tx.add_turn(PARTITION, make_turn(1))
            tx.remove(PARTITION, Selection(ids=["b"]))
            tx.put_vectors(MODEL, [(1, make_vector("other"))])
            tx.audit(make_event("nothing"))
            tx.use_model(OTHER_MODEL)
            tx.drop_partition(PARTITION)
            raise TroubleError
        assert _snapshot(embedding) == before
        assert not list(embedding.check())

    def test_a_store_works_on_after_a_rollback(self, store: Store) -> None:
        add(store, make_new_entry("a"))
        with pytest.raises(TroubleError), store.transact() as tx:  # noqa: PT012
            tx.add(make_new_entry("b"))
            raise TroubleError
        add(store, make_new_entry("b"))
        assert ids_on(store, PARTITION) == ["a", "b"]
        assert seq_of(store) == 2

    def test_a_refused_write_rolls_its_block_back(self, store: Store) -> None:
        add(store, make_new_entry("a"))
        with pytest.raises(StoreError):
            add(store, make_new_entry("b"), make_new_entry("a"))
        assert ids_on(store, PARTITION) == ["a"]

    def test_readers_see_committed_data_only(self, store: Store) -> None:
        add(store, make_new_entry("a"))
        with ThreadPoolExecutor(1) as pool, store.transact() as tx:
            tx.add(make_new_entry("b"))
            tx.remove(PARTITION, Selection(ids=["a"]))
            assert pool.submit(ids_on, store, PARTITION).result(timeout=30) == ["a"]
            assert pool.submit(seq_of, store).result(timeout=30) == 1
        assert ids_on(store, PARTITION) == ["b"]

    def test_a_transaction_inside_a_transaction_is_an_error(self, store: Store) -> None:
        with store.transact() as tx:
            tx.add(make_new_entry("a"))
            with pytest.raises(StoreError), store.transact():
                pass
        assert ids_on(store, PARTITION) == ["a"]

    def test_transactions_of_many_threads_follow_one_another(self, store: Store) -> None:
        add(store, make_new_entry("shared"))

        def write(thread: int) -> None:
            for i in range(EACH):
                with store.transact() as tx:
                    tx.add(make_new_entry(f"{thread}-{i}"))
                    counted = tx.get([PARTITION], ["shared"])["shared"].usage_count + 1
                    tx.update(make_entry("shared", usage_count=counted), change=None)

        _in_threads(write)
        assert len(ids_on(store, PARTITION)) == THREADS * EACH + 1
        assert store.get([PARTITION], ["shared"])["shared"].usage_count == THREADS * EACH
        assert seq_of(store) == THREADS * EACH + 1
        assert not list(store.check())

    def test_readers_beside_writers_never_see_half_a_transaction(self, store: Store) -> None:
        done = threading.Event()

        def work(thread: int) -> None:
            if thread:
                for i in range(EACH):
                    add(store, make_new_entry(f"{thread}-{i}-left"), make_new_entry(f"{thread}-{i}-right"))
                return
            while not done.is_set():
                assert len(ids_on(store, PARTITION)) % 2 == 0

        with ThreadPoolExecutor(3) as pool:
            reader = pool.submit(work, 0)
            for writer in [pool.submit(work, 1), pool.submit(work, 2)]:
                writer.result(timeout=60)
            done.set()
            reader.result(timeout=60)
        assert len(ids_on(store, PARTITION)) == 4 * EACH

    def test_following_the_deltas_gives_the_same_as_reading_all(self, store: Store) -> None:
        followed: dict[int, int] = {}
        since = 0
        for step in range(12):
            with store.transact() as tx:
                tx.add(make_new_entry(f"e{step}"))
                tx.update(make_entry(f"e{step - step % 3}", usage_count=step), change=None)
                tx.remove(PARTITION, Selection(ids=[f"e{step - 5}"]))
            if step % 3 == 0:
                delta = changes_since(store, since)
                followed |= {row.no: row.usage_count for row in delta.rows}
                followed = {no: count for no, count in followed.items() if no not in delta.removed}
                since = delta.seq
                assert followed == {no: entry.usage_count for no, entry in store.select([PARTITION], EVERYTHING)}

    # -- the audit log ---------------------------------------------------------------------------------------------

    def test_events_come_newest_first_and_limited(self, store: Store) -> None:
        with store.transact() as tx:
            for i in range(3):
                tx.audit(make_event(f"first {i}"))
        with store.transact() as tx:
            tx.audit(make_event("second", at=minutes_later(-9)))
        assert [event.action for event in store.events("acme")] == ["second", "first 2", "first 1", "first 0"]
        assert [event.action for event in store.events("acme", limit=2)] == ["second", "first 2"]

    def test_an_event_comes_back_with_every_field(self, store: Store) -> None:
        event = make_event("edit", entry_id="ä", at=minutes_later(1), detail={"n": 1, "x": 0.5, "wörd": "ü"})
        with store.transact() as tx:
            tx.audit(event)
        assert store.events("acme") == [event]

    def test_events_of_other_tenants_are_not_seen(self, store: Store) -> None:
        with store.transact() as tx:
            tx.audit(make_event("ours"))
            tx.audit(make_event("theirs", tenant="rival"))
        assert [event.action for event in store.events("acme")] == ["ours"]
        assert store.events("nobody") == []

    def test_events_outlive_the_entries_they_speak_of(self, store: Store) -> None:
        add(store, make_new_entry("a"))
        with store.transact() as tx:
            tx.audit(make_event("remember", entry_id="a"))
        with store.transact() as tx:
            tx.drop_partition(PARTITION)
        assert [event.entry_id for event in store.events("acme")] == ["a"]

    # -- care ------------------------------------------------------------------------------------------------------

    def test_a_sound_store_has_no_flaws_and_nothing_to_mend(self, embedding: Store) -> None:
        _furnish(embedding)
        remove(embedding, "a")
        assert list(embedding.check()) == []
        assert embedding.mend() == []
        assert ids_on(embedding, PARTITION, OTHER_TENANT) == ["b", "theirs"]

    def test_a_store_says_where_it_is(self, store: Store) -> None:
        assert store.location

    def test_two_stores_share_nothing(self, store: Store) -> None:
        other = self.make_store()
        add(store, make_new_entry("a"))
        assert ids_on(other, PARTITION) == []
        other.close()
        assert ids_on(store, PARTITION) == ["a"]

    @pytest.mark.parametrize("name", CALLS)
    def test_a_closed_store_refuses_every_call(self, store: Store, name: str) -> None:
        add(store, make_new_entry("a"))
        store.close()
        store.close()
        with pytest.raises(StoreClosed):
            CALLS[name](store)

    def test_a_closed_store_refuses_other_threads_too(self, store: Store) -> None:
        add(store, make_new_entry("a"))
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(ids_on, store, PARTITION).result(timeout=30) == ["a"]
            store.close()
            with pytest.raises(StoreClosed):
                pool.submit(ids_on, store, PARTITION).result(timeout=30)

    # -- lasting ---------------------------------------------------------------------------------------------------

    def test_everything_is_there_after_reopening(self, embedding: Store) -> None:
        self._needs_durability()
        _furnish(embedding)
        before = _snapshot(embedding)
        again = self.reopen(embedding)
        assert _snapshot(again) == before
        again.close()

    def test_numbers_go_on_after_reopening(self, store: Store) -> None:
        self._needs_durability()
        add(store, make_new_entry("a"), make_new_entry("b"))
        remove(store, "b")
        again = self.reopen(store)
        add(again, make_new_entry("b"))
        delta = changes_since(again, 0)
        assert ([row.no for row in delta.rows], delta.removed, delta.seq) == ([1, 3], [2], 3)
        again.close()

    def test_a_dropped_partition_stays_dropped_after_reopening(self, store: Store) -> None:
        self._needs_durability()
        add(store, make_new_entry("a"))
        with store.transact() as tx:
            tx.drop_partition(PARTITION)
        again = self.reopen(store)
        add(again, make_new_entry("b"))
        assert changes_since(again, 0).removed == []
        assert again.heads([PARTITION]) != [None]
        assert again.delta(1, 0).rows == []
        again.close()

    def _needs_durability(self) -> None:
        if not self.durable:
            pytest.skip("this store does not outlive its object")


def _furnish(store: Store) -> None:
    """Something in every table."""
    with store.transact() as tx:
        tx.add(make_new_entry("a", tags=["x"], vector=make_vector("a")))
        tx.add(make_new_entry("b"))
        tx.add(make_new_entry("theirs", partition=OTHER_TENANT))
        tx.update(make_entry("a", tags=["y"]), change="tagged")
        tx.add_links([make_link("a", "b")])
        tx.open_session(PARTITION, "monday", minutes_later(0))
        tx.add_turn(PARTITION, make_turn(0, entry_id="a"))
        tx.put_vectors(OTHER_MODEL, [(2, make_vector("b", width=OTHER_MODEL.width))])
        tx.audit(make_event("furnish"))
    use(store, MODEL)
    with store.transact() as tx:
        tx.put_vectors(OTHER_MODEL, [(1, make_vector("a", width=OTHER_MODEL.width))])


def _snapshot(store: Store) -> dict[str, object]:
    """All that can be read of a store furnished so."""
    partitions = [PARTITION, OTHER_PARTITION, OTHER_TENANT]
    heads = store.heads(partitions)
    return {
        "heads": heads,
        "deltas": [_told(store, head.partition_no) for head in heads if head],
        "entries": store.select(partitions, EVERYTHING),
        "links": store.links(["a", "b", "c"]),
        "replaced": store.replaced("a"),
        "sessions": [store.sessions(partition) for partition in partitions],
        "turns": store.turns(PARTITION, "monday"),
        "counts": [store.counts([partition]) for partition in partitions],
        "events": store.events("acme"),
        "model": store.model(),
        "waiting": store.without_vector(OTHER_MODEL, after=0, limit=9),
        "partitions": sorted(store.partitions()),
    }


def _told(store: Store, partition_no: int) -> tuple[int, list[Slim], list[int]]:
    delta = store.delta(partition_no, 0)
    return delta.seq, delta.rows, sorted(delta.removed)


def _in_threads(work: Callable[[int], None]) -> None:
    """Run it in every thread at once, and raise what any of them raised."""
    with ThreadPoolExecutor(THREADS) as pool:
        for future in [pool.submit(work, thread) for thread in range(THREADS)]:
            future.result(timeout=120)
