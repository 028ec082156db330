"""The settings of the programs that talk to `wellworn mcp`: where each keeps them, and what is added.

Formats as their makers document them in November 2026; those of Claude Code and Codex were tried with the programs. Files
are changed as text: comments, order, indentation and line ends stay, and what is added can be taken out so that the text is,
byte for byte, the one before. JSON may have comments and trailing commas; to TOML tables are added at the end.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput
from wellworn.core.lazy import regex

_SPACE = regex(r"(?:[\s\ufeff]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = regex(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SCALAR = regex(r"[^\s,\[\]{}/]+")
MAX_DEPTH = 100
Ours = Callable[[Any], bool]
"""Whether a value in a file is one that we put there."""


class Unreadable(ValueError):
    """The text is no JSON, or no TOML."""


# -- JSON ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Node:
    """A value in a text, by where it stands."""

    start: int
    stop: int
    value: Any  # any JSON value
    members: Mapping[str, tuple[int, Node]] | None = None
    """Of an object: where each name begins, and its value."""
    items: Sequence[Node] | None = None
    end_of_last: int = 0
    """Where the last member or item ends; the opening bracket if there is none."""


def parsed(text: str) -> Node:
    """The value of a whole text."""
    node = _node(text, _skip(text, 0), 0)
    if _skip(text, node.stop) != len(text):
        raise Unreadable(f"there is more after the value, at character {node.stop}")
    return node


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _node(text: str, at: int, depth: int) -> Node:
    if depth > MAX_DEPTH:
        raise Unreadable("it is nested too deeply")
    sign = text[at : at + 1]
    if sign in ("{", "["):
        return _container(text, at, depth)
    found = _STRING.match(text, at) or _SCALAR.match(text, at)
    try:
        value = json.loads(found[0] if found else "", strict=False)
    except ValueError:
        raise Unreadable(f"line {text.count(chr(10), 0, at) + 1} is not JSON") from None
    return Node(start=at, stop=found.end() if found else at, value=value)


def _container(text: str, at: int, depth: int) -> Node:
    is_object, closing = text[at] == "{", "}" if text[at] == "{" else "]"
    members: dict[str, tuple[int, Node]] = {}
    items: list[Node] = []
    here, last, wants_comma = _skip(text, at + 1), at + 1, False
    while text[here : here + 1] != closing:
        if wants_comma:
            if text[here : here + 1] != ",":
                raise Unreadable(f"line {text.count(chr(10), 0, here) + 1}: a comma or {closing} is missing")
            here, wants_comma = _skip(text, here + 1), False
            continue
        begin = here
        if is_object:
            name = _node(text, here, depth + 1)
            here = _skip(text, name.stop)
            if not isinstance(name.value, str) or text[here : here + 1] != ":":
                raise Unreadable(f"line {text.count(chr(10), 0, begin) + 1}: a name is missing")
            here = _skip(text, here + 1)
        node = _node(text, here, depth + 1)
        if is_object:
            if name.value in members:
                raise Unreadable(f"line {text.count(chr(10), 0, begin) + 1}: {name.value!r} is there twice")
            members[name.value] = (begin, node)
        items.append(node)
        here, last, wants_comma = _skip(text, node.stop), node.stop, True
    if is_object:
        value: Any = {key: node.value for key, (_, node) in members.items()}
        return Node(start=at, stop=here + 1, value=value, members=members, end_of_last=last)
    return Node(start=at, stop=here + 1, value=[node.value for node in items], items=items, end_of_last=last)


def with_json(text: str, path: Sequence[str], value: object) -> str:
    """The text with a value at a path of names. Where a list stands, the value is appended to it; an object must not
    have the last name yet. A file of ours is known by its indent: what is added to an empty object has another."""
    if not text.strip():
        return text + _dumped(_nested(path, value), "    ", "\n", "") + "\n"
    node, indent, line_end = parsed(text), _indent(text), "\r\n" if "\r\n" in text else "\n"
    for depth, name in enumerate(path):
        if node.members is None:
            raise Unreadable(f"{'.'.join(path[:depth]) or 'the whole'} is not an object")
        if name not in node.members:
            shown = _dumped(_nested(path[depth + 1 :], value), indent, line_end, indent * (depth + 1))
            return _inserted(text, node, f"{json.dumps(name)}: {shown}", indent, line_end, depth)
        node = node.members[name][1]
    if node.items is None or not isinstance(value, list):
        raise Unreadable(f"{'.'.join(path)} is there already")
    shown = _dumped(value[0], indent, line_end, indent * (len(path) + 1))
    return _inserted(text, node, shown, indent, line_end, len(path))


def without_json(text: str, path: Sequence[str], ours: Ours) -> str:
    """The text as it was before `with_json`: of all ways to take out what is ours, the one that adding it undoes."""
    chain = [parsed(text)]
    for name in path:
        members = chain[-1].members
        if members is None or name not in members:
            return text
        chain.append(members[name][1])
    chain += _down_to(ours, chain[-1].items or ())
    own = chain[-1].value
    if not ours(own):
        return text
    value = own if chain[-2].items is None else [own]
    # Take out the value, or what holds nothing else, or what holds nothing but that, up to the whole text.
    cuts = [_cut(text, chain[-2], chain[-1])]
    for parent, node in zip(reversed(chain[:-2]), reversed(chain[1:-1]), strict=True):
        if len(node.value) > 1:
            break
        cuts.append(_cut(text, parent, node))
    else:
        cuts += [text[: chain[0].start]] if len(chain[0].value) == 1 else []
    return next((cut for cut in reversed(cuts) if _gives(cut, path, value, text)), cuts[0])


def _down_to(ours: Ours, items: Sequence[Node]) -> list[Node]:
    """The nodes down to the first item that is ours: a group of hooks, or where it has several, ours alone."""
    own = next((item for item in items if ours(item.value)), None)
    if own is None:
        return []
    _, hooks = (own.members or {}).get("hooks", (0, own))
    inner = hooks.items or ()
    return [own, hooks, *_down_to(ours, inner)] if len(inner) > 1 else [own]


def _gives(cut: str, path: Sequence[str], value: object, text: str) -> bool:
    try:
        return with_json(cut, path, value) == text
    except Unreadable:
        return False


def _cut(text: str, parent: Node, node: Node) -> str:
    """The text without a node, its name and the comma that it needed. Comments around it stay."""
    if parent.members is not None:
        places = list(parent.members.values())
    else:
        places = [(one.start, one) for one in parent.items or ()]
    at = next(n for n, (_, one) in enumerate(places) if one is node)
    start = places[at][0]
    if len(places) == 1:
        before, after = text[parent.start + 1 : start], _without_comma(text, node.stop, parent.stop - 1)
        kept = [part if part.strip() else "" for part in (before, after)]
        return f"{text[: parent.start + 1]}{''.join(kept)}{text[parent.stop - 1 :]}"
    if at == len(places) - 1:
        last = places[at - 1][1].stop
        gap, rest = _without_comma(text, last, start), text[node.stop :]
        is_open = gap.strip() and not re.match(r"[ \t]*\r?\n", rest)  # a comment that a line end must close
        return text[:last] + (gap if is_open else gap.rstrip()) + rest
    following = places[at + 1][0]
    return text[:start] + _without_comma(text, node.stop, following).lstrip() + text[following:]


def _without_comma(text: str, start: int, stop: int) -> str:
    """What stands between two values, without the comma: comments and spaces."""
    comma = _skip(text, start)
    return text[start:comma] + text[comma + 1 : stop]


def _inserted(text: str, parent: Node, shown: str, indent: str, line_end: str, depth: int) -> str:
    """The text with one more member at the end of an object or list."""
    at, inner, outer = parent.end_of_last, line_end + indent * (depth + 1), line_end + indent * depth
    if parent.members or parent.items:
        return f"{text[:at]},{inner}{shown}{text[at:]}"
    comment = text[at : parent.stop - 1]
    return f"{text[:at]}{inner}{shown}{comment if comment.strip() else outer}{text[parent.stop - 1 :]}"


def _nested(path: Sequence[str], value: object) -> object:
    for name in reversed(path):
        value = {name: value}
    return value


def _indent(text: str) -> str:
    found = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return found[1] if found else "  "


def _dumped(value: object, indent: str, line_end: str, outer: str) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=False).replace("\n", line_end + outer)


# -- TOML ------------------------------------------------------------------------------------------------------------


def with_toml(text: str, path: Sequence[str], value: Mapping[str, Any]) -> str:
    """The text with a table at its end."""
    _toml(text)
    line_end = "\r\n" if "\r\n" in text else "\n"
    lines = [f"[{'.'.join(path)}]", *(f"{name} = {json.dumps(one, ensure_ascii=False)}" for name, one in value.items())]
    gap = line_end if text else ""
    added = text + gap + line_end.join(lines) + line_end
    _toml(added)
    return added


def without_toml(text: str, path: Sequence[str]) -> str:
    """The text without the table and without the gap before it."""
    before = _toml(text)
    form = rf"^\[{re.escape('.'.join(path))}\]\r?\n(?:(?:[ \t\r]*(?:#[^\n]*)?\n)*[^\s\[#][^\n]*(?:\n|\Z))*"
    found = next(reversed([*re.finditer(form, text, re.MULTILINE)]), None)  # an earlier one stands in a string
    table = value_at(text, path, toml=True)
    if table is None:
        return text
    if found is None:
        raise Unreadable(f"{'.'.join(path)} is not written as a table of its own")
    head, tail = text[: found.start()], text[found.end() :]
    for gap in ("\r\n", "\n"):
        if not tail and head.endswith(gap) and with_toml(head.removesuffix(gap), path, table) == text:
            return head.removesuffix(gap)
    after = _toml(head + tail)
    holder = before
    for name in path[:-1]:
        holder = holder[name]
    del holder[path[-1]]
    if {name: one for name, one in before.items() if one} != {name: one for name, one in after.items() if one}:
        raise Unreadable(f"{'.'.join(path)} was changed by hand")
    return head + tail


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise Unreadable(str(error)) from None


# -- either ----------------------------------------------------------------------------------------------------------


def value_at(text: str, path: Sequence[str], *, toml: bool) -> Any:  # any value
    """What stands at a path; None where nothing does."""
    if not text.strip():
        return None
    value: Any = _toml(text) if toml else parsed(text).value
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


# -- clients -----------------------------------------------------------------------------------------------------------

NAME = "wellworn"
"""The server's name in every client."""
HOOKS = {"UserPromptSubmit": ("pre-task", 10), "Stop": ("post-task", 60), "SessionEnd": ("session-end", 10)}
"""By event: our command, and how many seconds it may take."""
_OUR_HOOK = regex(r"\bwellworn(?:\.exe)?['\"]? hook (?:pre-task|post-task|session-end)\b")


