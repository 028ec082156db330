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

from .conftest import ADA, BOB, EVE, Ticking, entries_of, everything_in, fill, open_memory, open_store

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


def test_everything_comes_back(memory: Memory, store: Store, other: Memory, other_store: Store, tmp_path: Path) -> None:
    fill(memory)
    written = memory.admin.export(tmp_path / "all.jsonl")
    loaded = other.admin.load(tmp_path / "all.jsonl")
    assert everything_in(other_store) == everything_in(store)
    counts = (loaded.entries, loaded.links, loaded.turns, loaded.versions)
    assert counts == (written.entries, written.links, written.turns, written.versions)
    assert min(counts) > 0
    assert loaded.skipped == 0
    assert written.bytes == (tmp_path / "all.jsonl").stat().st_size
    assert verify(other_store, HashEmbedder(16)).flaws == []
    (event,) = (event for event in events(other_store, "acme") if event.action == "load")
    assert event.detail["entries"] == written.entries - 1  # one is another tenant's


def test_loading_twice_adds_nothing(exported: Path, other: Memory, other_store: Store) -> None:
    first = other.admin.load(exported)
    before = everything_in(other_store)
    assert other.admin.load(exported) == Loaded(skipped=first.entries)
    assert everything_in(other_store) == before


def test_vectors_are_taken_over_bit_by_bit_and_not_made_again(exported: Path, store: Store, tmp_path: Path) -> None:
    class Unwilling(HashEmbedder):
        def embed(self, texts: Any) -> Any:
            raise AssertionError("nothing is to be embedded")

    target = open_store("sqlite", tmp_path, "target")
    open_memory(target, Unwilling(16)).admin.load(exported)
    for no, entry in target.select(target.partitions(), Selection()):
        mine, model = target.index_of([no])[no][1], target.model()
        assert mine is not None
        assert model is not None
        np.testing.assert_array_equal(mine, HashEmbedder(16).embed([embedding_text(entry)])[0])


@pytest.mark.parametrize("vectors", [True, False])
def test_another_model_makes_its_own_vectors(
    memory: Memory, store: Store, other_store: Store, tmp_path: Path, vectors: bool
) -> None:
    fill(memory)
    memory.admin.export(tmp_path / "all.jsonl", vectors=vectors)
    seen: list[tuple[int, int]] = []
    target = open_memory(other_store, HashEmbedder(8))
    target.admin.load(tmp_path / "all.jsonl", progress=lambda done, of: seen.append((done, of)))
    assert everything_in(other_store) == everything_in(store)
    assert verify(other_store, HashEmbedder(8)).flaws == []
    assert seen[-1][0] == seen[-1][1] == len(entries_of(store))


def test_words_alone_need_no_vectors(exported: Path, other_store: Store) -> None:
    Memory(other_store, embedder=None).admin.load(exported)
    assert verify(other_store, None).flaws == []


def test_the_file_can_be_read_without_us(exported: Path, store: Store) -> None:
    header, *content, end = lines_of(exported)
    assert header["wellworn_export"] == 3
    assert header["model"] == {"name": "hash:16", "width": 16}
    assert {line["type"] for line in content} == {"entry", "link", "turn", "session", "replaced"}
    assert end["lines"] == len(content) + 1
    raw = exported.read_bytes()
    assert end["sha256"] == hashlib.sha256(raw[: raw[:-1].rindex(b"\n") + 1]).hexdigest()
    entry = next(line for line in content if line["type"] == "entry")
    vector = np.frombuffer(base64.b64decode(entry["vector"]), dtype="<f4")
    assert np.linalg.norm(vector) == pytest.approx(1)
    assert stat.S_IMODE(exported.stat().st_mode) == 0o600


# -- scopes ------------------------------------------------------------------------------------------------------


def test_a_scope_exports_its_partitions_only(memory: Memory, store: Store, tmp_path: Path) -> None:
    ids = fill(memory)
    memory.link(
        ids["new"],
        memory.remember("Bob is near.", scope=BOB)[0],
        "supports",
        scope=Scope(tenant="acme", user="bob", team="core"),
    )
    memory.admin.export(tmp_path / "bob.jsonl", scope=BOB)
    lines = lines_of(tmp_path / "bob.jsonl")
    assert {line["partition"]["layer_id"] for line in lines if line.get("type") == "entry"} == {"bob"}
    assert not [line for line in lines if ids["new"] in json.dumps(line)]
    assert memory.admin.export(tmp_path / "none.jsonl", scope=Scope(tenant="acme", user="nobody")).entries == 0
    assert memory.admin.load(tmp_path / "none.jsonl") == Loaded()


