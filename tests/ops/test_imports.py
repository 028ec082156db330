"""Imports from other systems: small files in their real formats, one writer that stores nothing twice."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.few import FEWER
from wellworn import Memory
from wellworn.core.errors import InvalidInput, TransferError
from wellworn.ingest.session import Session
from wellworn.ops.imports import Imported

FILES = Path(__file__).parent / "imports"
SOURCES = {
    "chatgpt": "chatgpt.json",
    "claude": "claude.json",
    "mem0": "mem0.json",
    "letta": "letta.af",
    "zep": "graphiti.json",
    "langgraph": "langgraph.json",
    "obsidian": "vault",
}


@pytest.fixture
def ada() -> Iterator[Memory]:
    with Memory(":memory:", background=False) as memory:
        yield memory.for_user("ada")


def owned(source: str) -> str | None:
    return {"mem0": "ada", "langgraph": "memories/ada"}.get(source)


def bring(ada: Memory, source: str, path: Path | None = None, **options: Any) -> Imported:
    return ada.admin.import_from(source, path or FILES / SOURCES[source], owner=owned(source), **options)


def texts(ada: Memory) -> list[str]:
    return [entry.text for entry in ada.entries(limit=1000)]


def saved(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value))
    return path


def everything(ada: Memory) -> Any:
    return [vars(entry) for entry in ada.entries(limit=1000)], [ada.session(one).turns() for one in ada.sessions()]


@pytest.mark.parametrize("source", SOURCES)
def test_importing_twice_adds_nothing_and_a_dry_run_foretells_it(ada: Memory, source: str) -> None:
    foretold = bring(ada, source, dry_run=True)
    assert everything(ada) == ([], [])
    first = bring(ada, source)
    assert {**vars(foretold), "dry_run": False} == vars(first)
    assert first.memories + first.turns > 0
    stored = everything(ada)
    again = bring(ada, source)
    assert (again.memories, again.changed, again.turns, again.sessions) == (0, 0, 0, 0)
    assert (again.known, again.skipped) == (first.memories + first.turns + first.known, first.skipped)
    assert everything(ada) == stored
    assert ada.verify().ok


@pytest.mark.parametrize("source", ["chatgpt", "mem0", "obsidian"])
def test_an_import_that_was_cut_short_is_completed(ada: Memory, source: str) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bring(ada, source, progress=stop)
    bring(ada, source)
    with Memory(":memory:", background=False) as other:
        whole = other.for_user("ada")
        bring(whole, source)
        assert sorted(texts(ada)) == sorted(texts(whole))
        assert [len(ada.session(one).turns()) for one in ada.sessions()] == [
            len(whole.session(one).turns()) for one in whole.sessions()
        ]


def test_a_dialogue_whose_import_was_cut_short_before_its_end_is_ended(ada: Memory) -> None:
    def stop(session: Session) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "end", stop)
        with pytest.raises(KeyboardInterrupt):
            bring(ada, "chatgpt")
    assert ada.jobs.list() == []
    assert bring(ada, "chatgpt").known == 3
    assert [job.kind for job in ada.jobs.list()] == ["reflect"]


def test_of_chatgpt_the_branch_that_was_shown_comes_with_its_times(ada: Memory) -> None:
    done = bring(ada, "chatgpt")
    turns = ada.session("chatgpt:c1").turns()
    assert [(turn.role, turn.text) for turn in turns] == [
        ("user", "I live in Oslo. Which parks are near?"),
        ("assistant", "Frogner Park is the largest."),
        ("user", "Here is a picture of mine."),
    ]
    assert turns[0].at == datetime(2025, 5, 1, 9, 0, tzinfo=UTC)
    assert done.skipped == {
        "a message of the system": 1,
        "a message that was not shown": 1,
        "no text (thoughts)": 1,
        "a message of the tool": 1,
        "an empty conversation": 1,
    }
    assert ada.recall("Where do I live?").hits[0].entry.session_id == "chatgpt:c1"
    assert [job.kind for job in ada.jobs.list()] == ["reflect"]  # memories are made of it later


def node(id: str, parent: str | None, *children: str, **more: Any) -> dict[str, Any]:
    content = {"content_type": "text", "parts": [f"I am {id}."]}
    message = {"id": id, "author": {"role": "user"}, "content": content, **more}
    return {"message": message, "parent": parent, "children": children}


@pytest.mark.parametrize("current", ["d", None, "gone"])
@pytest.mark.parametrize("lost", ["", "b"])
def test_of_chatgpt_nothing_above_a_missing_node_is_lost(
    ada: Memory, tmp_path: Path, current: str | None, lost: str
) -> None:
    nodes = {"d": node("d", "c", create_time=4), "a": node("a", None, "b", create_time=1)}
    nodes |= {"b": node("b", "a", "c", create_time=2), "c": node("c", "b", "d", "x", create_time=3)}
    nodes["x"] = node("x", "c", create_time=3.5)
    nodes.pop(lost, None)
    chat = {"id": "1", "mapping": nodes, "current_node": current}
    done = ada.admin.import_from("chatgpt", saved(tmp_path / "c.json", [chat]))
    shown = [turn.text for turn in ada.session("chatgpt:1").turns()]
    assert shown == [f"I am {name}." for name in "abcd" if name != lost]
    assert done.skipped == ({"a message that is missing in the export": 1} if lost else {})


def test_marks_of_chatgpt_are_no_part_of_the_text(ada: Memory, tmp_path: Path) -> None:
    text = '\ue200entity\ue202["city","Oslo","in Norway"]\ue201 has parks.\ue200cite\ue202turn0search0\ue202turn0search1\ue201'
    cut = "\ue200cite\ue202 Mind the gap.\ue200cite\ue202turn0search0\ue201"
    content = {"content_type": "text", "parts": [text, "See \ue200url\ue202the map\ue202turn0search2\ue201.", cut]}
    chat = {"id": "1", "mapping": {"a": node("a", None, content=content)}, "current_node": "a"}
    ada.admin.import_from("chatgpt", saved(tmp_path / "c.json", [chat]))
    assert [turn.text for turn in ada.session("chatgpt:1").turns()] == [
        "Oslo has parks.\nSee the map.\n\ue200cite\ue202 Mind the gap."
    ]


def said(id: str, parent: str | None, text: str, **more: Any) -> dict[str, Any]:
    follows = {} if parent is None else {"parent_message_uuid": parent}
    return {"uuid": id, "sender": "human", "content": [{"type": "text", "text": text}], **follows, **more}


def test_of_claude_the_branch_that_was_shown_comes_with_pasted_text(ada: Memory, tmp_path: Path) -> None:
    paste, file = ({"file_name": name, "extracted_content": "My boat is Aurora."} for name in ("", "boat.pdf"))
    tool = {"content": [{"type": "tool_use"}], "text": "This block is not supported on your current device yet."}
    messages = [
        said("1", "root", "My sister is Maia."),
        said("2", "root", "My sister is Maya."),  # the first one was edited
        said("3", "2", "Noted: Maia."),
        said("4", "2", "Noted: Maya."),  # the answer was made anew
        {**said("5", "4", ""), **tool},
        said("6", "5", "Look:", attachments=[paste, file]),
        said("7", None, "Where are we?"),
        said("8", "a message that is gone", "Here."),
    ]
    assert bring(ada, "claude").skipped == {"no text": 1, "an empty conversation": 1}
    turns = [(turn.role, turn.text) for turn in ada.session("claude:k1").turns()]
    assert turns == [("user", "My sister Mia is allergic to nuts."), ("assistant", "Noted.")]
    done = ada.admin.import_from("claude", saved(tmp_path / "c.json", [{"uuid": "c", "chat_messages": messages}]))
    shown = ["My sister is Maya.", "Noted: Maya.", "Look:", "My boat is Aurora.", "Where are we?", "Here."]
    assert [turn.text for turn in ada.session("claude:c").turns()] == shown
    assert done.skipped == {"a message that was not shown": 2, "no text": 1, "an attached file": 1}


def test_a_turn_without_a_time_has_that_of_the_one_before_or_of_the_dialogue(ada: Memory, tmp_path: Path) -> None:
    made, later = (datetime(2025, 1, day, tzinfo=UTC) for day in (1, 2))
    messages = [
        said("1", None, "I am Ada."),
        said("2", "1", "Hi.", created_at=later.isoformat()),
        said("3", "2", "Bye."),
    ]
    nodes = {"1": node("1", None), "2": node("2", "1", create_time=later.timestamp()), "3": node("3", "2")}
    exports: dict[str, Any] = {
        "chatgpt": [{"id": "c", "create_time": made.timestamp(), "mapping": nodes, "current_node": "3"}],
        "claude": [{"uuid": "c", "created_at": made.isoformat(), "chat_messages": messages}],
    }
    for source, export in exports.items():
        file = saved(tmp_path / f"{source}.json", export)
        assert [ada.admin.import_from(source, file).turns for _ in range(2)] == [3, 0]
        (session,) = (one for one in ada.sessions() if one.startswith(source))
        assert [turn.at for turn in ada.session(session).turns()] == [made, later, later]


def test_of_claude_memories_come_as_facts(ada: Memory, tmp_path: Path) -> None:
    memory = {"conversations_memory": "Ada is a baker.", "project_memories": {"p": "Units are metric."}}
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.write(FILES / "claude.json", "conversations.json")
        archive.writestr("memories.json", json.dumps([{**memory, "account_uuid": "a"}]))
        archive.writestr("projects/p.json", json.dumps({"uuid": "p", "name": "Cookbook", "docs": []}))
        archive.writestr("users.json", "[]")
    done = bring(ada, "claude", tmp_path / "export.zip")
    assert (done.memories, done.turns, done.skipped["a project's instructions and documents"]) == (2, 2, 1)
    facts = [(entry.title, entry.text) for entry in ada.entries(kind="fact")]
    assert facts == [("", "Ada is a baker."), ("Cookbook", "Units are metric.")]


def test_of_mem0_one_person_is_taken(ada: Memory) -> None:
    with pytest.raises(
        InvalidInput, match=r"owner: the export is of 2 owners: 'ada', 'ben' \(name one of them: owner=…, --owner\)"
    ):
        ada.admin.import_from("mem0", FILES / "mem0.json")
    with pytest.raises(InvalidInput, match="'eve' owns nothing"):
        ada.admin.import_from("mem0", FILES / "mem0.json", owner="eve")
    done = bring(ada, "mem0")
    assert (done.memories, done.skipped) == (2, {"text: is empty": 1})
    entry = ada.entries()[0]
    assert (entry.kind, entry.tags, entry.source) == ("fact", ["food"], "mem0")
    assert entry.at == datetime(2025, 6, 2, 10, 0, tzinfo=UTC)
    assert entry.metadata["topic"] == "drinks"


def test_of_letta_blocks_passages_and_what_was_said_to_people(ada: Memory) -> None:
    assert bring(ada, "letta").skipped["what the agent is told about itself"] == 1
    assert {"The human is called Ada.", "Ada moved to Bergen."} <= set(texts(ada))
    assert [(turn.role, turn.text) for turn in ada.session(ada.sessions()[0]).turns()] == [
        ("user", "Hello, I am Ada."),
        ("assistant", "Hello Ada!"),
        ("assistant", "How are you?"),
    ]


def agent_file(name: str, block: str, *said: str, start: int = 0) -> dict[str, Any]:
    """Letta counts ids from 0 in each file."""
    messages = [
        {"id": f"message-{place}", "role": "user", "content": text, "created_at": f"2025-01-01T10:0{start + place}:00Z"}
        for place, text in enumerate(said)
    ]
    agent = {"id": "agent-0", "name": name, "block_ids": ["block-0"], "messages": messages}
    return {"agents": [agent], "blocks": [{"id": "block-0", "label": "human", "value": block}]}


@pytest.mark.parametrize("scrubber", ["off", "strict"])
def test_agents_of_letta_are_known_by_their_names_and_a_newer_file_of_one_adds_what_is_new(
    tmp_path: Path, scrubber: str
) -> None:
    """Only some of what was said is in a file, counted from 0."""
    said = ["I am Ada.", "Write to ada@example.org.", "Yes.", "My dog is Rex.", "Yes."]
    first, later = agent_file("A", "Ada sings.", *said[:3]), agent_file("A", "Ada leads.", *said[1:], start=1)
    with Memory(":memory:", background=False, scrubber=scrubber) as memory:
        ada = memory.for_user("ada")
        for file, made in ((first, (1, 0, 3)), (later, (1, 1, 2)), (later, (0, 0, 0))):
            done = ada.admin.import_from("letta", saved(tmp_path / "a.af", file))
            assert (done.memories, done.changed, done.turns) == made
        other = agent_file("B", "Ada sings.", "I am Ada.")
        done = ada.admin.import_from("letta", saved(tmp_path / "b.af", other))
        assert (done.memories, done.changed, done.turns) == (1, 0, 1)
        assert [turn.text for turn in ada.session("letta:A").turns()][2:] == said[2:]
        twins = {**first, "agents": [*first["agents"], {**first["agents"][0], "id": "agent-1"}]}
        with pytest.raises(InvalidInput, match=r"of 2 owners: 'A \(agent-0\)', 'A \(agent-1\)'"):
            ada.admin.import_from("letta", saved(tmp_path / "twins.af", twins))


def test_of_graphiti_facts_keep_their_validity(ada: Memory) -> None:
    bring(ada, "zep")
    assert ada.recall("Where does Ada live?", kind="fact").hits[0].text == "Ada lives in Bergen."
    then = ada.recall("Where does Ada live?", kind="fact", as_of="2024-06-01").hits
    assert then[0].text == "Ada lives in Oslo."
    assert "Ada is an engineer who likes hills." in texts(ada)


def test_of_zep_messages_come_as_dialogues_with_their_speakers(ada: Memory, tmp_path: Path) -> None:
    roles = {"assistant": "Guide", "user": "Ada", "norole": None}  # the newest first
    times = ["2025-01-02", "2025-01-01", "2025-01-03"]
    episodes = [
        {"uuid": type, "content": f"I am {type}.", "role_type": type, "role": role, "thread_id": "t1", "created_at": at}
        for (type, role), at in zip(roles.items(), times, strict=True)
    ]
    file = saved(tmp_path / "zep.json", {"episodes": episodes})
    done = [ada.admin.import_from("zep", file) for _ in range(2)]
    assert [(one.turns, one.memories, one.known) for one in done] == [(2, 1, 0), (0, 0, 3)]
    turns = [(turn.role, turn.speaker, turn.text) for turn in ada.session("zep:t1").turns()]
    assert turns == [("user", "Ada", "I am user."), ("assistant", "Guide", "I am assistant.")]


@pytest.mark.parametrize("days", [[3, 2, 2, 1], [1, 1, 1, 1]])
def test_of_zep_turns_of_the_same_time_keep_their_order(ada: Memory, tmp_path: Path, days: list[int]) -> None:
    order = [3, 2, 1, 0]  # the newest first
    episodes = [
        {"content": f"Turn {number}.", "role_type": "user", "thread_id": "t1", "created_at": f"2025-01-0{day}"}
        for number, day in zip(order, days, strict=True)
    ]
    ada.admin.import_from("zep", saved(tmp_path / "zep.json", {"episodes": episodes}))
    assert [turn.text for turn in ada.session("zep:t1").turns()] == [f"Turn {number}." for number in range(4)]


def test_of_langgraph_the_words_of_a_value_are_taken(ada: Memory) -> None:
    bring(ada, "langgraph")
    assert texts(ada) == ["Ada prefers tokio.", "Ada speaks Norwegian.", '{"theme": "dark"}']


def test_notes_have_title_tags_and_time_and_changes_are_followed(ada: Memory, tmp_path: Path) -> None:
    vault = Path(shutil.copytree(FILES / "vault", tmp_path / "vault"))
    done = bring(ada, "obsidian", vault)
    assert done.memories > 3  # the long note comes in pieces
    assert set(done.skipped) == {"an empty note", "the front matter is damaged on line 2: a key is there twice"}
    note = next(entry for entry in ada.entries(limit=1000) if entry.title == "Bicycle")
    assert (note.tags, note.at.year, note.metadata["id_there"]) == (
        ["things", "cycling"],
        2024,
        "vault:things/bicycle.md",
    )
    file = vault / "things" / "bicycle.md"
    file.write_text(file.read_text().replace("green", "red"))
    again = bring(ada, "obsidian", vault)
    assert (again.memories, again.changed) == (1, 1)
    assert "red Brompton" in next(entry.text for entry in ada.entries(limit=1000) if entry.title == "Bicycle")
    assert bring(ada, "obsidian", vault).known == done.memories


def test_two_vaults_stay_apart_and_one_may_be_moved(ada: Memory, tmp_path: Path) -> None:
    for name in ("va", "vb"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "README.md").write_text(f"This is {name}.")
        ada.admin.import_from("obsidian", tmp_path / name)
    assert texts(ada) == ["This is va.", "This is vb."]
    (tmp_path / "away").mkdir()
    moved = (tmp_path / "va").rename(tmp_path / "away" / "va")
    (moved / "README.md").write_text("This is va, moved.")
    assert ada.admin.import_from("obsidian", moved).changed == 1
    assert sorted(texts(ada)) == ["This is va, moved.", "This is vb."]


def test_a_link_in_a_folder_is_skipped_and_named(ada: Memory, tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "a.md").write_text("Piano.")
    for name in ("b.md", "folder"):
        (tmp_path / "vault" / name).symlink_to(FILES / "vault")
    done = ada.admin.import_from("obsidian", tmp_path / "vault")
    why = "is a symbolic link; put the files themselves in the folder"
    assert (texts(ada), done.problems) == (["Piano."], (f"b.md: {why}", f"folder: {why}"))
    shutil.copy(FILES / "mem0.json", tmp_path)
    (tmp_path / "other.json").symlink_to(FILES / "mem0.json")
    assert bring(ada, "mem0", tmp_path).skipped["is a symbolic link"] == 1


EDGE = {"uuid": "e1", "fact": "Ada lives in Oslo.", "valid_at": "2024-01-01T00:00:00Z", "invalid_at": None}
FACT = {"id": "1", "memory": "Ada lives in Oslo.", "updated_at": "2024-01-01", "categories": ["home"]}


def test_what_changed_there_is_replaced_and_the_rest_is_left_as_it_is_here(ada: Memory, tmp_path: Path) -> None:
    zep = saved(tmp_path / "zep.json", {"edges": [EDGE]})
    ada.admin.import_from("zep", zep)
    stays = {**FACT, "id": "2", "memory": "Ada has a cat."}
    mem0 = saved(tmp_path / "mem0.json", [{**FACT, "memory": "Ada has a permit."}, stays])
    ada.admin.import_from("mem0", mem0)
    ada.edit(ada.entries()[-1].id, text="Ada has two cats.", tags=["mine"])
    newer = {"updated_at": "2025-01-01", "expiration_date": "2025-02-01", "categories": ["car"]}
    saved(mem0, [{**FACT, **newer, "memory": "Ada has a pass."}, stays])
    saved(zep, {"edges": [{**EDGE, "invalid_at": EDGE["valid_at"]}, {**EDGE, "uuid": "e2"}]})
    for changed in (1, 0):
        done = ada.admin.import_from("mem0", mem0)
        assert (done.memories, done.changed) == (changed, changed)
        done = ada.admin.import_from("zep", zep)  # it holds no longer, and it holds again
        assert (done.memories, done.changed) == (2 * changed, changed)
    found = {entry.text: entry for entry in ada.entries() if entry.metadata["id_there"] != "e2"}
    assert found["Ada lives in Oslo."].valid_to == datetime(2024, 1, 1, tzinfo=UTC)
    assert ada.recall("Where does Ada live?").hits[0].entry.metadata["id_there"] == "e2"
    new = found["Ada has a pass."]
    assert (new.tags, new.at, new.valid_to) == (["car"], *(datetime(2025, month, 1, tzinfo=UTC) for month in (1, 2)))
    assert found["Ada has two cats."].tags == ["mine"]


def test_a_validity_is_read_or_named(ada: Memory, tmp_path: Path) -> None:
    ends = ["2025-06-01T00:00:00Z[Etc/UTC]", 1748736000000, "last summer"]
    edges = [{**EDGE, "uuid": str(end), "fact": f"Fact {end}", "invalid_at": end} for end in ends]
    done = ada.admin.import_from("zep", saved(tmp_path / "zep.json", {"edges": edges}))
    assert done.problems == ("last summer: valid_to: 'last summer' is not a time",)
    items = [{"id": end, "memory": f"Ada has a permit, {end}.", "expiration_date": end} for end in ("2025-06-01", "no")]
    ada.admin.import_from("mem0", saved(tmp_path / "mem0.json", items))
    assert [entry.valid_to for entry in ada.entries()] == [datetime(2025, 6, 1, tzinfo=UTC)] * 3 + [None]


def section(name: str) -> str:
    told = " ".join(f"On day {day} of the {name} something happened that is told at some length." for day in range(14))
    return f"## {name}\n\n{told}\n\n"


MOVES: list[tuple[list[str], list[str]]] = [
    (["Plans.", "Piano."], ["Piano.", "Plans."]),
    (["A.", "B.", "C.", "D."], ["B.", "C.", "A.", "D.", "A."]),
    (["A.", "B.", "C."], ["B.", "B.", "C."]),
    (["#A#B#C"], ["#B#C"]),
    (["#A#B#C"], ["#A#X#B#C#B"]),
    (["#A#B", "Piano."], ["Piano.", "#B#C"]),
    ([], ["A.", "A."]),
]
"""Notes before and after; of some the sections."""


@pytest.mark.parametrize(("before", "after"), MOVES)
def test_words_that_move_within_and_between_notes_stay(
    ada: Memory, tmp_path: Path, before: list[str], after: list[str]
) -> None:
    def shown(memory: Memory) -> list[Any]:
        found = [(one.text, one.evidence, one.position) for one in memory.entries(limit=1000)]
        return sorted(found, key=str)

    for notes in (before, after):
        for name, text in enumerate(notes):
            (tmp_path / f"{name}.md").write_text("".join(map(section, text[1::2])) if "#" in text else text)
        foretold = ada.admin.import_from("obsidian", tmp_path, dry_run=True)
        done = ada.admin.import_from("obsidian", tmp_path)
        assert vars(done) == {**vars(foretold), "dry_run": False}
    again = ada.admin.import_from("obsidian", tmp_path)
    assert (again.memories, again.changed, again.skipped) == (0, 0, {})
    with Memory(":memory:", background=False) as other:
        other.for_user("ada").admin.import_from("obsidian", tmp_path)
        assert shown(ada) == shown(other.for_user("ada"))
    assert ada.verify().ok


def test_what_was_remembered_before_is_not_strengthened(ada: Memory) -> None:
    ada.remember("Ada drinks oat milk.", kind="fact")
    before = vars(ada.entries()[0])
    assert (bring(ada, "mem0").known, vars(ada.entries()[0])) == (1, before)


NAMELESS: dict[str, Any] = {
    "letta": [{"text": "One."}, {"text": "Two."}, {"text": "Three."}],
    "zep": {"edges": [{"fact": "One."}], "nodes": [{"summary": "Two."}], "episodes": [{"content": "Three."}]},
    "langgraph": [{"value": {"content": "One."}}, {"value": {"content": "Two."}}, {"value": {"content": "Three."}}],
}


@pytest.mark.parametrize("source", NAMELESS)
def test_memories_without_ids_all_come_once(ada: Memory, tmp_path: Path, source: str) -> None:
    file = saved(tmp_path / "export.json", NAMELESS[source])
    assert [ada.admin.import_from(source, file).memories for _ in range(2)] == [3, 0]


def test_of_memories_with_the_same_id_the_last_one_comes_and_others_are_named(ada: Memory, tmp_path: Path) -> None:
    items = [{"id": "1", "memory": f"Ada has {count} cats."} for count in range(300)]
    for memories in (1, 0):
        done = ada.admin.import_from("mem0", saved(tmp_path / "mem0.json", items))
        assert (done.memories, done.changed) == (memories, 0)
        assert done.skipped == {"a later record has the same id": 299}
    assert texts(ada) == ["Ada has 299 cats."]


def test_archives_folders_and_lines_are_read(ada: Memory, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.write(FILES / "chatgpt.json", "export/conversations.json")
        archive.writestr("export/user.json", "{}")
    assert bring(ada, "chatgpt", tmp_path / "export.zip").turns == 3
    (tmp_path / "folder").mkdir()
    shutil.copy(FILES / "chatgpt.json", tmp_path / "folder" / "conversations-000.json")
    assert bring(ada, "chatgpt", tmp_path / "folder").known == 3
    lines = tmp_path / "mem0.jsonl"
    items = json.loads((FILES / "mem0.json").read_text())["results"]
    items[0]["metadata"]["note"] = "of\u2028two lines"
    lines.write_text("\r\n".join(json.dumps(item, ensure_ascii=False) for item in items))
    assert bring(ada, "mem0", lines).memories == 2
    (tmp_path / "agents").mkdir()
    shutil.copy(FILES / "letta.af", tmp_path / "agents")
    assert bring(ada, "letta", tmp_path / "agents").memories > 0


LONE: dict[str, Any] = {
    "chatgpt": {
        "mapping": {
            "a": {"message": {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["I am Ada."]}}}
        }
    },
    "claude": {"chat_messages": [{"sender": "human", "text": "I am Ada."}]},
    "mem0": {"memory": "I am Ada."},
    "letta": {"text": "I am Ada."},
    "langgraph": {"value": {"content": "I am Ada."}},
}


@pytest.mark.parametrize("source", LONE)
def test_a_file_of_one_line_is_a_list_of_one_and_an_empty_one_holds_nothing(
    ada: Memory, tmp_path: Path, source: str
) -> None:
    saved(tmp_path / "conversations.json", LONE[source])
    (tmp_path / "conversations-2.json").write_bytes(b"\xef\xbb\xbf\n")
    assert ada.admin.import_from(source, tmp_path).skipped == {"an empty file": 1}
    assert texts(ada) == ["I am Ada."]


def test_a_line_that_is_not_json_is_skipped_by_its_number(ada: Memory, tmp_path: Path) -> None:
    file = tmp_path / "mem0.jsonl"
    file.write_text(
        '\ufeff{"id": "1", "memory": "Ada has a cat."}\n\n{"id": "2", "mem\n{"id": "3", "memory": "Ada sings."}'
    )
    done = ada.admin.import_from("mem0", file)
    assert (done.problems, texts(ada)) == ((f"{file}: line 3: is not JSON",), ["Ada has a cat.", "Ada sings."])
    file.write_text('[\n{"id": "1"},\n{"id": "2"}\n')
    with pytest.raises(TransferError, match=r"is not JSON: .*line 4"):
        ada.admin.import_from("mem0", file)


def test_a_damaged_archive_is_named_as_such(ada: Memory, tmp_path: Path) -> None:
    file = tmp_path / "export.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(FILES / "chatgpt.json", "conversations.json")
    whole = file.read_bytes()
    for damaged, said in (
        (whole[:-100], "not whole; download it"),
        (whole[:60] + bytes(30) + whole[90:], "cannot read"),
    ):
        file.write_bytes(damaged)
        with pytest.raises(TransferError, match=said):
            bring(ada, "chatgpt", file)


JUNK: list[Any] = [None, 3, -1.5, "x", "", [], {}, [None], {"x": None}, [[]], True, 1e300, "\ud800"]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to all that a document holds."""
    yield path
    for key, one in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(one, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], junk: Any) -> Any:
    if not path:
        return junk
    copy = value.copy()
    copy[path[0]] = replaced(value[path[0]], path[1:], junk)
    return copy


