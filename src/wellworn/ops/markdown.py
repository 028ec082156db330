"""The readable export: a folder of Markdown files, one an entry, for people.

    folder/
      2026-05/<id>.md          front matter with every field and the links both ways; the body is the text, verbatim

Entries and links make the round trip; raw turns, old versions and vectors are in the JSONL export only. Of the two
lists of links the outgoing one is read, the incoming one is for readers; a link to an entry that is not in the folder
is left out. An entry that is in the store already stays as it is there. Other notes are for `wellworn import obsidian`.

Between two `---` lines stands a YAML mapping, then the body. One line end after the body belongs to the file, not to
the body: editors add it when it is missing. Everything else, `---` lines and foreign line ends included, is the body's.
Only plain YAML data is read: no tags that make objects, no aliases (they can grow without bound), no deep nesting.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from wellworn.core.errors import InvalidInput, TransferError
from wellworn.core.lazy import regex
from wellworn.core.plain import to_plain
from wellworn.core.values import Entry, Link, Partition, Progress, Scope, unwatched
from wellworn.ingest.remember import Writer
from wellworn.ops.bundle import Bundle, Loaded, Written, admit, coherent
from wellworn.ops.files import files_in, folder_beside, read_text
from wellworn.ops.lines import checked_id, value_of
from wellworn.store.port import Store, StoreReader

if TYPE_CHECKING or not yaml.__with_libyaml__:
    from yaml import SafeDumper, SafeLoader
else:  # the same in C, several times as fast
    from yaml import CSafeDumper as SafeDumper
    from yaml import CSafeLoader as SafeLoader

VERSION = 1
MARK = "wellworn"
"""The key of the front matter that says that a file is an entry, with the version."""
_EMPTY = {one.name: one.default for one in fields(Entry) if not one.default}
_EMPTY |= {one.name: one.default_factory() for one in fields(Entry) if one.default_factory is not MISSING}
"""What a field is that a file does not show."""
MAX_DEPTH = 100

_FRONT = regex(r"\A\ufeff?---[ \t]*\r?\n(?P<yaml>(?:.*?\n)??)---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_TIMESTAMP, _TEXT = "tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:str"


# -- front matter and body ----------------------------------------------------------------------------------------------


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


_Loader.add_constructor("tag:yaml.org,2002:map", _unique_mapping)
_Dumper.add_representer(
    str, lambda dumper, text: dumper.represent_scalar(_TEXT, text, style=None if text.isprintable() else '"')
)


def join(front: Mapping[str, Any], body: str) -> str:
    """The content of a file."""
    head = yaml.dump(
        dict(front), Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=None, width=2**31 - 1
    )
    return f"---\n{head}---\n{body}\n"


def split(content: str, name: str) -> tuple[dict[str, Any] | None, str]:
    """Front matter and body; None and the whole content when it does not begin with a mapping, or nothing, between `---` lines.

    Front matter that is not readable YAML is an error that names the file.
    """
    found = _FRONT.match(content)
    front = _mapping(found["yaml"], name) if found else None
    body = content[found.end() :] if found and front is not None else content.removeprefix("\ufeff")
    return front, body.removesuffix("\n")


def _mapping(text: str, name: str) -> dict[str, Any] | None:
    if not text.strip():
        return {}
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


# -- one entry, one file -----------------------------------------------------------------------------------------------


def file_of(entry: Entry, links: Sequence[Link]) -> str:
    """The content of an entry's file."""
    values = to_plain(entry)
    text, evidence, _ = values.pop("text"), values.pop("evidence"), values.pop("content_hash")
    shown = {key: value for key, value in values.items() if key not in _EMPTY or value != _EMPTY[key]}
    front = {MARK: VERSION, **shown} | ({"evidence": evidence} if evidence != text else {})
    outgoing = [_plain_end(link, "target") for link in links if link.source == entry.id]
    incoming = [_plain_end(link, "source") for link in links if link.target == entry.id]
    return join({**front, "links": {"outgoing": outgoing, "incoming": incoming}}, text)


def _plain_end(link: Link, end: str) -> dict[str, Any]:
    values = to_plain(link)
    return {end: values[end]} | {key: value for key, value in values.items() if key not in ("source", "target")}


def _mark(front: Mapping[str, Any] | None) -> str | None:
    """The key that marks an exported file; the first one where the product had another name. None: it is a note."""
    if not front or MARK in front:
        return MARK if front else None
    return next(iter(front)) if "shelf" in front else None


