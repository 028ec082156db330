"""Anthropic's memory tool against the SDK's own tool for local files, which documents what each command answers."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellworn import Memory

pytest.importorskip("anthropic", reason="Anthropic's SDK is not installed here")

from anthropic.lib.tools import ToolError
from anthropic.tools.memory import BetaLocalFilesystemMemoryTool

from wellworn.integrations.frameworks.memory_tool import FILES, AsyncWellwornMemoryTool, WellwornMemoryTool

pytestmark = pytest.mark.slow  # the package takes seconds to import

PATHS = st.sampled_from(
    [
        "/memories",
        "/memories/a.md",
        "/memories/d/b.md",
        "/memories/d",
        "/memories/d/../a.md",
        "/memories/d/e/f/c.md",
        "/memories/a.md/x",
        "/memories/.hidden/x",
        "/memories/../etc/passwd",
        "/etc/passwd",
    ]
)
TEXTS = st.sampled_from(["", "\n", "one", "one\ntwo\n", "two\none\ntwo\nthree", "Ada lives in Oslo.\n"])
COMMANDS = st.one_of(
    st.fixed_dictionaries({"command": st.just("create"), "path": PATHS, "file_text": TEXTS}),
    st.fixed_dictionaries(
        {"command": st.just("view"), "path": PATHS},
        optional={"view_range": st.sampled_from([[1, 2], [2, -1], [0, 1], [9, 12]])},
    ),
    st.fixed_dictionaries(
        {"command": st.just("str_replace"), "path": PATHS}
        | {"old_str": st.sampled_from(["one", "two", "Oslo"]), "new_str": st.sampled_from(["", "Bergen", "x\ny"])}
    ),
    st.fixed_dictionaries(
        {"command": st.just("insert"), "path": PATHS, "insert_line": st.integers(-1, 3), "insert_text": TEXTS}
    ),
    st.fixed_dictionaries({"command": st.just("delete"), "path": PATHS}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": PATHS, "new_path": PATHS}),
)


@pytest.fixture
def ada(memory: Memory) -> Memory:
    return memory.for_user("ada")


def answer(tool: Any, command: dict[str, Any]) -> str:
    """What Claude is told; other errors than the tool's own have words of the file system."""
    try:
        told = tool.call(command)
    except ToolError as error:
        told = f"error: {error.content}"
    except OSError:
        told = "error"
    return re.sub(r"^\S+\t(/memories\S*/|/\S+)$", r"\1", str(told), flags=re.MULTILINE)  # sizes of folders differ


def without_empty_folders(root: Path) -> None:
    """A memory knows only folders with files in them."""
    for folder, _, _ in os.walk(root, topdown=False):
        if folder != str(root) and not os.listdir(folder):
            Path(folder).rmdir()


