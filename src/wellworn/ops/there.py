"""What other systems export, as records: a reader turns a file or folder of one source into them and stores nothing.

What it does not import it names with a reason. The shapes are those of the systems' own exports and of dumps with their
clients; unknown fields are left alone.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput, TransferError
from wellworn.core.lazy import regex
from wellworn.ingest.terms import text_hash
from wellworn.ingest.validate import Draft, TimeLike, as_time
from wellworn.ops.files import files_in, open_plain, read_text
from wellworn.ops.markdown import split

MAX_BYTES = 4_000_000_000
_WORDS = ("content", "text", "memory", "data")
"""Where the words of a memory stand, in values that frameworks store."""

Plain = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ThereMemory:
    """A memory of another system: its id there, whose it is there, and what to remember."""

    id: str
    draft: Draft
    owner: str | None = None


@dataclass(frozen=True, kw_only=True)
class ThereTurn:
    """What was said in a dialogue of another system."""

    id: str
    """Empty where it has none that lasts: then it is known by when it was said, by whom, and by its words."""
    role: str
    text: str
    at: TimeLike = None
    """Without one it was said when the turn before it was, or when the dialogue began."""
    speaker: str | None = None


@dataclass(frozen=True, kw_only=True)
class ThereDialogue:
    """A dialogue of another system."""

    id: str
    turns: Sequence[ThereTurn]
    at: TimeLike = None
    owner: str | None = None


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """A record that is not imported, and why: a few words that many records share."""

    where: str
    why: str


Record = ThereMemory | ThereDialogue | Skipped
Reader = Callable[[Path], Iterator[Record]]


# -- files ---------------------------------------------------------------------------------------------------------


def _from(*patterns: str) -> Callable[[Callable[[Iterator[Any]], Iterator[Record]]], Reader]:
    """Make a reader of documents one of a path: of a file, or of the files of these names in a folder or an archive."""

    def of_path(read: Callable[[Iterator[Any]], Iterator[Record]]) -> Reader:
        @wraps(read)
        def records(path: Path) -> Iterator[Record]:
            lost: list[Skipped] = []
            yield from read(_documents(path, lost, *patterns))
            yield from lost

        return records

    return of_path


def _documents(path: Path, lost: list[Skipped], *patterns: str) -> Iterator[Any]:
    """The JSON of a file, of the fitting files of a folder, or of those of a ZIP archive; lines that are none are lost."""
    if path.is_dir():
        found = [
            one for one in files_in(path, ".json", ".jsonl", ".af") if any(map(one.relative_to(path).match, patterns))
        ]
        if not found:
            raise TransferError(f"there is no {' or '.join(patterns[:2])} in {path}")
        for file_in in found:
            if file_in.is_symlink():
                lost.append(Skipped(where=str(file_in), why="is a symbolic link"))
            else:
                yield from _documents(file_in, lost, *patterns)
        return
    try:
        with open_plain(path) as file:
            if not zipfile.is_zipfile(file):
                file.seek(0)
                yield from _json(file.read(), str(path), lost)
                return
            with zipfile.ZipFile(file) as archive:
                members = [one for one in archive.infolist() if any(map(Path(one.filename).match, patterns))]
                if not members:
                    raise TransferError(f"there is no {' or '.join(patterns[:2])} in {path}")
                for one in members:
                    if one.file_size > MAX_BYTES:
                        raise TransferError(f"{path}: {one.filename} has more than {MAX_BYTES:,} bytes")
                    yield from _json(archive.read(one), f"{path}: {one.filename}", lost)
    except (OSError, EOFError, RuntimeError, zlib.error, zipfile.BadZipFile) as error:
        raise TransferError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error


def _json(raw: bytes, where: str, lost: list[Skipped]) -> Iterator[Any]:
    """A document, or the list of those on the lines if at least half of the lines are objects; none of an empty file."""
    if not raw.removeprefix(BOM_UTF8).strip():
        lost.append(Skipped(where=where, why="an empty file"))
        return
    try:
        yield json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        if raw.startswith(b"PK\x03\x04"):
            raise TransferError(f"{where}: the archive is not whole; download it again") from None
        lines = {number: line for number, line in enumerate(raw.splitlines(), start=1) if line.strip()}
        found = {number: one for number, line in lines.items() if (one := _packed(line))}
        if len(lines) < 2 or len(found) * 2 < len(lines):
            raise TransferError(f"{where} is not JSON: {error}") from None
        lost += (Skipped(where=f"{where}: line {number}", why="is not JSON") for number in lines if number not in found)
        yield [*found.values()]


def _listed(document: Any, *names: str, where: str, own: Collection[str] = ()) -> list[Plain]:
    """The objects of a list, or of the first list under one of these names; at least one has a field of its `own`. An
    object with such a field is a list of one."""
    if isinstance(document, Mapping):
        alone = None if document.keys().isdisjoint(own) else [document]
        document = next((document[name] for name in names if isinstance(document.get(name), list)), alone)
    if not isinstance(document, list):
        raise TransferError(f"this is no export of {where}: there is no list" + (f" {names[0]!r}" if names else ""))
    found = [one for one in document if isinstance(one, Mapping)]
    if own and found and all(one.keys().isdisjoint(own) for one in found):
        raise TransferError(f"this is no export of {where}: no record has a field {' or '.join(map(repr, own))}")
    return found


def _object(value: object) -> Plain:
    return value if isinstance(value, Mapping) else {}


def _time(value: object) -> datetime | None:
    """A time, from text, seconds or milliseconds; None where it is none."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e14:
        return datetime.fromtimestamp(value if value < 1e11 else value / 1000, UTC)
    try:  # the name of a zone may follow its offset
        return as_time("time", value.partition("[")[0]) if isinstance(value, str) else None
    except InvalidInput:
        return None


