"""Every rule has a store that breaks it, and what can be rebuilt is."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from contract.few import few
from jobs.world import make_job
from wellworn.core.hashes import thread_of
from wellworn.core.values import Kind
from wellworn.jobs.queue import put_job
from wellworn.memory import Memory
from wellworn.models.hashing import HashEmbedder
from wellworn.ops.doctor import Report, repair, verify
from wellworn.store.port import Store
from wellworn.store.sqlite import SqliteStore

from .conftest import ADA, BOB, EVE, Ticking, entries_of, fill, open_memory

EMBEDDER = HashEmbedder(16)


def found(report: Report) -> set[tuple[str, bool]]:
    return {(flaw.check, flaw.repairable) for flaw in report.flaws}


# -- what verification sees ----------------------------------------------------------------------------------------------


def test_a_store_that_was_only_used_has_no_flaws(memory: Memory, store: Store) -> None:
    assert verify(store, None).ok
    assert repair(store, None).ok
    ids = fill(memory)
    report = verify(store, EMBEDDER)
    assert report.flaws == []
    assert report.checked["partitions"] == 4
    assert report.checked["entries"] == report.checked["vectors"] == len(entries_of(store))
    assert (report.checked["sessions"], report.checked["turns"]) == (1, 2)
    assert report.checked["links"] == len(store.links(list(entries_of(store))))
    assert "no flaws" in str(report)
    memory.edit(ids["race"], scope=ADA, text="Ada ran a race", evidence="Ada ran a race")
    assert verify(store, EMBEDDER).ok, "an edited episode is still that of its turn"
    memory.forget(ids=[ids["race"]], scope=ADA)
    memory.forget(everything=True, scope=BOB)
    assert verify(store, EMBEDDER).flaws == []


def test_wrong_counts_hashes_and_index_records_are_rebuilt(memory: Memory, store: Store) -> None:
    ids = fill(memory)
    entry = entries_of(store)[ids["tokio"]]
    with store.transact() as tx:
        tx.update(replace(entry, text="Quite another text.", token_count=99), change=None)
    report = verify(store, EMBEDDER)
    assert found(report) == {("token_count", True), ("content_hash", True), ("index", True), ("vector", True)}
    assert {flaw.subject for flaw in report.flaws} == {ids["tokio"]}
    assert "4 flaws (4 repairable)" in str(report)
    assert f"\n  content_hash: {ids['tokio']}: the hash is not that of the text" in str(report)
    mended = repair(store, EMBEDDER)
    assert mended.ok
    assert set(mended.mended) == set(report.flaws)
    assert "4 mended" in str(mended)
    assert entries_of(store)[ids["tokio"]].text == "Quite another text."


def test_values_that_cannot_be_are_found_and_left(memory: Memory, store: Store) -> None:
    ids = fill(memory)
    entry = entries_of(store)[ids["tokio"]]
    impossible = replace(
        entry,
        confidence=1.5,
        kind=cast("Kind", "rumour"),
        state="superseded",
        valid_to=None,
        repeats=-1,
        tags=["a"],
        created_at=entry.updated_at + timedelta(days=1),
    )
    with store.transact() as tx:
        tx.update(impossible, change=None)
    checks = {"value", "superseded", "times"}
    assert {flaw.check for flaw in verify(store, EMBEDDER).flaws} >= checks
    assert {flaw.check for flaw in repair(store, EMBEDDER).flaws} == checks


def test_vectors_are_made_again_by_the_embedder_that_they_come_from(store: Store) -> None:
    Memory(store, embedder=None).remember("written without a model", scope=ADA)
    assert verify(store, None).ok
    open_memory(store)
    assert found(verify(store, EMBEDDER)) == {("vector", True)}
    assert found(verify(store, None)) == found(repair(store, HashEmbedder(8))) == {("vector", False)}
    assert repair(store, EMBEDDER).ok


def test_circles_of_replacement_are_found(memory: Memory, store: Store) -> None:
    a, b, c = (memory.remember(f"statement {n}", scope=ADA)[0] for n in "abc")
    for source, target in ((a, b), (b, c)):
        memory.link(source, target, "derived_from", scope=ADA)
    assert verify(store, EMBEDDER).ok
    (link,) = (link for link in store.links([c]) if link.type == "derived_from")
    with store.transact() as tx:  # the facade refuses it
        tx.add_links([replace(link, source=c, target=a)])
    (flaw,) = verify(store, EMBEDDER).flaws
    assert (flaw.check, flaw.repairable) == ("cycle", False)
    assert {a, b, c} == {*flaw.problem.split(": ")[1].split(" → ")}


def test_links_between_tenants_are_found(memory: Memory, store: Store) -> None:
    ids = fill(memory)
    link = store.links([ids["tokio"]])[0]
    with store.transact() as tx:
        tx.add_links([replace(link, source=ids["tokio"], target=ids["eve"])])
    assert [flaw.problem for flaw in verify(store, EMBEDDER).flaws] == ["it leads from one tenant to another"]


def test_progress_ends_at_the_total(memory: Memory, store: Store) -> None:
    fill(memory)
    total = len(entries_of(store))
    seen: list[tuple[int, int]] = []
    verify(store, EMBEDDER, progress=lambda done, of: seen.append((done, of)))
    assert seen[-1] == (total, total)
    repair(store, EMBEDDER, progress=lambda done, of: seen.append((done, of)))
    assert seen[-1] == (2 * total, 2 * total)


# -- damage done to a SQLite file --------------------------------------------------------------------------------

Damage = tuple[str, set[tuple[str, bool]]]

DAMAGES: dict[str, Damage] = {
    "an id": ("UPDATE entries SET id = 'x' WHERE no = 1", {("value", False)}),
    "an empty text": (
        "UPDATE entries SET text = '' WHERE no = 1",
        {("value", False), ("token_count", True), ("content_hash", True), ("index", True), ("vector", True)},
    ),
    "a token count": ("UPDATE entries SET token_count = 7777 WHERE no = 1", {("token_count", True)}),
    "a confidence": ("UPDATE entries SET confidence = -1 WHERE no = 1", {("value", False)}),
    "a trust level": ("UPDATE entries SET trust = 'blind' WHERE no = 1", {("value", False)}),
    "times": ("UPDATE entries SET updated_at = created_at - 1 WHERE no = 1", {("times", False)}),
    "validity": ("UPDATE entries SET valid_to = valid_from WHERE no = 1", {("times", False)}),
    "an index record": ("UPDATE index_records SET length = length + 1 WHERE entry = 1", {("index", True)}),
    "index blobs": (
        "UPDATE index_records SET terms = x'0102' WHERE entry = 1",
        {("index", True), ("vector", True), ("readable", True)},
    ),
    "no index record": ("DELETE FROM index_records WHERE entry = 1", {("index", True), ("vector", True)}),
    "no vector": ("UPDATE index_records SET vector = NULL WHERE entry = 1", {("vector", True)}),
    "not a number": (f"UPDATE index_records SET vector = x'{'00' * 60}0000c07f'", {("vector", True)}),
    "a link type": ("UPDATE links SET type = 'envies' WHERE type = 'supports'", {("link", False)}),
    "a link's end": ("UPDATE links SET target = 999 WHERE type = 'supports'", {("link_without_end", True)}),
    "a self link": ("UPDATE links SET target = source WHERE type = 'supports'", {("link", False)}),
    "the tag index": ("DELETE FROM entry_tags", {("tags", True)}),
    "a turn": ("UPDATE turns SET text = 'I never said that' WHERE number = 0", {("episode", False)}),
    "a turn's number": (
        "UPDATE turns SET number = 5 WHERE number = 0",
        {("episode", False), ("turn_count", True), ("turns", False)},
    ),
    "a missing turn": ("DELETE FROM turns WHERE number = 0", {("turns", False)}),
    "reflection on what was not said": ("UPDATE sessions SET reflected = 3", {("session", True)}),
    "a count of turns": ("UPDATE sessions SET turns = 9, reflected = 7", {("turn_count", True), ("session", True)}),
    "a job that runs for nobody": ("UPDATE records SET state = 'running' WHERE kind = 'job'", {("job", True)}),
    "a job without a lease": (
        "UPDATE records SET state = 'running', due_at = NULL, body = json_set(body, '$.worker', 'w') "
        "WHERE kind = 'job'",
        {("job", True)},
    ),
    "a job's state": ("UPDATE records SET state = 'lost' WHERE kind = 'job'", {("job", False)}),
    "a job without its fields": ("UPDATE records SET body = '{}' WHERE kind = 'job'", {("job", True)}),
    "a job of no partition": (
        "UPDATE records SET partition = 99 WHERE kind = 'job'",
        {("record_without_partition", True), ("job", True)},
    ),
    "a turn's entry": ("UPDATE turns SET entry = 1 WHERE number = 0", {("episode", False)}),
    "the entry of a turn": (
        "DELETE FROM entries WHERE no = (SELECT entry FROM turns WHERE number = 0)",
        {("turn_without_entry", True), ("index_without_entry", True), ("link_without_end", True)},
    ),
    "metadata": ("UPDATE entries SET metadata = '{' WHERE no = 2", {("readable", True)}),
    "a year": (f"UPDATE entries SET at = {10**18} WHERE no = 2", {("readable", True)}),
    "a text that is not UTF-8": ("UPDATE entries SET title = CAST(x'41ff' AS TEXT) WHERE no = 2", {("readable", True)}),
    "an older version": ("UPDATE replaced SET snapshot = '{}'", {("readable", True)}),
    "a link's time": ("UPDATE links SET created_at = 'now' WHERE type = 'supports'", {("readable", True)}),
    "the audit log": ("UPDATE records SET body = '[' WHERE kind = 'event' AND no < 3", {("readable", True)}),
    "an outcome": ("UPDATE records SET body = '{}' WHERE kind = 'outcome'", {("learning", True)}),
    "a logged recall": ("UPDATE records SET blob = x'00' WHERE kind = 'recall'", {("learning", True)}),
    "a learned state": ("UPDATE records SET blob = x'7b7d' WHERE kind = 'policy'", {("learning", True)}),
    "a zeroed vector": (f"UPDATE index_records SET vector = x'{'00' * 64}' WHERE entry = 1", {("vector", True)}),
    "swapped vectors": (
        "UPDATE index_records SET vector = (SELECT vector FROM index_records WHERE entry = 3 - o.entry) "
        "FROM index_records AS o WHERE index_records.entry = o.entry AND o.entry < 3",
        {("vector", True)},
    ),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a filled store."""
    path = tmp_path_factory.mktemp("whole") / "memory.db"
    store = SqliteStore(path, durability="normal")
    memory = open_memory(store)
    fill(memory)
    memory.outcome(memory.recall("tokio", scope=ADA).id, cited=[0], scope=ADA)
    with store.transact() as tx:
        put_job(tx, make_job("j", partition=ADA.home(), payload={"session": "2026-05-01"}))
    store.close()
    return path


