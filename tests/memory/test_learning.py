"""Outcomes: what counts, what is refused, what survives, and what they do to the entries."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from memory.world import ADA, BEN, Clock, OpenMemory, file_bytes, holds_text, picture
from wellworn import InvalidInput, Memory, NotFound, Scope
from wellworn.core.errors import StoreError
from wellworn.learning.records import outcomes, put_policy
from wellworn.store.port import Tx

MARKER = "zqxmarker"
SOON = 300.0
"""Seconds in which a log that is written twice a second must have been, on a busy machine."""
ADA_IN_ORG = Scope(tenant="acme", user="ada", org="all")


@pytest.fixture
def bees(mem: Memory) -> Memory:
    mem.remember_many([f"bee number {n} likes flower {n}" for n in range(8)], scope=ADA)
    return mem


def learned(mem: Memory) -> tuple[Any, ...]:
    """All that outcomes can change."""
    return (picture(mem), mem.learning.status(scope=ADA), mem.learning.export(scope=ADA))


def eventually(true: Callable[[], bool]) -> bool:
    until = time.monotonic() + SOON
    while not (found := true()) and time.monotonic() < until:
        time.sleep(0.02)
    return found


# -- what counts -------------------------------------------------------------------------------------------------


def test_an_outcome_counts_once_per_kind(bees: Memory) -> None:
    recall = bees.recall("bee", scope=ADA)
    kinds: list[dict[str, Any]] = [
        {"cited": [0, 2]},
        {"used": 0.8},
        {"ignored": True},
        {"refined": "the other bee"},
        {"success": True},
    ]
    for kind in kinds:
        assert bees.outcome(recall.id, **kind) is True
    before = learned(bees)
    for kind in [*kinds, {"cited": []}, {"used": 0.0}, {"refined": "yet another"}, {"success": False}]:
        assert bees.outcome(recall.id, **kind) is False
    assert learned(bees) == before
    assert bees.learning.status(scope=ADA).outcomes == 3  # cited, ignored and refined can teach


def test_places_may_come_as_any_sequence_and_twice_is_once(bees: Memory) -> None:
    several: list[Sequence[int]] = [(0, 1), range(2), [], [4, 4, 4]]
    for places in several:
        recall = bees.recall("bee", scope=ADA)
        assert bees.outcome(recall.id, cited=places)
    assert bees.learning.status(scope=ADA).outcomes == 4
    assert bees.get(recall.hits[4].entry.id, scope=ADA).usage_count == 1


NO_PLACES: tuple[Any, ...] = ([5], [0, 99], [-1], [True], [0.0], ["0"], "01", 0, [None], [0, False], [[0]], [{}])
BAD: list[dict[str, Any]] = [
    *(
        {},
        {"ignored": False},
        {"cited": [0], "used": 0.5},
        {"cited": [], "ignored": True},
        {"used": 0.1, "success": True},
    ),
    *({"cited": places} for places in NO_PLACES),
    *({"used": quality} for quality in (1.5, -0.1, float("nan"), True, "much")),
    *({"ignored": 1}, {"ignored": "yes"}, {"refined": ""}, {"refined": 7}, {"success": 1}, {"success": "yes"}),
]


def test_a_bad_outcome_is_a_clear_error_and_changes_nothing(bees: Memory) -> None:
    recall = bees.recall("bee", scope=ADA)
    before = learned(bees)
    for told in BAD:
        with pytest.raises(InvalidInput):
            bees.outcome(recall.id, **told)
    with pytest.raises(NotFound, match="recall"):
        bees.outcome("01a1dd75-cb0f-7589-a47c-a483190b3258", cited=[0])
    assert learned(bees) == before
    assert bees.outcome(recall.id, cited=[0]), "and it can still be told rightly"


def test_a_recall_that_found_nothing_can_have_an_outcome(mem: Memory) -> None:
    """An agent tells of every recall; an empty memory must not make that an error."""
    told: list[dict[str, Any]] = [{"cited": []}, {"ignored": True}, {"refined": "wasps"}, {"used": 0.0}]
    assert all(mem.outcome(mem.recall("bees", scope=ADA).id, **one) for one in told)
    assert mem.learning.status(scope=ADA).outcomes == 0


def test_without_learning_there_is_no_recall_to_tell_of(opened: OpenMemory) -> None:
    mem = opened(learning="off")
    mem.remember("a bee", scope=ADA)
    with pytest.raises(NotFound, match="learning on or observing"):
        mem.outcome(mem.recall("bee", scope=ADA).id, cited=[0])
    assert mem.learning.status(scope=ADA).mode == "off"


@pytest.mark.parametrize("option", [{"learning": "sometimes"}, {"learning": None}])
def test_bad_settings_make_no_file(path: Path, opened: OpenMemory, option: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        opened(path, **option)
    assert not path.exists()


# -- what was forgotten ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("forgotten", [1, 5])
def test_what_is_forgotten_of_a_recall_teaches_nothing_and_is_no_error(bees: Memory, forgotten: int) -> None:
    recall = bees.recall("bee", scope=ADA)
    bees.forget(ids=[hit.entry.id for hit in recall.hits[:forgotten]], scope=ADA)
    bees.outcome(recall.id, cited=[0, 1])
    bees.outcome(recall.id, success=True)
    assert bees.learning.status(scope=ADA).outcomes == (1 if forgotten == 1 else 0)
    before = bees.learning.export(scope=ADA)
    bees.learning.relearn(scope=ADA)
    assert bees.learning.export(scope=ADA)["person"] == before["person"]
    assert bees.verify().ok


def test_forgetting_a_person_takes_recalls_outcomes_and_policy(path: Path, opened: OpenMemory) -> None:
    mem = opened(path)
    for scope in (ADA, BEN):
        mem.remember_many([f"bee number {n}" for n in range(8)], scope=scope)
    for n in range(4):
        mem.outcome(mem.recall(f"bee {MARKER} {n}", scope=ADA).id, cited=[0])
    mem.outcome(mem.recall(f"bee {MARKER}", scope=ADA).id, refined=f"{MARKER} bees")
    mem.outcome(mem.recall("bee of Ben", scope=BEN).id, cited=[0])
    bens = mem.learning.export(scope=BEN)["person"]
    assert MARKER.encode() in file_bytes(path)
    receipt = mem.forget(everything=True, scope=ADA)
    assert (receipt.recalls, receipt.scrubbed) == (5, True)
    assert MARKER.encode() not in file_bytes(path)
    assert [*outcomes(mem.engine.store, "acme", ADA.home())] == []
    assert mem.learning.export(scope=ADA)["person"] is None
    assert mem.learning.export(scope=BEN)["person"] == bens
    assert mem.learning.status(scope=ADA).outcomes == 0
    assert [event.detail["recalls"] for event in mem.admin.events(scope=ADA) if event.action == "forget"] == [5]
    assert mem.verify().ok
    mem.close()
    assert MARKER.encode() not in file_bytes(path)


@pytest.mark.parametrize("again", [False, True], ids=["gone", "back again"])
def test_a_pending_log_does_not_bring_back_what_was_forgotten(path: Path, opened: OpenMemory, again: bool) -> None:
    """`again`: the person is remembered anew before the log is written; what they asked before stays forgotten."""
    mem = opened(path)
    mem.remember("a bee", scope=ADA)
    mem.recall(f"bee {MARKER}", scope=ADA)
    mem.forget(everything=True, scope=ADA)
    if again:
        mem.remember("another bee", scope=ADA)
    mem.engine.learner.log.flush()
    mem.close()
    assert MARKER.encode() not in file_bytes(path)
    assert opened(path).engine.store.partitions() == ([ADA.home()] if again else [])


def test_an_outcome_does_not_bring_back_what_was_forgotten(path: Path, opened: OpenMemory) -> None:
    mem, elsewhere = opened(path), opened(path)
    mem.remember("a bee", scope=ADA)
    recall, theirs = mem.recall(f"bee {MARKER}", scope=ADA), elsewhere.recall(f"bee {MARKER}", scope=ADA)
    mem.forget(everything=True, scope=ADA)
    assert holds_text(mem, MARKER) == []
    for memory, forgotten in ((mem, recall), (elsewhere, theirs)):
        with pytest.raises(NotFound):
            memory.outcome(forgotten.id, cited=[0])
    assert mem.engine.store.partitions() == []
    assert MARKER.encode() not in file_bytes(path)


# -- here and elsewhere ------------------------------------------------------------------------------------------


def test_a_recall_is_told_of_in_another_memory_after_close(path: Path, opened: OpenMemory) -> None:
    first = opened(path)
    first.remember("a bee", scope=ADA)
    recall = first.recall("bee", scope=ADA)
    first.close()
    second = opened(path)
    assert second.outcome(recall.id, cited=[0], scope=ADA)
    assert second.learning.status(scope=ADA).outcomes == 1
    second.close()
    third = opened(path)
    assert third.learning.status(scope=ADA).outcomes == 1
    assert third.outcome(recall.id, cited=[0]) is False


def told(mem: Memory, recall_id: str) -> bool:
    try:
        return mem.outcome(recall_id, cited=[0])
    except NotFound:
        return False


def test_a_recall_is_told_of_in_another_memory_within_a_moment(path: Path, opened: OpenMemory) -> None:
    first, second = opened(path), opened(path)
    first.remember("a bee", scope=ADA)
    recall = first.recall("bee", scope=ADA)
    assert eventually(lambda: told(second, recall.id))
    assert first.learning.status(scope=ADA).outcomes == 1


def test_a_new_users_recall_is_told_of_elsewhere_too(path: Path, opened: OpenMemory) -> None:
    """They have no partition of their own yet: what they see is the organisation's."""
    first = opened(path)
    first.remember("a bee", scope=ADA_IN_ORG, layer="org")
    recall = first.recall("bee", scope=ADA_IN_ORG)
    first.close()
    second = opened(path)
    assert second.outcome(recall.id, cited=[0])
    assert second.learning.status(scope=ADA_IN_ORG).outcomes == 1


