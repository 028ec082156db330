"""Jobs: one of a kind and key, claimed by one worker at a time, gone with what they are about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from wellworn.core.errors import StoreError
from wellworn.core.values import Partition
from wellworn.store.port import Job, Removed, Store
from wellworn.testing.builders import NOON, make_job, make_new_entry, make_turn, minutes_later
from wellworn.testing.store.case import OTHER_PARTITION, OTHER_TENANT, PARTITION, StoreCase, add


class JobsContract(StoreCase):
    """What a queue needs of a store. How long leases and waits are is not the store's to say."""

    def test_a_job_comes_back_with_every_field(self, store: Store) -> None:
        job = make_job(
            "j",
            kind="reflect",
            key="ü:0-2",
            payload={"session": "ü", "turns": [0, 2]},
            due_at=minutes_later(1),
            error="it failed",
            result={"entries": 1.5},
            attempts=2,
            updated_at=minutes_later(3),
        )
        assert queue(store, job) == [True]
        assert store.jobs() == [job]
        with store.transact() as tx:
            assert tx.job("j") == job
            assert tx.job("nobody") is None

    def test_a_partition_has_one_job_of_a_kind_and_key_whatever_became_of_it(self, store: Store) -> None:
        queue(store, make_job("first", key="k"))
        again = make_job("second", key="k")
        put(store, "first", state="done")
        assert queue(store, again) == [False]
        put(store, "first", state="dead")
        assert queue(store, again) == [False]
        others = [
            replace(again, id="a", kind="sum"),
            replace(again, id="b", partition=OTHER_PARTITION),
            replace(again, key="l"),
        ]
        assert queue(store, *others) == [True, True, True]
        assert ids(store.jobs()) == ["second", "b", "a", "first"]

    def test_only_what_was_done_before_a_moment_is_pruned(self, store: Store) -> None:
        for number, state in enumerate(("done", "done", "dead", "queued")):
            queue(store, make_job(f"j{number}", key=f"k{number}"))
            put(store, f"j{number}", state=state, updated_at=minutes_later(number))
        with store.transact() as tx:
            assert tx.prune_jobs(minutes_later(1)) == 1  # the second was done at that very moment
            assert tx.prune_jobs(minutes_later(1)) == 0
        assert ids(store.jobs()) == ["j3", "j2", "j1"]
        assert queue(store, make_job("again", key="k0")) == [True]

    def test_an_id_is_unique_over_the_whole_store(self, store: Store) -> None:
        queue(store, make_job("j"))
        with pytest.raises(StoreError):
            queue(store, make_job("j", key="another", partition=OTHER_PARTITION))
        assert ids(store.jobs()) == ["j"]

    def test_a_job_makes_its_partition(self, store: Store) -> None:
        queue(store, make_job("j", partition=OTHER_PARTITION))
        assert store.partitions() == [OTHER_PARTITION]

    def test_what_is_handed_out_cannot_change_what_is_kept(self, store: Store) -> None:
        payload: dict[str, Any] = {"turns": [1]}
        queue(store, make_job("j", payload=payload))
        payload["turns"].append(2)
        store.jobs()[0].payload["turns"].append(3)
        claimed = claim(store)
        assert claimed is not None
        claimed.payload.clear()
        assert store.jobs()[0].payload == {"turns": [1]}

    @pytest.mark.parametrize(
        "wrong",
        [
            {"state": "lost"},
            {"state": "running"},
            {"state": "running", "worker": "w"},
            {"state": "running", "lease_until": NOON},
            {"state": "done", "worker": "w", "lease_until": NOON},
            {"lease_until": NOON},
            {"attempts": -1},
            {"payload": {"session": object()}},
            {"result": {"x": float("nan")}},
            {"result": []},
        ],
    )
    def test_a_job_in_an_impossible_state_is_refused(self, store: Store, wrong: dict[str, Any]) -> None:
        with pytest.raises(StoreError, match="'j'"):
            queue(store, make_job("j", **wrong))
        queue(store, make_job("j"))
        with pytest.raises(StoreError, match="'j'"):
            put(store, "j", **wrong)
        assert store.jobs() == [make_job("j")]

    def test_replacing_a_job_that_is_not_there_is_refused(self, store: Store) -> None:
        queue(store, make_job("j"))
        for other in (
            make_job("k"),
            make_job("j", key="k"),
            make_job("j", kind="k"),
            make_job("j", partition=OTHER_PARTITION),
        ):
            with pytest.raises(StoreError), store.transact() as tx:
                tx.put_job(other)
        assert store.jobs() == [make_job("j")]

    def test_when_a_job_was_made_stays(self, store: Store) -> None:
        queue(store, make_job("j"))
        put(store, "j", created_at=minutes_later(9), updated_at=minutes_later(9))
        assert store.jobs() == [make_job("j", updated_at=minutes_later(9))]

    # -- claiming --------------------------------------------------------------------------------------------------

    def test_a_claimed_job_runs_for_its_worker_and_for_nobody_else(self, store: Store) -> None:
        queue(store, make_job("j", error="last time"))
        claimed = claim(store, "w", minute=1)
        assert claimed == make_job(
            "j",
            state="running",
            attempts=1,
            worker="w",
            lease_until=minutes_later(2),
            updated_at=minutes_later(1),
            error="last time",
        )
        assert store.jobs() == [claimed]
        assert claim(store, "v", minute=1) is None

    def test_a_job_whose_lease_ran_out_is_claimed_again(self, store: Store) -> None:
        queue(store, make_job("j"))
        claim(store, "w", minute=1)
        assert claim(store, "v", minute=1.99) is None
        again = claim(store, "v", minute=2)
        assert again is not None
        assert (again.worker, again.attempts, again.lease_until) == ("v", 2, minutes_later(3))

    def test_a_job_is_not_claimed_before_it_is_due(self, store: Store) -> None:
        queue(store, make_job("j", due_at=minutes_later(5)))
        assert claim(store, minute=4.9) is None
        assert claim(store, minute=5) is not None

    def test_the_job_due_the_longest_comes_first_then_the_one_added_first(self, store: Store) -> None:
        dues = {"z": 2, "late": 3, "a": 2, "early": 1}
        queue(store, *(make_job(id, due_at=minutes_later(minute)) for id, minute in dues.items()))
        assert [claimed_id(store, minute=9) for _ in range(5)] == ["early", "z", "a", "late", None]

    def test_an_expired_lease_takes_its_old_place(self, store: Store) -> None:
        queue(store, make_job("a"), make_job("b", due_at=minutes_later(1)))
        assert [claimed_id(store, minute=1), claimed_id(store, minute=2)] == ["a", "a"]

    def test_finished_and_dead_jobs_are_not_claimed(self, store: Store) -> None:
        queue(store, make_job("done", state="done"), make_job("dead", state="dead"))
        assert claim(store, minute=99) is None

    def test_claiming_by_kind_tenant_or_id(self, store: Store) -> None:
        queue(
            store,
            make_job("a"),
            make_job("b", kind="sum"),
            make_job("c", partition=OTHER_TENANT),
            make_job("d"),
            make_job("e", due_at=minutes_later(60)),
        )
        none: list[dict[str, Any]] = [
            {"kinds": []},
            {"kinds": ["x"]},
            {"tenant": "x"},
            {"id": "x"},
            {"id": "a", "kinds": ["sum"]},
            {"id": "e"},
        ]
        assert [claim(store, **chosen) for chosen in none] == [None] * 6
        some: list[dict[str, Any]] = [{"kinds": ["x", "sum"]}, {"tenant": "rival"}, {"id": "d"}, {}]
        assert [claimed_id(store, **chosen) for chosen in some] == ["b", "c", "d", "a"]

    def test_a_claim_that_is_rolled_back_was_none(self, store: Store) -> None:
        queue(store, make_job("j"))

        def claim_and_fail() -> None:
            with store.transact() as tx:
                assert tx.claim_job("w", NOON, minutes_later(1)) is not None
                tx.add_turn(PARTITION, make_turn(0))  # of a session that was not opened

        with pytest.raises(StoreError):
            claim_and_fail()
        assert store.jobs() == [make_job("j")]

    # -- listing ---------------------------------------------------------------------------------------------------

    def test_jobs_are_listed_newest_first_and_by_what_they_are(self, store: Store) -> None:
        queue(
            store,
            make_job("a"),
            make_job("b", kind="sum", state="done"),
            make_job("c", partition=OTHER_PARTITION),
            make_job("d", partition=OTHER_TENANT, state="dead"),
        )
        assert ids(store.jobs()) == ["d", "c", "b", "a"]
        assert ids(store.jobs(limit=2)) == ["d", "c"]
        assert ids(store.jobs(tenant="acme")) == ["c", "b", "a"]
        assert ids(store.jobs(partition=PARTITION)) == ["b", "a"]
        assert ids(store.jobs(states=["queued", "dead"])) == ["d", "c", "a"]
        assert ids(store.jobs(kinds=["sum"], tenant="acme", states=["done"])) == ["b"]
        assert store.jobs(states=[]) == store.jobs(kinds=[]) == store.jobs(tenant="rival", partition=PARTITION) == []

    # -- forgetting ------------------------------------------------------------------------------------------------

    def test_a_partition_that_goes_takes_its_jobs_along(self, store: Store) -> None:
        talk(store, "monday")
        queue(store, make_job("a"), make_job("b", state="done", payload={"session": "monday"}))
        queue(store, make_job("c", partition=OTHER_PARTITION))
        with store.transact() as tx:
            assert tx.drop_partition(PARTITION) == Removed(turns=2, sessions=1, jobs=2)
        assert ids(store.jobs()) == ["c"]
        assert queue(store, make_job("a")) == [True]
        assert not list(store.check())

    def test_a_session_that_goes_takes_its_jobs_along(self, store: Store) -> None:
        talk(store, "monday")
        talk(store, "tuesday")
        talk(store, "monday", partition=OTHER_PARTITION)
        for state in ("queued", "done", "dead"):
            queue(store, make_job(state, state=state, payload={"session": "monday"}))
        queue(store, make_job("running", payload={"session": "monday", "turns": [0, 2]}))
        with store.transact() as tx:
            tx.claim_job("w", NOON, minutes_later(1), id="running")
        queue(
            store,
            make_job("tuesday's", payload={"session": "tuesday"}),
            make_job("another's", payload={"session": "monday"}, partition=OTHER_PARTITION),
            make_job("nobody's", payload={"name": "monday", "session": ["monday"]}),
        )
        with store.transact() as tx:
            assert tx.remove_turns(PARTITION, session_id="monday") == Removed(turns=2, sessions=1, jobs=4)
        assert ids(store.jobs()) == ["nobody's", "another's", "tuesday's"]

    def test_a_session_that_lost_turns_is_worked_on_anew(self, store: Store) -> None:
        add(store, make_new_entry("e"))
        talk(store, "monday", entry_id="e")
        talk(store, "tuesday")
        for state in ("queued", "done", "dead"):
            queue(store, make_job(state, state=state, payload={"session": "monday"}, due_at=minutes_later(9)))
        queue(store, make_job("untouched", payload={"session": "tuesday"}, state="done"))
        queue(store, make_job("running", payload={"session": "monday"}))
        claim(store)
        with store.transact() as tx:
            assert tx.remove_turns(PARTITION, entry_ids=["e"]) == Removed(turns=1, jobs=2)
        assert [(job.id, job.state, job.attempts) for job in store.jobs()] == [
            ("running", "queued", 1),
            ("untouched", "done", 0),
            ("queued", "queued", 0),
        ]
        assert claimed_id(store) == "running"

    def test_removing_no_turn_leaves_the_jobs_alone(self, store: Store) -> None:
        talk(store, "monday")
        queue(store, make_job("j", payload={"session": "monday"}, state="done"))
        with store.transact() as tx:
            assert (
                tx.remove_turns(PARTITION, entry_ids=["nobody"])
                == tx.remove_turns(PARTITION, session_id="x")
                == Removed()
            )
        assert ids(store.jobs()) == ["j"]

    def test_jobs_last(self, store: Store) -> None:
        queue(store, make_job("j", payload={"session": "monday"}))
        claimed = claim(store)
        if not self.durable:
            return
        again = self.reopen(store)
        assert again.jobs() == [claimed]
        again.close()