@pytest.fixture
def damaged(whole: Path, tmp_path: Path) -> Callable[[str], SqliteStore]:
    """Opens a copy of it after a statement was run on the file behind the store's back."""

    def damage(statement: str) -> SqliteStore:
        path = Path(shutil.copy(whole, tmp_path))
        connection = sqlite3.connect(path, isolation_level=None)
        for trigger in ("records_keep_their_rows", "records_keep_their_words"):
            connection.execute(f"DROP TRIGGER {trigger}")
        assert connection.execute(statement).rowcount > 0
        connection.close()
        return SqliteStore(path, durability="normal")

    return damage


@pytest.mark.parametrize("name", few(DAMAGES, 12))
def test_damage_to_the_file_is_found_and_what_can_be_is_repaired(
    damaged: Callable[[str], SqliteStore], name: str
) -> None:
    statement, expected = DAMAGES[name]
    store = damaged(statement)
    report = verify(store, EMBEDDER)
    assert found(report) == expected, str(report)
    after = repair(store, EMBEDDER)
    assert found(after) == {flaw for flaw in expected if not flaw[1]}, str(after)
    assert {flaw.check for flaw in after.mended} == {check for check, repairable in expected if repairable}
    store.close()


UNREADABLE = ("readable", "job", "learning", "value")
"""Checks of what may make reading fail; the other damages only give wrong values."""


