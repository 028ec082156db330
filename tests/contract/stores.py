"""What every store must do, as a suite to inherit from. The suite for language models is `testing.models`.

A backend's test file holds a class and two methods:

    class TestMyStore(StoreContract):
        durable = True

        def make_store(self) -> Store: ...
        def reopen(self, store: Store) -> Store: ...

`make_store` gives a new, empty store at each call. Where `durable` is set, `reopen` closes a store and opens the same
data again. pytest is needed; the rest of the package never imports it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np
import pytest

from contract.builders import (
    MODEL,
    NOON,
    OTHER_MODEL,
    add,
    drop,
    entry_in,
    ids_on,
    keys,
    make_entry,
    make_index,
    make_link,
    make_new_entry,
    make_partition,
    make_record,
    make_turn,
    make_vector,
    minutes_later,
    no_of,
    put,
    write,
)
from wellworn.core.errors import StoreClosed, StoreError
from wellworn.core.values import LinkType, Partition
from wellworn.store.port import EmbeddingModel, Neighbour, RecordFilter, Removed, Selection, Store, Tx
from wellworn.store.values import NewEntry, Replaced, Slim

HERE = make_partition()
BOB = make_partition("bob")
RIVAL = make_partition(tenant="rival")
ALL = Selection()
T = TypeVar("T")


def seq_of(store: Store, partition: Partition = HERE) -> int:
    head = store.heads([partition])[0]
    return 0 if head is None else head.seq


def there(value: T | None) -> T:
    assert value is not None
    return value


def slim(store: Store, entry_id: str, since: int = 0) -> Slim | None:
    """The entry among what changed since a count, as an index in memory would see it."""
    entry = entry_in(store, entry_id)
    head = there(store.heads([entry.partition])[0])
    found = {row.no: row for row in store.delta(head.partition_no, since).rows}
    return found.get(no_of(store, entry_id))


class StoreContract:
    """The port of `store.port`, behaviour by behaviour."""

    durable: bool = False
    scrubs: bool = True
    """Whether removed content can be made unreadable in the files at once."""

    def make_store(self) -> Store:
        """A new, empty store."""
        raise NotImplementedError

    def reopen(self, store: Store) -> Store:
        """The same data in a new object; the old one is closed."""
        raise NotImplementedError

    @pytest.fixture
    def store(self) -> Iterator[Store]:
        made = self.make_store()
        yield made
        made.close()

    # -- entries -------------------------------------------------------------------------------------------------

    def test_an_entry_comes_back_as_it_was(self, store: Store) -> None:
        words = {"title": "Ü", "tags": ["x", "Ü"], "evidence": "said so", "speaker": "Ada", "session_id": "monday"}
        counts = {"repeats": 1, "usage_count": 2, "success_count": 3, "failure_count": 4, "confidence": 0.25}
        places = {"turn_refs": [3, 4], "thread": -5, "position": 2, "trust": "untrusted", "state": "flagged"}
        times = {"created_at": minutes_later(1), "updated_at": minutes_later(2.5), "valid_from": minutes_later(-1)}
        end, metadata = NOON + timedelta(microseconds=1), {"a": [1, None, {"b": "世界"}]}
        full = make_entry("a", **words, **counts, **places, **times, valid_to=end, metadata=metadata)
        bare = make_entry("b", evidence="")
        (first, second) = add(store, *(NewEntry(entry=e, index=make_index(e.text), vector=None) for e in (full, bare)))
        assert store.select([HERE], ALL) == [(first, full), (second, bare)]
        assert store.read([second, 99, first]) == {first: full, second: bare}
        assert store.get([HERE], ["a", "nobody"]) == {"a": full}
        assert store.get([BOB], ["a"]) == {}
        assert store.get(None, ["a"]) == {"a": full}
        found, vector = store.index_of([first, 99])[first]
        index, wanted = there(found), make_index(full.text)
        assert vector is None
        assert (index.terms.tolist(), index.counts.tolist()) == (wanted.terms.tolist(), wanted.counts.tolist())
        assert (index.length, index.chars, index.near) == (wanted.length, wanted.chars, wanted.near)

    def test_an_id_is_new_to_the_whole_store_and_live_words_to_their_partition(self, store: Store) -> None:
        add(store, make_new_entry("a", text="same"))
        for again in (make_new_entry("a", partition=RIVAL), make_new_entry("b", text="same")):
            with pytest.raises(StoreError):
                add(store, again)
        add(
            store, make_new_entry("c", text="same", state="superseded"), make_new_entry("d", text="same", partition=BOB)
        )
        found = there(store.find_same(HERE, entry_in(store, "a").content_hash))
        assert found.id == "a"
        assert store.find_same(RIVAL, found.content_hash) is None

    def test_entries_are_selected_by_every_condition(self, store: Store) -> None:
        add(
            store,
            make_new_entry("a", tags=["x", "y"], session_id="monday"),
            make_new_entry("b", tags=["x"], kind="fact", valid_to=minutes_later(5)),
            make_new_entry("c", state="superseded", session_id="monday"),
            make_new_entry("d", partition=BOB, tags=["x"]),
        )
        head = there(store.heads([HERE])[0])
        for wanted, found in (
            ({"tags": ["x"]}, "ab"),
            ({"tags": ["x", "y"]}, "a"),
            ({"session_id": "monday"}, "ac"),
            ({"kinds": ["fact", "episode"]}, "b"),
            ({"kinds": []}, ""),
            ({"states": ["superseded"]}, "c"),
            ({"ids": ["c", "d", "a"]}, "ac"),
            ({"tags": ["x"], "session_id": "monday"}, "a"),
        ):
            selection = Selection(**wanted)
            assert "".join(entry.id for _, entry in store.select([HERE], selection)) == found, wanted
            assert len(store.rows(selection, partition_no=head.partition_no)) == len(found), wanted
        assert ids_on(store, HERE, BOB) == [*"abcd"]
        page = store.select([HERE, BOB], ALL, limit=2)
        assert [entry.id for _, entry in store.select([HERE, BOB], ALL, after=page[-1][0])] == ["c", "d"]
        nos = [no for no, _ in store.select(None, ALL)]
        assert store.alive([*nos, 99]) == {*nos}

    def test_many_ids_at_once(self, store: Store) -> None:
        ids = [f"e{n}" for n in range(1200)]
        nos = add(store, *(make_new_entry(id) for id in ids))
        assert [*store.get([HERE], ids)] == ids
        assert store.alive(nos) == {*nos} == {*store.read(nos)} == {*store.index_of(nos)}

    def test_an_update_replaces_and_keeps_what_was(self, store: Store) -> None:
        add(store, make_new_entry("a", tags=["x"]))
        before = entry_in(store, "a")
        after = replace(before, text="new words", evidence="new words", tags=["y"], updated_at=minutes_later(1))
        write(store, lambda tx: tx.update(after, change="edited", index=make_index("new words")))
        counted = replace(after, usage_count=7)
        write(store, lambda tx: tx.update(counted, change=None, before=after))
        assert entry_in(store, "a") == counted
        assert store.replaced("a") == [Replaced(entry=before, change="edited", changed_at=minutes_later(1))]
        assert store.select([HERE], Selection(tags=["x"])) == []
        assert store.select([HERE], Selection(tags=["y"])) != []
        with pytest.raises(StoreError):
            write(store, lambda tx: tx.update(replace(after, partition=BOB), change=None))
        with pytest.raises(StoreError):
            write(store, lambda tx: tx.update(make_entry("nobody"), change=None))

    def test_history_comes_with_an_imported_entry(self, store: Store) -> None:
        states = [make_entry("a", text=text) for text in ("first", "second")]
        older = [Replaced(entry=state, change="edited", changed_at=NOON) for state in states]
        add(store, replace(make_new_entry("a"), history=older))
        assert store.replaced("a") == older

    def test_use_is_counted(self, store: Store) -> None:
        (no, other) = add(store, make_new_entry("a"), make_new_entry("b", partition=BOB, updated_at=minutes_later(9)))
        write(store, lambda tx: tx.count_use([no, other, no, 99], minutes_later(3)))
        assert (entry_in(store, "a").usage_count, entry_in(store, "a").updated_at) == (1, minutes_later(3))
        assert (entry_in(store, "b").usage_count, entry_in(store, "b").updated_at) == (1, minutes_later(9))

    # -- what changed --------------------------------------------------------------------------------------------

    def test_a_count_tells_what_changed_since(self, store: Store) -> None:
        assert store.heads([HERE, BOB]) == [None, None]
        add(store, make_new_entry("a"), make_new_entry("b", partition=BOB))
        first = seq_of(store)
        row = there(slim(store, "a"))
        assert (row.kind, row.state, row.length) == ("note", "active", len(["the", "text", "of", "a"]))
        assert slim(store, "a", since=first) is None
        write(store, lambda tx: tx.count_use([no_of(store, "a")], NOON))
        used = there(slim(store, "a", since=first))
        assert used.usage_count == 1
        assert used.index_seq == row.index_seq < used.seq
        bobs = seq_of(store, BOB)
        write(store, lambda tx: tx.remove(HERE, ALL))
        head = there(store.heads([HERE])[0])
        assert store.delta(head.partition_no, used.seq).removed == [row.no]
        assert seq_of(store, BOB) == bobs
        (again,) = add(store, make_new_entry("a"))
        assert again > row.no

    def test_a_delta_comes_in_pages(self, store: Store) -> None:
        nos = add(store, *(make_new_entry(f"e{n}") for n in range(5)))
        head = there(store.heads([HERE])[0])
        pages = [store.delta(head.partition_no, 0, after=after, limit=2).rows for after in (0, nos[1], nos[3])]
        assert [[row.no for row in page] for page in pages] == [nos[:2], nos[2:4], nos[4:]]

    # -- neighbours and links ------------------------------------------------------------------------------------

    def test_neighbours_newest_first(self, store: Store) -> None:
        near = make_index("x", near=(1, 2)), make_index("x", near=(9, 2)), make_index("x", near=(0, 0))
        add(
            store,
            make_new_entry("a", session_id="s", tags=["x", "y"], index=near[0]),
            make_new_entry("b", session_id="s", tags=["x", "z"], index=near[1]),
            make_new_entry("c", tags=["x", "y"], index=near[2], state="flagged"),
            make_new_entry("d", session_id="s", tags=["x", "y"], index=near[0], state="superseded"),
            make_new_entry("e", partition=BOB, session_id="s", tags=["x", "y"], index=near[0]),
        )

        def found(neighbours: list[Neighbour]) -> str:
            return "".join(one.id for one in neighbours)

        assert found(store.neighbours(HERE)) == "c"
        assert found(store.neighbours(HERE, session_id="s", limit=5)) == "ba"
        assert found(store.neighbours(HERE, tags=["x", "y"], shared=2, limit=5)) == "ca"
        assert found(store.neighbours(HERE, tags=["x", "y"], limit=2)) == "cb"
        similar = store.neighbours(HERE, near=(1, 2), limit=5)
        assert found(similar) == "ba"
        assert similar[0].index is not None
        assert found(store.neighbours(HERE, near=(0, 0), limit=5)) == ""
        assert store.neighbours(RIVAL) == []
        with store.transact() as tx:
            tx.add(make_new_entry("f"))
            assert found(tx.neighbours(HERE)) == "f"

    def test_expecting_entries_changes_no_answer(self, store: Store) -> None:
        four = [make_new_entry(id, text=id, index=make_index("x", near=(n, 0))) for n, id in enumerate("abcd", 1)]
        add(store, four[0])

        def there(tx: Tx) -> list[str]:
            same = [tx.find_same(HERE, one.entry.content_hash) for one in four]
            near = [tx.neighbours(HERE, near=one.index.near) for one in four]
            return ["".join(one.id if one else "-" for one in same), "".join(one[0].id if one else "-" for one in near)]

        with store.transact() as tx:
            tx.expect(four)
            assert there(tx) == ["a---", "a---"]
            tx.add(four[1])
            assert there(tx) == ["ab--", "ab--"]
            said = four[2]
            tx.update(replace(four[0].entry, content_hash=said.entry.content_hash), change=None, index=said.index)
            assert there(tx) == ["-ba-", "-ba-"]
            tx.put_index([(no, four[3].index, None) for no in tx.rows(Selection(ids=["b"]))])
            assert there(tx) == ["-ba-", "--ab"]

    def test_links_both_ways(self, store: Store) -> None:
        nos = dict(zip("abc", add(store, *map(make_new_entry, "abc")), strict=True))
        hand, auto = make_link("a", "b", confidence=0.5), make_link("b", "c", "follows")
        assert write(store, lambda tx: tx.add_links([hand, auto, hand])) == 2
        assert write(store, lambda tx: tx.add_links([hand])) == 0
        assert store.links(["b"]) == [hand, auto]
        assert store.links(["a", "b", "c"], types=["follows"]) == [auto]
        assert store.edges([nos["b"]]) == [(nos["a"], nos["b"], "supports", 0.5, True)]
        assert store.edges([nos["c"]]) == []
        assert {no: linked for no, (_, linked) in store.read_linked([*nos.values()]).items()} == {
            nos["a"]: True,
            nos["b"]: True,
            nos["c"]: False,
        }
        drawn = replace(auto, automatic=False, confidence=0.9)
        assert write(store, lambda tx: tx.add_links([drawn])) == 1
        assert write(store, lambda tx: tx.add_links([auto])) == 0
        assert store.links(["c"]) == [drawn]
        assert write(store, lambda tx: tx.add_links([replace(auto, type="related_to")] * 2)) == 1
        assert write(store, lambda tx: tx.remove_link("b", "c", "follows")) is True
        assert write(store, lambda tx: tx.remove_link("b", "c", "follows")) is False
        for wrong in (make_link("a", "a"), make_link("a", "nobody")):
            with pytest.raises(StoreError), store.transact() as tx:
                tx.add_links([wrong])

    def test_a_link_is_a_change_of_both_partitions(self, store: Store) -> None:
        add(store, make_new_entry("a"), make_new_entry("b", partition=BOB))

        def counts() -> list[int]:
            return [head.seq for head in store.heads([HERE, BOB]) if head is not None]

        before = counts()
        write(store, lambda tx: tx.add_links([make_link("a", "b")]))
        assert all(now > then for now, then in zip(counts(), before, strict=True))
        assert all(head and store.delta(head.partition_no, 0).linked for head in store.heads([HERE, BOB]))
        before = counts()
        write(store, lambda tx: tx.remove_link("a", "b", "supports"))
        assert all(now > then for now, then in zip(counts(), before, strict=True))

    @pytest.mark.parametrize(
        ("type_", "automatic", "counts"),
        [
            ("supersedes", True, True),
            ("contradicts", True, True),
            ("derived_from", True, True),
            ("supports", False, True),
            ("similar_to", True, False),
        ],
    )
    def test_a_link_that_tells_is_a_change_of_its_ends(
        self, store: Store, type_: LinkType, automatic: bool, counts: bool
    ) -> None:
        nos = add(store, *map(make_new_entry, "abc"))
        link = replace(make_link("a", "b", type_), automatic=automatic)

        def changed(do: Callable[[Tx], object]) -> list[int]:
            (head,) = store.heads([HERE])
            assert head is not None
            write(store, do)
            return [row.no for row in store.delta(head.partition_no, head.seq).rows]

        assert changed(lambda tx: tx.add_links([link])) == (nos[:2] if counts else [])
        assert [edge[:3] for edge in store.edges(nos)] == ([(*nos[:2], type_)] if counts else [])
        assert [linked for _, linked in store.read_linked(nos).values()] == [counts, counts, False]
        assert changed(lambda tx: tx.remove_link("a", "b", type_)) == nos[:2]
        assert store.edges(nos) == []

    def test_a_moment_ends_with_any_commit(self, store: Store) -> None:
        before = store.moment()
        assert store.moment() == before
        assert store.partitions() == []
        assert store.moment() == before
        add(store, make_new_entry("a"))
        assert store.moment() != before

    # -- removal -------------------------------------------------------------------------------------------------

    def test_what_hangs_on_an_entry_goes_with_it(self, store: Store) -> None:
        write(store, lambda tx: tx.use_model(MODEL))
        (a, b) = add(store, make_new_entry("a", vector=make_vector("a")), make_new_entry("b"))
        with store.transact() as tx:
            tx.update(replace(entry_in(store, "a"), title="t"), change="edited")
            tx.add_links([make_link("a", "b"), make_link("b", "a", "follows")])
            tx.add_turn(HERE, make_turn(0, entry_id="a"))
            tx.put_records([make_record("t", names=("a", "b")), make_record("u", names=("b",))])
            tx.put_records([make_record("r", kind="note", body={"said": "x"}, blob=b"1", rows=(b, a))])
        removed = write(store, lambda tx: tx.remove(HERE, Selection(ids=["a"])))
        assert (removed.ids, removed.entries, removed.index_records, removed.vectors) == (["a"], 1, 1, 1)
        assert (removed.links, removed.versions, removed.records) == (2, 1, {"task": 1})
        assert (ids_on(store, HERE), store.links(["b"]), store.replaced("a")) == (["b"], [], [])
        assert [turn.entry_id for turn in store.turns(HERE, "monday")] == [None]
        assert keys(store, tenant="acme") == ["r", "u"]
        (blanked,) = store.records(RecordFilter(kinds=["note"]))
        assert (blanked.body, blanked.blob, blanked.rows) == ({}, b"1", ())
        assert write(store, lambda tx: tx.remove(RIVAL, ALL)) == Removed()

    def test_a_link_between_two_that_are_removed_counts_once(self, store: Store) -> None:
        write(store, lambda tx: [tx.add(make_new_entry(id)) for id in ("a", "b", "c")])
        write(store, lambda tx: tx.add_links([make_link("a", "b", "follows"), make_link("b", "c", "follows")]))
        assert write(store, lambda tx: tx.remove(HERE, Selection(ids=["a", "b"]))).links == 2

    def test_turns_go_when_asked(self, store: Store) -> None:
        add(store, make_new_entry("a", session_id="monday"), make_new_entry("b", session_id="monday"))
        with store.transact() as tx:
            for number, id in enumerate("ab"):
                tx.add_turn(HERE, make_turn(number, entry_id=id))
            tx.add_turn(HERE, make_turn(0, session_id="tuesday"))
            tx.add_turn(BOB, make_turn(0))
            tx.mark_session(HERE, "monday", reflected=2)
            tx.put_records([make_record("own", session="monday"), make_record("else", session="tuesday")])
            tx.put_records([make_record("bobs", session="monday", partition=BOB)])
            tx.put_records([make_record("all", session="monday", partition=None, tenant="acme")])
        cut = write(store, lambda tx: tx.remove(HERE, Selection(ids=["b"]), turns=True))
        assert (cut.turns, cut.sessions, cut.cut, cut.records) == (1, 0, ["monday"], {})
        head = there(store.session(HERE, "monday"))
        assert (head.turns, head.reflected) == (1, 1)
        gone = write(store, lambda tx: tx.remove(HERE, Selection(session_id="monday"), turns=True))
        assert (gone.turns, gone.sessions, gone.entries, gone.cut, gone.records) == (1, 1, 1, [], {"task": 2})
        assert [head.id for head in store.sessions(HERE)] == ["tuesday"]
        assert store.session(BOB, "monday") is not None
        assert sorted(keys(store, tenant="acme")) == ["bobs", "else"]

    def test_a_partition_goes_whole(self, store: Store) -> None:
        with store.transact() as tx:
            for partition in (HERE, BOB):
                tx.add(make_new_entry(f"a {partition.layer_id}", partition=partition))
                tx.add_turn(partition, make_turn(0))
                tx.put_records([make_record("t", partition=partition)])
        removed = write(store, lambda tx: tx.drop_partition(HERE))
        assert (removed.entries, removed.turns, removed.sessions, removed.records) == (1, 1, 1, {"task": 1})
        assert store.partitions() == [BOB]
        assert (ids_on(store, HERE, BOB), keys(store, kinds=["task"])) == (["a bob"], ["t"])
        assert write(store, lambda tx: tx.drop_partition(HERE)) == Removed()

    # -- sessions ------------------------------------------------------------------------------------------------

    def test_a_hidden_partition_is_out_of_sight_at_once_and_then_removed(self, store: Store) -> None:
        write(store, lambda tx: tx.add(make_new_entry("a")))
        write(store, lambda tx: tx.add_turn(HERE, make_turn(0)))
        write(store, lambda tx: tx.put_records([make_record("t")]))
        no = store.select(None, ALL)[0][0]
        number, ids = write(store, lambda tx: tx.hide_partition(HERE))
        assert ids == ["a"]
        assert (store.partitions(), store.sessions(), keys(store), store.heads([HERE])) == ([], [], [], [None])
        assert (store.select(None, ALL), store.get(None, ["a"]), store.alive([no])) == ([], {}, set())
        write(store, lambda tx: tx.add(make_new_entry("b")))  # the name is free
        removed = store.clear_hidden(number)
        assert (removed.entries, removed.turns, removed.sessions, removed.records["task"]) == (1, 1, 1, 1)
        assert (store.clear_hidden(number), ids_on(store, HERE), store.check()) == (Removed(), ["b"], [])

    def test_a_session_and_its_turns(self, store: Store) -> None:
        turns = [make_turn(0, speaker="Ada"), make_turn(2)]
        with store.transact() as tx:
            for turn in turns:
                tx.add_turn(HERE, turn, touched_at=minutes_later(5))
        assert store.turns(HERE, "monday") == turns
        head = there(store.session(HERE, "monday"))
        assert (head.turns, head.reflected, head.touched_at, head.ended_at) == (3, 0, minutes_later(5), None)
        assert store.last_said(HERE) == {"monday": turns[1].at}
        assert store.last_said(BOB) == {}
        with pytest.raises(StoreError):
            write(store, lambda tx: tx.add_turn(HERE, make_turn(2)))
        write(store, lambda tx: tx.mark_session(HERE, "monday", reflected=2, ended_at=minutes_later(6)))
        ended = store.session(HERE, "monday")
        assert ended == replace(head, reflected=2, ended_at=minutes_later(6))
        write(store, lambda tx: tx.add_turn(HERE, make_turn(3)))
        opened = there(store.session(HERE, "monday"))
        assert (opened.turns, opened.ended_at, opened.reflected) == (4, None, 2)
        for name, reflected in (("nobody", 0), ("monday", 5)):
            with pytest.raises(StoreError), store.transact() as tx:
                tx.mark_session(HERE, name, reflected=reflected)

    def test_idle_sessions_are_those_left_unread(self, store: Store) -> None:
        with store.transact() as tx:
            for minute, name in enumerate(["read", "ended", "new", "old", "older"]):
                tx.add_turn(HERE, make_turn(0, session_id=name), touched_at=minutes_later(10 - minute))
            tx.add_turn(RIVAL, make_turn(0), touched_at=minutes_later(1))
            tx.mark_session(HERE, "read", reflected=1)
            tx.mark_session(HERE, "ended", ended_at=NOON)
        idle = store.sessions(idle_since=minutes_later(7.5))
        assert [head.id for head in idle] == ["monday", "older", "old"]
        idle = store.sessions(tenant="acme", idle_since=minutes_later(9), limit=2)
        assert [head.id for head in idle] == ["older", "old"]

    # -- embedding models ----------------------------------------------------------------------------------------

    def test_vectors_are_those_of_the_model(self, store: Store) -> None:
        with pytest.raises(StoreError):
            add(store, make_new_entry("a", vector=make_vector("a")))
        write(store, lambda tx: tx.use_model(MODEL))
        (a, b) = add(store, make_new_entry("a", vector=make_vector("a")), make_new_entry("b"))
        vector = there(store.index_of([a])[a][1])
        assert np.array_equal(vector, make_vector("a"))
        assert [no for no, _ in store.select(None, Selection(without_vector_of=MODEL))] == [b]
        with pytest.raises(StoreError):
            write(store, lambda tx: tx.put_index([(b, None, make_vector("b", width=9))]))
        assert (
            write(store, lambda tx: tx.put_index([(b, make_index("words"), make_vector("b")), (99, None, None)])) == 1
        )
        index, after = store.index_of([b])[b]
        assert (there(index).length, there(after).shape) == (1, (MODEL.width,))
        write(store, lambda tx: tx.update(entry_in(store, "b"), change=None, index=make_index("other")))
        assert store.index_of([b])[b][1] is None  # it was of another text

    def test_another_model_takes_over_at_once(self, store: Store) -> None:
        write(store, lambda tx: tx.use_model(MODEL))
        (a, b) = add(store, make_new_entry("a", vector=make_vector("a")), make_new_entry("b", vector=make_vector("b")))
        before = seq_of(store)
        new = make_vector("a", width=OTHER_MODEL.width)
        assert write(store, lambda tx: tx.put_index([(a, None, new)], model=OTHER_MODEL)) == 1
        assert [no for no, _ in store.select(None, Selection(without_vector_of=OTHER_MODEL))] == [b]
        served = there(store.index_of([a])[a][1])
        assert len(served) == MODEL.width
        write(store, lambda tx: tx.use_model(OTHER_MODEL))
        vectors = {no: vector for no, (_, vector) in store.index_of([a, b]).items()}
        assert np.array_equal(vectors[a], new)  # type: ignore[arg-type]  # there is one
        assert vectors[b] is None
        assert store.model() == OTHER_MODEL
        assert slim(store, "b", since=before) is not None
        assert store.model() != EmbeddingModel(name=OTHER_MODEL.name, width=1)

    def test_vectors_of_sentences_come_and_go_with_the_vector(self, store: Store) -> None:
        write(store, lambda tx: tx.use_model(MODEL))
        vector, entries = make_vector("a"), [make_new_entry(id, vector=make_vector("a")) for id in "abc"]
        (a, b, c) = add(store, *(replace(one, parts=one.entry.id.encode()) for one in entries[:2]), entries[2])
        assert store.parts([a, b, c, 99]) == {a: b"a", b: b"b"}
        assert store.parts([]) == {}
        write(store, lambda tx: tx.put_index([(a, make_index("words"), None), (c, None, vector)], parts={c: b"c\x00"}))
        assert store.parts([a, b, c]) == {a: b"a", b: b"b", c: b"c\x00"}
        write(store, lambda tx: tx.put_index([(a, None, vector)]))
        write(store, lambda tx: tx.update(entry_in(store, "b"), change=None))
        write(store, lambda tx: tx.update(entry_in(store, "c"), change=None, index=make_index("other"), parts=b"d"))
        assert store.parts([a, b, c]) == {b: b"b", c: b"d"}
        write(store, lambda tx: tx.update(entry_in(store, "c"), change=None, index=make_index("words")))
        assert store.parts([a, b, c]) == {b: b"b"}  # the others were of another text
        new = make_vector("a", width=OTHER_MODEL.width)
        rows = [(a, None, new), (b, None, new)]
        write(store, lambda tx: tx.put_index(rows, model=OTHER_MODEL, parts={a: b"new"}))
        with store.snapshot() as reader:
            assert reader.parts([a, b]) == {b: b"b"}  # those that serve
        write(store, lambda tx: tx.use_model(OTHER_MODEL))
        assert store.parts([a, b, c]) == {a: b"new"}
        write(store, lambda tx: tx.remove(HERE, Selection(ids=["a"])))
        assert store.parts([a, b, c]) == {}

    # -- records -------------------------------------------------------------------------------------------------

    def test_a_record_comes_back_as_it_was(self, store: Store) -> None:
        (no,) = add(store, make_new_entry("a"))
        words = {"state": "open", "body": {"a": [1, None, "世界"]}, "blob": b"\x00\xff", "session": "monday"}
        full = make_record("t", **words, names=("a",), rows=(no,), due_at=minutes_later(3), updated_at=minutes_later(1))
        of_tenant = make_record("t", partition=None, tenant="acme")
        numbers = put(store, full, of_tenant)
        assert store.record(HERE, "task", "t") == replace(full, no=numbers[0])
        assert store.records(RecordFilter(tenant="acme", of_tenant=True)) == [replace(of_tenant, no=numbers[1])]
        both = store.records(RecordFilter(partition=HERE, of_tenant=True, keys=["t"]))
        assert {record.no for record in both} == {*numbers}
        assert store.partitions() == [HERE]
        for wrong in (make_record("x", body={"a": object()}), make_record("x", partition=None)):
            with pytest.raises(StoreError):
                put(store, wrong)

    def test_a_record_takes_the_place_of_its_key(self, store: Store) -> None:
        first = put(store, make_record("t", state="open"), replace=False)[0]
        assert put(store, make_record("t", state="again"), replace=False)[0] is None
        later = make_record("t", state="done", created_at=minutes_later(5), updated_at=minutes_later(5))
        assert put(store, later) == [first]
        assert store.record(HERE, "task", "t") == replace(later, no=first or 0, created_at=NOON)
        others = [make_record("t", partition=BOB), make_record("t", kind="note"), make_record("u")]
        assert None not in put(store, *others, replace=False)
        lines = [make_record("", state=state) for state in "ab"]
        assert len({*put(store, *lines)}) == 2

    def test_many_new_records_are_kept_as_one_by_one(self, store: Store) -> None:
        (no,) = add(store, make_new_entry("a"))
        put(store, make_record("k3", kind="note"))
        some = {"body": {"said": "x"}, "blob": b"1"}
        found = put(
            store, *(make_record(f"k{n}", kind="note", rows=(no + n // 4,), **some) for n in range(5)), replace=False
        )
        assert [number is None for number in found] == [n == 3 for n in range(5)]
        assert [there(store.record(HERE, "note", f"k{n}")).body for n in (0, 2, 3, 4)] == [some["body"]] * 2 + [{}] * 2
        for count in (2, 40):
            lines = [make_record("", kind=f"of {count}", state=str(n), **some) for n in range(count)]
            numbers = put(store, *lines)
            kept = store.records(RecordFilter(kinds=[f"of {count}"], order="oldest"))
            assert kept == [replace(line, no=number) for line, number in zip(lines, numbers, strict=True)]

    def test_a_record_of_what_is_gone_is_not_kept(self, store: Store) -> None:
        (no,) = add(store, make_new_entry("a", partition=RIVAL))
        assert put(store, make_record("t", names=("nobody",))) == [None]
        assert put(store, make_record("t", names=("a",))) == [None]  # another tenant's
        put(store, make_record("t", rows=(no + 1,), body={"said": "x"}, blob=b"1"))
        kept = there(store.record(HERE, "task", "t"))
        assert (kept.body, kept.blob) == ({}, b"1")

    def test_records_are_filtered_and_ordered(self, store: Store) -> None:
        with store.transact() as tx:
            tx.put_records(
                [
                    make_record("a", state="open", due_at=minutes_later(3), session="monday"),
                    make_record("b", state="done", created_at=minutes_later(1), updated_at=minutes_later(9)),
                    make_record("c", state="open", due_at=minutes_later(1), partition=BOB),
                    make_record("d", kind="note", partition=RIVAL, due_at=minutes_later(3)),
                    make_record("e", kind="note", partition=None, tenant="acme"),
                ]
            )
        (b,) = store.records(RecordFilter(keys=["b"]))
        cases: list[tuple[dict[str, Any], str]] = [
            ({}, "edcba"),
            ({"order": "oldest"}, "abcde"),
            ({"order": "due"}, "cad"),
            ({"order": "due", "due_by": minutes_later(1)}, "c"),
            ({"kinds": ["task"]}, "cba"),
            ({"tenant": "acme"}, "ecba"),
            ({"tenant": "acme", "of_tenant": True}, "e"),
            ({"partition": HERE}, "ba"),
            ({"partition": make_partition("nobody")}, ""),
            ({"keys": ["d", "a", "nobody"]}, "da"),
            ({"keys": []}, ""),
            ({"keys": ["a", "b"], "partition": HERE, "states": ["open"]}, "a"),
            ({"states": ["open"]}, "ca"),
            ({"session": "monday"}, "a"),
            ({"since": minutes_later(1)}, "b"),
            ({"before": minutes_later(9), "partition": HERE}, "a"),
            ({"after": b.no, "order": "oldest", "limit": 2}, "cd"),
            ({"limit": 1}, "e"),
        ]
        for wanted, found in cases:
            assert "".join(keys(store, **wanted)) == found, wanted
        many = [f"k{n}" for n in range(400)]
        put(store, *map(make_record, many))
        assert keys(store, keys=many, partition=HERE, order="oldest") == many

    def test_records_are_dropped_by_filter(self, store: Store) -> None:
        put(store, *(make_record(key, state=key) for key in "abc"))
        assert drop(store, kinds=["task"], keys=["a"], partition=HERE) == 1
        assert drop(store, kinds=["task"], keys=["a"], partition=BOB) == 0
        assert drop(store, kinds=["task"], states=["b"]) == 1
        assert keys(store) == ["c"]
        before = store.records(RecordFilter())[0].no
        drop(store)
        assert put(store, make_record("c"), replace=False)[0] > before

    def test_logs_can_only_grow(self, store: Store) -> None:
        for kind in ("event", "call", "outcome"):
            line = make_record("k", kind=kind, state="first")
            put(store, line)
            with pytest.raises(StoreError):
                put(store, replace(line, state="second"))
        for kind in ("event", "call"):
            with pytest.raises(StoreError):
                drop(store, kinds=[kind])

    # -- the engine ----------------------------------------------------------------------------------------------

    def test_partitions_and_their_counts(self, store: Store) -> None:
        add(store, make_new_entry("a", kind="fact"), make_new_entry("b", partition=BOB), make_new_entry("c"))
        add(
            store,
            make_new_entry("d", partition=RIVAL),
            make_new_entry("e", partition=make_partition("b", layer="team")),
        )
        assert store.partitions("acme") == [HERE, BOB, make_partition("b", layer="team")]
        assert store.partitions("acme", layer="user", prefix="b") == [BOB]
        counts = store.counts([HERE])
        assert (counts["entries"], counts["kind:fact"], counts["state:active"], counts["turns"]) == (2, 1, 2, 0)
        assert counts["bytes"] > 0
        assert store.counts([make_partition("nobody")])["entries"] == 0

    def test_a_block_that_raises_leaves_nothing(self, store: Store) -> None:
        def broken(tx: Tx) -> None:
            tx.add(make_new_entry("a"))
            tx.put_records([make_record("t")])
            raise KeyError("x")

        with pytest.raises(KeyError):
            write(store, broken)
        assert (store.partitions(), keys(store), store.select(None, ALL)) == ([], [], [])
        with pytest.raises(StoreError), store.transact(), store.transact():
            pass

    def test_a_transaction_reads_what_it_wrote_and_others_do_not(self, store: Store) -> None:
        with store.transact() as tx:
            tx.add(make_new_entry("a"))
            tx.put_records([make_record("t", names=("a",))])
            assert [*tx.get([HERE], ["a"])] == ["a"]
            assert tx.record(HERE, "task", "t") is not None
            assert tx.alive([tx.select(None, ALL)[0][0]]) != set()
            assert (store.select(None, ALL), store.partitions(), keys(store)) == ([], [], [])
        assert (ids_on(store, HERE), keys(store)) == (["a"], ["t"])

    def test_a_snapshot_stands_still_while_others_write(self, store: Store) -> None:
        write(store, lambda tx: tx.add(make_new_entry("a")))
        with store.snapshot() as still:
            write(store, lambda tx: tx.add(make_new_entry("b")))
            write(store, lambda tx: tx.remove(HERE, Selection(ids=["a"])))
            assert [entry.id for _, entry in still.select([HERE], ALL)] == ["a"]
            assert still.counts([HERE])["entries"] == 1
        assert ids_on(store, HERE) == ["b"]

    def test_threads_write_one_after_the_other(self, store: Store) -> None:
        def work(name: str) -> None:
            for n in range(10):
                with store.transact() as tx:
                    head = tx.session(HERE, "monday")
                    tx.add_turn(HERE, make_turn(0 if head is None else head.turns, text=f"{name} {n}"))
                assert len(store.turns(HERE, "monday")) > n

        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [turn.number for turn in store.turns(HERE, "monday")] == [*range(40)]

    def test_a_sound_store_has_no_flaws(self, store: Store) -> None:
        (no,) = add(store, make_new_entry("a", tags=["x"]))
        put(store, make_record("t", names=("a",), rows=(no,)))
        assert store.check() == store.check(mend=True) == []
        assert store.scrub() is self.scrubs

    def test_a_closed_store_says_so(self, store: Store) -> None:
        store.close()
        store.close()
        with pytest.raises(StoreClosed):
            store.heads([])
        with pytest.raises(StoreClosed):
            put(store, make_record("t"))

    def test_everything_is_there_after_reopening(self) -> None:
        if not self.durable:
            pytest.skip("the data of this store goes with it")
        store = self.make_store()
        write(store, lambda tx: tx.use_model(MODEL))
        add(store, make_new_entry("a", vector=make_vector("a")), make_new_entry("b"))
        with store.transact() as tx:
            tx.add_links([make_link("a", "b")])
            tx.add_turn(HERE, make_turn(0, entry_id="a"))
            tx.put_records([make_record("t", names=("a",)), make_record("", kind="event")])

        def picture(of: Store) -> Any:
            records = of.records(RecordFilter())
            return (of.model(), of.select(None, ALL), of.links(["a"]), of.turns(HERE, "monday"), records, seq_of(of))

        before = picture(store)
        again = self.reopen(store)
        assert picture(again) == before
        again.close()
