"""Markdown with YAML front matter, such that the body comes back exactly.

    ---\\n
    <YAML mapping>
    ---\\n
    <body, verbatim>\\n

One line end after the body belongs to the file, not to the body: editors add it when it is missing. Everything else,
`---` lines and foreign line ends included, is the body's. Only plain YAML data is read: no tags that make objects,
no aliases (they can grow without bound), no deep nesting. Times stay text. Knows nothing about entries.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import yaml

from wellworn.core.errors import TransferError

if TYPE_CHECKING or not yaml.__with_libyaml__:
    from yaml import SafeDumper, SafeLoader
else:  # the same in C, several times as fast
    from yaml import CSafeDumper as SafeDumper
    from yaml import CSafeLoader as SafeLoader

MAX_DEPTH = 100

_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(?P<yaml>(?:.*?\n)??)---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_TIMESTAMP = "tag:yaml.org,2002:timestamp"


class _Loader(SafeLoader):
    """Plain data with times left as text and every key once."""


class _Dumper(SafeDumper):
    """Times unquoted, text that is not plainly printable in double quotes, where nothing is folded or lost."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_PLAIN_RESOLVERS = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
    for first, resolvers in SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.yaml_implicit_resolvers = _PLAIN_RESOLVERS
_Dumper.yaml_implicit_resolvers = _PLAIN_RESOLVERS


def _unique_mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    if not all(isinstance(key, yaml.ScalarNode) for key, _ in node.value):
        raise yaml.constructor.ConstructorError(None, None, "a key is not a single value", node.start_mark)
    keys = [loader.construct_object(key, deep=True) for key, _ in node.value]
    if len({str(key) for key in keys}) != len(keys):
        raise yaml.constructor.ConstructorError(None, None, "a key is there twice", node.start_mark)
    return {key: loader.construct_object(value, deep=True) for key, (_, value) in zip(keys, node.value, strict=True)}


def _quoted_unless_printable(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_Loader.add_constructor("tag:yaml.org,2002:map", _unique_mapping)
_Dumper.add_representer(str, _quoted_unless_printable)


def join(front: Mapping[str, Any], body: str) -> str:
    """The content of a file."""
    head = yaml.dump(
        dict(front), Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=None, width=2**31 - 1
    )
    return f"---\n{head}---\n{body}\n"


def split(content: str, name: str) -> tuple[dict[str, Any] | None, str]:
    """Front matter and body; None and the whole content when it does not begin with a mapping between `---` lines.

    Front matter that is not readable YAML is an error that names the file.
    """
    found = _FRONT.match(content)
    front = _mapping(found["yaml"], name) if found else None
    body = content[found.end() :] if found and front is not None else content.removeprefix("\ufeff")
    return front, body.removesuffix("\n")


def _mapping(text: str, name: str) -> dict[str, Any] | None:
    try:
        _check_plain(text)
        front = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        mark = getattr(error, "problem_mark", None)
        line = f" on line {mark.line + 2}" if mark is not None else ""
        raise TransferError(f"{name}: the front matter is damaged{line}: {problem}") from None
    return front if isinstance(front, dict) else None


def _check_plain(text: str) -> None:
    """Refuse aliases and deep nesting before anything is built from them."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent):
            raise ValueError("aliases are not allowed")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise ValueError(f"nested more than {MAX_DEPTH} deep")
