"""Sessions and their raw turns."""

from __future__ import annotations

import pytest

from wellworn.core.errors import StoreError
from wellworn.core.values import Partition, Turn
from wellworn.store.port import Removed, Store
from wellworn.testing.builders import make_new_entry, make_turn, minutes_later
from wellworn.testing.store.case import OTHER_PARTITION, OTHER_TENANT, PARTITION, StoreCase, add, ids_on, remove


class TurnsContract(StoreCase):
    """Turns are kept word for word, under numbers that do not shift."""

    def test_a_new_session_has_no_turns_and_is_there_at_once(self, store: Store) -> None:
        with store.transact() as tx:
            assert tx.open_session(PARTITION, "monday", minutes_later(0)) == 0
            assert tx.open_session(PARTITION, "monday", minutes_later(1)) == 0
        assert store.sessions(PARTITION) == ["monday"]
        assert store.turns(PARTITION, "monday") == []
        assert store.partitions() == [PARTITION]

    def test_turns_come_back_word_for_word_in_order(self, store: Store) -> None:
        turns = [
            make_turn(0, role="Zoë", text="naïve 🌧️\n\t'\"", speaker="Zoë", entry_id="a"),
            make_turn(1, role="assistant", text=""),
        ]
        add(store, make_new_entry("a"))
        _say(store, *turns)
        assert store.turns(PARTITION, "monday") == turns

    def test_a_turn_of_a_session_that_was_not_opened_is_refused(self, store: Store) -> None:
        add(store, make_new_entry("a"))
        with pytest.raises(StoreError), store.transact() as tx:
            tx.add_turn(PARTITION, make_turn(0))
        assert store.sessions(PARTITION) == []

    def test_a_turn_whose_entry_is_gone_stays_and_names_none(self, store: Store) -> None:
        add(store, make_new_entry("a"))
        _say(store, make_turn(0, entry_id="a"), make_turn(1, entry_id="nobody"))
        remove(store, "a")
        add(store, make_new_entry("a", text="another with that id"))
        assert store.turns(PARTITION, "monday") == [make_turn(0), make_turn(1)]

    def test_opening_a_session_again_gives_the_next_free_number(self, store: Store) -> None:
        _say(store, make_turn(0), make_turn(1))
        with store.transact() as tx:
            assert tx.open_session(PARTITION, "monday", minutes_later(9)) == 2
            tx.add_turn(PARTITION, make_turn(2))
            assert tx.open_session(PARTITION, "monday", minutes_later(9)) == 3

    def test_a_turn_is_never_rewritten(self, store: Store) -> None:
        _say(store, make_turn(0))
        with pytest.raises(StoreError):
            _say(store, make_turn(0, text="something else"))
        assert store.turns(PARTITION, "monday") == [make_turn(0)]

    def test_sessions_come_in_the_order_they_were_opened(self, store: Store) -> None:
        for minute, session_id in enumerate(["wednesday", "monday", "tuesday"]):
            with store.transact() as tx:
                tx.open_session(PARTITION, session_id, minutes_later(minute))
        assert store.sessions(PARTITION) == ["wednesday", "monday", "tuesday"]
        assert store.sessions(OTHER_PARTITION) == []

    def test_sessions_of_one_name_on_two_partitions_are_two_sessions(self, store: Store) -> None:
        for partition in (PARTITION, OTHER_PARTITION, OTHER_TENANT):
            _say(store, make_turn(0, text=partition.layer_id + partition.tenant), partition=partition)
        assert [turn.text for turn in store.turns(PARTITION, "monday")] == ["adaacme"]
        assert (
            store.counts([PARTITION, OTHER_PARTITION])["turns"]
            == store.counts([PARTITION, OTHER_PARTITION])["sessions"]
            == 2
        )

    def test_turns_of_an_unknown_session_or_partition_are_none(self, store: Store) -> None:
        _say(store, make_turn(0))
        assert store.turns(PARTITION, "tuesday") == store.turns(OTHER_PARTITION, "monday") == []

    # -- removing --------------------------------------------------------------------------------------------------

    def test_removing_turns_of_entries_leaves_the_other_numbers_alone(self, store: Store) -> None:
        add(store, *(make_new_entry(f"e{number}") for number in range(4)))
        _say(store, *(make_turn(number, entry_id=f"e{number}") for number in range(4)))
        with store.transact() as tx:
            assert tx.remove_turns(PARTITION, entry_ids=["e1", "e2", "nobody"]) == Removed(turns=2)
            assert tx.open_session(PARTITION, "monday", minutes_later(9)) == 4
        assert [turn.number for turn in store.turns(PARTITION, "monday")] == [0, 3]

    def test_a_session_left_empty_goes_with_its_last_turn(self, store: Store) -> None:
        add(store, make_new_entry("a"))
        _say(store, make_turn(0, entry_id="a"))
        with store.transact() as tx:
            assert tx.remove_turns(PARTITION, entry_ids=["a"]) == Removed(turns=1, sessions=1)
        assert store.sessions(PARTITION) == []

    def test_removing_a_session_takes_its_turns_only(self, store: Store) -> None:
        _say(store, make_turn(0), make_turn(1))
        _say(store, make_turn(0, session_id="tuesday"))
        _say(store, make_turn(0), partition=OTHER_PARTITION)
        with store.transact() as tx:
            assert tx.remove_turns(PARTITION, session_id="monday") == Removed(turns=2, sessions=1)
            assert tx.remove_turns(PARTITION, session_id="monday") == Removed()
        assert store.sessions(PARTITION) == ["tuesday"]
        assert store.turns(OTHER_PARTITION, "monday") == [make_turn(0)]

    def test_removing_all_turns_of_a_partition_leaves_its_entries(self, store: Store) -> None:
        add(store, make_new_entry("a", session_id="monday"))
        _say(store, make_turn(0, entry_id="a"))
        _say(store, make_turn(0, session_id="tuesday"))
        with store.transact() as tx:
            assert tx.remove_turns(PARTITION) == Removed(turns=2, sessions=2)
        assert store.sessions(PARTITION) == []
        assert ids_on(store, PARTITION) == ["a"]

    def test_an_empty_list_of_entries_removes_no_turns(self, store: Store) -> None:
        _say(store, make_turn(0), make_turn(1, entry_id="a"))
        with store.transact() as tx:
            assert tx.remove_turns(PARTITION, entry_ids=[]) == Removed()
        assert len(store.turns(PARTITION, "monday")) == 2


def _say(store: Store, *turns: Turn, partition: Partition = PARTITION) -> None:
    """Add turns to their sessions, in one transaction."""
    with store.transact() as tx:
        for turn in turns:
            tx.open_session(partition, turn.session_id, turn.at)
            tx.add_turn(partition, turn)