@pytest.fixture
def adas(memory: Memory, exported: Path) -> Path:
    """What one person has, without the team."""
    memory.admin.export(exported.with_name("ada.jsonl"), scope=ALONE)
    return exported.with_name("ada.jsonl")


def test_what_one_person_has_moves_to_another_name(adas: Path, other: Memory, other_store: Store, store: Store) -> None:
    zoe = Scope(tenant="new", user="zoe")
    loaded = other.admin.load(adas, scope=zoe)
    assert other_store.partitions() == [zoe.home()]
    assert set(entries_of(other_store)) == {
        entry.id for entry in entries_of(store).values() if entry.partition == ADA.home()
    }  # the ids were free
    assert (loaded.skipped, loaded.problems) == (0, ())
    assert verify(other_store, HashEmbedder(16)).flaws == []


@pytest.mark.parametrize("name", ["all.jsonl", "notes"])
def test_a_scope_takes_only_its_own_of_what_everybody_has(
    memory: Memory, store: Store, other: Memory, other_store: Store, tmp_path: Path, name: str
) -> None:
    fill(memory)
    written = memory.admin.export(tmp_path / name)
    loaded = other.admin.load(tmp_path / name, scope=ALONE)
    ours = {entry_id: entry for entry_id, entry in entries_of(store).items() if entry.partition == ADA.home()}
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


def test_into_the_scope_it_came_from_nothing_moves(
    memory: Memory, other: Memory, other_store: Store, store: Store, tmp_path: Path
) -> None:
    fill(memory)
    memory.admin.export(tmp_path / "ada.jsonl", scope=ADA)
    other.admin.load(tmp_path / "ada.jsonl", scope=ADA)
    ours = {entry_id: entry for entry_id, entry in entries_of(store).items() if entry.partition in ADA.partitions()}
    assert entries_of(other_store) == ours


def test_ids_taken_elsewhere_become_new_ones_in_a_scope(memory: Memory, store: Store, adas: Path) -> None:
    before = everything_in(store)
    zoe = Scope(tenant="new", user="zoe")
    loaded = memory.admin.load(adas, scope=zoe)
    copies = {e.id: e for e in entries_of(store).values() if e.tenant == "new"}
    assert len(copies) == loaded.entries == 3
    assert not copies.keys() & before["entries"].keys()
    links = store.links(list(copies))
    assert len(links) == loaded.links == 1
    assert all(link.source in copies and link.target in copies for link in links)
    turns = store.turns(zoe.home(), "2026-05-01")
    assert all(turn.entry_id in copies for turn in turns)
    assert verify(store, HashEmbedder(16)).flaws == []


def test_an_id_on_another_partition_is_refused(adas: Path, exported: Path, other: Memory, other_store: Store) -> None:
    other.admin.load(adas, scope=EVE)
    before = everything_in(other_store)
    with pytest.raises(TransferError, match="another partition"):
        other.admin.load(exported)
    assert everything_in(other_store) == before


def test_words_that_are_there_are_not_doubled(exported: Path, other: Memory, other_store: Store) -> None:
    (mine,) = other.remember("The office is  in Basel.", scope=ADA, layer="team")
    loaded = other.admin.load(exported)
    assert loaded.skipped == 1
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
    head = store.session(home, "2026-05-01")
    memory.admin.export(tmp_path / "a.jsonl")
    other.admin.load(tmp_path / "a.jsonl")
    assert other_store.session(home, "2026-05-01") == head
    other.session(scope=ADA, session_id="2026-05-01").add("user", "One more.")
    kept = other_store.session(home, "2026-05-01")
    other.admin.load(tmp_path / "a.jsonl")
    assert other_store.session(home, "2026-05-01") == kept
    assert kept is not None
    assert (kept.turns, kept.reflected, kept.ended_at) == (3, 1, None)


def test_a_session_of_an_older_export_waits_to_be_reflected_on(
    exported: Path, other: Memory, other_store: Store
) -> None:
    seal(exported, [line for line in lines_of(exported)[:-1] if line.get("type") != "session"])
    other.admin.load(exported)
    head = other_store.session(ADA.home(), "2026-05-01")
    assert head is not None
    assert (head.turns, head.reflected) == (2, 0)
    assert head.touched_at == Ticking()(), "the time of loading"


def test_a_session_that_is_there_with_other_words_is_refused(exported: Path, other: Memory, other_store: Store) -> None:
    other.session(scope=ADA, session_id="2026-05-01").add("user", "quite another opening")
    before = everything_in(other_store)
    with pytest.raises(TransferError, match="another turn 0"):
        other.admin.load(exported)
    assert everything_in(other_store) == before


