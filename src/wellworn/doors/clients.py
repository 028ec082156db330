"""The settings of the programs that talk to `wellworn mcp`: where each keeps them, and what is added.

Formats as their makers document them (docs/decisions/0026-mcp.md says when they were looked up). `doors.settings_text`
changes the files.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput
from wellworn.core.lazy import regex
from wellworn.doors.settings_text import Unreadable, refused, value_at, with_json, with_toml, without_json, without_toml

NAME = "wellworn"
"""The server's name in every client."""
HOOK_S = {"UserPromptSubmit": 10, "Stop": 60, "SessionEnd": 10}
HOOKS = {"UserPromptSubmit": "pre-task", "Stop": "post-task", "SessionEnd": "session-end"}
_OUR_HOOK = regex(r"\bwellworn\b.* hook (?:pre-task|post-task|session-end)\b")


@dataclass(frozen=True, kw_only=True)
class Change:
    """One value in one file: at a path of names, or appended to the list there."""

    file: Path
    path: tuple[str, ...]
    value: Any  # any JSON value

    @property
    def toml(self) -> bool:
        return self.file.suffix == ".toml"

    def shown(self) -> str:
        """What would be written into an empty file."""
        return self._add("")

    def add(self, text: str) -> str:
        """The text with the change; the same text if it has it. Never replaces what is there."""
        there = value_at(text, self.path, toml=self.toml)
        listed = there if isinstance(there, list) else [] if there is None else [there]
        own = [one for one in listed if self.is_ours(one)]
        if own and own != ([self.value] if there is own[0] else self.value):
            remedy = "wellworn connect … --remove takes it out first"
            raise InvalidInput(str(self.file), f"has another {'.'.join(self.path)} already", remedy)
        return text if own else self._add(text)

    def remove(self, text: str) -> str:
        """The text without the change, whatever the options were that it was made with."""
        if not text.strip():
            return text
        return without_toml(text, self.path) if self.toml else without_json(text, self.path, self.is_ours)

    def is_ours(self, value: object) -> bool:
        """Whether a value in the file is ours: the server of our name, or a hook that runs our command."""
        if not isinstance(self.value, list):
            return True
        hooks = value.get("hooks") if isinstance(value, Mapping) else None
        lines = [hook.get("command") for hook in hooks or () if isinstance(hook, Mapping)]
        return any(isinstance(line, str) and _OUR_HOOK.search(line) for line in lines)

    def _add(self, text: str) -> str:
        return with_toml(text, self.path, self.value) if self.toml else with_json(text, self.path, self.value)


@dataclass(frozen=True, kw_only=True)
class ClientSettings:
    """A program, and its files for one project folder or for a person's home."""

    title: str
    servers: tuple[str, ...]
    """Where the servers stand in its file."""
    file: Callable[[Path | None], Path]
    hooks_file: Callable[[Path | None], Path] | None = None
    hooks: tuple[str, ...] = ()
    typed: bool = False
    """Whether a server names its transport."""
    has_projects: bool = True
    then: str = ""
    """What the person does next."""

    def changes(
        self, project: Path | None, command: Sequence[str], options: Sequence[str], llm: str | None = None
    ) -> list[Change]:
        """What to write so that it starts `command mcp options`, with hooks where it has them."""
        place = project if self.has_projects else None
        model = ["--llm", llm] if llm else []
        server = {"command": command[0], "args": [*command[1:], "mcp", *options, *model]}
        server = {"type": "stdio", **server} if self.typed else server
        made = [Change(file=self.file(place), path=(*self.servers, NAME), value=server)]
        if self.hooks_file is not None:
            made += [
                Change(
                    file=self.hooks_file(place), path=("hooks", event), value=[_hook(event, command, options, model)]
                )
                for event in self.hooks
            ]
        return made