@given(commands=st.lists(COMMANDS, max_size=12))
def test_every_command_answers_like_the_sdks_own_tool(
    commands: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    theirs = BetaLocalFilesystemMemoryTool(str(tmp_path_factory.mktemp("files")))
    with Memory(":memory:", background=False) as memory:
        ours = WellwornMemoryTool(memory.for_user("ada"))
        for command in commands:
            said = answer(ours, command), answer(theirs, command)
            without_empty_folders(theirs.memory_root)
            if said[1] != "error":
                assert said[0] == said[1], command
            assert said[0].startswith("error") == said[1].startswith("error"), command


def create(tool: Any, path: str, text: str) -> str:
    return answer(tool, {"command": "create", "path": path, "file_text": text})


def test_files_are_entries_that_are_recalled_with_their_history(ada: Memory) -> None:
    tool = WellwornMemoryTool(ada)
    create(tool, "/memories/home.md", "Ada lives in Oslo.\n")
    tool.call({"command": "str_replace", "path": "/memories/home.md", "old_str": "Oslo", "new_str": "Bergen"})
    hit = ada.recall("Where does Ada live?").hits[0]
    assert (hit.text, hit.entry.title) == ("Ada lives in Bergen.\n", "home.md")
    assert [version.text for version in ada.history(hit.entry.id)] == ["Ada lives in Oslo.\n", "Ada lives in Bergen.\n"]
    assert ada.verify().ok


def test_what_claude_deletes_is_not_found_and_what_is_cleared_is_gone(ada: Memory) -> None:
    tool = WellwornMemoryTool(ada)
    create(tool, "/memories/home.md", "Ada lives in Oslo.")
    tool.call({"command": "delete", "path": "/memories/home.md"})
    assert ada.recall("Where does Ada live?").hits == []
    assert [entry.state for entry in ada.entries(session_id=FILES)] == ["pruned"]
    assert create(tool, "/memories/home.md", "Ada lives in Bergen.").startswith("File created")
    assert tool.clear_all_memory() == "All memory cleared"
    assert ada.entries() == []


def test_a_path_with_personal_data_is_found_under_its_name_again() -> None:
    with Memory(":memory:", background=False, scrubber="mask") as memory:
        tool = WellwornMemoryTool(memory.for_user("ada"))
        create(tool, "/memories/ada@example.com.md", "Her mail is ada@example.com.")
        said = answer(tool, {"command": "view", "path": "/memories/ada@example.com.md"})
    assert said.startswith("Here's the content")
    assert "Her mail is ada@" not in said


def test_a_fault_of_the_memory_is_told_and_not_raised(ada: Memory) -> None:
    tool = WellwornMemoryTool(ada)
    ada.close()
    assert answer(tool, {"command": "view", "path": "/memories"}) == "error: The memory is not available: StoreClosed"
    assert create(tool, "/memories/a.md", "x" * 2_000_000).startswith("error: text: has 2,000,000 bytes")


def test_edits_at_the_same_time_are_all_kept(ada: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    tool, other = WellwornMemoryTool(ada), WellwornMemoryTool(ada)
    create(tool, "/memories/n.md", "one\ntwo\n")
    edit, meanwhile = (
        ada.engine.changer.edit,
        [
            {"command": "insert", "path": "/memories/n.md", "insert_line": 0, "insert_text": "zero"},
            {"command": "str_replace", "path": "/memories/n.md", "old_str": "two", "new_str": "three"},
        ],
    )

    def late(*given: Any, **named: Any) -> Any:
        if meanwhile:
            other.call(meanwhile.pop())
        return edit(*given, **named)

    monkeypatch.setattr(ada.engine.changer, "edit", late)
    answer(tool, {"command": "insert", "path": "/memories/n.md", "insert_line": 1, "insert_text": "and"})
    assert answer(tool, {"command": "view", "path": "/memories/n.md"}).split("\t")[1:] == [
        "zero\n     2",
        "and\n     3",
        "one\n     4",
        "three\n     5",
        "",
    ]


async def test_the_async_tool_does_the_same_for_each_person(memory: Memory, ada: Memory) -> None:
    tool, path = AsyncWellwornMemoryTool(ada), {"path": "/memories/a.md"}
    made = await tool.call({"command": "create", **path, "file_text": "one\ntwo"})
    assert made == "File created successfully at: /memories/a.md"
    await tool.call({"command": "insert", **path, "insert_line": 0, "insert_text": "zero"})
    await tool.call({"command": "str_replace", **path, "old_str": "one", "new_str": "1"})
    await tool.call({"command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/b.md"})
    shown = await tool.call({"command": "view", "path": "/memories/b.md"})
    assert str(shown).split("\n")[1:4] == ["     1\tzero", "     2\t1", "     3\ttwo"]
    ben = WellwornMemoryTool(memory.for_user("ben"))
    assert answer(ben, {"command": "view", "path": "/memories/b.md"}).startswith("error: The path")
    await tool.call({"command": "delete", "path": "/memories/b.md"})
    assert await tool.clear_all_memory() == "All memory cleared"


def rename_meanwhile(tool: WellwornMemoryTool, ada: Memory, patch: pytest.MonkeyPatch, old: str, new: str) -> None:
    """Let another rename happen while the next one is prepared."""
    writer = ada.engine.writer
    prepared = writer.records_of

    def interrupted(entries: Any) -> Any:
        patch.undo()
        tool.call({"command": "rename", "old_path": old, "new_path": new})
        return prepared(entries)

    patch.setattr(writer, "records_of", interrupted)


@pytest.mark.parametrize(
    ("files", "meanwhile", "then", "problem", "left"),
    [
        ("ab", ("b", "c"), ("a", "c"), "The destination /memories/c already exists", ["a", "c"]),
        (
            ["old/a", "old/b"],
            ("old", "first"),
            ("old", "second"),
            "The path /memories/old does not exist",
            ["first/a", "first/b"],
        ),
    ],
)
def test_of_two_renames_at_once_one_is_refused_as_a_whole(
    ada: Memory, monkeypatch: pytest.MonkeyPatch, files: Any, meanwhile: Any, then: Any, problem: str, left: list[str]
) -> None:
    tool = WellwornMemoryTool(ada)
    for name in files:
        tool.call({"command": "create", "path": f"/memories/{name}", "file_text": "the same in each file"})
    rename_meanwhile(tool, ada, monkeypatch, f"/memories/{meanwhile[0]}", f"/memories/{meanwhile[1]}")
    with pytest.raises(ToolError, match=problem):
        tool.call({"command": "rename", "old_path": f"/memories/{then[0]}", "new_path": f"/memories/{then[1]}"})
    assert [entry.title for entry in ada.entries()] == left