def _limit(value: Any) -> TimeLike:
    """When something begins or ceases to hold. What cannot be read is left as it is: the record is skipped by name."""
    return _time(value) or value or None


def _text(content: object) -> str:
    """The words of a message: a text, or the texts among its parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part if isinstance(part, str) else part.get("text") for part in parts if isinstance(part, str | Mapping)]
    return "\n".join(text for text in texts if isinstance(text, str) and text.strip())


def _id(given: object, text: str) -> str:
    """The id of a memory, from its words if it has none."""
    return text_hash(text) if given in (None, "") else str(given)


def _tags(value: object) -> list[str]:
    return [str(tag)[:200] for tag in value if str(tag).strip()] if isinstance(value, list) else []


# -- chats ---------------------------------------------------------------------------------------------------------


@_from("conversations*.json")
def read_chatgpt(documents: Iterator[Any]) -> Iterator[Record]:
    """ChatGPT's data export: of each conversation the branch that was shown last."""
    for document in documents:
        for chat in _listed(document, where="ChatGPT", own=("mapping",)):
            name, turns = str(chat.get("conversation_id") or chat.get("id")), []
            nodes = _object(chat.get("mapping"))
            for node in _branch(nodes, chat.get("current_node")):
                message, parent = _object(nodes[node]).get("message"), _object(nodes[node]).get("parent")
                if isinstance(parent, str) and parent not in nodes:
                    yield Skipped(where=f"{name}/{parent}", why="a message that is missing in the export")
                if not isinstance(message, Mapping):
                    continue
                turn, why = _chatgpt_turn(message)
                if turn is not None:
                    turns.append(turn)
                else:
                    yield Skipped(where=f"{name}/{message.get('id')}", why=why)
            yield _dialogue(name, turns, _time(chat.get("create_time")))


def _branch(nodes: Plain, node: object) -> list[str]:
    """The names of the nodes from the first to the one that was current, or where that is missing to the newest end. Above
    a missing node follows the one that has it, or the node below it, among its children."""
    above = {child: name for name, one in nodes.items() for child in _tags(_object(one).get("children"))}
    if not isinstance(node, str) or node not in nodes:
        parents = {str(_object(one).get("parent")) for one in nodes.values()}
        ends = [name for name in reversed([*nodes]) if name not in parents]
        node = max(ends, key=lambda name: _made(nodes[name]), default=None)
    found: dict[str, None] = {}
    while isinstance(node, str) and node in nodes and node not in found:
        found[node] = None
        parent = str(_object(nodes[node]).get("parent"))
        node = next((one for one in (parent, above.get(parent), above.get(node)) if one in nodes), None)
    return [*reversed(found)]


def _made(node: object) -> datetime:
    made = _time(_object(_object(node).get("message")).get("create_time"))
    return made or datetime.min.replace(tzinfo=UTC)


_MARK = regex(
    r'\ue200(?:entity\ue202\["[^"\ue200]*","([^"\ue200]*)"|url\ue202([^\ue200-\ue202]*+))?[^\ue200\ue201]*\ue201'
)
"""ChatGPT's marks within a text: sources, and names and titles that are shown. One that has no end is text."""