@dataclass(frozen=True, kw_only=True)
class Change:
    """One value in one file: at a path of names, or appended to the list there."""

    file: Path
    path: tuple[str, ...]
    value: Any  # any JSON value

    @property
    def toml(self) -> bool:
        return self.file.suffix == ".toml"

    @property
    def listed(self) -> bool:
        return isinstance(self.value, list)

    def add(self, text: str) -> str:
        """The text with the change; the same text if it has it. Never replaces what is there."""
        there = value_at(text, self.path, toml=self.toml)
        own, wanted = (_our_hooks(there), _our_hooks(self.value)) if self.listed else (there, self.value)
        if own not in (None, [], wanted):
            remedy = "wellworn connect … --remove takes it out first"
            raise InvalidInput(str(self.file), f"has another {'.'.join(self.path)} already", remedy)
        if own == wanted:
            return text
        return with_toml(text, self.path, self.value) if self.toml else with_json(text, self.path, self.value)

    def remove(self, text: str) -> str:
        """The text without the change, whatever the options were that it was made with."""
        if not text.strip():
            return text
        if self.toml:
            return without_toml(text, self.path)
        left = without_json(text, self.path, self.is_ours)
        while left != text and left.strip():  # somebody may have copied it
            text, left = left, without_json(left, self.path, self.is_ours)
        return left

    def is_ours(self, value: object) -> bool:
        """Whether a value in the file is ours: the server of our name, or a hook that runs our command."""
        return not self.listed or bool(_our_hooks(value))


