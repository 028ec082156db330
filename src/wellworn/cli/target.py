"""Which memory a command works on: the options that every command shares, resolved to a store and a scope.

The nearest option counts: after the command, else before it, else the environment, else the default.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from wellworn.cli import render
from wellworn.cli.ask import DEFAULT_DB, memory_file
from wellworn.core.dataclass import dataclass
from wellworn.core.errors import EmbedderMismatch, InvalidInput, NotFound
from wellworn.core.values import LAYERS, Scope
from wellworn.core.wellformed import without_password

if TYPE_CHECKING:
    from wellworn.memory import Memory
    from wellworn.store.port import Store
    from wellworn.tasks import ReasoningBank


T = TypeVar("T")
DEFAULT_USER = "me"


@dataclass(frozen=True)
class Shared:
    """One shared option: its help, its environment variable and its default."""

    help: str
    metavar: str
    env: str | None = None
    default: str | None = None
    rare: bool = False
    """Accepted everywhere, but described only in `wellworn --help`."""

    @property
    def sentence(self) -> str:
        notes = [f"env {self.env}"] if self.env else []
        notes += [f"default {self.default}"] if self.default else []
        return f"{self.help} ({', '.join(notes)})" if notes else self.help


EMBEDDERS = "reader, static, minilm, onnx:FOLDER, fastembed:MODEL, sentence-transformers:MODEL, openai:MODEL, hash, or none (words only)."
SHARED: dict[str, Shared] = {
    "db": Shared("The memory's file, or postgresql://….", "PATH", "WELLWORN_DB", DEFAULT_DB),
    "user": Shared(f'The person; "{DEFAULT_USER}" if no layer is named.', "ID", "WELLWORN_USER"),
    "tenant": Shared("The tenant; tenants never see each other's data.", "ID", "WELLWORN_TENANT", "default", rare=True),
    "agent": Shared("The agent.", "ID", rare=True),
    "session": Shared("The session layer (for the turns of a dialogue use --session-id).", "ID", rare=True),
    "project": Shared("The project.", "ID", rare=True),
    "team": Shared("The team.", "ID", rare=True),
    "org": Shared("The organisation.", "ID", rare=True),
    "company": Shared("The company.", "ID", rare=True),
    "embedder": Shared(EMBEDDERS, "NAME", "WELLWORN_EMBEDDER", "reader", rare=True),
}


@dataclass(frozen=True, kw_only=True)
class Target:
    """The memory, the scope and the form of the answer that the command line names."""

    db: str
    names_db: bool
    """Whether somebody chose it: by an option or the environment."""
    embedder: str
    scope: Scope
    owner: Scope | None
    """What an operator's command is about: the layers that are named, a whole tenant, or None, the whole store."""
    json: bool
    options: Options
    """The options that lead here from a bare command."""

    def open(
        self, *, new: bool = False, whole: bool = False, background: bool = False, **settings: Any
    ) -> Memory:  # settings of Memory
        """Open the memory for the scope, or for the whole store.

        A missing file is an error unless the command may make it (`new`).
        """
        from wellworn.memory import Memory

        self._check_file(new)
        memory = as_stored(
            self.embedder, lambda name: Memory.open(self.db, embedder=name, background=background, **settings)
        )
        self.tell_renewal(memory)
        return memory if whole else memory.for_scope(self.scope)

    def tell_renewal(self, memory: Memory) -> None:
        """Say how far the vectors of an older release are renewed, where that goes on."""
        if memory.engine.renews:
            from wellworn.ops.reembed import renewed

            done, total = renewed(memory.engine.store)
            self.say(
                f"The vectors of this memory are being renewed: {done:,} of {total:,}. Until then it is searched by words "
                "alone; `wellworn admin reembed` does it now."
            )

    def open_store(self, *, new: bool = False) -> Store:
        """Open the store alone: it may be of any embedder."""
        from wellworn.store import choose_store

        self._check_file(new)
        return choose_store(self.db, durability="full")

    def _check_file(self, new: bool) -> None:
        if not new and self.db != ":memory:" and "://" not in self.db and not os.path.exists(self.db):
            raise InvalidInput("--db", f"no file {self.db!r}", "remember something first, or check the path")

    @property
    def place(self) -> str:
        """The memory as it may be shown: without a password."""
        return without_password(self.db)

    @property
    def file(self) -> Path:
        """The file of the memory, for commands that work on files only."""
        if "://" in self.db:
            remedy = "use a SQLite file; `wellworn move FILE URL` brings one into a database"
            raise InvalidInput("--db", f"{self.place!r} is not a file", remedy)
        return Path(self.db)

    def answer(self, document: object, *shown: object, nothing: str = "") -> None:
        """Print the document with --json, otherwise what is shown: tables, and texts as they are; `nothing` is said
        where they are all empty."""
        if self.json:
            render.print_json(document)
        else:
            render.show(*shown)
        if nothing and all(one is None for one in shown):
            self.say(nothing)

    def say(self, message: str) -> None:
        """A remark on standard error; none with --json. A command in it works when it is pasted."""
        if not self.json:
            render.say(pasteable(message, self.options))

    @property
    def named(self) -> Scope:
        """The scope of a command that destroys everything of somebody: it must be named."""
        if self.owner is None or not self.owner.partitions():
            raise InvalidInput("--user", "is missing", "say whose data goes, as in --user ada")
        return self.owner

    @property
    def whose(self) -> str:
        return "the whole store" if self.owner is None else _told(self.owner)

    def __str__(self) -> str:
        return _told(self.scope)


