"""Links between entries."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wellworn.core.errors import StoreError
from wellworn.core.values import LINK_TYPES, Link, LinkType
from wellworn.store.port import Store
from wellworn.testing.builders import make_entry, make_link, make_new_entry, minutes_later
from wellworn.testing.store.case import OTHER_PARTITION, PARTITION, StoreCase, add, numbers_of, update


class LinksContract(StoreCase):
    """Edges are typed and directed, and exist once."""

    def test_a_link_comes_back_from_both_ends_with_every_field(self, store: Store) -> None:
        link = make_link("a", "b", "refines", confidence=1 / 3, created_at=minutes_later(1))
        automatic = make_link("c", "a", "follows", automatic=True)
        _three(store, link, automatic)
        assert store.links(["b"]) == [link]
        assert store.links(["c"]) == [automatic]
        assert _ends(store.links(["a"])) == {("a", "b"), ("c", "a")}

    def test_only_links_of_the_types_asked_for_are_given(self, store: Store) -> None:
        refines, follows = make_link("a", "b", "refines"), make_link("c", "a", "follows", automatic=True)
        _three(store, refines, follows)
        assert store.links(["a"], types=["refines"]) == store.links(["b"], types=["follows", "refines"]) == [refines]
        assert store.links(["a"], types=["follows"]) == [follows]
        assert store.links(["a"], types=[]) == store.links(["b"], types=["follows"]) == []

    def test_a_link_asked_for_at_both_ends_comes_once(self, store: Store) -> None:
        _three(store, make_link("a", "b"))
        assert len(store.links(["a", "b", "a", "nobody"])) == 1
        assert store.links([]) == []

    def test_what_an_entry_was_derived_from_is_found_from_it_alone(self, store: Store) -> None:
        _three(
            store,
            make_link("a", "b", "derived_from", automatic=True),
            make_link("a", "c", "derived_from"),
            make_link("a", "b", "refines"),
            make_link("b", "c", "derived_from"),
        )
        a, b, c = numbers_of(store, ["a", "b", "c"])
        assert store.derived([a]) == [(a, b), (a, c)]
        assert store.derived([c]) == store.derived([]) == []

    def test_links_come_in_the_same_order_every_time(self, store: Store) -> None:
        _three(store, make_link("c", "a"), make_link("a", "b", "refines"), make_link("a", "b"), make_link("b", "c"))
        assert store.links(["a", "b", "c"]) == store.links(["c", "a", "b"])

    def test_a_link_that_is_there_already_is_left_as_it_was(self, store: Store) -> None:
        first = make_link("a", "b", confidence=0.5)
        _three(store, first)
        with store.transact() as tx:
            again = make_link("a", "b", confidence=0.9)
            assert tx.add_links([again, make_link("b", "a"), make_link("b", "a"), make_link("a", "b", "refines")]) == 2
            assert tx.add_links([]) == 0
        assert first in store.links(["a"])
        assert len(store.links(["a"])) == 3

    @pytest.mark.parametrize("type_", ["follows", "supports"])
    def test_a_link_by_hand_takes_the_place_of_an_automatic_one(self, store: Store, type_: LinkType) -> None:
        a_to_b = make_link("a", "b", type_, automatic=True, confidence=0.5)
        _three(store, a_to_b, make_link("b", "a", type_, automatic=True), make_link("a", "b", "related_to"))
        by_hand = make_link("a", "b", type_, automatic=False, confidence=0.25, created_at=minutes_later(1))
        with store.transact() as tx:
            assert tx.add_links([by_hand]) == 1
            assert tx.add_links([by_hand, replace(by_hand, confidence=0.75)]) == 0
        found = store.links(["a"])
        assert len(found) == 3
        assert by_hand in found
        assert a_to_b not in found
        a, b = numbers_of(store, ["a", "b"])
        assert store.linked([a]) == store.linked([b]) == [(a, b, type_, 0.25)]
        assert store.counts([PARTITION])["links"] == 3

    def test_a_link_given_twice_counts_once_and_the_one_by_hand_stays(self, store: Store) -> None:
        automatic = make_link("a", "b", "follows", automatic=True)
        by_hand = replace(automatic, automatic=False, confidence=0.25)
        _three(store)
        with store.transact() as tx:
            assert tx.add_links([automatic, by_hand, replace(automatic, source="b", target="a")]) == 2
            assert tx.add_links([by_hand, automatic]) == 0
        assert by_hand in store.links(["a"])

    @pytest.mark.parametrize("automatic", [True, False])
    def test_an_automatic_link_takes_the_place_of_none(self, store: Store, automatic: bool) -> None:
        first = make_link("a", "b", "follows", automatic=automatic, confidence=0.5)
        _three(store, first)
        with store.transact() as tx:
            again = make_link("a", "b", "follows", automatic=True, confidence=0.9, created_at=minutes_later(1))
            assert tx.add_links([again]) == 0
        assert store.links(["a"]) == [first]
        assert len(store.linked(numbers_of(store, ["a"]))) == (0 if automatic else 1)

    def test_a_link_by_hand_is_taken_back_with_its_block(self, store: Store) -> None:
        automatic = make_link("a", "b", "follows", automatic=True)
        _three(store, automatic)
        with pytest.raises(StoreError), store.transact() as tx:
            tx.add_links([make_link("a", "b", "follows", automatic=False), make_link("a", "nobody")])
        assert store.links(["a"]) == [automatic]
        assert store.linked(numbers_of(store, ["a"])) == []

    def test_removing_a_link_by_hand_does_not_bring_the_automatic_one_back(self, store: Store) -> None:
        _three(store, make_link("a", "b", "follows", automatic=True))
        with store.transact() as tx:
            tx.add_links([make_link("a", "b", "follows", automatic=False)])
        with store.transact() as tx:
            assert tx.remove_link("a", "b", "follows")
        assert store.links(["a", "b"]) == []

    @pytest.mark.parametrize(("source", "target"), [("a", "a"), ("a", "nobody"), ("nobody", "a")])
    def test_a_link_needs_two_different_entries_that_exist(self, store: Store, source: str, target: str) -> None:
        _three(store)
        with pytest.raises(StoreError), store.transact() as tx:
            tx.add_links([make_link("a", "b"), make_link(source, target)])
        assert store.links(["a"]) == []

    def test_every_type_of_link_can_be_stored(self, store: Store) -> None:
        links = [Link(source="a", target="b", type=type_, created_at=minutes_later(0)) for type_ in LINK_TYPES]  # type: ignore[arg-type]  # LINK_TYPES lists the literal's values
        _three(store, *links)
        assert {link.type for link in store.links(["a"])} == set(LINK_TYPES)

    def test_removing_a_link_removes_that_one_only(self, store: Store) -> None:
        _three(store, make_link("a", "b"), make_link("b", "a"), make_link("a", "b", "refines"))
        with store.transact() as tx:
            assert tx.remove_link("a", "b", "supports")
            assert not tx.remove_link("a", "b", "supports")
            assert not tx.remove_link("a", "nobody", "supports")
        left = {(link.source, link.type) for link in store.links(["a"])}
        assert left == {("a", "refines"), ("b", "supports")}

    def test_linked_gives_edges_by_row_number_without_the_automatic_ones(self, store: Store) -> None:
        _three(store, make_link("a", "b", confidence=0.25), make_link("c", "a", "follows", automatic=True))
        with store.transact() as tx:
            tx.add_links([make_link("c", "b", "refines")])
        a, b, c = numbers_of(store, ["a", "b", "c"])
        assert store.linked([a]) == [(a, b, "supports", 0.25)]
        assert set(store.linked([b])) == {(a, b, "supports", 0.25), (c, b, "refines", 1.0)}
        assert len(store.linked([a, b, c])) == 2
        assert store.linked([]) == store.linked([99]) == []

    def test_links_may_run_between_partitions(self, store: Store) -> None:
        add(store, make_new_entry("a"), make_new_entry("z", partition=OTHER_PARTITION))
        with store.transact() as tx:
            tx.add_links([make_link("a", "z")])
        assert len(store.links(["z"])) == 1
        assert store.counts([PARTITION])["links"] == store.counts([PARTITION, OTHER_PARTITION])["links"] == 1

    def test_links_outlive_an_update_of_their_ends(self, store: Store) -> None:
        link = make_link("a", "b")
        _three(store, link)
        update(store, make_entry("a", state="superseded"), change="superseded")
        assert store.links(["b"]) == [link]


def _three(store: Store, *links: Link) -> None:
    """Entries `a`, `b` and `c` with these links."""
    add(store, make_new_entry("a"), make_new_entry("b"), make_new_entry("c"))
    with store.transact() as tx:
        assert tx.add_links(links) == len(links)


def _ends(links: list[Link]) -> set[tuple[str, str]]:
    return {(link.source, link.target) for link in links}
