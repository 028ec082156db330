"""The readable export: what people do to it, and what they may not."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.few import few
from wellworn.core.errors import TransferError
from wellworn.ingest.terms import record_of
from wellworn.memory import Memory
from wellworn.models.hashing import HashEmbedder
from wellworn.ops import files as folder
from wellworn.ops.bundle import Loaded
from wellworn.ops.doctor import verify
from wellworn.ops.markdown import join, split
from wellworn.store.port import NewEntry, Store

from .conftest import EVE, entries_of, everything_in, fill

ELSEWHERE = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def notes(memory: Memory, tmp_path: Path) -> Path:
    """An export of the small world."""
    fill(memory)
    memory.admin.export(tmp_path / "notes")
    return tmp_path / "notes"


def file_with(notes: Path, text: str) -> Path:
    """The file whose body holds a text."""
    return next(
        path for path in sorted(notes.rglob("*.md")) if text in path.read_bytes().decode().split("\n---\n", 1)[-1]
    )


def rewrite(path: Path, before: str, after: str) -> None:
    content = path.read_bytes().decode()
    assert before in content
    path.write_bytes(content.replace(before, after).encode())


# -- the round trip ----------------------------------------------------------------------------------------------


def test_entries_and_links_come_back(
    memory: Memory, store: Store, other: Memory, other_store: Store, tmp_path: Path
) -> None:
    fill(memory)
    written = memory.admin.export(tmp_path / "notes")
    loaded = other.admin.load(tmp_path / "notes")
    assert entries_of(other_store) == entries_of(store)
    assert everything_in(other_store)["links"] == everything_in(store)["links"]
    assert (loaded.entries, loaded.links) == (written.entries, written.links)
    assert (loaded.skipped, loaded.turns, loaded.versions) == (0, 0, 0)
    assert written.format == "markdown"
    assert verify(other_store, HashEmbedder(16)).flaws == []
    assert other.admin.load(tmp_path / "notes") == Loaded(skipped=written.entries)


def test_files_lie_by_month_and_show_links_both_ways(notes: Path, store: Store) -> None:
    names = sorted(path.relative_to(notes).as_posix() for path in notes.rglob("*.md"))
    assert names == sorted(f"{e.at:%Y-%m}/{e.id}.md" for e in entries_of(store).values())
    assert {name[:7] for name in names} == {"2026-04", "2026-05"}
    basel = file_with(notes, "Basel").read_text(encoding="utf-8")
    assert basel.startswith("---\nwellworn: 1\nid: ")
    assert basel.endswith("\n---\nThe office is in Basel.\n")
    assert "partition: {tenant: acme, layer: team, layer_id: core}" in basel
    assert "outgoing:\n  - {target: " in basel
    assert "incoming:\n  - {source: " in basel
    assert "evidence:" not in basel
    assert "evidence: " in file_with(notes, "Bern").read_text(encoding="utf-8")


# -- edited by hand ----------------------------------------------------------------------------------------------


def test_a_change_in_a_file_is_reported_and_not_made(notes: Path, memory: Memory, store: Store) -> None:
    path, before = file_with(notes, "Eve keeps"), everything_in(store)
    rewrite(path, "Eve keeps bees.", "Eve keeps bees and hens.")
    loaded = memory.admin.load(notes)
    assert (loaded.entries, loaded.skipped) == (0, len(entries_of(store)))
    assert loaded.problems == (
        f"entry {path.stem} is here with another text, and stays as it is: change it with `wellworn edit`",
    )
    assert everything_in(store) == before


def test_a_changed_file_is_loaded_elsewhere_as_it_is_now(notes: Path, other: Memory, other_store: Store) -> None:
    path = file_with(notes, "Eve keeps")
    rewrite(path, "Eve keeps bees.", "Eve keeps hens.")
    rewrite(path, "token_count: ", "token_count: 9")
    other.admin.load(notes)
    assert other.get(path.stem, scope=EVE).text == "Eve keeps hens."
    assert verify(other_store, HashEmbedder(16)).flaws == []


def test_lines_may_be_taken_out_and_links_put_in(notes: Path, other: Memory, other_store: Store) -> None:
    path, target = file_with(notes, "Eve keeps"), file_with(notes, "Basel")
    path.write_text(
        f"---\nwellworn: 1\nid: {path.stem}\npartition: {{tenant: acme, layer: user, layer_id: eve}}\nkind: fact\n"
        f"at: 2026-05-01\nlinks:\n  outgoing:\n  - {{target: {target.stem}, type: supports}}\n"
        f"  - {{target: {ELSEWHERE}, type: supports}}\n---\nshort"
    )
    other.admin.load(notes)
    entry = entries_of(other_store)[path.stem]
    assert (entry.text, entry.evidence, entry.confidence, entry.source) == ("short", "short", 0.8, "import")
    assert [link.target for link in other_store.links([path.stem]) if link.source == path.stem] == [target.stem]
    assert verify(other_store, HashEmbedder(16)).flaws == []


def test_a_file_may_be_moved_or_removed(notes: Path, memory: Memory, store: Store, other: Memory) -> None:
    file_with(notes, "Eve keeps").rename(notes / "about eve.md")
    file_with(notes, "Basel").unlink()
    assert memory.admin.load(notes) == Loaded(skipped=len(entries_of(store)) - 1)
    assert other.admin.load(notes).entries == len(entries_of(store)) - 1


# -- damage and tricks -------------------------------------------------------------------------------------------


def left_out(notes: Path, other: Memory, other_store: Store, match: str) -> None:
    """One file is named and left out, the others are loaded."""
    entries = sum("\nwellworn: 1\n" in path.read_text(errors="replace") for path in notes.glob("*/*.md"))
    loaded = other.admin.load(notes)
    assert len(loaded.problems) == 1
    assert re.search(match, loaded.problems[0])
    assert entries - 1 <= len(entries_of(other_store)) <= entries


TRICKS: dict[str, tuple[Callable[[str], str], str]] = {
    "a path as id": (lambda text: text.replace("id: ", "id: ../../../etc/x-", 1), "not a UUID"),
    "another version": (lambda text: text.replace("wellworn: 1", "wellworn: 2"), "version 2"),
    "no version": (lambda text: text.replace("wellworn: 1\n", ""), "is no entry of an export"),
    "no end of the front matter": (lambda text: text.replace("\n---\n", "\n"), "is no entry"),
    "broken YAML": (lambda text: text.replace("kind: ", "kind: ["), "damaged"),
    "an object": (lambda text: text.replace("kind: ", "kind: !!python/name:os.system "), "damaged"),
    "an alias": (lambda text: text.replace("kind: ", "a: &x [1]\nb: *x\nkind: "), "aliases"),
    "an unknown field": (lambda text: text.replace("kind: ", "path: /etc/passwd\nkind: "), "unknown fields: path"),
    "a text as links": (lambda text: text.replace("links:", "links: x\n_:", 1), "links"),
    "links as text": (lambda text: text.replace("outgoing: []", "outgoing: x"), "not a list of links"),
    "an empty body": (lambda text: text[: text.index("\n---\n") + 5], "text: is empty"),
    "a NUL": (lambda text: text + "\x00", "NUL"),
}


@pytest.mark.parametrize("name", few(TRICKS, 6))
def test_a_bad_file_is_named_and_left_out(notes: Path, other: Memory, other_store: Store, name: str) -> None:
    trick, message = TRICKS[name]
    path = file_with(notes, "Eve keeps")
    text = path.read_bytes().decode()
    assert trick(text) != text
    path.write_bytes(trick(text).encode())
    left_out(notes, other, other_store, message)


def test_what_is_no_file_of_an_entry_is_named_and_left_out(
    notes: Path, other: Memory, other_store: Store, tmp_path: Path
) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key.md").write_text("a secret")
    (notes / ".obsidian").mkdir()
    (notes / ".obsidian" / "hidden.md").write_text("not to be read")
    path, odd = file_with(notes, "Eve keeps"), notes / "x.md"
    makers: list[tuple[str, Callable[[], object]]] = [
        ("there twice", lambda: odd.write_bytes(path.read_bytes())),
        ("not UTF-8", lambda: odd.write_bytes(b"half \xf0\x9f")),
        ("`wellworn import obsidian` takes over notes", lambda: odd.write_text("---\ntags: a\n---\nAda likes tea.")),
        ("symbolic link", lambda: odd.symlink_to(tmp_path / "secret" / "key.md")),
        ("symbolic link", lambda: odd.symlink_to(tmp_path / "secret")),
        ("not a plain file", lambda: os.mkfifo(odd)),
        ("more than 8,000,000 bytes", lambda: odd.write_bytes(b"x" * (folder.MAX_FILE_BYTES + 1))),
    ]
    for problem, make in makers:
        make()
        left_out(notes, other, other_store, problem)
        odd.unlink()


def test_the_number_of_files_is_limited(notes: Path, other: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "MAX_FILES", 3)
    with pytest.raises(TransferError, match="more than 3 files"):
        other.admin.load(notes)


def test_an_entry_without_uuid_has_no_file(memory: Memory, store: Store, tmp_path: Path) -> None:
    fill(memory)
    strange = replace(next(iter(entries_of(store).values())), id="../../x", content_hash="x", text="strange")
    with store.transact() as tx:
        tx.add(NewEntry(entry=strange, index=record_of(strange), vector=None))
    assert memory.admin.export(tmp_path / "notes").unreadable == 1
    assert not (tmp_path.parent / "x.md").exists()


def test_an_export_goes_to_a_folder_of_its_own_and_is_whole_or_not_there(memory: Memory, tmp_path: Path) -> None:
    fill(memory)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "thesis.md").write_text("years")
    (tmp_path / "file").write_text("x")
    for path, message in (
        (tmp_path / "work", "not an empty folder"),
        (tmp_path / "file", "not an empty folder"),
        (tmp_path / "no" / "such", "cannot write"),
    ):
        with pytest.raises(TransferError, match=message):
            memory.admin.export(path)
    (tmp_path / "empty").mkdir()
    assert memory.admin.export(tmp_path / "empty").entries > 0

    def stop(done: int, of: int) -> None:
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        memory.admin.export(tmp_path / "notes", progress=stop)
    assert not (tmp_path / "notes").exists()
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".part")]
    memory.admin.export(tmp_path / "notes")


# -- front matter and body, apart and together -------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]))
# The words that YAML or this module gives a meaning of their own.
TRICKY = st.sampled_from(
    ["---", "...", "<<", "=", "yes", "null", "~", "0o7", "1:30", "2024-01-01", "1e3", "- a", "? b"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT | TRICKY,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT | TRICKY, inner, max_size=4),
    max_leaves=15,
)


BODIES = st.sampled_from(["", "\n", "\n\n", "---\n", "\r\n---\r\nx\r", "a\n---\nb", "\ufeffx", "x\n...", " "])


@given(front=st.dictionaries(TEXT | TRICKY, JSON, max_size=5), body=TEXT | BODIES)
def test_any_text_and_any_json_come_back(front: dict[str, Any], body: str) -> None:
    assert split(join(front, body), "x.md") == (front, body)


@pytest.mark.parametrize(
    ("content", "front", "body"),
    [
        ("just text\n", None, "just text"),
        ("\ufeffjust text", None, "just text"),
        ("---\nno end", None, "---\nno end"),
        ("---\nprose between rules\n---\nmore", None, "---\nprose between rules\n---\nmore"),
        ("---\n---\nx", {}, "x"),
        ("---\n \t\n---\nx", {}, "x"),
        ("---\n# The key is 1234\n---\n", None, "---\n# The key is 1234\n---"),  # to YAML a comment
        ("---\r\ntitle: T\r\n---\r\nx\r\ny\r\n", {"title": "T"}, "x\r\ny\r"),
        ("\ufeff--- \ntitle: T\n---", {"title": "T"}, ""),
        ("---\nat: 2024-01-01\n---\nx", {"at": "2024-01-01"}, "x"),
        (" ---\ntitle: T\n---\nx", None, " ---\ntitle: T\n---\nx"),
    ],
)
def test_front_matter_is_a_mapping_between_two_lines(content: str, front: dict[str, Any] | None, body: str) -> None:
    assert split(content, "x.md") == (front, body)


LAUGHS = "\n".join(["a: &a [x, x]", *(f"{b}: &{b} [*{a}, *{a}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True))])


@pytest.mark.parametrize(
    "yaml",
    [
        LAUGHS,
        "a: &a [*a]",
        "a: !!python/object/apply:os.system ['true']",
        "a: !!python/name:os.system",
        "a: !own 1",
        "a: 1\na: 2",
        "{1: a, '1': b}",
        "? [a]\n: b",
        "a: [1",
        "a: 'open",
        "a: \x01",
        "a\n b: c: d",
        "<<: {a: 1}",
        "a: " + "[" * 5000,
        "a: " + "9" * 5000,
        "%YAML 9.9\n--- a",
    ],
)
def test_yaml_that_is_broken_or_more_than_data_is_refused(yaml: str) -> None:
    with pytest.raises(TransferError, match=r"x\.md: the front matter is damaged"):
        split(f"---\n{yaml}\n---\nbody", "x.md")
