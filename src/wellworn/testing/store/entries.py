"""Adding, reading and selecting entries."""

from __future__ import annotations

from datetime import timedelta, timezone

import pytest

from wellworn.core.errors import StoreError
from wellworn.core.values import KINDS, STATES
from wellworn.store.port import NewEntry, Selection, Store
from wellworn.testing.builders import make_entry, make_index, make_new_entry, make_partition, make_turn, minutes_later
from wellworn.testing.store.case import (
    EVERYTHING,
    OTHER_PARTITION,
    OTHER_TENANT,
    PARTITION,
    StoreCase,
    add,
    ids_on,
    number_of,
    remove,
    update,
)

FULL = make_entry(
    "full",
    kind="episode",
    text="She said: “naïve café” 🌧️ \u202e مرحبا 你好",
    title="Größe",
    tags=["b", "a", "ß"],
    evidence="line one\nline two\ttab 'quote' \"double\" %_\\",
    source="user",
    speaker="Zoë",
    session_id="mönday",
    turn_refs=[3, 4],
    thread=-(2**63),
    position=7,
    confidence=0.1 + 0.2,
    trust="untrusted",
    state="flagged",
    repeats=2,
    usage_count=3,
    success_count=4,
    failure_count=5,
    token_count=6,
    content_hash="abc",
    at=minutes_later(0.5).replace(microsecond=999_999),
    created_at=minutes_later(1),
    updated_at=minutes_later(2),
    valid_from=minutes_later(-1),
    valid_to=minutes_later(9),
    metadata={"nested": {"list": [1, 2.5, None, True, "ü"]}, "empty": {}},
)