@pytest.mark.parametrize("source", [source for source, name in SOURCES.items() if name != "vault"])
@given(data=st.data())
@FEWER
def test_damaged_values_are_skipped_or_refused_in_words(source: str, data: st.DataObject) -> None:
    whole = json.loads((FILES / SOURCES[source]).read_text())
    path = data.draw(st.sampled_from([*places(whole)]))
    broken = replaced(whole, path, data.draw(st.sampled_from(JUNK)))
    with Memory(":memory:", background=False) as memory, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "export.json"
        file.write_text(json.dumps(broken))
        ada = memory.for_user("ada")
        with contextlib.suppress(TransferError, InvalidInput):
            done = bring(ada, source, file)
            again = bring(ada, source, file)
            assert (again.memories, again.turns, again.changed) == (0, 0, 0)
            assert again.known == done.known + done.memories + done.turns


OF_ANOTHER_KIND = [
    ("chatgpt", b"{", "is not JSON"),
    ("claude", b"\xff", "is not JSON"),
    ("mem0", b'{"result": []}', "there is no list 'results'"),
    ("zep", b'{"results": []}', "it is not an object with edges"),
    ("obsidian", b"# a note", "is not a folder"),
    ("letta", b"3", "this is no export of Letta"),
    ("letta", b'[{"memory": "I like tea."}]', "this is no export of Letta"),
    ("chatgpt", (FILES / "claude.json").read_bytes(), "no export of ChatGPT: no record has a field 'mapping'"),
    ("claude", (FILES / "chatgpt.json").read_bytes(), "this is no export of Claude"),
    ("mem0", (FILES / "langgraph.json").read_bytes(), "this is no export of mem0"),
    ("langgraph", (FILES / "chatgpt.json").read_bytes(), "this is no export of a LangGraph store"),
]


def test_a_file_of_another_kind_is_one_clear_error(ada: Memory, tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    for source, content, problem in OF_ANOTHER_KIND:
        path.write_bytes(content)
        with pytest.raises(TransferError, match=problem):
            ada.admin.import_from(source, path)
    with pytest.raises(InvalidInput, match="'gpt' is not a source"):
        ada.admin.import_from("gpt", path)
    with pytest.raises(InvalidInput, match="there is no"):
        ada.admin.import_from("chatgpt", tmp_path / "missing.zip")
