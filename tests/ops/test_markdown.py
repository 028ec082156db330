"""The readable export: what people do to it, and what they may not."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from contract.few import few
from wellworn.core.errors import ScopeError, TransferError
from wellworn.ingest.terms import record_of
from wellworn.memory import Memory
from wellworn.models.hashing import HashEmbedder
from wellworn.ops import files as folder
from wellworn.ops.bundle import Loaded
from wellworn.ops.doctor import verify
from wellworn.store.port import NewEntry, Store

from .conftest import ADA, BOB, EVE, entries_of, everything_in, fill

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


def test_a_scope_exports_its_partitions_only(memory: Memory, tmp_path: Path) -> None:
    fill(memory)
    memory.admin.export(tmp_path / "eve", scope=EVE)
    (path,) = (tmp_path / "eve").rglob("*.md")
    assert "Eve keeps bees." in path.read_text()


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
    path = file_with(notes, "Eve keeps")
    path.rename(notes / "about eve.md")
    file_with(notes, "Basel").unlink()
    assert memory.admin.load(notes) == Loaded(skipped=len(entries_of(store)) - 1)
    assert other.admin.load(notes).entries == len(entries_of(store)) - 1


# -- other people's notes ----------------------------------------------------------------------------------------


def test_plain_notes_are_remembered_in_a_scope(memory: Memory, store: Store, tmp_path: Path) -> None:
    folder_ = tmp_path / "vault"
    (folder_ / "deep" / "er").mkdir(parents=True)
    (folder_ / ".obsidian").mkdir()
    (folder_ / ".obsidian" / "hidden.md").write_text("not to be read")
    (folder_ / "tea.md").write_text("# Tea\n\nAda likes green tea.\n")
    (folder_ / "deep" / "er" / "x.md").write_text("---\ntitle: On water\ntags: [hot, '#clear', 7]\n---\nBoil it.")
    (folder_ / "list.md").write_text("---\ntags: a, b\nmood: calm\n---\nOne thing.")
    (folder_ / "empty.md").write_text("---\ntitle: nothing\n---\n\n")
    (folder_ / "picture.png").write_bytes(b"\x00")
    loaded = memory.admin.load(folder_, scope=ADA)
    assert (loaded.entries, loaded.skipped) == (3, 0)
    found = {entry.title: entry for entry in entries_of(store).values()}
    assert set(found) == {"tea", "On water", "list"}
    assert (found["On water"].text, found["On water"].tags) == ("Boil it.", ["hot", "clear", "7"])
    assert found["list"].tags == ["a", "b"]
    assert found["list"].metadata == {"mood": "calm"}
    assert {(e.kind, e.source, e.partition) for e in found.values()} == {("note", "import", ADA.home())}
    again = memory.admin.load(folder_, scope=ADA)
    assert (again.entries, again.skipped) == (0, 3)
    assert verify(store, HashEmbedder(16)).flaws == []


def test_notes_without_a_scope_are_refused(memory: Memory, store: Store, tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "tea.md").write_text("Ada likes tea.")
    with pytest.raises(ScopeError, match=r"tea\.md"):
        memory.admin.load(tmp_path / "vault")
    assert store.partitions() == []


def test_notes_among_entries_leave_these_where_they_are(notes: Path, other: Memory, other_store: Store) -> None:
    for path in notes.rglob("*.md"):
        if "layer_id: ada" not in path.read_text(encoding="utf-8"):
            path.unlink()
    (notes / "tea.md").write_text("Ada likes tea.")
    loaded = other.admin.load(notes, scope=ADA)
    assert loaded.entries == len(entries_of(other_store)) == len(list(notes.rglob("*.md")))
    assert {entry.partition for entry in entries_of(other_store).values()} == {ADA.home()}


def test_a_note_that_cannot_be_stored_is_left_out_and_named(memory: Memory, store: Store, tmp_path: Path) -> None:
    (tmp_path / "tags.md").write_text("---\ntags: [" + ", ".join(f"t{n}" for n in range(65)) + "]\n---\nToo many.")
    (tmp_path / "yaml.md").write_text("---\ntitle: [\n---\nA bracket is open.")
    (tmp_path / "bytes.md").write_bytes(b"\xff\xfe")
    (tmp_path / "tea.md").write_text("Ada likes tea.")
    loaded = memory.admin.load(tmp_path, scope=ADA)
    assert loaded.entries == 1
    assert [entry.text for entry in entries_of(store).values()] == ["Ada likes tea."]
    bytes_, tags, yaml = loaded.problems
    assert "bytes.md is not UTF-8" in bytes_
    assert "tags.md" in tags
    assert "65 tags" in tags
    assert "yaml.md: the front matter is damaged on line" in yaml


def test_a_page_is_cut_at_its_headings(memory: Memory, store: Store, tmp_path: Path) -> None:
    code = "\n".join(f"step_{number}(alpha, beta)" for number in range(40))
    page = (
        f"# Guide\n\nHow to begin. {'Words before. ' * 90}\n\n## Install\n\n{'Install it. ' * 80}\n\n### Linux\n\n"
        f"Type this:\n\n```sh\n# not a heading\n{code}\n```\n\n{'It runs. ' * 90}"
    )
    (tmp_path / "guide.md").write_text(page)
    memory.admin.load(tmp_path, scope=ADA)
    pieces = sorted(entries_of(store).values(), key=lambda entry: entry.position or 0)
    titles = [*dict.fromkeys(piece.title for piece in pieces)]
    assert titles == ["guide › Guide", "guide › Guide › Install", "guide › Guide › Install › Linux"]
    assert all(piece.text.count("```") % 2 == 0 for piece in pieces)
    assert sum(code in piece.text for piece in pieces) == 1
    assert "".join(piece.evidence for piece in pieces) == page


# -- damage and tricks -------------------------------------------------------------------------------------------


def left_out(notes: Path, other: Memory, other_store: Store, match: str) -> None:
    """One file is named and left out, the others are loaded."""
    entries = sum("\nwellworn: 1\n" in path.read_text(errors="replace") for path in notes.glob("*/*.md"))
    loaded = other.admin.load(notes)
    assert len(loaded.problems) == 1
    assert re.search(match, loaded.problems[0])
    assert entries - 1 <= len(entries_of(other_store)) <= entries


def refused(notes: Path, other: Memory, other_store: Store, match: str) -> None:
    with pytest.raises(TransferError, match=match):
        other.admin.load(notes, scope=BOB)
    assert other_store.partitions() == []


TRICKS: dict[str, tuple[Callable[[str], str], str]] = {
    "a path as id": (lambda text: text.replace("id: ", "id: ../../../etc/x-", 1), "not a UUID"),
    "an id of another sort": (lambda text: text.replace("id: ", "id: 7 #", 1), "got `int`"),
    "another version": (lambda text: text.replace("wellworn: 1", "wellworn: 2"), "version 2"),
    "no version": (lambda text: text.replace("wellworn: 1\n", ""), "damaged"),
    "no end of the front matter": (lambda text: text.replace("\n---\n", "\n"), "damaged"),
    "broken YAML": (lambda text: text.replace("kind: ", "kind: ["), "damaged"),
    "an object": (lambda text: text.replace("kind: ", "kind: !!python/name:os.system "), "damaged"),
    "an alias": (lambda text: text.replace("kind: ", "a: &x [1]\nb: *x\nkind: "), "aliases"),
    "an unknown kind": (lambda text: text.replace("kind: note", "kind: rumour"), "rumour"),
    "an unknown field": (lambda text: text.replace("kind: ", "path: /etc/passwd\nkind: "), "unknown fields: path"),
    "no partition": (lambda text: text.replace("partition: ", "_partition: "), "partition"),
    "a text as links": (lambda text: text.replace("links:", "links: x\n_:", 1), "links"),
    "links as text": (lambda text: text.replace("outgoing: []", "outgoing: x"), "not a list of links"),
    "a text as link": (lambda text: text.replace("outgoing: []", "outgoing: [x]"), "not a list of links"),
    "a link to a path": (
        lambda text: text.replace("outgoing: []", "outgoing: [{target: ../x, type: supports}]"),
        "UUID",
    ),
    "an empty body": (lambda text: text[: text.index("\n---\n") + 5], "text: is empty"),
    "a NUL": (lambda text: text + "\x00", "NUL"),
    "an end before the start": (lambda text: text.replace("kind: ", "valid_to: 1999-01-01\nkind: "), "valid_to"),
}


@pytest.mark.parametrize("name", few(TRICKS, 6))
def test_a_bad_file_is_named_and_left_out(notes: Path, other: Memory, other_store: Store, name: str) -> None:
    trick, message = TRICKS[name]
    path = file_with(notes, "Eve keeps")
    text = path.read_bytes().decode()
    assert trick(text) != text
    path.write_bytes(trick(text).encode())
    left_out(notes, other, other_store, message)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"a\xed\xa0\x80", b"half \xf0\x9f"])
def test_anything_but_utf8_is_left_out(notes: Path, other: Memory, other_store: Store, content: bytes) -> None:
    (notes / "x.md").write_bytes(content)
    left_out(notes, other, other_store, "not UTF-8")


def test_of_one_entry_in_two_files_the_first_is_read(notes: Path, other: Memory, other_store: Store) -> None:
    path = file_with(notes, "Eve keeps")
    (notes / "copy.md").write_bytes(path.read_bytes())
    left_out(notes, other, other_store, "there twice")


def test_links_out_of_the_folder_are_not_followed(
    notes: Path, other: Memory, other_store: Store, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key.md").write_text("a secret")
    for name, target in (("key.md", secret / "key.md"), ("dir", secret)):
        (notes / name).symlink_to(target)
        left_out(notes, other, other_store, "symbolic link")
        (notes / name).unlink()


def test_a_pipe_does_not_hang(notes: Path, other: Memory, other_store: Store) -> None:
    os.mkfifo(notes / "pipe.md")
    left_out(notes, other, other_store, "not a plain file")


def test_size_and_number_are_limited(
    notes: Path, other: Memory, other_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(folder, "MAX_FILES", 3)
        refused(notes, other, other_store, "more than 3 files")
    (notes / "big.md").write_bytes(b"x" * (folder.MAX_FILE_BYTES + 1))
    left_out(notes, other, other_store, "more than 8,000,000 bytes")


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
            memory.admin.export(path, format="markdown")
    (tmp_path / "empty").mkdir()
    assert memory.admin.export(tmp_path / "empty").entries > 0

    def stop(done: int, of: int) -> None:
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        memory.admin.export(tmp_path / "notes", progress=stop)
    assert not (tmp_path / "notes").exists()
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".part")]
    memory.admin.export(tmp_path / "notes")
