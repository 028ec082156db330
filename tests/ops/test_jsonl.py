"""The lossless export, and everything that a file may have suffered."""

from __future__ import annotations

import base64
import hashlib
import json
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contract.few import few
from wellworn.core.errors import InvalidInput, TransferError
from wellworn.core.values import Scope
from wellworn.ingest.terms import embedding_text
from wellworn.memory import Memory
from wellworn.models.hashing import HashEmbedder
from wellworn.ops.bundle import Loaded
from wellworn.ops.doctor import verify
from wellworn.store.events import events
from wellworn.store.port import Selection, Store
from wellworn.store.sql.tx import SqlTx

from .conftest import ADA, BOB, EVE, entries_of, everything_in, fill, open_memory, open_store

Lines = list[dict[str, Any]]
ALONE = Scope(tenant="acme", user="ada")


def lines_of(path: Path) -> Lines:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def seal(path: Path, lines: Lines) -> None:
    """Write lines (the end line left out) with a seal that fits."""
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    end = {"type": "end", "lines": len(lines), "sha256": hashlib.sha256(body).hexdigest()}
    path.write_bytes(body + json.dumps(end).encode() + b"\n")


@pytest.fixture
def exported(memory: Memory, tmp_path: Path) -> Path:
    fill(memory)
    memory.admin.export(tmp_path / "all.jsonl")
    return tmp_path / "all.jsonl"


# -- the round trip ----------------------------------------------------------------------------------------------


def test_everything_comes_back_once(
    memory: Memory, store: Store, other: Memory, other_store: Store, tmp_path: Path
) -> None:
    fill(memory)
    written = memory.admin.export(tmp_path / "all.jsonl")
    loaded = other.admin.load(tmp_path / "all.jsonl")
    before = everything_in(store)
    assert everything_in(other_store) == before
    counts = (loaded.entries, loaded.links, loaded.turns, loaded.versions)
    assert counts == (written.entries, written.links, written.turns, written.versions)
    assert min(counts) > loaded.skipped == 0
    assert written.bytes == (tmp_path / "all.jsonl").stat().st_size
    assert verify(other_store, HashEmbedder(16)).flaws == []
    (event,) = (event for event in events(other_store, "acme") if event.action == "load")
    assert event.detail["entries"] == written.entries - 1  # one is another tenant's
    assert other.admin.load(tmp_path / "all.jsonl") == Loaded(skipped=written.entries)
    assert everything_in(other_store) == before


def test_vectors_are_taken_over_bit_by_bit_and_not_made_again(exported: Path, tmp_path: Path) -> None:
    class Unwilling(HashEmbedder):
        def embed(self, texts: Any) -> Any:
            raise AssertionError("nothing is to be embedded")

    target = open_store(tmp_path, "target")
    open_memory(target, Unwilling(16)).admin.load(exported)
    for no, entry in target.select(target.partitions(), Selection()):
        mine = target.index_of([no])[no][1]
        assert mine is not None
        np.testing.assert_array_equal(mine, HashEmbedder(16).embed([embedding_text(entry)])[0])


@pytest.mark.parametrize(("vectors", "width"), [(True, 8), (False, 8), (True, None)])
def test_another_model_makes_its_own_vectors(
    memory: Memory, store: Store, other_store: Store, tmp_path: Path, vectors: bool, width: int | None
) -> None:
    fill(memory)
    memory.admin.export(tmp_path / "all.jsonl", vectors=vectors)
    seen: list[tuple[int, int]] = []
    embedder = HashEmbedder(width) if width else None
    target = open_memory(other_store, embedder) if embedder else Memory(other_store, embedder=None)
    target.admin.load(tmp_path / "all.jsonl", progress=lambda done, of: seen.append((done, of)))
    assert everything_in(other_store) == everything_in(store)
    assert verify(other_store, embedder).flaws == []
    assert seen[-1] == (len(entries_of(store)),) * 2


def test_the_file_can_be_read_without_us(exported: Path) -> None:
    header, *content, end = lines_of(exported)
    assert header["wellworn_export"] == 3
    assert header["model"] == {"name": "hash:16", "width": 16}
    assert {line["type"] for line in content} == {"entry", "link", "turn", "session", "replaced"}
    assert end["lines"] == len(content) + 1
    raw = exported.read_bytes()
    assert end["sha256"] == hashlib.sha256(raw[: raw[:-1].rindex(b"\n") + 1]).hexdigest()
    vector = np.frombuffer(base64.b64decode(of(content, "entry")["vector"]), dtype="<f4")
    assert np.linalg.norm(vector) == pytest.approx(1)
    assert stat.S_IMODE(exported.stat().st_mode) == 0o600


