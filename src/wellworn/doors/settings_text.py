"""Add a value to a settings file of somebody else, and take it out again, without touching anything else in it.

Works on the text: comments, order, indentation and line ends stay. What is added can be taken out so that the text is,
byte for byte, the one before. Reads JSON with comments and trailing commas; TOML through tables at the end of the file.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
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
            members[name.value] = (begin, node)
        items.append(node)
        here, last, wants_comma = _skip(text, node.stop), node.stop, True
    if is_object:
        value: Any = {key: node.value for key, (_, node) in members.items()}
        return Node(start=at, stop=here + 1, value=value, members=members, end_of_last=last)
    return Node(start=at, stop=here + 1, value=[node.value for node in items], items=items, end_of_last=last)


def with_json(text: str, path: Sequence[str], value: object) -> str:
    """The text with a value at a path of names. Where a list stands, the value is appended to it; an object must not
    have the last name yet."""
    if not text.strip():
        return _dumped(_nested(path, value), "  ", "\n", "") + "\n"
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
    if (items := chain[-1].items) is not None:
        chain += [item for item in items if ours(item.value)][:1]
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
        cuts += [""] if len(chain[0].value) == 1 else []
    return next((cut for cut in reversed(cuts) if _gives(cut, path, value, text)), cuts[0])


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
    if len(places) == 1:
        before, after = text[parent.start + 1 : places[0][0]], text[node.stop : parent.stop - 1]
        kept = [part if part.strip(" \t\r\n,") else "" for part in (before, after)]
        return f"{text[: parent.start + 1]}{''.join(kept)}{text[parent.stop - 1 :]}"
    if at == len(places) - 1:
        return text[: places[at - 1][1].stop] + text[node.stop :]
    return text[: places[at][0]] + text[places[at + 1][0] :]


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
    found = re.search(rf"^\[{re.escape('.'.join(path))}\]\r?\n(?:[^\s\[#][^\n]*(?:\n|\Z))*", text, re.MULTILINE)
    table = value_at(text, path, toml=True)
    if found is None:
        if table is not None:
            raise Unreadable(f"{'.'.join(path)} is not written as a table of its own")
        return text
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


def refused(file: object, why: Exception) -> InvalidInput:
    """The error for a file that cannot be changed safely."""
    return InvalidInput(str(file), f"cannot be changed: {why}", "mend it, or add by hand what --print shows")