def _chatgpt_turn(message: Plain) -> tuple[ThereTurn | None, str]:
    author, content, more = (_object(message.get(key)) for key in ("author", "content", "metadata"))
    role, text = author.get("role"), _MARK.sub(r"\1\2", _text(content.get("parts")))
    if role not in ("user", "assistant"):
        return None, f"a message of the {role}"
    if more.get("is_visually_hidden_from_conversation") or message.get("recipient", "all") != "all":
        return None, "a message that was not shown"
    if content.get("content_type") not in ("text", "multimodal_text") or not text.strip():
        return None, f"no text ({content.get('content_type')})"
    return ThereTurn(id=str(message.get("id") or ""), role=role, text=text, at=_time(message.get("create_time"))), ""


@_from(*(f"{name}{rest}.json" for name in ("conversations", "memories", "projects") for rest in ("*", "/*")))
def read_claude(documents: Iterator[Any]) -> Iterator[Record]:
    """Claude's data export: of each conversation the branch that was shown last, and what Claude remembers."""
    memories: list[Plain] = []
    projects: dict[str, str] = {}
    of_memory = ("conversations_memory", "project_memories")
    own = ("chat_messages", *of_memory, "docs")
    for document in documents:
        for item in _listed(document, "conversations", where="Claude", own=own):
            if any(key in item for key in of_memory):
                memories.append(item)
            elif "docs" in item:
                projects[str(item.get("uuid"))] = str(item.get("name") or "")
                yield Skipped(where=str(item.get("name")), why="a project's instructions and documents")
            else:
                yield from _claude_chat(item)
    for item in memories:
        texts = {"": item.get("conversations_memory"), **_object(item.get("project_memories"))}
        for project, text in texts.items():
            draft = Draft(text=str(text or ""), kind="fact", title=projects.get(project, ""))
            yield ThereMemory(id=f"memory/{item.get('account_uuid')}/{project}", draft=draft)


def _claude_chat(chat: Plain) -> Iterator[Record]:
    name, turns, nodes, last = str(chat.get("uuid")), list[ThereTurn](), dict[str, Plain](), ""
    messages = _listed(chat.get("chat_messages") or [], where="Claude")
    for number, message in enumerate(messages):
        parent = str(message.get("parent_message_uuid") or last)
        if parent not in nodes and parent != messages[0].get("parent_message_uuid"):  # that stands for none
            parent = last
        last = str(message.get("uuid") or number)
        nodes[last] = {**message, "parent": parent}
    shown = {*_branch(nodes, last)}
    for id, message in nodes.items():
        if id not in shown:
            yield Skipped(where=f"{name}/{id}", why="a message that was not shown")
            continue
        blocks, role = message.get("content"), "assistant" if message.get("sender") == "assistant" else "user"
        parts = blocks if isinstance(blocks, list) else []
        typed = _text([one for one in parts if _object(one).get("type") == "text"])
        said = {id: typed if parts else str(message.get("text") or "")}
        for number, file in enumerate(_listed(message.get("attachments") or [], where="Claude"), start=1):
            if str(file.get("file_name") or "paste").startswith("paste"):
                said[f"{id}/{number}"] = str(file.get("extracted_content") or "")
            else:
                yield Skipped(where=f"{name}/{id}", why="an attached file")
        at, lasts = _time(message.get("created_at")), bool(message.get("uuid"))
        words = {own: text for own, text in said.items() if text.strip()}
        found = [ThereTurn(id=own if lasts else "", role=role, text=text, at=at) for own, text in words.items()]
        if not found:
            yield Skipped(where=f"{name}/{id}", why="no text")
        turns += found
    yield _dialogue(name, turns, _time(chat.get("created_at")))


def _dialogue(id: str, turns: Sequence[ThereTurn], at: TimeLike) -> Record:
    return ThereDialogue(id=id, turns=turns, at=at) if turns else Skipped(where=id, why="an empty conversation")


# -- memory systems ------------------------------------------------------------------------------------------------


def _memory(item: Plain, text: object, *, id: str = "", owner: object = None, **about: Any) -> ThereMemory:
    """What a record says, known by its id or else by its words; `about` are further fields of a draft."""
    words, at = str(text or ""), _time(item.get("updated_at")) or _time(item.get("created_at"))
    own_id = id or _id(item.get("uuid") or item.get("id"), words)
    return ThereMemory(id=own_id, draft=Draft(text=words, **{"at": at, **about}), owner=str(owner) if owner else None)