def test_a_load_that_was_cut_short_between_two_slices_is_completed_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wellworn.ops.bundle.SLICE", 7)
    ada, path = Scope(user="ada"), tmp_path / "out.jsonl"
    with Memory(tmp_path / "a.db", embedder="hash", background=False) as memory:
        for number in range(30):
            memory.session("monday", scope=ada).add("user", f"Ship {number} carries {number} crates of tea.")
        memory.admin.export(path)
    with Memory(tmp_path / "b.db", embedder="hash", background=False) as memory:
        add, left = SqlTx.add, iter(range(16))

        def until_it_breaks(tx: SqlTx, new: Any) -> None:
            next(left)
            add(tx, new)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SqlTx, "add", until_it_breaks)
            with pytest.raises((StopIteration, RuntimeError)):
                memory.admin.load(path)
        assert len(memory.entries(scope=ada)) == 14
        loaded = memory.admin.load(path)
        assert (loaded.entries, loaded.skipped, loaded.turns) == (16, 14, 30)
        assert [turn.number for turn in memory.session("monday", scope=ada).turns()] == [*range(30)]
        assert memory.verify().ok
    with Memory(tmp_path / "c.db", embedder="hash", background=False) as memory:
        memory.session("monday", scope=ada).add("user", "Something else was said.")
        with pytest.raises(TransferError, match="another turn 0; nothing was changed"):
            memory.admin.load(path)
        assert len(memory.entries(scope=ada)) == 1


# -- scopes ------------------------------------------------------------------------------------------------------


def test_a_scope_exports_its_partitions_only(memory: Memory, tmp_path: Path) -> None:
    ids = fill(memory)
    (near,) = memory.remember("Bob is near.", scope=BOB)
    memory.link(ids["new"], near, "supports", scope=Scope(tenant="acme", user="bob", team="core"))
    memory.admin.export(tmp_path / "bob.jsonl", scope=BOB)
    lines = lines_of(tmp_path / "bob.jsonl")
    assert {line["partition"]["layer_id"] for line in lines if line.get("type") == "entry"} == {"bob"}
    assert ids["new"] not in json.dumps(lines)
    assert memory.admin.export(tmp_path / "none.jsonl", scope=Scope(tenant="acme", user="nobody")).entries == 0
    assert memory.admin.load(tmp_path / "none.jsonl") == Loaded()


@pytest.fixture
def adas(memory: Memory, exported: Path) -> Path:
    """What one person has, without the team."""
    memory.admin.export(exported.with_name("ada.jsonl"), scope=ALONE)
    return exported.with_name("ada.jsonl")


@pytest.mark.parametrize("taken", [False, True])
def test_what_one_person_has_moves_to_another_name_with_its_ids_where_they_are_free(
    adas: Path, memory: Memory, store: Store, other: Memory, other_store: Store, taken: bool
) -> None:
    zoe, before = Scope(tenant="new", user="zoe"), entries_of(store)
    target, place = (memory, store) if taken else (other, other_store)
    loaded = target.admin.load(adas, scope=zoe)
    copies = {id for id, entry in entries_of(place).items() if entry.partition == zoe.home()}
    own = {id for id, entry in before.items() if entry.partition == ADA.home()}
    assert len(copies) == loaded.entries == 3
    assert copies.isdisjoint(before) if taken else copies == own
    assert (loaded.skipped, loaded.problems) == (0, ())
    links = place.links([*copies])
    assert len(links) == loaded.links == 1
    assert all(link.source in copies and link.target in copies for link in links)
    assert all(turn.entry_id in copies for turn in place.turns(zoe.home(), "2026-05-01"))
    assert verify(place, HashEmbedder(16)).flaws == []


