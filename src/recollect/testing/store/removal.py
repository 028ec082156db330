"""Removing: what goes, what stays, and the receipt for it."""

from __future__ import annotations

from recollect.stores.base import Delta, Removed, Selection, Store
from recollect.testing.builders import (
    OTHER_MODEL,
    make_entry,
    make_index,
    make_link,
    make_record,
    make_shelf,
    make_turn,
    make_vector,
    minutes_later,
)
from recollect.testing.store.case import EVERYTHING, OTHER_SHELF, SHELF, StoreCase, add, ids_on, number_of, use


class RemovalContract(StoreCase):
    """Nothing of a removed entry can be read any more, and nothing else is touched."""

    def test_removing_an_entry_takes_everything_that_hangs_on_it(self, embedding: Store) -> None:
        _crowd(embedding)
        with embedding.transact() as tx:
            removed = tx.remove(SHELF, Selection(ids=["a"]))
        assert removed == Removed(ids=["a"], entries=1, index_records=1, vectors=1, links=2, versions=1)
        assert embedding.get([SHELF], ["a"]) == {}
        assert not embedding.links(["a"])
        assert not embedding.replaced("a")
        assert embedding.index_of([1]) == embedding.read([1]) == {}
        assert [link.target for link in embedding.links(["b"])] == ["elsewhere"]

    def test_removing_an_entry_leaves_the_raw_turns(self, embedding: Store) -> None:
        _crowd(embedding)
        with embedding.transact() as tx:
            tx.remove(SHELF, EVERYTHING)
        assert [turn.text for turn in embedding.turns(SHELF, "monday")] == ["turn 0", "turn 1"]

    def test_a_removal_reaches_one_shelf_only(self, embedding: Store) -> None:
        _crowd(embedding)
        with embedding.transact() as tx:
            assert tx.remove(SHELF, Selection(ids=["elsewhere"])) == Removed()
            assert tx.remove(SHELF, EVERYTHING).ids == ["a", "b"]
        assert ids_on(embedding, SHELF, OTHER_SHELF) == ["elsewhere"]

    def test_an_empty_list_of_ids_removes_nothing(self, embedding: Store) -> None:
        _crowd(embedding)
        with embedding.transact() as tx:
            assert tx.remove(SHELF, Selection(ids=[])) == Removed()
        assert ids_on(embedding, SHELF) == ["a", "b"]

    def test_a_removal_follows_its_selection(self, store: Store) -> None:
        add(store, make_record("a", session_id="s"), make_record("b"), make_record("c", session_id="s", kind="fact"))
        with store.transact() as tx:
            removed = tx.remove(SHELF, Selection(session_id="s", kinds=["fact"]))
        assert removed.ids == ["c"]
        assert ids_on(store, SHELF) == ["a", "b"]

    def test_removing_from_an_unknown_shelf_makes_no_shelf(self, store: Store) -> None:
        with store.transact() as tx:
            assert tx.remove(SHELF, EVERYTHING) == tx.remove_turns(SHELF) == tx.drop_shelf(SHELF) == Removed()
        assert store.shelves() == []

    def test_a_link_between_two_removed_entries_counts_once(self, store: Store) -> None:
        add(store, make_record("a"), make_record("b"))
        with store.transact() as tx:
            tx.add_links([make_link("a", "b")])
            assert tx.remove(SHELF, EVERYTHING).links == 1

    def test_a_removed_id_can_be_added_again_without_its_past(self, embedding: Store) -> None:
        _crowd(embedding)
        with embedding.transact() as tx:
            tx.remove(SHELF, Selection(ids=["a"]))
            tx.add(make_record("a"))
        assert not embedding.links(["a"])
        assert not embedding.replaced("a")
        (head,) = embedding.heads([SHELF])
        assert head is not None
        assert embedding.tagged(head.shelf_no, ["x"]) == set()
        assert number_of(embedding, "a") == 4

    # -- whole shelves ---------------------------------------------------------------------------------------------

    def test_dropping_a_shelf_takes_all_that_is_on_it_and_counts_it(self, embedding: Store) -> None:
        _crowd(embedding)
        with embedding.transact() as tx:
            removed = tx.drop_shelf(SHELF)
        assert removed == Removed(
            ids=["a", "b"], entries=2, index_records=2, vectors=2, links=3, versions=1, turns=2, sessions=1
        )
        assert embedding.shelves() == [OTHER_SHELF]
        assert embedding.heads([SHELF]) == [None]
        assert embedding.sessions(SHELF) == ids_on(embedding, SHELF) == []
        assert embedding.turns(SHELF, "monday") == []
        assert embedding.counts([OTHER_SHELF])["links"] == 0
        assert not list(embedding.check())

    def test_a_dropped_shelf_gives_an_empty_delta(self, store: Store) -> None:
        add(store, make_record("a"))
        with store.transact() as tx:
            tx.drop_shelf(SHELF)
        assert store.delta(1, 0) == Delta(seq=0, rows=[], removed=[])

    def test_a_shelf_that_comes_back_is_a_new_shelf(self, store: Store) -> None:
        add(store, make_record("a"))
        add(store, make_record("b"))
        with store.transact() as tx:
            tx.drop_shelf(SHELF)
        add(store, make_record("c"))
        (head,) = store.heads([SHELF])
        assert head is not None
        assert (head.shelf_no, head.seq) == (2, 1)
        delta = store.delta(2, 0)
        assert ([row.no for row in delta.rows], delta.removed) == ([3], [])

    def test_dropping_one_shelf_leaves_its_namesakes(self, store: Store) -> None:
        others = [OTHER_SHELF, make_shelf(tenant="rival"), make_shelf(layer="team")]
        add(store, make_record("a"), *(make_record(f"o{i}", shelf=shelf) for i, shelf in enumerate(others)))
        with store.transact() as tx:
            tx.drop_shelf(SHELF)
        assert ids_on(store, SHELF, *others) == ["o0", "o1", "o2"]

    def test_scrubbing_after_a_removal_keeps_what_is_left(self, embedding: Store) -> None:
        _crowd(embedding)
        with embedding.transact() as tx:
            tx.remove(SHELF, Selection(ids=["a"]))
        assert embedding.scrub() is True
        assert ids_on(embedding, SHELF, OTHER_SHELF) == ["b", "elsewhere"]

    def test_scrubbing_is_done_at_once_when_nobody_reads_and_as_often_as_asked(self, store: Store) -> None:
        assert store.scrub() is True
        add(store, make_record("a"))
        assert [store.scrub(), store.scrub()] == [True, True]
        assert ids_on(store, SHELF) == ["a"]
        assert not list(store.check())

    def test_vectors_of_a_removed_entry_do_not_return_with_another_model(self, embedding: Store) -> None:
        _crowd(embedding)
        with embedding.transact() as tx:
            tx.put_vectors(OTHER_MODEL, [(1, make_vector("a", width=6))])
            tx.remove(SHELF, Selection(ids=["a"]))
        use(embedding, OTHER_MODEL)
        assert embedding.counts([SHELF])["vectors"] == 0


def _crowd(store: Store) -> None:
    """Entries `a` (changed once) and `b`, two turns, an entry on another shelf, and links between all three."""
    with store.transact() as tx:
        tx.add(make_record("a", tags=["x"], vector=make_vector("a")))
        tx.add(make_record("b", vector=make_vector("b")))
        tx.add(make_record("elsewhere", shelf=OTHER_SHELF, vector=make_vector("c")))
        changed = make_entry("a", text="new", tags=["x"])
        tx.update(changed, change="edited", index=make_index("new"), vector=make_vector("new"))
        tx.add_links([make_link("a", "b"), make_link("elsewhere", "a"), make_link("b", "elsewhere")])
        tx.open_session(SHELF, "monday", minutes_later(0))
        tx.add_turn(SHELF, make_turn(0, entry_id="a"))
        tx.add_turn(SHELF, make_turn(1, entry_id="b"))
