"""Anthropic's memory tool (`memory_20250818`) on a memory: Claude's files under /memories are entries with a history.

A path is the title of an entry, so there is no file system to escape into. Recall finds the files like all else. What
Claude deletes is no longer found but stays in the store; `memory.forget(session_id=FILES)` removes all of it for good.
Answers and errors are those of the SDK's own tool for local files. Needs the extra `memory-tool`.
"""

from __future__ import annotations

import asyncio
import functools
import posixpath
import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from wellworn.core.errors import Conflict, InvalidInput, MissingExtra, NotFound, WellwornError
from wellworn.core.hashes import hash64
from wellworn.core.locks import patience
from wellworn.core.values import Entry
from wellworn.core.wellformed import clean_text
from wellworn.ingest.remember import keep
from wellworn.ingest.validate import Draft, checked_scope
from wellworn.integrations import WAIT_S, checked_memory
from wellworn.memory import Memory
from wellworn.store.port import Selection, Tx

try:
    from anthropic.lib.tools import ToolError
    from anthropic.tools.memory import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool
    from anthropic.types import beta
except ModuleNotFoundError as error:
    raise MissingExtra("WellwornMemoryTool", "memory-tool") from error

__all__ = ["FILES", "AsyncWellwornMemoryTool", "WellwornMemoryTool"]

FILES = "memory-tool"
"""The session id of all files."""
ROOT = "/memories"
LISTED_LEVELS = 2
_NUMBER_WIDTH = 6
_CONTEXT_LINES = 2
_MANY = 100_000
_BLANK = "content"
"""The key of the metadata that holds the content of a blank file: the text of an entry is never blank."""
_KEPT = Selection(session_id=FILES, states=("active", "flagged", "superseded"))
"""A file that something newer has replaced is still there to be edited."""


@contextmanager
def _told() -> Iterator[None]:
    """A fault becomes the result of the tool: Claude is told, and the agent goes on."""
    try:
        with patience(WAIT_S["call"]):
            yield
    except InvalidInput as error:
        raise ToolError(str(error)) from error
    except WellwornError as error:
        raise ToolError(f"The memory is not available: {type(error).__name__}") from error