@pytest.mark.parametrize("name", ["all.jsonl", "notes"])
@pytest.mark.parametrize("scope", [ALONE, ADA])
def test_a_scope_takes_only_its_own_of_what_everybody_has(
    memory: Memory, store: Store, other: Memory, other_store: Store, tmp_path: Path, name: str, scope: Scope
) -> None:
    fill(memory)
    written = memory.admin.export(tmp_path / name)
    loaded = other.admin.load(tmp_path / name, scope=scope)
    ours = {id: entry for id, entry in entries_of(store).items() if entry.partition in scope.partitions()}
    assert entries_of(other_store) == ours
    assert (loaded.entries, loaded.skipped) == (len(ours), written.entries - len(ours))
    (left_out,) = loaded.problems
    assert left_out.startswith(f"{loaded.skipped} of {written.entries} entries were left out")
    assert "user 'eve' (tenant 'other')" in left_out
    assert verify(other_store, HashEmbedder(16)).flaws == []
    before = everything_in(other_store)
    with pytest.raises(TransferError, match=r"4 owners, and none of them is this scope: .*user 'bob'.*, …;"):
        other.admin.load(tmp_path / name, scope=Scope(tenant="other", user="zoe", team="core"))
    assert everything_in(other_store) == before


def test_what_is_here_otherwise_is_refused(adas: Path, exported: Path, other: Memory, tmp_path: Path) -> None:
    third = open_memory(open_store(tmp_path, "third"))
    other.admin.load(adas, scope=EVE)
    third.session(scope=ADA, session_id="2026-05-01").add("user", "quite another opening")
    for target, problem in ((other, "another partition"), (third, "another turn 0")):
        before = everything_in(target.engine.store)
        with pytest.raises(TransferError, match=problem):
            target.admin.load(exported)
        assert everything_in(target.engine.store) == before


def test_words_that_are_there_are_not_doubled(exported: Path, other: Memory, other_store: Store) -> None:
    (mine,) = other.remember("The office is  in Basel.", scope=ADA, layer="team")
    assert other.admin.load(exported).skipped == 1
    texts = [entry.text for entry in entries_of(other_store).values() if "Basel" in entry.text]
    assert texts == ["The office is  in Basel."]
    assert {link.type for link in other_store.links([mine])} >= {"supersedes", "supports"}  # they moved to mine
    assert verify(other_store, HashEmbedder(16)).flaws == []


def test_how_far_reflection_has_come_makes_the_round_trip(
    memory: Memory, store: Store, other: Memory, other_store: Store, tmp_path: Path
) -> None:
    fill(memory)
    home, ended = ADA.home(), datetime(2026, 5, 1, 12, tzinfo=UTC)
    with store.transact() as tx:
        tx.mark_session(home, "2026-05-01", reflected=1, ended_at=ended)
    memory.admin.export(tmp_path / "a.jsonl")
    other.admin.load(tmp_path / "a.jsonl")
    assert other_store.session(home, "2026-05-01") == store.session(home, "2026-05-01")
    other.session(scope=ADA, session_id="2026-05-01").add("user", "One more.")
    other.admin.load(tmp_path / "a.jsonl")
    kept = other_store.session(home, "2026-05-01")
    assert kept is not None
    assert (kept.turns, kept.reflected, kept.ended_at) == (3, 1, None)


def test_gaps_between_turns_stay(
    memory: Memory, other: Memory, store: Store, other_store: Store, tmp_path: Path
) -> None:
    memory.forget(ids=[fill(memory)["race"]], turns=True, scope=ADA)
    memory.admin.export(tmp_path / "gap.jsonl")
    other.admin.load(tmp_path / "gap.jsonl")
    assert [turn.number for turn in other_store.turns(ADA.home(), "2026-05-01")] == [1]
    assert everything_in(other_store) == everything_in(store)


# -- damage ------------------------------------------------------------------------------------------------------


def refused(path: Path, other: Memory, match: str | None = None) -> None:
    with pytest.raises(TransferError, match=match):
        other.admin.load(path)
    assert other.engine.store.partitions() == []


def test_damage_is_found_wherever_it_is(exported: Path, other: Memory) -> None:
    whole = exported.read_bytes()
    for position in [*range(0, len(whole), 997), len(whole) - 1]:
        broken = bytearray(whole)
        broken[position] ^= 1
        exported.write_bytes(broken)
        refused(exported, other)
    for length in [0, 1, *range(10, len(whole), 1999), len(whole) - 1]:
        exported.write_bytes(whole[:length])
        refused(exported, other)
    exported.write_bytes(whole + b'{"type":"entry"}\n')
    refused(exported, other, "is damaged")


