"""Adding, reading and selecting entries."""

from __future__ import annotations

from datetime import timedelta, timezone

import pytest

from recollect.errors import StoreError
from recollect.stores.base import Record, Selection, Store
from recollect.testing.builders import make_entry, make_index, make_record, make_shelf, make_turn, minutes_later
from recollect.testing.store.case import (
    EVERYTHING,
    OTHER_SHELF,
    OTHER_TENANT,
    SHELF,
    StoreCase,
    add,
    ids_on,
    number_of,
    remove,
    update,
)
from recollect.types import KINDS, STATES

FULL = make_entry(
    "full",
    kind="episode", text="She said: “naïve café” 🌧️ \u202e مرحبا 你好", title="Größe", tags=["b", "a", "ß"],
    evidence="line one\nline two\ttab 'quote' \"double\" %_\\", source="user", speaker="Zoë", session_id="mönday",
    turn_refs=[3, 4], thread=-(2**63), position=7, confidence=0.1 + 0.2, trust="untrusted", state="flagged",
    repeats=2, usage_count=3, success_count=4, failure_count=5, token_count=6, content_hash="abc",
    at=minutes_later(0.5).replace(microsecond=999_999), created_at=minutes_later(1), updated_at=minutes_later(2),
    valid_from=minutes_later(-1), valid_to=minutes_later(9),
    metadata={"nested": {"list": [1, 2.5, None, True, "ü"]}, "empty": {}},
)  # fmt: skip