def _tell_for_ever(path: Path, told: Connection) -> None:
    with Memory.open(path, embedder="hash:8", durability="normal") as mem:
        scope = Scope(tenant="acme", user="ada")
        mem.remember_many([f"bee number {n}" for n in range(8)], scope=scope)
        while True:
            recall = mem.recall("bee", scope=scope)
            mem.outcome(recall.id, cited=[0])
            told.send(recall.id)


@pytest.mark.crash
def test_an_acknowledged_outcome_survives_a_kill(path: Path, opened: OpenMemory) -> None:
    processes = multiprocessing.get_context("forkserver")
    listening, telling = processes.Pipe(duplex=False)
    process = processes.Process(target=_tell_for_ever, args=(path, telling))
    process.start()
    telling.close()
    try:
        ids = [listening.recv() for _ in range(20)]
    finally:
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join(300)
    mem = opened(path, embedder="hash:8")
    status = mem.learning.status(scope=ADA)
    assert status.outcomes >= len(ids)
    assert all(mem.outcome(recall_id, cited=[0]) is False for recall_id in ids)
    before = mem.learning.export(scope=ADA)
    mem.learning.relearn(scope=ADA)
    assert mem.learning.export(scope=ADA) == before
    assert mem.verify().ok


def test_threads_that_tell_at_once_lose_nothing(bees: Memory) -> None:
    threads, each = 6, 12
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for n in range(each):
                assert bees.outcome(bees.recall("bee", scope=ADA).id, cited=[n % 3])
        except BaseException as error:
            errors.append(error)

    running = [threading.Thread(target=work) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(120)
    assert errors == []
    assert bees.learning.status(scope=ADA).outcomes == threads * each
    assert sum(entry.usage_count for entry in bees.entries(scope=ADA)) == threads * each
    before = bees.learning.export(scope=ADA)
    bees.learning.relearn(scope=ADA)
    assert bees.learning.export(scope=ADA) == before


def test_an_outcome_told_during_a_relearn_is_not_lost(bees: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    bees.outcome(bees.recall("bee", scope=ADA).id, cited=[0])
    late = bees.recall("bee", scope=ADA)
    threads = list[threading.Thread]()

    def and_then(*args: Any, **options: Any) -> Any:
        yield from outcomes(*args, **options)
        if not threads:  # the whole log has been read
            threads.append(threading.Thread(target=bees.outcome, args=(late.id,), kwargs={"cited": [1]}))
            threads[0].start()
            threads[0].join(1.0)  # a relearn that holds the writer's lock lets it in afterwards

    monkeypatch.setattr("wellworn.learning.records.outcomes", and_then)
    bees.learning.relearn(scope=ADA)
    threads[0].join(300)
    assert bees.learning.status(scope=ADA).outcomes == 2


# -- faults ------------------------------------------------------------------------------------------------------


def broken(*_: Any, **__: Any) -> AbstractContextManager[Tx]:
    raise StoreError("the disk is full")


def test_a_log_that_cannot_be_written_stops_no_recall(
    bees: Memory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="wellworn"):
        with monkeypatch.context() as patched:
            patched.setattr(bees.engine.store, "transact", broken)
            recall = bees.recall(f"bee {MARKER}", scope=ADA)
            assert len(recall) == 5
            bees.engine.learner.log.flush()
            assert len(bees.recall("bee", scope=ADA)) == 5
        assert any("not logged" in record.getMessage() for record in caplog.records)
        assert not any(MARKER in record.getMessage() for record in caplog.records)
    assert bees.outcome(recall.id, cited=[0]), "kept until the store can be written again"


def test_a_commit_that_fails_loses_no_recall(bees: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    recall = bees.recall("bee", scope=ADA)
    with monkeypatch.context() as patched:
        patched.setattr(bees.engine.learner, "_learn", broken)
        with pytest.raises(StoreError):
            bees.outcome(recall.id, cited=[0])
    assert bees.learning.status(scope=ADA).outcomes == 0
    assert bees.outcome(recall.id, cited=[0])


def test_a_damaged_state_counts_as_none(bees: Memory) -> None:
    bees.outcome(bees.recall("bee", scope=ADA).id, cited=[0])
    before = bees.learning.export(scope=ADA)
    with bees.engine.store.transact() as tx:
        put_policy(tx, "acme", ADA.home(), '{"format": 99}')
    assert len(bees.recall("bee", scope=ADA)) == 5
    assert bees.learning.status(scope=ADA).outcomes == 0
    bees.learning.relearn(scope=ADA)
    assert bees.learning.export(scope=ADA) == before


# -- what outcomes do to entries ---------------------------------------------------------------------------------


def test_a_citation_counts_as_use_and_leaves_no_version(bees: Memory, clock: Clock) -> None:
    recall = bees.recall("bee", scope=ADA)
    clock.forward(hours=1)
    bees.outcome(recall.id, cited=[0, 2])
    usage = [bees.get(hit.entry.id, scope=ADA).usage_count for hit in recall.hits]
    assert usage == [1, 0, 1, 0, 0]
    cited = bees.get(recall.hits[0].entry.id, scope=ADA)
    assert (cited.confidence, cited.updated_at) == (0.8, clock.now)
    assert len(bees.history(cited.id, scope=ADA)) == 1


@pytest.mark.parametrize(
    ("start", "success", "after"),
    [(0.8, True, 0.85), (0.93, True, 0.95), (1.0, True, 1.0), (0.8, False, 0.7), (0.1, False, 0.05), (0.0, False, 0.0)],
)
def test_success_and_failure_change_confidence(mem: Memory, start: float, success: bool, after: float) -> None:
    (entry_id,) = mem.remember("a bee", scope=ADA, confidence=start)
    mem.outcome(mem.recall("bee", scope=ADA).id, success=success)
    entry = mem.get(entry_id, scope=ADA)
    assert entry.confidence == pytest.approx(after)
    assert (entry.success_count, entry.failure_count) == ((1, 0) if success else (0, 1))
    assert entry.usage_count == 0


def test_one_persons_failures_do_not_sink_what_a_team_shares(mem: Memory) -> None:
    ana, bo = (Scope(tenant="acme", user=user, team="core") for user in ("ana", "bo"))
    (own,) = mem.remember("the payroll bee is Ana's", scope=ana)
    (shared,) = mem.remember("the payroll bee flies on Fridays", scope=bo, layer="team")
    for _ in range(10):
        recall = mem.recall("payroll bee", scope=ana)
        mem.outcome(recall.id, cited=[0, 1])
        mem.outcome(recall.id, success=False)
    assert mem.get(own, scope=ana).confidence == pytest.approx(0.05)
    assert mem.get(shared, scope=bo).confidence == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("told", "judged"),
    [({"cited": [1]}, [1]), ({"cited": []}, []), ({"ignored": True}, []), ({"used": 0.9}, [])],
    ids=str,
)
def test_what_is_not_known_to_be_used_is_not_judged(bees: Memory, told: dict[str, Any], judged: list[int]) -> None:
    recall = bees.recall("bee", scope=ADA, k=3)
    bees.outcome(recall.id, **told)
    bees.outcome(recall.id, success=False)
    failed = [place for place, hit in enumerate(recall) if bees.get(hit.entry.id, scope=ADA).failure_count]
    assert failed == judged


@pytest.mark.parametrize(
    ("told", "counts"), [({"refined": "wasps"}, 1), ({"ignored": True}, 1), ({"cited": []}, 1), ({"used": 0.9}, 0)]
)
def test_other_outcomes_leave_the_entries_alone_and_say_that_nothing_was_useful(
    bees: Memory, told: dict[str, Any], counts: int
) -> None:
    before = picture(bees)
    bees.outcome(bees.recall("bee", scope=ADA).id, **told)
    assert picture(bees) == before
    status = bees.learning.status(scope=ADA)
    assert (status.outcomes, status.steps) == (counts, 0)  # counted, but no weight moves
    assert bees.learning.relearn(scope=ADA).outcomes == counts
