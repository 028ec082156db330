"""Removing: what goes, what stays, and the receipt for it."""

from __future__ import annotations

from wellworn.store.port import Delta, Removed, Selection, Store
from wellworn.testing.builders import (
    OTHER_MODEL,
    make_entry,
    make_index,
    make_link,
    make_new_entry,
    make_partition,
    make_turn,
    make_vector,
    minutes_later,
)
from wellworn.testing.store.case import EVERYTHING, OTHER_PARTITION, PARTITION, StoreCase, add, ids_on, number_of, use


class RemovalContract(StoreCase):
    """Nothing of a removed entry can be read any more, and nothing else is touched."""

    def test_removing_an_entry_takes_everything_that_hangs_on_it(self, embedding: Store) -> None:
        _crowd(embedding)
        with embedding.transact() as tx:
            removed = tx.remove(PARTITION, Selection(ids=["a"]))
        assert removed == Removed(ids=["a"], entries=1, index_records=1, vectors=1, links=2, versions=1)
        assert embedding.get([PARTITION], ["a"]) == {}
        assert not embedding.links(["a"])
        assert not embedding.replaced("a")
        assert embedding.index_of([1]) == embedding.read([1]) == {}
        assert [link.target for link in embedding.links(["b"])] == ["elsewhere"]

    def test_removing_an_entry_leaves_the_raw_turns(self, embedding: Store) -> None:
        _crowd(embedding)
        with embedding.transact() as tx:
            tx.remove(PARTITION, EVERYTHING)
        assert [turn.text for turn in embedding.turns(PARTITION, "monday")] == ["turn 0", "turn 1"]

    def test_a_removal_reaches_one_partition_only(self, embedding: Store) -> None:
        _crowd(embedding)
        with embedding.transact() as tx:
            assert tx.remove(PARTITION, Selection(ids=["elsewhere"])) == Removed()
            assert tx.remove(PARTITION, EVERYTHING).ids == ["a", "b"]
        assert ids_on(embedding, PARTITION, OTHER_PARTITION) == ["elsewhere"]

    def test_an_empty_list_of_ids_removes_nothing(self, embedding: Store) -> None:
        _crowd(embedding)
        with embedding.transact() as tx:
            assert tx.remove(PARTITION, Selection(ids=[])) == Removed()
        assert ids_on(embedding, PARTITION) == ["a", "b"]

    def test_a_removal_follows_its_selection(self, store: Store) -> None:
        add(
            store,
            make_new_entry("a", session_id="s"),
            make_new_entry("b"),
            make_new_entry("c", session_id="s", kind="fact"),
        )
        with store.transact() as tx:
            removed = tx.remove(PARTITION, Selection(session_id="s", kinds=["fact"]))
        assert removed.ids == ["c"]
        assert ids_on(store, PARTITION) == ["a", "b"]

    def test_removing_from_an_unknown_partition_makes_no_partition(self, store: Store) -> None:
        with store.transact() as tx:
            assert (
                tx.remove(PARTITION, EVERYTHING)
                == tx.remove_turns(PARTITION)
                == tx.drop_partition(PARTITION)
                == Removed()
            )
        assert store.partitions() == []

    def test_a_link_between_two_removed_entries_counts_once(self, store: Store) -> None:
        add(store, make_new_entry("a"), make_new_entry("b"))
        with store.transact() as tx:
            tx.add_links([make_link("a", "b")])
            assert tx.remove(PARTITION, EVERYTHING).links == 1

    def test_a_removed_id_can_be_added_again_without_its_past(self, embedding: Store) -> None:
        _crowd(embedding)
        with embedding.transact() as tx:
            tx.remove(PARTITION, Selection(ids=["a"]))
            tx.add(make_new_entry("a"))
        assert not embedding.links(["a"])
        assert not embedding.replaced("a")
        (head,) = embedding.heads([PARTITION])
        assert head is not None
        assert embedding.tagged(head.partition_no, ["x"]) == set()
        assert number_of(embedding, "a") == 4

    # -- whole partitions ---------------------------------------------------------------------------------------------

    def test_dropping_a_partition_takes_all_that_is_on_it_and_counts_it(self, embedding: Store) -> None:
        _crowd(embedding)
        with embedding.transact() as tx:
            removed = tx.drop_partition(PARTITION)
        assert removed == Removed(
            ids=["a", "b"], entries=2, index_records=2, vectors=2, links=3, versions=1, turns=2, sessions=1
        )
        assert embedding.partitions() == [OTHER_PARTITION]
        assert embedding.heads([PARTITION]) == [None]
        assert embedding.sessions(PARTITION) == ids_on(embedding, PARTITION) == []
        assert embedding.turns(PARTITION, "monday") == []
        assert embedding.counts([OTHER_PARTITION])["links"] == 0
        assert not list(embedding.check())

    def test_a_dropped_partition_gives_an_empty_delta(self, store: Store) -> None:
        add(store, make_new_entry("a"))
        with store.transact() as tx:
            tx.drop_partition(PARTITION)
        assert store.delta(1, 0) == Delta(seq=0, rows=[], removed=[])

    def test_a_partition_that_comes_back_is_a_new_partition(self, store: Store) -> None:
        add(store, make_new_entry("a"))
        add(store, make_new_entry("b"))
        with store.transact() as tx:
            tx.drop_partition(PARTITION)
        add(store, make_new_entry("c"))
        (head,) = store.heads([PARTITION])
        assert head is not None
        assert (head.partition_no, head.seq) == (2, 1)
        delta = store.delta(2, 0)
        assert ([row.no for row in delta.rows], delta.removed) == ([3], [])

    def test_dropping_one_partition_leaves_its_namesakes(self, store: Store) -> None:
        others = [OTHER_PARTITION, make_partition(tenant="rival"), make_partition(layer="team")]
        add(
            store,
            make_new_entry("a"),
            *(make_new_entry(f"o{i}", partition=partition) for i, partition in enumerate(others)),
        )
        with store.transact() as tx:
            tx.drop_partition(PARTITION)
        assert ids_on(store, PARTITION, *others) == ["o0", "o1", "o2"]

    def test_scrubbing_after_a_removal_keeps_what_is_left(self, embedding: Store) -> None:
        _crowd(embedding)
        with embedding.transact() as tx:
            tx.remove(PARTITION, Selection(ids=["a"]))
        assert embedding.scrub() is True
        assert ids_on(embedding, PARTITION, OTHER_PARTITION) == ["b", "elsewhere"]

    def test_scrubbing_is_done_at_once_when_nobody_reads_and_as_often_as_asked(self, store: Store) -> None:
        assert store.scrub() is True
        add(store, make_new_entry("a"))
        assert [store.scrub(), store.scrub()] == [True, True]
        assert ids_on(store, PARTITION) == ["a"]
        assert not list(store.check())

    def test_vectors_of_a_removed_entry_do_not_return_with_another_model(self, embedding: Store) -> None:
        _crowd(embedding)
        with embedding.transact() as tx:
            tx.put_vectors(OTHER_MODEL, [(1, make_vector("a", width=6))])
            tx.remove(PARTITION, Selection(ids=["a"]))
        use(embedding, OTHER_MODEL)
        assert embedding.counts([PARTITION])["vectors"] == 0


def _crowd(store: Store) -> None:
    """Entries `a` (changed once) and `b`, two turns, an entry on another partition, and links between all three."""
    with store.transact() as tx:
        tx.add(make_new_entry("a", tags=["x"], vector=make_vector("a")))
        tx.add(make_new_entry("b", vector=make_vector("b")))
        tx.add(make_new_entry("elsewhere", partition=OTHER_PARTITION, vector=make_vector("c")))
        changed = make_entry("a", text="new", tags=["x"])
        tx.update(changed, change="edited", index=make_index("new"), vector=make_vector("new"))
        tx.add_links([make_link("a", "b"), make_link("elsewhere", "a"), make_link("b", "elsewhere")])
        tx.open_session(PARTITION, "monday", minutes_later(0))
        tx.add_turn(PARTITION, make_turn(0, entry_id="a"))
        tx.add_turn(PARTITION, make_turn(1, entry_id="b"))