OTHER_FILES = (b"", b"\n", b"hello\n", b'{"a": 1}\n', b"\x00\xff" * 100, b"[" * 100_000, b'"wellworn_export"\n')


def test_a_file_of_another_kind_or_version_is_refused(exported: Path, other: Memory) -> None:
    lines = lines_of(exported)
    for content in OTHER_FILES:
        exported.write_bytes(content)
        refused(exported, other)
    seal(exported, [{**lines[0], "wellworn_export": 4}, *lines[1:-1]])
    refused(exported, other, "version 4; this release reads versions 2 and 3")


def change(name: str, value: Any) -> Callable[[Lines], None]:
    return lambda lines: of(lines, "entry").__setitem__(name, value)


def of(lines: Lines, type_: str) -> dict[str, Any]:
    return next(line for line in lines if line.get("type") == type_)


def last_entry(lines: Lines) -> dict[str, Any]:
    """The only one of another tenant."""
    return [line for line in lines if line.get("type") == "entry"][-1]


BAD: dict[str, Callable[[Lines], Any]] = {
    "a path as id": change("id", "../../x"),
    "an id in capitals": lambda lines: of(lines, "entry").update(id=of(lines, "entry")["id"].upper()),
    "no id": lambda lines: of(lines, "entry").pop("id"),
    "a number as text": change("text", 7),
    "an empty text": change("text", "  "),
    "a NUL": change("text", "a\x00b"),
    "half a character": change("text", "a\ud800"),
    "half a character in metadata": change("metadata", {"x": "\udfff"}),
    "a huge text": change("text", "x" * 1_000_001),
    "an unknown kind": change("kind", "rumour"),
    "an unknown layer": lambda lines: of(lines, "entry")["partition"].update(layer="galaxy"),
    "an empty tenant": lambda lines: of(lines, "entry")["partition"].update(tenant=""),
    "a partition with more": lambda lines: of(lines, "entry")["partition"].update(more=1),
    "a partition that is a text": change("partition", "acme/user/ada"),
    "too sure": change("confidence", 1.01),
    "true as confidence": change("confidence", True),
    "a negative count": change("repeats", -1),
    "a count beyond a row": change("usage_count", 2**63),
    "a time without sense": change("at", "yesterday"),
    "a number as time": change("created_at", 12345),
    "ends before it begins": change("valid_to", "0001-01-01T00:00:00+00:00"),
    "one tag as text": change("tags", "rust"),
    "turn minus one": change("turn_refs", [-1]),
    "a field of its own": change("password", "x"),
    "a vector too short": change("vector", base64.b64encode(b"\0" * 60).decode()),
    "a vector of NaN": change("vector", base64.b64encode(np.full(16, np.nan, "<f4").tobytes()).decode()),
    "a long vector": change("vector", base64.b64encode(np.full(16, 9, "<f4").tobytes()).decode()),
    "no base64": change("vector", "???"),
    "an entry twice": lambda lines: lines.append(of(lines, "entry")),
    "a link to nowhere": lambda lines: of(lines, "link")["link"].update(target="00000000-0000-4000-8000-000000000000"),
    "a link to itself": lambda lines: of(lines, "link")["link"].update(target=of(lines, "link")["link"]["source"]),
    "a link of no known type": lambda lines: of(lines, "link")["link"].update(type="envies"),
    "a link between tenants": lambda lines: of(lines, "link")["link"].update(target=last_entry(lines)["id"]),
    "a link that is a text": lambda lines: of(lines, "link").update(link="supports"),
    "a turn twice": lambda lines: lines.append(of(lines, "turn")),
    "a turn's entry elsewhere": lambda lines: of(lines, "turn").update(entry_id=last_entry(lines)["id"]),
    "a version of nothing": lambda lines: of(lines, "replaced")["entry"].update(id=str(last_entry(lines)["id"])),
    "a session that reflected too far": lambda lines: of(lines, "session").update(reflected=3),
    "a session of fewer turns": lambda lines: of(lines, "session").update(turns=1),
    "a session that never was": lambda lines: of(lines, "session").update(id="never"),
    "a line of no type": lambda lines: lines.append({}),
    "a line of unknown type": lambda lines: lines.append({"type": "secret"}),
    "a line that is a list": lambda lines: lines.append([1]),  # type: ignore[arg-type]
    "two headers": lambda lines: lines.insert(1, lines[0]),
    "two ends": lambda lines: lines.append({"type": "end", "lines": 1, "sha256": ""}),
    "a model of no width": lambda lines: lines[0].update(model={"name": "x", "width": 0}),
    "vectors of no model": lambda lines: lines[0].update(model=None),
}