def test_gaps_between_turns_stay(
    memory: Memory, other: Memory, store: Store, other_store: Store, tmp_path: Path
) -> None:
    ids = fill(memory)
    memory.forget(ids=[ids["race"]], turns=True, scope=ADA)
    memory.admin.export(tmp_path / "gap.jsonl")
    other.admin.load(tmp_path / "gap.jsonl")
    assert [turn.number for turn in other_store.turns(ADA.home(), "2026-05-01")] == [1]
    assert everything_in(other_store) == everything_in(store)


# -- damage ------------------------------------------------------------------------------------------------------


def refused(path: Path, other: Memory, other_store: Store, match: str | None = None) -> None:
    with pytest.raises(TransferError, match=match):
        other.admin.load(path)
    assert everything_in(other_store)["entries"] == {}
    assert other_store.partitions() == []


def test_a_flipped_bit_is_found_wherever_it_is(exported: Path, other: Memory, other_store: Store) -> None:
    whole = exported.read_bytes()
    for position in [*range(0, len(whole), 997), len(whole) - 1]:
        broken = bytearray(whole)
        broken[position] ^= 1
        exported.write_bytes(broken)
        refused(exported, other, other_store)


def test_a_file_cut_short_is_found_wherever_it_ends(exported: Path, other: Memory, other_store: Store) -> None:
    whole = exported.read_bytes()
    for length in [0, 1, *range(10, len(whole), 1999), len(whole) - 1]:
        exported.write_bytes(whole[:length])
        refused(exported, other, other_store)


def test_lines_after_the_end_are_refused(exported: Path, other: Memory, other_store: Store) -> None:
    exported.write_bytes(exported.read_bytes() + b'{"type":"entry"}\n')
    refused(exported, other, other_store, "cut short")


def test_another_version_is_named(exported: Path, other: Memory, other_store: Store) -> None:
    lines = lines_of(exported)
    lines[0]["wellworn_export"] = 4
    seal(exported, lines[:-1])
    refused(exported, other, other_store, "version 4; this release reads up to version 3")


def test_a_file_of_another_kind_is_refused(tmp_path: Path, other: Memory, other_store: Store) -> None:
    path = tmp_path / "x.jsonl"
    for content in (b"", b"\n", b"hello\n", b'{"a": 1}\n', b"\x00\xff" * 100, b"[" * 100_000, b'"wellworn_export"\n'):
        path.write_bytes(content)
        refused(path, other, other_store)