def _our_hooks(value: object) -> list[object]:
    """The hooks that run our command: in a list, in a group, or the hook itself."""
    if isinstance(value, list):
        return [hook for one in value for hook in _our_hooks(one)]
    if not isinstance(value, Mapping):
        return []
    if "hooks" in value:
        return _our_hooks(value["hooks"])
    line = value.get("command")
    return [value] if isinstance(line, str) and _OUR_HOOK.search(line) else []


@dataclass(frozen=True, kw_only=True)
class ClientSettings:
    """A program, and its files for one project folder or for a person's home."""

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
            for event in self.hooks:
                name, most_s = HOOKS[event]
                line = shlex.join([*command, "hook", name, *options, *model])
                group = {"hooks": [{"type": "command", "command": line, "timeout": most_s}]}
                made.append(Change(file=self.hooks_file(place), path=("hooks", event), value=[group]))
        return made


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


def _moved(variable: str, project_file: str, home_file: str, moved_file: str) -> Callable[[Path | None], Path]:
    """As `_under`, where the program lets a variable name its folder of settings for all projects."""

    def place(project: Path | None) -> Path:
        folder = os.environ.get(variable) if project is None else None
        return Path(folder) / moved_file if folder else _under(project_file, home_file)(project)

    return place


CLIENTS: Mapping[str, ClientSettings] = {
    "claude-code": ClientSettings(
        servers=("mcpServers",),
        file=_moved("CLAUDE_CONFIG_DIR", ".mcp.json", ".claude.json", ".claude.json"),
        hooks_file=_moved("CLAUDE_CONFIG_DIR", ".claude/settings.json", ".claude/settings.json", "settings.json"),
        hooks=("UserPromptSubmit", "Stop", "SessionEnd"),
        typed=True,
        then="Start `claude` and allow the server if it asks; /mcp lists it.",
    ),
    "cursor": ClientSettings(
        servers=("mcpServers",),
        file=_under(".cursor/mcp.json", ".cursor/mcp.json"),
        typed=True,
        then="Restart Cursor and switch the server on under Customize, MCPs.",
    ),
    "vscode": ClientSettings(
        servers=("servers",),
        file=lambda project: _app_data("Code", "User", "mcp.json") if project is None else project / ".vscode/mcp.json",
        typed=True,
        then="Open the folder in VS Code and start the server: the command is `MCP: List Servers`.",
    ),
    "codex": ClientSettings(
        servers=("mcp_servers",),
        file=_moved("CODEX_HOME", ".codex/config.toml", ".codex/config.toml", "config.toml"),
        hooks_file=_moved("CODEX_HOME", ".codex/hooks.json", ".codex/hooks.json", "hooks.json"),
        hooks=("UserPromptSubmit", "Stop"),
        then="Start `codex` and trust the folder and the hooks when it asks; /mcp lists the server.",
    ),
    "claude-desktop": ClientSettings(
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
        try:
            before.setdefault(file, _read(file))
            text = after.get(file, before[file])
            after[file] = change.remove(text) if remove else change.add(text)
        except Unreadable as error:
            remedy = f"mend it, or {'take out' if remove else 'add'} by hand what --print shows"
            raise InvalidInput(str(change.file), f"cannot be changed: {error}", remedy) from None
    return {file: (text if text or not remove else None) for file, text in after.items() if text != before[file]}


def write(texts: Mapping[Path, str | None]) -> None:
    """Write each file whole or not at all, with the permissions it had; remove those that would be empty."""
    from wellworn.ops.files import beside  # takes time to import

    for file, text in texts.items():
        if text is None:
            file.unlink()
            if file.parent.name.startswith("."):  # a folder for settings alone, which may be empty now
                with suppress(OSError):
                    file.parent.rmdir()
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        mode = file.stat().st_mode & 0o777 if file.exists() else 0o644
        with beside(file) as made:
            made.write(text.encode())
        file.chmod(mode)


def _read(file: Path) -> str:
    try:
        return file.read_bytes().decode()
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise Unreadable(str(error)) from None