def entry_in(front: Mapping[str, Any], body: str, name: str) -> tuple[Entry, list[Link]]:
    """The entry of a file with its outgoing links; fields that someone took out have their usual values."""
    values = {"evidence": body, "source": "import", **front, "text": body}
    version = values.pop(_mark(front) or MARK, None)
    if version != VERSION:
        raise TransferError(f"{name} is of export version {version!r}; this release reads version {VERSION}")
    links = values.pop("links", {})
    if not isinstance(links, Mapping) or not links.keys() <= {"outgoing", "incoming"}:
        raise TransferError(f"{name}: links: is not an object with the lists outgoing and incoming")
    outgoing = links.get("outgoing", [])
    if not isinstance(outgoing, list) or not all(isinstance(link, Mapping) for link in outgoing):
        raise TransferError(f"{name}: links: outgoing is not a list of links, as in {{target: <id>, type: supports}}")
    at = values.get("at")
    created_at = values.get("created_at", at)
    usual = {"created_at": created_at, "updated_at": created_at, "valid_from": at}
    entry = value_of(Entry, {**usual, **values}, name, complete=False)
    whole = [{"created_at": entry.updated_at, **link, "source": entry.id} for link in outgoing]
    return entry, [value_of(Link, link, f"{name}: links", complete=False) for link in whole]


# -- writing -----------------------------------------------------------------------------------------------------


def export_folder(
    store: StoreReader,
    root: Path,
    *,
    partitions: Sequence[Partition],
    note: Path | None = None,
    progress: Progress = unwatched,
) -> Written:
    """Write the partitions to a new or empty folder. It appears under its name when it is whole. `note` as in `beside`."""
    total = store.counts(partitions)["entries"]
    entries = links = size = left_out = 0
    with folder_beside(root, note) as folder:
        for entry, around in _with_links(store, partitions):
            name = _name_of(entry)
            if name is None:
                left_out += 1
                continue
            content = file_of(entry, around).encode()
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
            entries += 1
            links += sum(link.source == entry.id for link in around)
            size += len(content)
            progress(entries, max(total, entries))
    return Written(path=str(root), format="markdown", entries=entries, links=links, bytes=size, unreadable=left_out)


def _with_links(store: StoreReader, partitions: Sequence[Partition]) -> Iterator[tuple[Entry, list[Link]]]:
    """Every entry with the links that join it to another entry of these partitions."""
    for partition in partitions:
        for page in store.pages([partition]):
            ids = [entry.id for _, entry in page]
            links = store.links(ids)
            ends = {end for link in links for end in (link.source, link.target)}
            seen = {*ids, *store.get(partitions, sorted(ends.difference(ids)))}
            around: dict[str, list[Link]] = {entry_id: [] for entry_id in ends.union(ids)}
            for link in links:
                if link.source in seen and link.target in seen:
                    around[link.source].append(link)
                    around[link.target].append(link)
            yield from ((entry, around[entry.id]) for _, entry in page)


def _name_of(entry: Entry) -> str | None:
    """The entry's file, by the month it happened in; only a UUID may become a name, None for another id."""
    utc = entry.at.astimezone(UTC)
    try:
        return f"{utc.year:04d}-{utc.month:02d}/{checked_id(entry.id)}.md"
    except InvalidInput:
        return None


# -- reading -----------------------------------------------------------------------------------------------------


def load_folder(
    store: Store, writer: Writer, root: Path, *, scope: Scope | None = None, progress: Progress = unwatched
) -> Loaded:
    """Take the entries of a folder into the store. Every file is read and checked before anything is written; one that is
    no entry is left out and named in `problems`."""
    entries: dict[str, Entry] = {}
    links: list[Link] = []
    problems: list[str] = []
    for path in files_in(root, ".md"):
        try:
            front, body = split(read_text(path), str(path))
            if front is None or _mark(front) is None:
                raise TransferError(f"{path} is no entry of an export: `wellworn import obsidian` takes over notes")
            entry, outgoing = entry_in(front, body, str(path))
            coherent(Bundle(entries=[entry]), where=str(path))
            if entry.id in entries:
                raise TransferError(f"{path}: entry {entry.id} is there twice")
        except TransferError as error:
            problems.append(str(error))
            continue
        entries[entry.id] = entry
        links += outgoing
    here = store.get(None if scope is None else scope.partitions(), [*entries])
    stays = "is here with another text, and stays as it is: change it with `wellworn edit`"
    problems += [f"entry {id} {stays}" for id, entry in here.items() if entry.text != entries[id].text]
    links = [link for link in links if link.target in entries]
    bundle = coherent(Bundle(entries=[*entries.values()], links=links), where=str(root))
    loaded = admit(bundle, store, writer, scope=scope, progress=progress)
    return replace(loaded, problems=(*problems, *loaded.problems))
