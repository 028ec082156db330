"""How far sessions and the reflection on them have come."""

from __future__ import annotations

from datetime import datetime

import pytest

from wellworn.core.errors import StoreError
from wellworn.core.values import Partition
from wellworn.store.port import SessionHead, Store
from wellworn.testing.builders import NOON, make_new_entry, make_turn, minutes_later
from wellworn.testing.store.case import OTHER_PARTITION, OTHER_TENANT, PARTITION, StoreCase, add


class SessionsContract(StoreCase):
    """A head follows its session's turns; sessions left alone are found by it."""

    def test_a_session_begins_with_nothing_to_reflect_on(self, store: Store) -> None:
        with store.transact() as tx:
            tx.open_session(PARTITION, "monday", minutes_later(3))
            head = tx.session(PARTITION, "monday")
        assert head == SessionHead(partition=PARTITION, id="monday", turns=0, reflected=0, touched_at=minutes_later(3))
        assert store.session(PARTITION, "monday") == head
        assert store.session(PARTITION, "tuesday") is store.session(OTHER_PARTITION, "monday") is None
        assert store.idle_sessions(minutes_later(99)) == []

    def test_a_turn_moves_the_head(self, store: Store) -> None:
        say(store, 0, 4, touched_at=minutes_later(60))
        head = SessionHead(partition=PARTITION, id="monday", turns=5, touched_at=minutes_later(60))
        assert store.session(PARTITION, "monday") == head

    def test_without_a_clock_a_turn_touches_when_it_was_said(self, store: Store) -> None:
        say(store, 7)
        head = store.session(PARTITION, "monday")
        assert head is not None
        assert head.touched_at == make_turn(7).at

    def test_marks_stay_until_they_are_changed(self, store: Store) -> None:
        say(store, 0, 1, 2)
        mark(store, reflected=2)
        assert marks(store) == (2, None)
        mark(store, ended_at=minutes_later(9))
        assert marks(store) == (2, minutes_later(9))
        mark(store, reflected=0)
        mark(store)
        assert marks(store) == (0, minutes_later(9))

    def test_a_turn_reopens_a_session_that_had_ended(self, store: Store) -> None:
        say(store, 0)
        mark(store, reflected=1, ended_at=NOON)
        say(store, 1)
        assert marks(store) == (1, None)

    @pytest.mark.parametrize("reflected", [-1, 3])
    def test_what_was_not_said_cannot_have_been_reflected_on(self, store: Store, reflected: int) -> None:
        say(store, 0, 1)
        with pytest.raises(StoreError, match="'monday'"):
            mark(store, reflected=reflected)
        assert marks(store) == (0, None)

    def test_an_unknown_session_cannot_be_marked(self, store: Store) -> None:
        say(store, 0)
        with pytest.raises(StoreError, match="'tuesday'"), store.transact() as tx:
            tx.mark_session(PARTITION, "tuesday", reflected=0)
        with pytest.raises(StoreError, match="'monday'"), store.transact() as tx:
            tx.mark_session(OTHER_PARTITION, "monday", ended_at=NOON)
        assert store.partitions() == [PARTITION]

    def test_removing_the_last_turns_takes_the_marks_back_with_them(self, store: Store) -> None:
        add(store, make_new_entry("a"), make_new_entry("b"))
        with store.transact() as tx:
            tx.open_session(PARTITION, "monday", NOON)
            for number, entry_id in enumerate(["b", None, "a", "b"]):
                tx.add_turn(PARTITION, make_turn(number, entry_id=entry_id), touched_at=minutes_later(50))
            tx.mark_session(PARTITION, "monday", reflected=3)
            tx.remove_turns(PARTITION, entry_ids=["b"])
            kept = tx.session(PARTITION, "monday")
            tx.remove_turns(PARTITION, entry_ids=["a"])
        assert kept == SessionHead(partition=PARTITION, id="monday", turns=3, reflected=3, touched_at=minutes_later(50))
        assert store.session(PARTITION, "monday") == SessionHead(
            partition=PARTITION, id="monday", turns=2, reflected=2, touched_at=minutes_later(50)
        )

    def test_a_session_that_went_and_came_back_is_a_new_one(self, store: Store) -> None:
        say(store, 0, 1)
        mark(store, reflected=2, ended_at=NOON)
        with store.transact() as tx:
            tx.remove_turns(PARTITION, session_id="monday")
        assert store.session(PARTITION, "monday") is None
        say(store, 0)
        assert marks(store) == (0, None)

    # -- sessions left alone ---------------------------------------------------------------------------------------

    def test_sessions_left_alone_come_oldest_first(self, store: Store) -> None:
        for session_id, minute in [("b", 3), ("a", 1), ("c", 2), ("busy", 9)]:
            say(store, 0, session_id=session_id, touched_at=minutes_later(minute))
        assert names(store.idle_sessions(minutes_later(3))) == ["a", "c", "b"]
        assert names(store.idle_sessions(minutes_later(2.5))) == ["a", "c"]
        assert names(store.idle_sessions(minutes_later(3), limit=2)) == ["a", "c"]
        assert store.idle_sessions(minutes_later(0.5)) == []

    def test_a_session_is_found_until_all_of_it_was_reflected_on(self, store: Store) -> None:
        say(store, 0, 1)
        mark(store, reflected=1)
        assert names(store.idle_sessions(minutes_later(99))) == ["monday"]
        mark(store, reflected=2)
        assert store.idle_sessions(minutes_later(99)) == []
        say(store, 2)
        assert names(store.idle_sessions(minutes_later(99))) == ["monday"]

    def test_a_session_that_has_ended_is_not_idle_until_it_goes_on(self, store: Store) -> None:
        say(store, 0)
        mark(store, ended_at=NOON)
        assert store.idle_sessions(minutes_later(99)) == []
        say(store, 1)
        assert names(store.idle_sessions(minutes_later(99))) == ["monday"]

    def test_sessions_left_alone_of_a_tenant(self, store: Store) -> None:
        for partition in (OTHER_TENANT, OTHER_PARTITION, PARTITION):
            say(store, 0, partition=partition, touched_at=NOON)
        assert [head.partition for head in store.idle_sessions(NOON)] == [PARTITION, OTHER_PARTITION, OTHER_TENANT]
        assert [head.partition for head in store.idle_sessions(NOON, tenant="rival")] == [OTHER_TENANT]
        assert store.idle_sessions(NOON, tenant="nobody") == []

    def test_marks_last(self, store: Store) -> None:
        say(store, 0, 1, touched_at=minutes_later(5))
        mark(store, reflected=1, ended_at=minutes_later(6))
        head = store.session(PARTITION, "monday")
        if not self.durable:
            return
        again = self.reopen(store)
        assert again.session(PARTITION, "monday") == head
        again.close()


def say(
    store: Store,
    *numbers: int,
    session_id: str = "monday",
    partition: Partition = PARTITION,
    touched_at: datetime | None = None,
) -> None:
    with store.transact() as tx:
        tx.open_session(partition, session_id, NOON)
        for number in numbers:
            tx.add_turn(partition, make_turn(number, session_id=session_id), touched_at=touched_at)


def mark(store: Store, *, reflected: int | None = None, ended_at: datetime | None = None) -> None:
    with store.transact() as tx:
        tx.mark_session(PARTITION, "monday", reflected=reflected, ended_at=ended_at)


def marks(store: Store) -> tuple[int, datetime | None]:
    head = store.session(PARTITION, "monday")
    assert head is not None
    return head.reflected, head.ended_at


def names(heads: list[SessionHead]) -> list[str]:
    return [head.id for head in heads]