def change(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda entry: entry.__setitem__(name, value)


BAD_ENTRIES: dict[str, Callable[[dict[str, Any]], None]] = {
    "a path as id": change("id", "../../x"),
    "an id in capitals": lambda entry: entry.update(id=entry["id"].upper()),
    "no id": lambda entry: entry.pop("id") and None,
    "a number as text": change("text", 7),
    "an empty text": change("text", "  "),
    "a NUL": change("text", "a\x00b"),
    "half a character": change("text", "a\ud800"),
    "half a character in metadata": change("metadata", {"x": "\udfff"}),
    "a huge text": change("text", "x" * 1_000_001),
    "an unknown kind": change("kind", "rumour"),
    "a list as kind": change("kind", ["note"]),
    "an unknown state": change("state", "lost"),
    "an unknown layer": lambda entry: entry["partition"].update(layer="galaxy"),
    "an empty tenant": lambda entry: entry["partition"].update(tenant=""),
    "a partition with more": lambda entry: entry["partition"].update(more=1),
    "a partition that is a text": change("partition", "acme/user/ada"),
    "too sure": change("confidence", 1.01),
    "sure as a word": change("confidence", "high"),
    "true as confidence": change("confidence", True),
    "a negative count": change("repeats", -1),
    "a count beyond a row": change("usage_count", 2**63),
    "a fraction as count": change("repeats", 0.5),
    "a time without sense": change("at", "yesterday"),
    "no time": change("at", None),
    "a number as time": change("created_at", 12345),
    "ends before it begins": change("valid_to", "0001-01-01T00:00:00+00:00"),
    "one tag as text": change("tags", "rust"),
    "turn minus one": change("turn_refs", [-1]),
    "metadata as list": change("metadata", [1]),
    "a field of its own": change("password", "x"),
    "a vector too short": change("vector", base64.b64encode(b"\0" * 60).decode()),
    "a vector of NaN": change("vector", base64.b64encode(np.full(16, np.nan, "<f4").tobytes()).decode()),
    "a long vector": change("vector", base64.b64encode(np.full(16, 9, "<f4").tobytes()).decode()),
    "no base64": change("vector", "???"),
    "a list as vector": change("vector", [0.0] * 16),
}


@pytest.mark.parametrize("name", few(BAD_ENTRIES, 12))
def test_a_well_sealed_file_with_a_bad_value_changes_nothing(
    exported: Path, other: Memory, other_store: Store, name: str
) -> None:
    lines = lines_of(exported)
    BAD_ENTRIES[name](next(line for line in lines if line.get("type") == "entry"))
    seal(exported, lines[:-1])
    refused(exported, other, other_store)


BAD_FILES: dict[str, Callable[[Lines], Any]] = {
    "an entry twice": lambda lines: lines.append(next(line for line in lines if line.get("type") == "entry")),
    "a link to nowhere": lambda lines: of(lines, "link")["link"].update(target="00000000-0000-4000-8000-000000000000"),
    "a link to itself": lambda lines: of(lines, "link")["link"].update(target=of(lines, "link")["link"]["source"]),
    "a link of no known type": lambda lines: of(lines, "link")["link"].update(type="envies"),
    "a link between tenants": lambda lines: of(lines, "link")["link"].update(target=last_entry(lines)["id"]),
    "a turn twice": lambda lines: lines.append(of(lines, "turn")),
    "a turn's entry elsewhere": lambda lines: of(lines, "turn").update(entry_id=last_entry(lines)["id"]),
    "a version of nothing": lambda lines: of(lines, "replaced")["entry"].update(id=str(last_entry(lines)["id"])),
    "a session that reflected too far": lambda lines: of(lines, "session").update(reflected=3),
    "a session of fewer turns": lambda lines: of(lines, "session").update(turns=1),
    "a session that never was": lambda lines: of(lines, "session").update(session_id="never"),
    "a session touched no time": lambda lines: of(lines, "session").update(touched_at=None),
    "a line of no type": lambda lines: lines.append({}),
    "a line of unknown type": lambda lines: lines.append({"type": "secret"}),
    "a line that is a list": lambda lines: lines.append([1]),  # type: ignore[arg-type]
    "two headers": lambda lines: lines.insert(1, lines[0]),
    "two ends": lambda lines: lines.append({"type": "end", "lines": 1, "sha256": ""}),
    "a model of no width": lambda lines: lines[0].update(model={"name": "x", "width": 0}),
    "vectors of no model": lambda lines: lines[0].update(model=None),
}


def of(lines: Lines, type_: str) -> dict[str, Any]:
    return next(line for line in lines if line.get("type") == type_)


def last_entry(lines: Lines) -> dict[str, Any]:
    """The only one of another tenant."""
    return [line for line in lines if line.get("type") == "entry"][-1]


@pytest.mark.parametrize("name", few(BAD_FILES, 6))
def test_a_well_sealed_file_whose_parts_do_not_fit_changes_nothing(
    exported: Path, other: Memory, other_store: Store, name: str
) -> None:
    lines = lines_of(exported)[:-1]
    BAD_FILES[name](lines)
    seal(exported, lines)
    refused(exported, other, other_store)


@pytest.mark.parametrize("line", [b'{"a": 1, "a": 2}', b'{"type": NaN}', b"[" * 200_000, b"1" * 5000, b"\xff"])
def test_a_line_that_is_hardly_json_is_refused(exported: Path, other: Memory, other_store: Store, line: bytes) -> None:
    body = exported.read_bytes().splitlines(keepends=True)[0] + line + b"\n"
    end = {"type": "end", "lines": 2, "sha256": hashlib.sha256(body).hexdigest()}
    exported.write_bytes(body + json.dumps(end).encode() + b"\n")
    refused(exported, other, other_store, "line 2")


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
    (tmp_path / "file").write_text("x")
    with pytest.raises(TransferError, match="is a folder"):
        memory.admin.export(tmp_path / "folder.jsonl")
    with pytest.raises(TransferError, match="cannot write"):
        memory.admin.export(tmp_path / "missing" / "x.jsonl")
    with pytest.raises(TransferError, match=r"no .* to load"):
        memory.admin.load(tmp_path / "missing.jsonl")
    with pytest.raises(TransferError, match="not a folder"):
        memory.admin.load(tmp_path / "file", format="markdown")
    with pytest.raises(TransferError, match="not a file"):
        memory.admin.load(tmp_path / "folder.jsonl", format="jsonl")
    with pytest.raises(InvalidInput, match="format"):
        memory.admin.export(tmp_path / "x", format="xml")


def test_the_format_can_be_said(memory: Memory, other: Memory, tmp_path: Path) -> None:
    fill(memory)
    assert memory.admin.export(tmp_path / "backup", format="jsonl").format == "jsonl"
    assert (tmp_path / "backup").is_file()
    assert other.admin.load(tmp_path / "backup").entries > 0
