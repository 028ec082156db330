"""The log that learning reads again: recalls, their outcomes, and what was learned from them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from wellworn.core.errors import StoreError
from wellworn.core.values import Partition
from wellworn.store.port import LoggedOutcome, LoggedRecall, Removed, Selection, Store
from wellworn.testing.builders import make_new_entry, make_partition, make_recall, minutes_later
from wellworn.testing.store.case import OTHER_PARTITION, OTHER_TENANT, PARTITION, StoreCase, add, ids_on, seq_of

ODD = np.array([0.0, -0.0, 1e-45, 3.4e38, np.inf, -np.inf, np.nan, 0.1], dtype=np.float32)
"""Numbers that a round trip through anything but bytes would change."""


class RefusedError(Exception):
    """Raised inside a transaction on purpose."""


class LearningLogContract(StoreCase):
    """What was logged stays as it was logged, in order, for as long as its partition is there."""

    # -- recalls ---------------------------------------------------------------------------------------------------

    def test_a_logged_recall_comes_back_byte_for_byte(self, store: Store) -> None:
        recall = make_recall(
            "r",
            nos=[2**62, 1, 7, 3],
            names=["wörds", "b"],
            at=minutes_later(1),
            query="naïve 🌧️\n\t'\"",
            shown=4,
            base=ODD[:4],
            features=ODD.reshape(4, 2),
            profile="chat",
            level="person",
            partition=OTHER_TENANT,
        )
        log(store, recall)
        found = store.logged_recall("r")
        assert found is not None
        assert plain(found) == plain(recall)
        assert found.base.dtype == found.features.dtype == np.float32

    def test_a_recall_is_seen_inside_its_transaction(self, store: Store) -> None:
        with store.transact() as tx:
            assert tx.logged_recall("r") is None
            tx.add_recalls([make_recall("r")])
            found = tx.logged_recall("r")
        assert found is not None
        assert plain(found) == plain(make_recall("r"))

    def test_a_recall_is_logged_for_as_long_as_its_partition_is_there(self, store: Store) -> None:
        recall = make_recall("r")
        with store.transact() as tx:
            assert tx.logged_query(recall) is None
            tx.add_recalls([recall])
            assert tx.logged_query(recall) == recall.query
            assert tx.add_outcome("r", "ignored", {}, minutes_later(1)) is not None
        with store.transact() as tx:
            assert tx.logged_query(recall) == recall.query
            tx.drop_partition(PARTITION)
            assert tx.logged_query(recall) is None
            with pytest.raises(StoreError, match="'r'"):
                tx.add_outcome("r", "cited", {}, minutes_later(2))

    def test_rows_and_features_may_be_none(self, store: Store) -> None:
        log(store, make_recall("empty", nos=[]), make_recall("bare", names=[]))
        shapes = [found.features.shape for id in ("empty", "bare") if (found := store.logged_recall(id))]
        assert shapes == [(0, 2), (3, 0)]

    def test_a_recall_that_is_logged_again_is_left_as_it_is(self, store: Store) -> None:
        log(store, make_recall("r", query="first"), make_recall("r", query="second"))
        log(store, make_recall("r", query="third", partition=OTHER_PARTITION), make_recall("s"))
        assert query_of(store, "r") == "first"
        assert query_of(store, "s") == "the query of s"
        assert store.partitions() == [PARTITION]

    def test_an_unknown_recall_is_none(self, store: Store) -> None:
        log(store, make_recall("r"))
        assert store.logged_recall("nobody") is None

    def test_logging_makes_the_partition_and_changes_nothing_on_it(self, store: Store) -> None:
        log(store, make_recall("r"))
        assert store.partitions() == [PARTITION]
        add(store, make_new_entry("a"))
        before = seq_of(store)
        log(store, make_recall("s"))
        tell(store, "s", "ignored")
        assert seq_of(store) == before
        assert ids_on(store, PARTITION) == ["a"]

    def test_the_log_shares_no_arrays_with_its_callers(self, store: Store) -> None:
        recall = make_recall("r")
        log(store, recall)
        tell(store, "r", "cited", {"nos": [1]})
        recall.base[:] = 9
        recall.features[:] = 9
        recall.nos.append(9)
        for found in (store.logged_recall("r"), store.outcomes("acme")[0].recall):
            assert found is not None
            assert plain(found) == plain(make_recall("r"))
            found.base[:] = 8
            found.features[:] = 8
            found.names.clear()
        store.outcomes("acme")[0].value["nos"].append(2)
        (outcome,) = store.outcomes("acme")
        assert (plain(outcome.recall), outcome.value) == (plain(make_recall("r")), {"nos": [1]})

    def test_arrays_that_are_views_are_logged_as_they_look(self, store: Store) -> None:
        wide = np.arange(12, dtype=np.float32).reshape(2, 6)
        log(store, make_recall("r", base=wide.T[::2, 0], features=wide[:, ::2].T))
        found = store.logged_recall("r")
        assert found is not None
        assert (found.base.tolist(), found.features.tolist()) == ([0, 2, 4], [[0, 6], [2, 8], [4, 10]])

    @pytest.mark.parametrize(
        "given", [{"base": ODD}, {"features": ODD.reshape(2, 4)}, {"features": ODD[:6]}, {"shown": 4}, {"shown": -1}]
    )
    def test_a_recall_whose_arrays_do_not_fit_is_refused(self, store: Store, given: dict[str, Any]) -> None:
        with pytest.raises(StoreError):
            log(store, make_recall("good"), make_recall("bad", **given))
        assert store.logged_recall("good") is None
        assert store.partitions() == []

    # -- outcomes --------------------------------------------------------------------------------------------------

    def test_an_outcome_comes_back_with_its_recall(self, store: Store) -> None:
        log(store, make_recall("r"))
        value = {"nos": [3, 1], "quality": 0.1, "query": "wörd", "success": True, "none": None}
        no = tell(store, "r", "cited", value, minute=3)
        (outcome,) = store.outcomes("acme")
        assert (outcome.no, outcome.kind, outcome.value, outcome.at) == (no, "cited", value, minutes_later(3))
        assert plain(outcome.recall) == plain(make_recall("r"))

    def test_a_recall_has_one_outcome_of_a_kind(self, store: Store) -> None:
        log(store, make_recall("r"), make_recall("s"))
        first = tell(store, "r", "verdict", {"success": True})
        assert first is not None
        assert tell(store, "r", "verdict", {"success": False}) is None
        assert tell(store, "r", "ignored") is not None
        assert tell(store, "s", "verdict") is not None
        assert told(store) == [("r", "verdict"), ("r", "ignored"), ("s", "verdict")]
        assert [outcome.no - first for outcome in store.outcomes("acme")] == [0, 1, 2]  # what is refused uses up none
        assert store.outcomes("acme")[0].value == {"success": True}

    def test_an_outcome_of_an_unknown_recall_is_refused(self, store: Store) -> None:
        log(store, make_recall("r"))
        with pytest.raises(StoreError, match="nobody"):
            tell(store, "nobody", "ignored")
        assert store.outcomes("acme") == []

    def test_outcomes_come_in_the_order_they_were_told(self, store: Store) -> None:
        log(store, *(make_recall(id) for id in "abc"))
        numbers = [tell(store, id, kind, minute=-i) for i, (id, kind) in enumerate(TOLD)]
        assert told(store) == TOLD
        assert [outcome.no for outcome in store.outcomes("acme")] == numbers
        assert numbers == sorted(set(numbers), key=lambda no: no or 0)

    def test_outcomes_come_by_the_page(self, store: Store) -> None:
        log(store, *(make_recall(id) for id in "abc"))
        for id, kind in TOLD:
            tell(store, id, kind)
        for partition in (None, PARTITION):
            read: list[LoggedOutcome] = []
            while page := store.outcomes("acme", partition=partition, after=read[-1].no if read else 0, limit=2):
                assert len(page) <= 2
                read += page
            assert [(outcome.recall.id, outcome.kind) for outcome in read] == TOLD

    def test_outcomes_are_those_of_the_tenant_or_of_the_partition(self, store: Store) -> None:
        log(
            store,
            make_recall("a"),
            make_recall("b", partition=OTHER_PARTITION),
            make_recall("c", partition=OTHER_TENANT),
        )
        for id in "cab":
            tell(store, id, "ignored")
        assert told(store) == [("a", "ignored"), ("b", "ignored")]
        assert told(store, tenant="rival") == [("c", "ignored")]
        assert told(store, partition=OTHER_PARTITION) == [("b", "ignored")]
        assert told(store, partition=OTHER_TENANT) == told(store, tenant="rival", partition=PARTITION) == []
        assert told(store, tenant="nobody") == told(store, partition=make_partition("nobody")) == []

    def test_recent_outcomes_are_those_of_the_last_recalls(self, store: Store) -> None:
        log(store, *(make_recall(id) for id in "abc"), make_recall("d", partition=OTHER_PARTITION))
        numbers = {(id, kind): tell(store, id, kind) for id, kind in [*TOLD, ("d", "ignored")]}
        for recalls, ids in ((3, "abc"), (2, "bc"), (1, "c"), (99, "abc")):
            found = store.recent_outcomes(PARTITION, recalls=recalls)
            assert [(one.recall.id, one.kind) for one in found] == [pair for pair in TOLD if pair[0] in ids]
        middle = numbers[TOLD[1]] or 0
        assert [one.no for one in store.recent_outcomes(PARTITION, recalls=99, after=middle)] == [
            numbers[pair] for pair in TOLD[2:]
        ]
        assert store.recent_outcomes(make_partition("nobody"), recalls=99) == []

    # -- policies --------------------------------------------------------------------------------------------------

    def test_a_policy_is_read_and_replaced(self, store: Store) -> None:
        assert store.policy("acme", PARTITION) is store.policy("acme", None) is None
        put(store, "acme", PARTITION, "first")
        with store.transact() as tx:
            assert tx.policy("acme", PARTITION) == "first"
            tx.put_policy("acme", PARTITION, "sécond")
            assert tx.policy("acme", PARTITION) == "sécond"
        assert store.policy("acme", PARTITION) == "sécond"
        assert store.partitions() == [PARTITION]

    def test_a_tenant_has_a_policy_beside_those_of_its_partitions(self, store: Store) -> None:
        states = {
            ("acme", None): "all",
            ("acme", PARTITION): "ada",
            ("acme", OTHER_PARTITION): "bob",
            ("rival", None): "r",
        }
        for _ in range(2):
            for (tenant, partition), state in states.items():
                put(store, tenant, partition, state)
        assert {key: store.policy(*key) for key in states} == states
        assert store.policy("rival", OTHER_TENANT) is None
        assert store.partitions() == [PARTITION, OTHER_PARTITION]

    def test_the_policy_of_a_tenant_needs_no_partition(self, store: Store) -> None:
        put(store, "acme", None, "all")
        assert store.partitions() == []
        assert list(store.check()) == store.mend() == []
        assert store.policy("acme", None) == "all"

    def test_a_partition_has_no_policy_with_another_tenant(self, store: Store) -> None:
        put(store, "acme", PARTITION, "ada")
        with pytest.raises(StoreError):
            put(store, "rival", PARTITION, "stolen")
        assert store.policy("rival", PARTITION) is None
        assert store.policy("acme", PARTITION) == "ada"

    def test_each_profile_has_a_policy_of_its_own(self, store: Store) -> None:
        for profile in ("default", "paper", ""):
            for partition in (None, PARTITION):
                put(store, "acme", partition, f"state of {profile}", profile=profile)
        with store.transact() as tx:
            assert tx.policy("acme", PARTITION, profile="paper") == tx.policy("acme", None, profile="paper")
            tx.put_policy("acme", PARTITION, "newer", profile="paper")
        found = {
            profile: [store.policy("acme", partition, profile=profile) for partition in (None, PARTITION)]
            for profile in ("default", "paper", "", "none")
        }
        assert found == {
            "default": ["state of default"] * 2,
            "paper": ["state of paper", "newer"],
            "": ["state of "] * 2,
            "none": [None, None],
        }
        assert store.policy("acme", PARTITION) == "state of default"

    def test_the_policies_of_a_tenant_and_of_a_partition_are_read_together(self, store: Store) -> None:
        assert store.policies(PARTITION) == (None, None)
        with store.transact() as tx:
            tx.put_policy("acme", None, "all")
            assert tx.policies(PARTITION) == ("all", None)
            tx.put_policy("acme", PARTITION, "ada")
            tx.put_policy("acme", None, "all, on paper", profile="paper")
            tx.put_policy("rival", OTHER_TENANT, "rival")
            assert tx.policies(PARTITION) == ("all", "ada")
        assert store.policies(PARTITION) == ("all", "ada")
        assert store.policies(OTHER_PARTITION) == ("all", None)
        assert store.policies(PARTITION, profile="paper") == ("all, on paper", None)
        assert store.policies(OTHER_TENANT) == (None, "rival")

    def test_policies_are_dropped_by_profile_or_all_at_once(self, store: Store) -> None:
        for profile in ("default", "paper"):
            for tenant, partition in (("acme", None), ("acme", PARTITION), ("rival", OTHER_TENANT)):
                put(store, tenant, partition, profile, profile=profile)
        with store.transact() as tx:
            assert tx.drop_policies("acme", profile="paper") == 2
            assert tx.drop_policies("acme", profile="none") == 0
        assert store.policy("acme", PARTITION, profile="paper") is store.policy("acme", None, profile="paper") is None
        assert store.policy("acme", PARTITION) == store.policy("acme", None) == "default"
        assert store.policy("rival", OTHER_TENANT, profile="paper") == "paper"
        with store.transact() as tx:
            tx.drop_partition(OTHER_TENANT)
            assert tx.drop_policies("acme") == 2
        assert store.policy("rival", OTHER_TENANT, profile="paper") is store.policy("rival", OTHER_TENANT) is None
        assert not list(store.check())

    def test_dropping_policies_leaves_the_log_and_other_tenants(self, store: Store) -> None:
        log(store, make_recall("r"))
        tell(store, "r", "ignored")
        for tenant, partition in (
            ("acme", None),
            ("acme", PARTITION),
            ("acme", OTHER_PARTITION),
            ("rival", OTHER_TENANT),
        ):
            put(store, tenant, partition, "state")
        with store.transact() as tx:
            assert tx.drop_policies("acme") == 3
            assert tx.policy("acme", PARTITION) is None
            assert tx.drop_policies("acme") == 0
        assert store.policy("acme", None) is store.policy("acme", OTHER_PARTITION) is None
        assert store.policy("rival", OTHER_TENANT) == "state"
        assert told(store) == [("r", "ignored")]

    # -- ends ------------------------------------------------------------------------------------------------------

    def test_everything_goes_with_its_partition(self, store: Store) -> None:
        log(store, make_recall("a"), make_recall("b"), make_recall("c", partition=OTHER_PARTITION))
        for id in "acb":
            tell(store, id, "ignored")
        for partition in (None, PARTITION, OTHER_PARTITION):
            put(store, "acme", partition, "state")
        with store.transact() as tx:
            assert tx.drop_partition(PARTITION) == Removed(recalls=2)
            assert (tx.logged_recall("a"), tx.policy("acme", PARTITION)) == (None, None)
        assert (store.logged_recall("a"), store.policy("acme", PARTITION)) == (None, None)
        assert told(store) == [("c", "ignored")]
        assert store.policy("acme", None) == store.policy("acme", OTHER_PARTITION) == "state"
        assert not list(store.check())

    def test_recalls_lose_their_query_with_an_entry_that_they_showed(self, store: Store) -> None:
        add(store, make_new_entry("a"), make_new_entry("b"))
        nos = {"first": [1, 2], "second": [2, 1], "unshown": [2, 9, 1], "without": [2]}
        partitions = {"first": PARTITION, "second": OTHER_PARTITION, "unshown": PARTITION, "without": PARTITION}
        log(store, *(make_recall(id, nos=nos[id], partition=partitions[id], query="about a") for id in nos))
        log(store, make_recall("theirs", nos=[1], partition=OTHER_TENANT, query="about a"))
        for id in nos:
            tell(store, id, "ignored")
        with store.transact() as tx:
            assert tx.remove(PARTITION, Selection(ids=["a"])).entries == 1
        queries = {}
        for id in (*nos, "theirs"):
            recall = store.logged_recall(id)
            assert recall is not None
            queries[id] = recall.query
        assert queries == {"first": "", "second": "", "unshown": "about a", "without": "about a", "theirs": "about a"}
        assert len(told(store)) == len(nos)
        assert not list(store.check())

    def test_dropping_a_partition_counts_its_recalls(self, store: Store) -> None:
        add(store, make_new_entry("a"))
        log(
            store,
            make_recall("mine", nos=[1]),
            make_recall("other"),
            make_recall("bobs", partition=OTHER_PARTITION, nos=[1]),
        )
        log(store, make_recall("kept", partition=OTHER_PARTITION, nos=[2], query="of b"))
        with store.transact() as tx:
            assert tx.drop_partition(PARTITION).recalls == 2
        bobs, kept = store.logged_recall("bobs"), store.logged_recall("kept")
        assert bobs is not None
        assert bobs.query == ""
        assert kept is not None
        assert kept.query == "of b"

    def test_a_partition_that_comes_back_has_no_log(self, store: Store) -> None:
        log(store, make_recall("r", query="before"))
        before = tell(store, "r", "ignored")
        put(store, "acme", PARTITION, "state")
        with store.transact() as tx:
            tx.drop_partition(PARTITION)
            tx.add_recalls([make_recall("r", query="after")])
        assert query_of(store, "r") == "after"
        assert told(store) == []
        assert store.policy("acme", PARTITION) is None
        after = tell(store, "r", "ignored")
        assert before is not None
        assert after is not None
        assert after > before

    def test_a_block_that_raises_leaves_the_log_as_it_was(self, store: Store) -> None:
        log(store, make_recall("a"))
        number = tell(store, "a", "ignored")
        put(store, "acme", PARTITION, "state")
        with pytest.raises(RefusedError), store.transact() as tx:  # noqa: PT012
            tx.add_recalls([make_recall("b", partition=OTHER_PARTITION)])
            tx.add_outcome("a", "verdict", {}, minutes_later(1))
            tx.put_policy("acme", PARTITION, "another")
            tx.put_policy("acme", None, "new")
            tx.drop_policies("acme")
            tx.drop_partition(PARTITION)
            raise RefusedError
        assert [outcome.no for outcome in store.outcomes("acme")] == [number]
        assert (store.logged_recall("b"), store.policy("acme", None)) == (None, None)
        assert store.policy("acme", PARTITION) == "state"
        assert store.partitions() == [PARTITION]
        assert not list(store.check())

    def test_the_log_is_there_after_reopening(self, store: Store) -> None:
        if not self.durable:
            pytest.skip("this store does not outlive its object")
        log(store, make_recall("r", base=ODD[4:7]))
        first = tell(store, "r", "ignored")
        put(store, "acme", PARTITION, "state")
        again = self.reopen(store)
        (outcome,) = again.outcomes("acme")
        assert (outcome.no, plain(outcome.recall)) == (first, plain(make_recall("r", base=ODD[4:7])))
        assert again.policy("acme", PARTITION) == "state"
        assert tell(again, "r", "ignored") is None
        again.close()


TOLD = [("b", "ignored"), ("a", "cited"), ("c", "verdict"), ("a", "refined"), ("b", "used")]


def log(store: Store, *recalls: LoggedRecall) -> None:
    with store.transact() as tx:
        tx.add_recalls(recalls)


def tell(
    store: Store, recall_id: str, kind: str, value: dict[str, Any] | None = None, *, minute: float = 0
) -> int | None:
    with store.transact() as tx:
        return tx.add_outcome(recall_id, kind, value or {}, minutes_later(minute))


def put(store: Store, tenant: str, partition: Partition | None, state: str, *, profile: str = "default") -> None:
    with store.transact() as tx:
        tx.put_policy(tenant, partition, state, profile=profile)


def told(store: Store, *, tenant: str = "acme", partition: Partition | None = None) -> list[tuple[str, str]]:
    return [(outcome.recall.id, outcome.kind) for outcome in store.outcomes(tenant, partition=partition)]


def query_of(store: Store, recall_id: str) -> str | None:
    found = store.logged_recall(recall_id)
    return None if found is None else found.query


def plain(recall: LoggedRecall) -> dict[str, object]:
    """As values that compare: arrays by shape and bytes."""
    values = {f.name: getattr(recall, f.name) for f in fields(recall)}
    return {
        name: (value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value
        for name, value in values.items()
    }