def _told(scope: Scope) -> str:
    layers = ", ".join(f"{partition.layer} {partition.layer_id}" for partition in scope.partitions())
    tenant = f"tenant {scope.tenant}"
    return tenant if not layers else layers if scope.tenant == "default" else f"{layers} ({tenant})"


Options = Mapping[str, str]
SECRET = ""
"""Stands for a value that is not printed."""


def pasteable(text: str, options: Options) -> str:
    """The text with these options added to each command in backticks, as in `wellworn list --user ada`."""

    def whole(found: re.Match[str]) -> str:
        lacks = {name: value for name, value in options.items() if name not in found[1].split()}
        added = [f" {name} {shlex.quote(value)}" for name, value in lacks.items() if value != SECRET]
        hint = " (with the address in WELLWORN_DB)" if SECRET in lacks.values() else ""
        return f"`{found[1]}{''.join(added)}`{hint}"

    return re.sub(r"`(wellworn [^`]+)`", whole, text)


def as_stored(embedder: str, make: Callable[[str], T]) -> T:
    """Make something that opens a store: with this embedder, or where it is the usual one with that of the store."""
    try:
        return make(embedder)
    except EmbedderMismatch as error:
        if (other := embedder_for(embedder, error.stored)) == embedder:
            raise
        return make(other)


def embedder_for(embedder: str, stored: str) -> str:
    """The embedder to open a store with whose vectors are of the stored one: that, if nobody chose another."""
    usual = embedder == SHARED["embedder"].default
    return "minilm" if usual and stored.startswith("minilm:") else embedder


def added_options(values: Mapping[str, str | None]) -> Options:
    """The options that a bare command lacks. An address with a password is not written out: the environment holds it."""
    bare = {name: os.environ.get(shared.env or "") or shared.default for name, shared in SHARED.items()}
    added = {f"--{name}": one for name, one in values.items() if one and one != bare[name]}
    return {name: one if without_password(one) == one else SECRET for name, one in added.items()}


def target_of(values: Mapping[str, str | None], *, as_json: bool = False) -> Target:
    """The target that the values of the shared options name."""
    layers = {layer: value for layer in LAYERS if (value := values[layer]) is not None}
    named = Scope(tenant="default" if (tenant := values["tenant"]) is None else tenant, **layers)
    return Target(
        db=memory_file(values["db"]),
        names_db=bool(values["db"]),
        embedder=values["embedder"] or "reader",
        scope=named if layers else replace(named, user=DEFAULT_USER),
        owner=named if layers or tenant is not None else None,
        json=as_json,
        options=added_options(values),
    )


@contextmanager
def opened(target: Target, **options: Any) -> Iterator[ReasoningBank]:  # as `Target.open` takes them
    """The bank of the scope; it takes time to import, and most commands do without it."""
    from wellworn.tasks import ReasoningBank

    with target.open(**options) as memory:
        yield ReasoningBank(memory, scope=target.scope)


# -- ids by their beginning, as git names commits ----------------------------------------------------------------------

LISTED = 8
"""How many matches of an ambiguous id are listed."""
RECENT = 500
"""How many of the last recalls can be named by the beginning of their id."""


def entry_id(memory: Memory, start: str) -> str:
    """The id of the one visible entry whose id begins like this; a range query, so nothing else is read."""
    from wellworn.store.values import Selection

    if not start or memory.scope is None:
        return start
    found = memory.engine.store.select(memory.scope.partitions(), Selection(id_prefix=start), limit=LISTED + 1)
    return _the_one("ID", start, {entry.id: entry.text for _, entry in found})


def entry_ids(memory: Memory, starts: Iterable[str]) -> list[str]:
    return [entry_id(memory, start) for start in starts]


def recall_id(memory: Memory, start: str | None) -> str:
    """The id of the recall that begins like this, among the last ones; of the very last without a beginning."""
    from wellworn.learning.records import last_recalls

    if memory.scope is None:
        return start or ""
    recalls = last_recalls(memory.engine.store, memory.scope.home(), limit=1 if start is None else RECENT)
    if start is None:
        if not recalls:
            home = memory.scope.home()
            raise NotFound("recall", "--last", f"{home.layer} {home.layer_id} has asked nothing yet")
        return next(iter(recalls))
    return _the_one("RECALL", start, {id: query for id, query in recalls.items() if id.startswith(start)})


def _the_one(field: str, start: str, texts: Mapping[str, str]) -> str:
    """The only match; an id that matches nothing is returned as it is, and gets the facade's own error."""
    if start in texts or not texts:
        return start
    if len(texts) == 1:
        return next(iter(texts))
    listed = "; ".join(f"{id} ({' '.join(text.split())[:40]})" for id, text in list(texts.items())[:LISTED])
    more = " …" if len(texts) > LISTED else ""
    raise InvalidInput(field, f"{start!r} is the beginning of several ids: {listed}{more}", "give more of it")