class EntriesContract(StoreCase):
    """Entries go in and come out as they are, by id, by row number and by selection."""

    def test_an_entry_comes_back_with_every_field_as_it_was(self, store: Store) -> None:
        add(store, make_record("plain"), Record(entry=FULL, index=make_index(FULL.text), vector=None))
        assert store.get([SHELF], ["full", "plain"]) == {"full": FULL, "plain": make_entry("plain")}

    def test_a_time_of_another_zone_comes_back_as_the_same_moment(self, store: Store) -> None:
        moment = minutes_later(3).astimezone(timezone(timedelta(hours=5, minutes=45)))
        add(store, make_record("a", at=moment))
        assert store.get([SHELF], ["a"])["a"].at == moment

    def test_changing_what_was_added_or_read_does_not_change_the_store(self, store: Store) -> None:
        record = make_record("a", tags=["x"], metadata={"k": ["v"]})
        add(store, record)
        for entry in (record.entry, store.get([SHELF], ["a"])["a"]):
            entry.tags.append("intruder")
            entry.metadata["k"].append("intruder")
        assert store.get([SHELF], ["a"])["a"] == make_entry("a", tags=["x"], metadata={"k": ["v"]})

    def test_changing_an_entry_before_its_block_ends_does_not_change_the_store(self, store: Store) -> None:
        record = make_record("a", tags=["x"])
        with store.transact() as tx:
            tx.add(record)
            record.entry.tags.append("intruder")
        for later in ("b", "c"):  # an engine may keep a second copy, which shows after the next commit
            assert store.get([SHELF], ["a"])["a"].tags == ["x"]
            add(store, make_record(later))

    def test_an_id_is_unique_over_all_shelves_and_tenants(self, store: Store) -> None:
        add(store, make_record("a"))
        for shelf in (SHELF, OTHER_SHELF, OTHER_TENANT):
            with pytest.raises(StoreError, match="a"):
                add(store, make_record("a", shelf=shelf))
        assert ids_on(store, SHELF, OTHER_SHELF, OTHER_TENANT) == ["a"]

    def test_get_sees_only_the_shelves_named(self, store: Store) -> None:
        add(store, make_record("mine"), make_record("theirs", shelf=OTHER_TENANT))
        assert store.get([SHELF], ["mine", "theirs", "nobody"]).keys() == {"mine"}
        assert store.get([SHELF, OTHER_TENANT], ["mine", "theirs"]).keys() == {"mine", "theirs"}
        assert store.get([], ["mine"]) == {}
        assert store.get([SHELF], []) == {}

    def test_where_tells_the_shelf_of_an_entry_anywhere_in_the_store(self, store: Store) -> None:
        shelves = [SHELF, OTHER_SHELF, OTHER_TENANT, make_shelf("ädä", layer="team")]
        add(store, *(make_record(f"e{i}", shelf=shelf) for i, shelf in enumerate(shelves)))
        found = store.where(["e3", "nobody", "e0", "e1", "e2", "e0"])
        assert found == {f"e{i}": shelf for i, shelf in enumerate(shelves)}
        assert store.where(["E0", "nobody"]) == store.where([]) == {}

    @pytest.mark.parametrize("state", STATES)
    def test_where_finds_an_entry_in_any_state(self, store: Store, state: str) -> None:
        add(store, make_record("a", state=state))
        assert store.where(["a"]) == {"a": SHELF}

    def test_where_follows_what_is_removed_and_where_it_returns(self, store: Store) -> None:
        add(store, make_record("a"), make_record("b"), make_record("c", shelf=OTHER_SHELF))
        remove(store, "a")
        with store.transact() as tx:
            tx.drop_shelf(OTHER_SHELF)
        assert store.where(["a", "b", "c"]) == {"b": SHELF}
        add(store, make_record("a", shelf=OTHER_TENANT))
        assert store.where(["a"]) == {"a": OTHER_TENANT}

    def test_shelves_differ_in_tenant_layer_and_id(self, store: Store) -> None:
        shelves = [SHELF, OTHER_SHELF, OTHER_TENANT, make_shelf(layer="team"), make_shelf("Ada"), make_shelf("ädä")]
        add(store, *(make_record(f"e{i}", shelf=shelf) for i, shelf in enumerate(shelves)))
        assert [ids_on(store, shelf) for shelf in shelves] == [[f"e{i}"] for i in range(len(shelves))]
        assert sorted(store.shelves()) == sorted(shelves)
        assert store.shelves("rival") == [OTHER_TENANT]
        assert store.shelves("unheard of") == []

    def test_shelves_are_found_by_layer_and_by_how_their_ids_begin(self, store: Store) -> None:
        names = ["a", "a.b", "a.ä\U0010ffff", "ab", "A.b", "%", "b.a"]
        shelves = [make_shelf(name) for name in names] + [make_shelf("a.t", layer="team"), OTHER_TENANT]
        add(store, *(make_record(f"e{i}", shelf=shelf) for i, shelf in enumerate(shelves)))
        assert [s.layer_id for s in store.shelves("acme", layer="user", prefix="a")] == ["a", "a.b", names[2], "ab"]
        assert [s.layer_id for s in store.shelves("acme", layer="user", prefix="a.")] == ["a.b", names[2]]
        assert [s.layer_id for s in store.shelves("acme", prefix="a.ä")] == [names[2]]
        assert [s.layer_id for s in store.shelves(layer="team")] == ["a.t"]
        assert [s.layer_id for s in store.shelves("acme", prefix="%")] == ["%"]
        assert store.shelves("acme", prefix="c") == store.shelves("rival", layer="team") == []

    def test_a_transaction_reads_what_it_has_written(self, store: Store) -> None:
        with store.transact() as tx:
            tx.add(make_record("a"))
            assert tx.get([SHELF], ["a"]) == {"a": make_entry("a")}
            tx.update(make_entry("a", usage_count=1), change=None)
            assert tx.get([SHELF], ["a"])["a"].usage_count == 1

    def test_rows_are_numbered_from_one_upwards(self, store: Store) -> None:
        add(store, make_record("a"), make_record("b", shelf=OTHER_SHELF))
        add(store, make_record("c"))
        assert [no for no, _ in store.select([SHELF, OTHER_SHELF], EVERYTHING)] == [1, 2, 3]

    def test_a_row_number_never_returns(self, store: Store) -> None:
        add(store, make_record("a"), make_record("b"))
        remove(store, "b")
        add(store, make_record("b"))
        assert number_of(store, "b") == 3

    def test_read_gives_entries_by_row_number_and_leaves_out_those_that_are_gone(self, store: Store) -> None:
        add(store, make_record("a"), make_record("b"), make_record("c"))
        remove(store, "b")
        assert store.read([3, 2, 1, 99]) == {1: make_entry("a"), 3: make_entry("c")}
        assert store.read([]) == {}

    def test_alive_tells_which_row_numbers_are_there(self, store: Store) -> None:
        add(store, make_record("a"), make_record("b"), make_record("c"))
        with store.transact() as tx:
            assert tx.alive([2, 1, 2]) == {1, 2}
            tx.remove(SHELF, Selection(ids=["b"]))
            assert tx.alive([3, 2, 1, 99]) == {1, 3}
            tx.add(make_record("d", shelf=OTHER_SHELF))
            assert tx.alive([1, 4]) == {1, 4}
            tx.drop_shelf(OTHER_SHELF)
            assert tx.alive([1, 4]) == {1}
            assert tx.alive([]) == set()
        assert store.alive([3, 2, 1, 99]) == {1, 3}

    def test_select_pages_by_row_number(self, store: Store) -> None:
        add(store, *(make_record(f"e{i}", shelf=(SHELF, OTHER_SHELF)[i % 2]) for i in range(7)))
        pages, after = [], 0
        while page := store.select([OTHER_SHELF, SHELF], EVERYTHING, after=after, limit=3):
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
            make_record("a", tags=["x"]),
            make_record("b", tags=["y", "x"], kind="fact", valid_to=minutes_later(5)),
            make_record("c", session_id="s", kind="episode", valid_to=minutes_later(6)),
            make_record("d", session_id="s", state="pruned", valid_to=minutes_later(4)),
        )
        assert [entry.id for _, entry in store.select([SHELF], selection)] == expected
        with store.transact() as tx:
            assert tx.remove(SHELF, selection).ids == expected

    @pytest.mark.parametrize("kind", KINDS)
    def test_every_kind_can_be_stored_and_selected(self, store: Store, kind: str) -> None:
        add(store, make_record("a", kind=kind), make_record("b", kind="note" if kind != "note" else "fact"))
        assert [entry.kind for _, entry in store.select([SHELF], Selection(kinds=[kind]))] == [kind]

    def test_tagged_gives_rows_of_one_shelf_that_have_every_tag(self, store: Store) -> None:
        add(store, make_record("a", tags=["x", "y"]), make_record("b", tags=["x"], state="superseded"))
        add(store, make_record("c", tags=["x", "y"], shelf=OTHER_SHELF))
        (head,) = store.heads([SHELF])
        assert head is not None
        assert store.tagged(head.shelf_no, ["x"]) == {1, 2}
        assert store.tagged(head.shelf_no, ["y", "x"]) == {1}
        assert store.tagged(head.shelf_no, ["x", "X"]) == set()
        assert store.tagged(head.shelf_no, []) == {1, 2}
        assert store.tagged(999, ["x"]) == set()

    def test_in_session_gives_rows_of_one_session_on_one_shelf(self, store: Store) -> None:
        add(store, make_record("a", session_id="s"), make_record("b", session_id="s", state="pruned"))
        add(store, make_record("c", session_id="S"), make_record("d", session_id="s", shelf=OTHER_SHELF))
        assert store.in_session(1, "s") == {1, 2}
        assert store.in_session(1, "unknown") == store.in_session(999, "s") == set()

    def test_in_session_follows_updates_and_removals(self, store: Store) -> None:
        add(store, *(make_record(entry_id, session_id="s") for entry_id in ("a", "b", "c")), make_record("d"))
        update(store, make_entry("a", session_id="t"))
        update(store, make_entry("b"))
        update(store, make_entry("d", session_id="s"))
        remove(store, "c")
        assert (store.in_session(1, "s"), store.in_session(1, "t")) == ({4}, {1})

    def test_in_session_asks_for_entries_not_for_turns(self, store: Store) -> None:
        add(store, make_record("a", session_id="s"), make_record("b"))
        with store.transact() as tx:
            tx.open_session(SHELF, "s", minutes_later(0))
            tx.add_turn(SHELF, make_turn(0, session_id="s", entry_id="b"))
        assert store.in_session(1, "s") == {1}
        with store.transact() as tx:
            tx.remove_turns(SHELF, session_id="s")
        assert store.in_session(1, "s") == {1}

    def test_tags_follow_an_update(self, store: Store) -> None:
        add(store, make_record("a", tags=["old", "both"]))
        update(store, make_entry("a", tags=["both", "new"]))
        (head,) = store.heads([SHELF])
        assert head is not None
        assert [store.tagged(head.shelf_no, [tag]) for tag in ("old", "both", "new")] == [set(), {1}, {1}]

    def test_counts_cover_the_shelves_named_and_nothing_else(self, store: Store) -> None:
        add(store, *(make_record(state, state=state) for state in STATES))
        add(store, make_record("f", kind="fact"), make_record("other", shelf=OTHER_SHELF))
        assert store.counts([SHELF]) == {
            "entries": 5, "links": 0, "versions": 0, "turns": 0, "sessions": 0, "vectors": 0,
            "kind:note": 4, "kind:fact": 1,
            "state:active": 2, "state:superseded": 1, "state:flagged": 1, "state:pruned": 1,
        }  # fmt: skip
        assert store.counts([SHELF, OTHER_SHELF, SHELF])["entries"] == 6

    def test_counts_of_nothing_are_zero(self, store: Store) -> None:
        zero = dict.fromkeys(("entries", "links", "versions", "turns", "sessions", "vectors"), 0)
        assert store.counts([]) == store.counts([SHELF]) == zero

    def test_a_large_batch_is_stored_whole_and_in_order(self, store: Store) -> None:
        ids = [f"e{i:04}" for i in range(2500)]
        add(store, *(make_record(entry_id) for entry_id in ids))
        assert ids_on(store, SHELF) == ids
        assert store.get([SHELF], ids).keys() == set(ids)
        assert len(store.read(range(1, 2501))) == 2500

    def test_a_question_may_name_very_many_ids_and_rows(self, store: Store) -> None:
        add(store, make_record("a", tags=["x"]), make_record("b"))
        ids = [*(f"nobody{i}" for i in range(40_000)), "a"]
        nos = range(1, 40_001)
        tags = [*(f"tag{i}" for i in range(40_000)), "x"]
        with store.transact() as tx:
            assert tx.get([SHELF], ids).keys() == {"a"}
            assert [found.id for found in tx.sharing_tags(SHELF, tags, 1, 9)] == ["a"]
            assert tx.remove_turns(SHELF, entry_ids=ids).turns == 0
        assert store.get([SHELF], ids).keys() == store.where(ids).keys() == {"a"}
        assert len(store.select([SHELF], Selection(ids=ids))) == 1
        assert store.read(nos).keys() == store.index_of(nos).keys() == {1, 2}
        assert store.links(ids) == []
        assert store.linked(nos) == []

    def test_a_large_text_comes_back_unharmed(self, store: Store) -> None:
        text = "äöü\x01 " * 100_000
        add(store, make_record("a", text=text))
        assert store.get([SHELF], ["a"])["a"].text == text

    def test_size_grows_with_what_is_stored(self, store: Store) -> None:
        before = store.size_bytes()
        add(store, make_record("a", text="word " * 100_000))
        assert store.size_bytes() - before > 100_000