@_from("*.json", "*.jsonl")
def read_mem0(documents: Iterator[Any]) -> Iterator[Record]:
    """What mem0's `get_all` or its export gives, as JSON."""
    own = ("memory", "text", "data")
    for document in documents:
        for item in _listed(document, "results", "memories", *own, where="mem0", own=own):
            text = next((item[key] for key in own if isinstance(item.get(key), str)), "")
            owner = item.get("user_id") or item.get("agent_id") or item.get("run_id")
            end, more = _time(item.get("expiration_date")), _object(item.get("metadata"))
            about = {"kind": "fact", "tags": _tags(item.get("categories")), "valid_to": end, "metadata": more}
            yield _memory(item, text, id=str(item.get("id") or text), owner=owner, **about)


@_from("*.json", "*.jsonl")
def read_langgraph(documents: Iterator[Any]) -> Iterator[Record]:
    """Items of a LangGraph store, as LangMem uses it: the `dict()` of each item, as JSON."""
    for document in documents:
        for item in _listed(document, "items", "memories", "results", where="a LangGraph store", own=("value",)):
            value, namespace = item.get("value"), item.get("namespace")
            place = "/".join(map(str, namespace)) if isinstance(namespace, list) else str(namespace or "")
            if not isinstance(value, Mapping):
                yield Skipped(where=f"{place}/{item.get('key')}", why="no value")
                continue
            inner = value["content"] if isinstance(value.get("content"), Mapping) else value
            words = next((inner[key] for key in _WORDS if isinstance(inner.get(key), str)), None)
            text = words or json.dumps(value, ensure_ascii=False)
            yield _memory(item, text, id=f"{place}/{_id(item.get('key'), text)}", owner=place, kind="fact")


@_from("*.json")
def read_zep(documents: Iterator[Any]) -> Iterator[Record]:
    """A Zep or Graphiti graph as JSON: edges are facts with their validity, summaries of nodes are notes,
    and so are episodes unless they are turns of a dialogue."""
    for graph in documents:
        if not isinstance(graph, Mapping) or graph.keys().isdisjoint(
            ("edges", "facts", "nodes", "entities", "episodes")
        ):
            raise TransferError("this is no export of Zep or Graphiti: it is not an object with edges")
        for edge in _listed(graph.get("edges", graph.get("facts", [])), where="Zep"):
            start, end = _limit(edge.get("valid_at")), _limit(edge.get("invalid_at") or edge.get("expired_at"))
            about: dict[str, Any] = {"at": start or _time(edge.get("created_at")), "valid_from": start, "valid_to": end}
            yield _memory(edge, edge.get("fact"), owner=edge.get("group_id"), kind="fact", **about)
        for node in _listed(graph.get("nodes", graph.get("entities", [])), where="Zep"):
            text, name = str(node.get("summary") or ""), str(node.get("name") or "")
            if text.strip():
                yield _memory(node, text, owner=node.get("group_id"), title=name)
            else:
                yield Skipped(where=name, why="an entity without a summary")
        threads: dict[tuple[str, str | None], list[ThereTurn]] = {}
        for episode in _listed(graph.get("episodes", []), where="Zep"):
            at = _time(episode.get("valid_at")) or _time(episode.get("created_at"))
            text, role = str(episode.get("content") or ""), episode.get("role_type")
            if role in ("user", "assistant"):
                name = str(episode.get("role") or "")
                turn = ThereTurn(id=str(episode.get("uuid") or ""), role=role, text=text, at=at, speaker=name)
                thread = episode.get("thread_id") or episode.get("session_id")
                owner = str(episode["group_id"]) if episode.get("group_id") else None
                threads.setdefault((str(thread or owner), owner), []).append(turn)
                continue
            yield _memory(episode, text, owner=episode.get("group_id"), title=str(episode.get("name") or ""), at=at)
        for (thread, owner), turns in threads.items():
            if _when(turns[0]) >= _when(turns[-1]):  # Zep lists the newest first, Graphiti the oldest
                turns.reverse()
            yield ThereDialogue(id=thread, turns=sorted(turns, key=_when), owner=owner)


def _when(turn: ThereTurn) -> str:
    return str(turn.at or "")


_OF_LETTA = ("agents", "messages", "core_memory", "archival_memory", "blocks")


@_from("*.af", "*.json", "*.jsonl")
def read_letta(documents: Iterator[Any]) -> Iterator[Record]:
    """A Letta agent file (`.af`): memory blocks and dialogue; or a list of archival passages."""
    for document in documents:
        if not isinstance(document, Mapping) or document.keys().isdisjoint(_OF_LETTA):
            for passage in _listed(document, where="Letta (an agent file or passages)", own=("text",)):
                yield _memory(passage, passage.get("text"), tags=_tags(passage.get("tags")))
            continue
        shared = {str(block.get("id")): block for block in _listed(document.get("blocks", []), where="Letta")}
        agents = _listed(document, "agents", where="Letta") if "agents" in document else [document]
        names = Counter(str(agent.get("name")) for agent in agents)
        for agent in agents:
            name = str(agent.get("name"))
            yield from _letta_agent(name if names[name] == 1 else f"{name} ({agent.get('id')})", agent, shared)