class WellwornMemoryTool(BetaAbstractMemoryTool):
    """The tool for `client.beta.messages.tool_runner(tools=[…])`. `memory` is bound: `memory.for_user("ada")`."""

    def __init__(self, memory: Memory) -> None:
        super().__init__()
        scope = checked_scope(checked_memory(memory).scope)
        self._memory, self._scope, self._home = memory.for_scope(scope), scope, scope.home()
        self._writer = memory.engine.writer

    def view(self, command: beta.BetaMemoryTool20250818ViewCommand) -> str:
        with _told():
            path, files = self._path(command.path), self._all()
            if path in files:
                return self._numbered(command, _content(files[path]))
            sizes = {name: len(_content(entry).encode()) for name, entry in files.items() if _is_below(name, path)}
            if not sizes and path != ROOT:
                raise ToolError(f"The path {command.path} does not exist. Please provide a valid path.")
            shown = [f"{_size(sum(sizes.values()))}\t{command.path}", *_listed(command.path, path, sizes)]
            header = f"Here're the files and directories up to 2 levels deep in {command.path}, excluding hidden items:"
            return "\n".join([header, *shown])

    def _numbered(self, command: beta.BetaMemoryTool20250818ViewCommand, content: str) -> str:
        lines, first, last = content.split("\n"), 1, None
        if command.view_range and len(command.view_range) == 2:
            first, end = max(1, command.view_range[0]), command.view_range[1]
            last = None if end == -1 else end
        shown = _lines(lines[first - 1 : last], first)
        return f"Here's the content of {command.path} with line numbers:\n{shown}"

    def create(self, command: beta.BetaMemoryTool20250818CreateCommand) -> str:
        with _told():
            path, now = self._path(command.path), self._writer.clock()
            if path == ROOT:
                raise ToolError(f"File {command.path} already exists")
            # A number of its own, so that two files may say the same.
            number = hash64(self._writer.new_id()) % 2**31
            draft = Draft(
                kind="episode", session_id=FILES, turn_refs=[number], source=FILES, **_stored(path, command.file_text)
            )
            records = self._writer.records_of([self._writer.entry(draft, self._scope, now)])
            with self._writer.transact() as tx:
                self._check_free(tx, path, f"File {command.path}")
                keep(tx, records[0], now)
            return f"File created successfully at: {command.path}"

    def str_replace(self, command: beta.BetaMemoryTool20250818StrReplaceCommand) -> str:
        old = command.old_str

        def replaced(content: str) -> str:
            found = content.count(old)
            if found == 0:
                problem = f"No replacement was performed, old_str `{old}` did not appear verbatim in {command.path}."
                raise ToolError(problem)
            if found > 1:
                places = [match.start() for match in re.finditer(f"(?={re.escape(old)})", content)]
                lines = ", ".join(str(content.count("\n", 0, place) + 1) for place in places)
                problem = f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {lines}."
                raise ToolError(f"{problem} Please ensure it is unique")
            return content.replace(old, command.new_str)

        with _told():
            content, new = self._change(command.path, replaced)
            changed = content.count("\n", 0, content.find(old))
            first = max(0, changed - _CONTEXT_LINES)
            snippet = _lines(new.split("\n")[first : changed + _CONTEXT_LINES + 1], first + 1)
            return f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{snippet}"

    def insert(self, command: beta.BetaMemoryTool20250818InsertCommand) -> str:
        def longer(content: str) -> str:
            lines = content.removesuffix("\n").split("\n") if content else []
            if not 0 <= command.insert_line <= len(lines):
                problem = f"Invalid `insert_line` parameter: {command.insert_line}. It should be within the range"
                raise ToolError(f"{problem} [0, {len(lines)}].")
            lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
            joined = "\n".join(lines)
            return joined if joined.endswith("\n") else joined + "\n"

        with _told():
            self._change(command.path, longer)
            return f"The file {command.path} has been edited."

    def delete(self, command: beta.BetaMemoryTool20250818DeleteCommand) -> str:
        with _told():
            for _, entry in self._at(command.path, "delete"):
                self._memory.edit(entry.id, state="pruned")
            return f"Successfully deleted {command.path}"

    def rename(self, command: beta.BetaMemoryTool20250818RenameCommand) -> str:
        with _told():
            while True:  # begins again if a file changes meanwhile
                with suppress(Conflict, NotFound):
                    self._rename(command)
                    return f"Successfully renamed {command.old_path} to {command.new_path}"

    def _rename(self, command: beta.BetaMemoryTool20250818RenameCommand) -> None:
        old, new, files = self._path(command.old_path), self._path(command.new_path), self._all()
        if old != ROOT and (new == ROOT or new in files or any(_is_below(name, new) for name in files)):
            raise ToolError(f"The destination {command.new_path} already exists")
        moved = self._at(command.old_path, "rename")
        if _is_below(new, old) or any(_is_below(new, name) for name in files):
            raise ToolError(f"The destination {command.new_path} is below a file or itself.")
        ids = {entry.id for _, entry in moved}
        self._memory.engine.changer.retitle(
            [(entry, _title(new + name.removeprefix(old))) for name, entry in moved],
            scope=self._scope,
            check=lambda tx: self._check_free(tx, new, f"The destination {command.new_path}", ids),
        )

    def clear_all_memory(self) -> str:
        """Forget all files for good, deleted ones and former versions too."""
        with _told():
            ids = [entry.id for entry in self._memory.entries(session_id=FILES, layer=self._home.layer, limit=_MANY)]
            if ids:
                self._memory.forget(ids)
            return "All memory cleared"

    # -- paths and entries ---------------------------------------------------------------------------------------

    def _path(self, given: str) -> str:
        """The path without detours, as it is stored: what the memory's scrubber takes out of texts is not in paths."""
        if given != ROOT and not given.startswith(f"{ROOT}/"):
            raise ToolError(f"Path must start with {ROOT}, got: {given}")
        path = posixpath.normpath(clean_text(given))
        if path != ROOT and not path.startswith(f"{ROOT}/"):
            raise ToolError(f"Path {given} would escape {ROOT} directory")
        return self._writer.scrubbing.stored(self._home)(path) if self._writer.scrubbing.on else path

    def _all(self) -> dict[str, Entry]:
        return _by_path(self._memory.engine.store.select([self._home], _KEPT, limit=_MANY))

    def _check_free(self, tx: Tx, path: str, named: str, moved: Collection[str] = ()) -> None:
        """Refuse a path where others have put something by now."""
        rows = tx.select([self._home], _KEPT, limit=_MANY)
        files = _by_path([row for row in rows if row[1].id not in moved])
        if path in files or any(_is_below(name, path) for name in files):
            raise ToolError(f"{named} already exists")
        if above := [name for name in files if _is_below(path, name)]:
            raise ToolError(f"The path {above[0]} is not a directory.")

    def _at(self, given: str, verb: str) -> list[tuple[str, Entry]]:
        """The file of this path, or all files below it."""
        path = self._path(given)
        if path == ROOT:
            raise ToolError(f"Cannot {verb} the {ROOT} directory itself")
        found = [(name, entry) for name, entry in self._all().items() if name == path or _is_below(name, path)]
        if not found:
            raise ToolError(f"The path {given} does not exist")
        return found

    def _change(self, given: str, change: Callable[[str], str]) -> tuple[str, str]:
        """Change the content of a file; returns it before and after. Begins again if the file changes meanwhile."""
        path = self._path(given)
        while True:
            files = self._all()
            if path not in files:
                folder = path == ROOT or any(_is_below(name, path) for name in files)
                problem = "is not a file." if folder else "does not exist. Please provide a valid path."
                raise ToolError(f"The path {given} {problem}")
            entry = files[path]
            before = _content(entry)
            after = change(before)
            stored = _stored(path, after)
            changes = {**stored, "evidence": stored["text"], "state": "active", "valid_to": None}
            with suppress(Conflict):
                try:
                    self._memory.engine.changer.edit(entry.id, scope=self._scope, changes=changes, expected=entry)
                except NotFound:
                    raise ToolError(f"The file {path} no longer exists.") from None
                return before, after