def queue(store: Store, *jobs: Job) -> list[bool]:
    """All in one transaction; whether each was new."""
    with store.transact() as tx:
        return [tx.add_job(job) for job in jobs]


def put(store: Store, id: str, **changes: Any) -> None:  # any field of Job
    with store.transact() as tx:
        job = tx.job(id)
        assert job is not None
        tx.put_job(replace(job, **changes))


def claim(store: Store, worker: str = "w", *, minute: float = 0, **chosen: Any) -> Job | None:  # as `claim_job` takes
    """The next job, for a minute."""
    with store.transact() as tx:
        return tx.claim_job(worker, minutes_later(minute), minutes_later(minute + 1), **chosen)


def claimed_id(store: Store, **chosen: Any) -> str | None:  # as `claim` takes
    job = claim(store, **chosen)
    return None if job is None else job.id


def ids(jobs: list[Job]) -> list[str]:
    return [job.id for job in jobs]


def talk(store: Store, session_id: str, *, partition: Partition = PARTITION, entry_id: str | None = None) -> None:
    """A session of two turns, the second made of an entry."""
    with store.transact() as tx:
        tx.open_session(partition, session_id, NOON)
        tx.add_turn(partition, make_turn(0, session_id=session_id))
        tx.add_turn(partition, make_turn(1, session_id=session_id, entry_id=entry_id))