def _letta_agent(name: str, agent: Plain, shared: Mapping[str, Plain]) -> Iterator[Record]:
    """Letta counts ids from 0 in each file, so an agent is known by its name, and a message by its words."""
    turns: list[ThereTurn] = []
    for number, message in enumerate(_listed(agent.get("messages") or [], where="Letta")):
        role, text = message.get("role"), _letta_text(message)
        if role in ("user", "assistant") and text.strip():
            turns.append(ThereTurn(id="", role=role, text=text, at=_time(message.get("created_at"))))
        else:
            why = f"a message of the {role} without words to a person"
            yield Skipped(where=f"{name}/{message.get('id') or number}", why=why)
    listed = agent.get("core_memory") or [shared[id] for id in _tags(agent.get("block_ids")) if id in shared]
    for block in _listed(listed, where="Letta"):
        label = str(block.get("label"))
        if label == "persona":
            yield Skipped(where=f"{name}/{label}", why="what the agent is told about itself")
            continue
        yield _memory(block, block.get("value"), id=f"{name}/{label}", owner=name, title=label)
    for passage in _listed(agent.get("archival_memory") or [], where="Letta"):
        one = _memory(passage, passage.get("text"), owner=name, tags=_tags(passage.get("tags")))
        yield replace(one, id=f"{name}/{one.id}")
    if turns:
        yield ThereDialogue(id=name, turns=turns, at=_time(agent.get("created_at")), owner=name)


def _letta_text(message: Plain) -> str:
    """What was said: older agents speak through a tool, and pack what people say into JSON."""
    text = _text(message.get("content") if message.get("content") is not None else message.get("text"))
    if message.get("tool_calls"):
        listed = message["tool_calls"] if isinstance(message["tool_calls"], list) else []
        calls = [_object(_object(call).get("function")) for call in listed]
        told = [_packed(call.get("arguments")).get("message") for call in calls if call.get("name") == "send_message"]
        return "\n".join(one for one in told if isinstance(one, str))
    packed = _packed(text) if message.get("role") == "user" else {}
    if "type" in packed:
        return str(packed.get("message") or "") if packed["type"] == "user_message" else ""
    return text


def _packed(text: object) -> Plain:
    """The object of which this is the JSON; an empty one if it is of none."""
    try:
        return _object(json.loads(text)) if isinstance(text, str | bytes) else {}
    except (ValueError, RecursionError):
        return {}


# -- notes ---------------------------------------------------------------------------------------------------------


def read_notes(path: Path) -> Iterator[Record]:
    """A folder of Markdown notes, as Obsidian and basic-memory keep them; a note is known by the folder's name and its path there."""
    if not path.is_dir():
        raise TransferError(f"{path} is not a folder of notes")
    for file in files_in(path, ".md"):
        name = file.relative_to(path).as_posix()
        try:
            front, body = split(read_text(file), name)
        except TransferError as error:
            yield Skipped(where=name, why=str(error).removeprefix(f"{name}: ").removeprefix(f"{file} "))
            continue
        if not body.strip():
            yield Skipped(where=name, why="an empty note")
            continue
        about = front or {}
        tags = about.get("tags") or []
        tags = tags.split(",") if isinstance(tags, str) else tags if isinstance(tags, list) else [tags]
        draft = Draft(
            text=body.removesuffix("\r"),  # of the line end that is the file's
            title=str(about.get("title") or file.stem),
            tags=[said for tag in tags if (said := str(tag).strip().removeprefix("#"))],
            at=next((at for key in ("created", "date") if (at := _time(str(about.get(key))))), None),
            metadata={str(key): value for key, value in about.items() if key not in ("title", "tags")},
        )
        yield ThereMemory(id=f"{path.resolve().name}:{name}", draft=draft)


READERS: Mapping[str, tuple[str, Reader]] = {
    "chatgpt": ("chatgpt", read_chatgpt),
    "claude": ("claude", read_claude),
    "mem0": ("mem0", read_mem0),
    "letta": ("letta", read_letta),
    "zep": ("zep", read_zep),
    "graphiti": ("zep", read_zep),
    "langgraph": ("langgraph", read_langgraph),
    "langmem": ("langgraph", read_langgraph),
    "obsidian": ("notes", read_notes),
    "basic-memory": ("notes", read_notes),
}
"""The name on the command line, the name that entries carry as their source, and who reads it."""