@pytest.mark.parametrize(
    "name", few(sorted(DAMAGES, key=lambda name: all(check not in UNREADABLE for check, _ in DAMAGES[name][1])), 10)
)
def test_damage_in_one_place_locks_no_other(
    damaged: Callable[[str], SqliteStore], name: str, tmp_path: Path, other: Memory
) -> None:
    """Everything else is listed, recalled, exported, added to and forgotten as before."""
    store = damaged(DAMAGES[name][0])
    memory = open_memory(store, clock=Ticking(datetime(2026, 6, 1, tzinfo=UTC)))
    assert [entry.text for entry in memory.entries(scope=EVE)] == ["Eve keeps bees."]
    assert memory.entries(scope=ADA)
    assert memory.recall("Which runtime does Ada prefer?", scope=ADA).hits
    memory.outcome(memory.recall("bees", scope=EVE).id, cited=[0], scope=EVE)
    memory.session("2026-05-01", scope=ADA).add("user", "One more turn")
    memory.remember("Ada plays the viola.", tags=["rust"], scope=ADA)
    assert memory.recall("viola", scope=ADA).hits[0].entry.text == "Ada plays the viola."
    memory.admin.events(scope=ADA)
    memory.jobs.list(scope=ADA)
    memory.admin.export(tmp_path / "notes")
    written = memory.admin.export(tmp_path / "out.jsonl")
    assert written.entries >= 11
    assert other.admin.load(tmp_path / "out.jsonl").entries == written.entries
    memory.forget(everything=True, scope=ADA)
    assert not [entry for entry in memory.entries(scope=ADA) if entry.partition == ADA.home()]
    store.close()


def test_a_turn_whose_entry_is_lost_is_recalled_again(damaged: Callable[[str], SqliteStore]) -> None:
    store = damaged("DELETE FROM entries WHERE session_id IS NOT NULL")
    turn = store.turns(ADA.home(), "2026-05-01")[0]
    repair(store, EMBEDDER)
    hit = open_memory(store).recall(turn.text, scope=ADA).hits[0].entry
    assert (hit.text, hit.turn_refs, hit.trust) == (turn.text, [turn.number], "untrusted")
    assert hit.thread == thread_of("session", "2026-05-01")
    store.close()


def test_a_hash_is_left_wrong_rather_than_repeated(damaged: Callable[[str], SqliteStore]) -> None:
    """Two entries of a partition may not both be active and say the same."""
    store = damaged(
        "UPDATE entries SET text = 'The office is in Basel.', evidence = NULL, state = 'active' WHERE no = 2"
    )
    assert ("content_hash", True) in found(verify(store, EMBEDDER))
    assert {flaw.check for flaw in repair(store, EMBEDDER).flaws} == {"content_hash"}
    store.close()