def _hook(event: str, command: Sequence[str], options: Sequence[str], model: Sequence[str]) -> Mapping[str, Any]:
    reads = () if event == "UserPromptSubmit" else model
    line = shlex.join([*command, "hook", HOOKS[event], *options, *reads])
    return {"hooks": [{"type": "command", "command": line, "timeout": HOOK_S[event]}]}


def _under(project_file: str, home_file: str) -> Callable[[Path | None], Path]:
    return lambda project: Path.home() / home_file if project is None else project / project_file


def _app_data(*parts: str) -> Path:
    """The folder where desktop programs keep their settings."""
    if sys.platform == "darwin":
        root = Path.home() / "Library" / "Application Support"
    elif sys.platform == "win32":
        root = Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    else:
        root = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return root.joinpath(*parts)


def _codex(name: str) -> Callable[[Path | None], Path]:
    home = os.environ.get("CODEX_HOME")
    return lambda project: (Path(home or Path.home() / ".codex") if project is None else project / ".codex") / name


CLIENTS: Mapping[str, ClientSettings] = {
    "claude-code": ClientSettings(
        title="Claude Code",
        servers=("mcpServers",),
        file=_under(".mcp.json", ".claude.json"),
        hooks_file=_under(".claude/settings.json", ".claude/settings.json"),
        hooks=("UserPromptSubmit", "Stop", "SessionEnd"),
        typed=True,
        then="Start `claude` in this folder and allow the server; /mcp lists it.",
    ),
    "cursor": ClientSettings(
        title="Cursor",
        servers=("mcpServers",),
        file=_under(".cursor/mcp.json", ".cursor/mcp.json"),
        typed=True,
        then="Restart Cursor and switch the server on under Customize, MCPs.",
    ),
    "vscode": ClientSettings(
        title="VS Code",
        servers=("servers",),
        file=lambda project: _app_data("Code", "User", "mcp.json") if project is None else project / ".vscode/mcp.json",
        typed=True,
        then="Open the folder in VS Code and start the server: the command is `MCP: List Servers`.",
    ),
    "codex": ClientSettings(
        title="Codex",
        servers=("mcp_servers",),
        file=_codex("config.toml"),
        hooks_file=_codex("hooks.json"),
        hooks=("UserPromptSubmit",),
        then="Start `codex` in this folder and trust it; /mcp lists the server.",
    ),
    "claude-desktop": ClientSettings(
        title="Claude Desktop",
        servers=("mcpServers",),
        file=lambda _: _app_data("Claude", "claude_desktop_config.json"),
        has_projects=False,
        then="Quit Claude Desktop and start it again.",
    ),
}


def applied(changes: Sequence[Change], *, remove: bool) -> dict[Path, str | None]:
    """The new text of each file that changes; None for a file that goes. Nothing is written here."""
    before: dict[Path, str] = {}
    after: dict[Path, str] = {}
    for change in reversed(changes) if remove else changes:
        file = change.file.resolve()  # settings are often links
        before.setdefault(file, _read(file))
        text = after.get(file, before[file])
        try:
            after[file] = change.remove(text) if remove else change.add(text)
        except Unreadable as error:
            raise refused(change.file, error) from None
    return {file: (text if text or not remove else None) for file, text in after.items() if text != before[file]}


def write(texts: Mapping[Path, str | None]) -> None:
    """Write each file whole or not at all, with the permissions it had; remove those that would be empty."""
    for file, text in texts.items():
        if text is None:
            file.unlink()
            if file.parent.name.startswith("."):  # a folder for settings alone, which may be empty now
                with suppress(OSError):
                    file.parent.rmdir()
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        beside = file.with_name(f".{file.name}.{os.getpid()}.tmp")
        mode = file.stat().st_mode & 0o777 if file.exists() else 0o644
        try:
            beside.write_bytes(text.encode())
            beside.chmod(mode)
            os.replace(beside, file)
        finally:
            beside.unlink(missing_ok=True)


def _read(file: Path) -> str:
    try:
        return file.read_bytes().decode()
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise refused(file, error) from None