def _awaited(method: Callable[..., str]) -> Callable[..., Awaitable[str]]:
    """A method of the tool as one of the async tool, which runs it on a thread."""

    @functools.wraps(method)
    async def call(self: AsyncWellwornMemoryTool, *command: Any) -> str:
        return await asyncio.to_thread(method, self.tool, *command)

    return call


class AsyncWellwornMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same for `AsyncAnthropic`."""

    def __init__(self, memory: Memory) -> None:
        super().__init__()
        self.tool = WellwornMemoryTool(memory)

    view: Any = _awaited(WellwornMemoryTool.view)
    create: Any = _awaited(WellwornMemoryTool.create)
    str_replace: Any = _awaited(WellwornMemoryTool.str_replace)
    insert: Any = _awaited(WellwornMemoryTool.insert)
    delete: Any = _awaited(WellwornMemoryTool.delete)
    rename: Any = _awaited(WellwornMemoryTool.rename)
    clear_all_memory: Any = _awaited(WellwornMemoryTool.clear_all_memory)


def _by_path(rows: Sequence[tuple[int, Entry]]) -> dict[str, Entry]:
    return {f"{ROOT}/{entry.title}": entry for _, entry in rows}


def _title(path: str) -> str:
    return path.removeprefix(f"{ROOT}/")


def _stored(path: str, content: str) -> dict[str, Any]:  # fields of an entry
    text = clean_text(content)
    if text.strip():
        return {"title": _title(path), "text": text, "metadata": {}}
    return {"title": _title(path), "text": "(an empty file)", "metadata": {_BLANK: text}}


def _content(entry: Entry) -> str:
    return str(entry.metadata.get(_BLANK, entry.text))


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(f"{folder}/")


def _lines(lines: Sequence[str], first: int) -> str:
    return "\n".join(f"{number:>{_NUMBER_WIDTH}}\t{line}" for number, line in enumerate(lines, start=first))


def _listed(shown: str, folder: str, sizes: Mapping[str, int]) -> Iterator[str]:
    """The files and folders below a folder with their sizes, two levels deep, without hidden ones."""
    totals: dict[tuple[str, ...], int] = {}
    for path, size in sizes.items():
        parts = path.removeprefix(f"{folder}/").split("/")
        for depth in range(1, min(len(parts), LISTED_LEVELS) + 1):
            name = (*parts[: depth - 1], parts[depth - 1] + ("/" if depth < len(parts) else ""))
            totals[name] = totals.get(name, 0) + size
    for name in sorted(totals, key=lambda parts: [part.removesuffix("/") for part in parts]):
        if not any(part.startswith(".") for part in name):
            yield f"{_size(totals[name])}\t{shown}/{'/'.join(name)}"


def _size(count: int) -> str:
    """A size as the SDK writes it: 0B, 512B, 1.5K."""
    unit = min(max(count.bit_length() - 1, 0) // 10, 3)
    size = count / 1024**unit
    return f"{int(size) if size == int(size) else f'{size:.1f}'}{'BKMG'[unit]}"
