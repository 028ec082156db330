"""The ledger of model calls."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from wellworn.core.errors import StoreError
from wellworn.store.port import Call, Spent, Store
from wellworn.testing.builders import NOON, make_call, make_turn, minutes_later
from wellworn.testing.store.case import OTHER_PARTITION, PARTITION, StoreCase

NOTHING = Spent(key=(), calls=0, failed=0, input_tokens=0, output_tokens=0, usd=0.0, seconds=0.0)
"""What no call adds up to."""


class CallsContract(StoreCase):
    """Calls are added up, never changed, and lose the name of a session that goes."""

    def test_calls_add_up(self, store: Store) -> None:
        book(store, make_call(), make_call(input_tokens=5, output_tokens=1, usd=0.5, seconds=2.0, ok=False))
        total = Spent(key=(), calls=2, failed=1, input_tokens=105, output_tokens=11, usd=0.75, seconds=2.5)
        assert store.spent("acme") == store.spent(None) == [total]

    def test_no_call_is_a_total_of_nothing_and_no_group(self, store: Store) -> None:
        assert store.spent("acme") == store.spent(None) == [NOTHING]
        assert store.spent("acme", by=["model"]) == []

    def test_a_tenant_sees_its_own_calls_only(self, store: Store) -> None:
        book(store, make_call(), make_call(tenant="rival", usd=1.0))
        assert [one.usd for one in store.spent("acme")] == [0.25]
        assert [(one.key, one.usd) for one in store.spent(None, by=["tenant"])] == [
            (("acme",), 0.25),
            (("rival",), 1.0),
        ]

    def test_calls_are_counted_from_a_moment_on(self, store: Store) -> None:
        book(store, *(make_call(at=minutes_later(minute)) for minute in range(4)))
        assert [one.calls for one in store.spent("acme", since=minutes_later(2))] == [2]
        assert store.spent("acme", since=minutes_later(4)) == [NOTHING]

    def test_calls_of_a_session(self, store: Store) -> None:
        book(store, make_call(session="monday"), make_call(session="Monday"), make_call())
        assert [one.calls for one in store.spent("acme", session="monday")] == [1]
        assert store.spent("rival", session="monday") == [NOTHING]

    def test_groups_come_in_the_order_of_their_keys(self, store: Store) -> None:
        for model, purpose in [("b", "merge"), ("a", "merge"), ("b", "extract"), ("a", "merge")]:
            book(store, make_call(model=model, purpose=purpose))
        grouped = store.spent("acme", by=["purpose", "model"])
        assert [(one.key, one.calls) for one in grouped] == [
            (("extract", "b"), 1),
            (("merge", "a"), 2),
            (("merge", "b"), 1),
        ]
        assert [one.key for one in store.spent("acme", by=["model", "purpose"])] == [
            ("a", "merge"),
            ("b", "extract"),
            ("b", "merge"),
        ]

    def test_a_day_is_one_of_utc(self, store: Store) -> None:
        midnight = datetime(2024, 5, 2, tzinfo=UTC)
        east = timezone(timedelta(hours=14))
        book(
            store,
            make_call(at=midnight - timedelta(microseconds=1)),
            make_call(at=midnight),
            make_call(at=(midnight + timedelta(hours=23)).astimezone(east)),
        )
        assert [(one.key, one.calls) for one in store.spent("acme", by=["day"])] == [
            (("2024-05-01",), 1),
            (("2024-05-02",), 2),
        ]

    def test_an_unknown_group_is_refused(self, store: Store) -> None:
        with pytest.raises(StoreError, match="'week'"):
            store.spent("acme", by=["model", "week"])

    @pytest.mark.parametrize("wrong", [-1, math.nan, math.inf])
    @pytest.mark.parametrize("name", ["input_tokens", "output_tokens", "usd", "seconds"])
    def test_what_cannot_be_added_up_is_refused(self, store: Store, name: str, wrong: float) -> None:
        broken: Call = replace(make_call(), **{name: wrong})  # type: ignore[arg-type]  # a name that is a parameter
        with pytest.raises(StoreError, match=name):
            book(store, make_call(), broken)
        assert store.spent("acme") == [NOTHING]

    def test_calls_of_a_transaction_that_is_rolled_back_were_not_booked(self, store: Store) -> None:
        def book_and_fail() -> None:
            with store.transact() as tx:
                tx.add_calls([make_call()])
                tx.add_turn(PARTITION, make_turn(0))  # of a session that was not opened

        with pytest.raises(StoreError):
            book_and_fail()
        assert store.spent("acme") == [NOTHING]

    # -- forgetting ------------------------------------------------------------------------------------------------

    def test_a_session_that_goes_leaves_its_cost_and_not_its_name(self, store: Store) -> None:
        _talk(store, "monday", "tuesday")
        book(store, make_call(session="monday"), make_call(session="tuesday"))
        with store.transact() as tx:
            tx.remove_turns(PARTITION, session_id="monday")
        assert store.spent("acme", session="monday") == [NOTHING]
        assert [one.calls for one in store.spent("acme", session="tuesday")] == [1]
        assert [one.calls for one in store.spent("acme")] == [2]

    def test_a_partition_that_goes_takes_the_names_of_its_sessions_along(self, store: Store) -> None:
        _talk(store, "monday")
        with store.transact() as tx:
            tx.open_session(OTHER_PARTITION, "tuesday", NOON)
        book(
            store,
            make_call(session="monday"),
            make_call(session="tuesday"),
            make_call(tenant="rival", session="monday"),
        )
        with store.transact() as tx:
            tx.drop_partition(PARTITION)
        assert store.spent("acme", session="monday") == [NOTHING]
        assert [one.calls for one in store.spent("acme", session="tuesday")] == [1]
        assert [one.calls for one in store.spent("rival", session="monday")] == [1]
        assert [one.calls for one in store.spent(None)] == [3]

    def test_calls_last(self, store: Store) -> None:
        book(store, make_call(session="monday"))
        if not self.durable:
            return
        again = self.reopen(store)
        assert [one.calls for one in again.spent("acme", session="monday")] == [1]
        again.close()


def book(store: Store, *calls: Call) -> None:
    with store.transact() as tx:
        tx.add_calls(calls)


def _talk(store: Store, *session_ids: str) -> None:
    """Sessions of one turn each."""
    with store.transact() as tx:
        for session_id in session_ids:
            tx.open_session(PARTITION, session_id, NOON)
            tx.add_turn(PARTITION, make_turn(0, session_id=session_id))