class EntriesContract(StoreCase):
    """Entries go in and come out as they are, by id, by row number and by selection."""

    def test_an_entry_comes_back_with_every_field_as_it_was(self, store: Store) -> None:
        add(store, make_new_entry("plain"), NewEntry(entry=FULL, index=make_index(FULL.text), vector=None))
        assert store.get([PARTITION], ["full", "plain"]) == {"full": FULL, "plain": make_entry("plain")}

    def test_a_time_of_another_zone_comes_back_as_the_same_moment(self, store: Store) -> None:
        moment = minutes_later(3).astimezone(timezone(timedelta(hours=5, minutes=45)))
        add(store, make_new_entry("a", at=moment))
        assert store.get([PARTITION], ["a"])["a"].at == moment

    def test_changing_what_was_added_or_read_does_not_change_the_store(self, store: Store) -> None:
        record = make_new_entry("a", tags=["x"], metadata={"k": ["v"]})
        add(store, record)
        for entry in (record.entry, store.get([PARTITION], ["a"])["a"]):
            entry.tags.append("intruder")
            entry.metadata["k"].append("intruder")
        assert store.get([PARTITION], ["a"])["a"] == make_entry("a", tags=["x"], metadata={"k": ["v"]})

    def test_changing_an_entry_before_its_block_ends_does_not_change_the_store(self, store: Store) -> None:
        record = make_new_entry("a", tags=["x"])
        with store.transact() as tx:
            tx.add(record)
            record.entry.tags.append("intruder")
        for later in ("b", "c"):  # an engine may keep a second copy, which shows after the next commit
            assert store.get([PARTITION], ["a"])["a"].tags == ["x"]
            add(store, make_new_entry(later))

    def test_an_id_is_unique_over_all_partitions_and_tenants(self, store: Store) -> None:
        add(store, make_new_entry("a"))
        for partition in (PARTITION, OTHER_PARTITION, OTHER_TENANT):
            with pytest.raises(StoreError, match="a"):
                add(store, make_new_entry("a", partition=partition))
        assert ids_on(store, PARTITION, OTHER_PARTITION, OTHER_TENANT) == ["a"]

    def test_get_sees_only_the_partitions_named(self, store: Store) -> None:
        add(store, make_new_entry("mine"), make_new_entry("theirs", partition=OTHER_TENANT))
        assert store.get([PARTITION], ["mine", "theirs", "nobody"]).keys() == {"mine"}
        assert store.get([PARTITION, OTHER_TENANT], ["mine", "theirs"]).keys() == {"mine", "theirs"}
        assert store.get([], ["mine"]) == {}
        assert store.get([PARTITION], []) == {}

    def test_where_tells_the_partition_of_an_entry_anywhere_in_the_store(self, store: Store) -> None:
        partitions = [PARTITION, OTHER_PARTITION, OTHER_TENANT, make_partition("ädä", layer="team")]
        add(store, *(make_new_entry(f"e{i}", partition=partition) for i, partition in enumerate(partitions)))
        found = store.where(["e3", "nobody", "e0", "e1", "e2", "e0"])
        assert found == {f"e{i}": partition for i, partition in enumerate(partitions)}
        assert store.where(["E0", "nobody"]) == store.where([]) == {}

    @pytest.mark.parametrize("state", STATES)
    def test_where_finds_an_entry_in_any_state(self, store: Store, state: str) -> None:
        add(store, make_new_entry("a", state=state))
        assert store.where(["a"]) == {"a": PARTITION}

    def test_where_follows_what_is_removed_and_where_it_returns(self, store: Store) -> None:
        add(store, make_new_entry("a"), make_new_entry("b"), make_new_entry("c", partition=OTHER_PARTITION))
        remove(store, "a")
        with store.transact() as tx:
            tx.drop_partition(OTHER_PARTITION)
        assert store.where(["a", "b", "c"]) == {"b": PARTITION}
        add(store, make_new_entry("a", partition=OTHER_TENANT))
        assert store.where(["a"]) == {"a": OTHER_TENANT}

    def test_partitions_differ_in_tenant_layer_and_id(self, store: Store) -> None:
        partitions = [
            PARTITION,
            OTHER_PARTITION,
            OTHER_TENANT,
            make_partition(layer="team"),
            make_partition("Ada"),
            make_partition("ädä"),
        ]
        add(store, *(make_new_entry(f"e{i}", partition=partition) for i, partition in enumerate(partitions)))
        assert [ids_on(store, partition) for partition in partitions] == [[f"e{i}"] for i in range(len(partitions))]
        assert sorted(store.partitions()) == sorted(partitions)
        assert store.partitions("rival") == [OTHER_TENANT]
        assert store.partitions("unheard of") == []

    def test_partitions_are_found_by_layer_and_by_how_their_ids_begin(self, store: Store) -> None:
        names = ["a", "a.b", "a.ä\U0010ffff", "ab", "A.b", "%", "b.a"]
        partitions = [make_partition(name) for name in names] + [make_partition("a.t", layer="team"), OTHER_TENANT]
        add(store, *(make_new_entry(f"e{i}", partition=partition) for i, partition in enumerate(partitions)))
        assert [s.layer_id for s in store.partitions("acme", layer="user", prefix="a")] == ["a", "a.b", names[2], "ab"]
        assert [s.layer_id for s in store.partitions("acme", layer="user", prefix="a.")] == ["a.b", names[2]]
        assert [s.layer_id for s in store.partitions("acme", prefix="a.ä")] == [names[2]]
        assert [s.layer_id for s in store.partitions(layer="team")] == ["a.t"]
        assert [s.layer_id for s in store.partitions("acme", prefix="%")] == ["%"]
        assert store.partitions("acme", prefix="c") == store.partitions("rival", layer="team") == []

    def test_a_transaction_reads_what_it_has_written(self, store: Store) -> None:
        with store.transact() as tx:
            tx.add(make_new_entry("a"))
            assert tx.get([PARTITION], ["a"]) == {"a": make_entry("a")}
            tx.update(make_entry("a", usage_count=1), change=None)
            assert tx.get([PARTITION], ["a"])["a"].usage_count == 1

    def test_rows_are_numbered_from_one_upwards(self, store: Store) -> None:
        add(store, make_new_entry("a"), make_new_entry("b", partition=OTHER_PARTITION))
        add(store, make_new_entry("c"))
        assert [no for no, _ in store.select([PARTITION, OTHER_PARTITION], EVERYTHING)] == [1, 2, 3]

    def test_a_row_number_never_returns(self, store: Store) -> None:
        add(store, make_new_entry("a"), make_new_entry("b"))
        remove(store, "b")
        add(store, make_new_entry("b"))
        assert number_of(store, "b") == 3

    def test_read_gives_entries_by_row_number_and_leaves_out_those_that_are_gone(self, store: Store) -> None:
        add(store, make_new_entry("a"), make_new_entry("b"), make_new_entry("c"))
        remove(store, "b")
        assert store.read([3, 2, 1, 99]) == {1: make_entry("a"), 3: make_entry("c")}
        assert store.read([]) == {}

    def test_alive_tells_which_row_numbers_are_there(self, store: Store) -> None:
        add(store, make_new_entry("a"), make_new_entry("b"), make_new_entry("c"))
        with store.transact() as tx:
            assert tx.alive([2, 1, 2]) == {1, 2}
            tx.remove(PARTITION, Selection(ids=["b"]))
            assert tx.alive([3, 2, 1, 99]) == {1, 3}
            tx.add(make_new_entry("d", partition=OTHER_PARTITION))
            assert tx.alive([1, 4]) == {1, 4}
            tx.drop_partition(OTHER_PARTITION)
            assert tx.alive([1, 4]) == {1}
            assert tx.alive([]) == set()
        assert store.alive([3, 2, 1, 99]) == {1, 3}

    def test_select_pages_by_row_number(self, store: Store) -> None:
        add(store, *(make_new_entry(f"e{i}", partition=(PARTITION, OTHER_PARTITION)[i % 2]) for i in range(7)))
        pages, after = [], 0
        while page := store.select([OTHER_PARTITION, PARTITION], EVERYTHING, after=after, limit=3):
            pages.append([entry.id for _, entry in page])
            after = page[-1][0]
        assert pages == [["e0", "e1", "e2"], ["e3", "e4", "e5"], ["e6"]]
        assert store.select([], EVERYTHING) == []

    @pytest.mark.parametrize(
        ("selection", "expected"),
        [
            (Selection(ids=["b", "d", "nobody"]), ["b", "d"]),
            (Selection(ids=[]), []),
            (Selection(session_id="s"), ["c", "d"]),
            (Selection(kinds=["fact", "note"]), ["a", "b", "d"]),
            (Selection(tags=["x"]), ["a", "b"]),
            (Selection(tags=["x", "y"]), ["b"]),
            (Selection(states=["active"]), ["a", "b", "c"]),
            (Selection(states=["active", "pruned"], kinds=["note"], tags=["x"]), ["a"]),
            (Selection(ids=["a", "c"], session_id="s"), ["c"]),
            (Selection(ended_by=minutes_later(5)), ["b", "d"]),
            (Selection(ended_by=minutes_later(4), states=["pruned"]), ["d"]),
            (Selection(ended_by=minutes_later(3)), []),
        ],
    )
    def test_every_condition_of_a_selection_must_hold(
        self, store: Store, selection: Selection, expected: list[str]
    ) -> None:
        add(
            store,
            make_new_entry("a", tags=["x"]),
            make_new_entry("b", tags=["y", "x"], kind="fact", valid_to=minutes_later(5)),
            make_new_entry("c", session_id="s", kind="episode", valid_to=minutes_later(6)),
            make_new_entry("d", session_id="s", state="pruned", valid_to=minutes_later(4)),
        )
        assert [entry.id for _, entry in store.select([PARTITION], selection)] == expected
        with store.transact() as tx:
            assert tx.remove(PARTITION, selection).ids == expected

    @pytest.mark.parametrize("kind", KINDS)
    def test_every_kind_can_be_stored_and_selected(self, store: Store, kind: str) -> None:
        add(store, make_new_entry("a", kind=kind), make_new_entry("b", kind="note" if kind != "note" else "fact"))
        assert [entry.kind for _, entry in store.select([PARTITION], Selection(kinds=[kind]))] == [kind]

    def test_tagged_gives_rows_of_one_partition_that_have_every_tag(self, store: Store) -> None:
        add(store, make_new_entry("a", tags=["x", "y"]), make_new_entry("b", tags=["x"], state="superseded"))
        add(store, make_new_entry("c", tags=["x", "y"], partition=OTHER_PARTITION))
        (head,) = store.heads([PARTITION])
        assert head is not None
        assert store.tagged(head.partition_no, ["x"]) == {1, 2}
        assert store.tagged(head.partition_no, ["y", "x"]) == {1}
        assert store.tagged(head.partition_no, ["x", "X"]) == set()
        assert store.tagged(head.partition_no, []) == {1, 2}
        assert store.tagged(999, ["x"]) == set()

    def test_in_session_gives_rows_of_one_session_on_one_partition(self, store: Store) -> None:
        add(store, make_new_entry("a", session_id="s"), make_new_entry("b", session_id="s", state="pruned"))
        add(store, make_new_entry("c", session_id="S"), make_new_entry("d", session_id="s", partition=OTHER_PARTITION))
        assert store.in_session(1, "s") == {1, 2}
        assert store.in_session(1, "unknown") == store.in_session(999, "s") == set()

    def test_in_session_follows_updates_and_removals(self, store: Store) -> None:
        add(store, *(make_new_entry(entry_id, session_id="s") for entry_id in ("a", "b", "c")), make_new_entry("d"))
        update(store, make_entry("a", session_id="t"))
        update(store, make_entry("b"))
        update(store, make_entry("d", session_id="s"))
        remove(store, "c")
        assert (store.in_session(1, "s"), store.in_session(1, "t")) == ({4}, {1})

    def test_in_session_asks_for_entries_not_for_turns(self, store: Store) -> None:
        add(store, make_new_entry("a", session_id="s"), make_new_entry("b"))
        with store.transact() as tx:
            tx.open_session(PARTITION, "s", minutes_later(0))
            tx.add_turn(PARTITION, make_turn(0, session_id="s", entry_id="b"))
        assert store.in_session(1, "s") == {1}
        with store.transact() as tx:
            tx.remove_turns(PARTITION, session_id="s")
        assert store.in_session(1, "s") == {1}

    def test_tags_follow_an_update(self, store: Store) -> None:
        add(store, make_new_entry("a", tags=["old", "both"]))
        update(store, make_entry("a", tags=["both", "new"]))
        (head,) = store.heads([PARTITION])
        assert head is not None
        assert [store.tagged(head.partition_no, [tag]) for tag in ("old", "both", "new")] == [set(), {1}, {1}]

    def test_counts_cover_the_partitions_named_and_nothing_else(self, store: Store) -> None:
        add(store, *(make_new_entry(state, state=state) for state in STATES))
        add(store, make_new_entry("f", kind="fact"), make_new_entry("other", partition=OTHER_PARTITION))
        assert store.counts([PARTITION]) == {
            "entries": 5,
            "links": 0,
            "versions": 0,
            "turns": 0,
            "sessions": 0,
            "vectors": 0,
            "kind:note": 4,
            "kind:fact": 1,
            "state:active": 2,
            "state:superseded": 1,
            "state:flagged": 1,
            "state:pruned": 1,
        }
        assert store.counts([PARTITION, OTHER_PARTITION, PARTITION])["entries"] == 6

    def test_counts_of_nothing_are_zero(self, store: Store) -> None:
        zero = dict.fromkeys(("entries", "links", "versions", "turns", "sessions", "vectors"), 0)
        assert store.counts([]) == store.counts([PARTITION]) == zero

    def test_a_large_batch_is_stored_whole_and_in_order(self, store: Store) -> None:
        ids = [f"e{i:04}" for i in range(2500)]
        add(store, *(make_new_entry(entry_id) for entry_id in ids))
        assert ids_on(store, PARTITION) == ids
        assert store.get([PARTITION], ids).keys() == set(ids)
        assert len(store.read(range(1, 2501))) == 2500

    def test_a_question_may_name_very_many_ids_and_rows(self, store: Store) -> None:
        add(store, make_new_entry("a", tags=["x"]), make_new_entry("b"))
        ids = [*(f"nobody{i}" for i in range(40_000)), "a"]
        nos = range(1, 40_001)
        tags = [*(f"tag{i}" for i in range(40_000)), "x"]
        with store.transact() as tx:
            assert tx.get([PARTITION], ids).keys() == {"a"}
            assert [found.id for found in tx.sharing_tags(PARTITION, tags, 1, 9)] == ["a"]
            assert tx.remove_turns(PARTITION, entry_ids=ids).turns == 0
        assert store.get([PARTITION], ids).keys() == store.where(ids).keys() == {"a"}
        assert len(store.select([PARTITION], Selection(ids=ids))) == 1
        assert store.read(nos).keys() == store.index_of(nos).keys() == {1, 2}
        assert store.links(ids) == []
        assert store.linked(nos) == []

    def test_a_large_text_comes_back_unharmed(self, store: Store) -> None:
        text = "äöü\x01 " * 100_000
        add(store, make_new_entry("a", text=text))
        assert store.get([PARTITION], ["a"])["a"].text == text

    def test_size_grows_with_what_is_stored(self, store: Store) -> None:
        before = store.size_bytes()
        add(store, make_new_entry("a", text="word " * 100_000))
        assert store.size_bytes() - before > 100_000