@pytest.mark.parametrize("name", few(BAD, 16))
def test_a_well_sealed_file_that_is_wrong_changes_nothing(exported: Path, other: Memory, name: str) -> None:
    lines = lines_of(exported)[:-1]
    BAD[name](lines)
    seal(exported, lines)
    refused(exported, other)


def test_a_line_that_is_hardly_json_is_refused(exported: Path, other: Memory) -> None:
    header = exported.read_bytes().splitlines(keepends=True)[0]
    for line in (b'{"a": 1, "a": 2}', b'{"type": NaN}', b"[" * 200_000, b"1" * 5000, b"\xff"):
        body = header + line + b"\n"
        end = {"type": "end", "lines": 2, "sha256": hashlib.sha256(body).hexdigest()}
        exported.write_bytes(body + json.dumps(end).encode() + b"\n")
        refused(exported, other, "line 2")


# -- paths and formats -------------------------------------------------------------------------------------------


def test_an_export_that_fails_leaves_the_old_file(exported: Path, memory: Memory, tmp_path: Path) -> None:
    before = exported.read_bytes()

    def fail(done: int, of: int) -> None:
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        memory.admin.export(exported, progress=fail)
    assert exported.read_bytes() == before
    assert not list(tmp_path.glob(".*.part"))


def test_paths_that_make_no_sense_get_one_clear_error(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "folder.jsonl").mkdir()
    admin = memory.admin
    for call, problem in (
        (lambda: admin.export(tmp_path / "folder.jsonl"), "is a folder"),
        (lambda: admin.export(tmp_path / "missing" / "x.jsonl"), "cannot write"),
        (lambda: admin.load(tmp_path / "missing.jsonl"), r"no .* to load"),
    ):
        with pytest.raises(TransferError, match=problem):
            call()
    for name in ("notes.md", "backup.json"):
        with pytest.raises(InvalidInput, match="does not tell the format"):
            admin.export(tmp_path / name)
        assert not (tmp_path / name).exists()
    (tmp_path / "notes.v2").mkdir()
    assert memory.admin.export(tmp_path / "notes.v2").format == "markdown"


# -- exports of release 0.1, under the name that the product had then --------------------------------------------------

OLD = Path(__file__).parent / "old"
OLD_ADA = Scope(tenant="acme", user="ada")


def test_a_file_of_version_2_loads_with_everything_in_it(other: Memory, other_store: Store, tmp_path: Path) -> None:
    loaded = other.admin.load(OLD / "export_v2.jsonl")
    assert loaded == Loaded(entries=6, links=7, turns=2, versions=2, outcomes=3)
    entries = {entry.text: entry for entry in entries_of(other_store).values()}
    oslo = entries["Ada lives in Oslo."]
    assert (oslo.state, oslo.tags, oslo.metadata) == ("superseded", ["home"], {"n": [1, {"x": None}]})
    assert "Ada lives in Bergen, a city with “rain” and 雨." in entries
    assert [turn.text for turn in other_store.turns(OLD_ADA.home(), "monday")] == [
        "Which runtime do I like?",
        "You like tokio.",
    ]
    assert not other.learning.status(scope=OLD_ADA).shares
    assert verify(other_store, HashEmbedder(16)).flaws == []
    other.admin.export(tmp_path / "again.jsonl")
    counts = [types(path) for path in (OLD / "export_v2.jsonl", tmp_path / "again.jsonl")]
    assert counts[0] == counts[1]


def types(path: Path) -> list[str]:
    return sorted(json.loads(line).get("type", "header") for line in path.read_text("utf-8").splitlines())


def test_a_folder_of_version_1_loads_too(other: Memory, other_store: Store) -> None:
    assert other.admin.load(OLD / "folder_v1") == Loaded(entries=6, links=7)
    other.admin.load(OLD / "export_v2.jsonl")
    assert verify(other_store, HashEmbedder(16)).flaws == []
