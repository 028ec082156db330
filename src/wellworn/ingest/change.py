"""Changing what is remembered: edit, supersede, link. The state before a change stays in the entry's history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

from wellworn.core.errors import Conflict, InvalidInput
from wellworn.core.values import Entry, Link, Partition, Scope, Version, altered
from wellworn.core.wellformed import count_tokens
from wellworn.ingest import validate
from wellworn.ingest.outdate import compare_anew, hold_again, leads, outdate, release
from wellworn.ingest.remember import Rivals, Writer, scrubbed_values
from wellworn.ingest.session import OFFSET
from wellworn.ingest.terms import content_hash
from wellworn.store.events import Event, audit
from wellworn.store.port import NewEntry, Store, Tx

ONE_WAY_LINKS = ("supersedes", "derived_from")
EDITABLE = (
    *("text", "title", "tags", "kind", "state", "confidence", "trust", "at", "valid_from", "valid_to"),
    *("metadata", "evidence", "speaker"),
)
_NEVER_NONE = ("at", "valid_from", "evidence")
_IN_INDEX = frozenset({"text", "title", "tags", "speaker"})


class Changer:
    """Edits entries in place and draws links between them."""

    def __init__(self, store: Store, writer: Writer) -> None:
        self._store = store
        self._writer = writer
        self._clock = writer.clock

    def edit(
        self,
        entry_id: str,
        *,
        scope: Scope,
        changes: Mapping[str, Any],
        moved: Mapping[str, Any] = MappingProxyType({}),
        expected: Entry | None = None,
    ) -> Entry:
        """The entry with the changes made; nothing is written when one value is bad, or the entry is not as expected.
        `moved` are fields that only an integration changes."""
        unknown = sorted(changes.keys() - set(EDITABLE))
        if unknown or not changes:
            problem = f"cannot change {', '.join(unknown)}" if unknown else "nothing to change"
            raise InvalidInput("edit", problem, f"fields are {', '.join(EDITABLE)}")
        entry_id = validate.checked_id(entry_id)
        wanted = self._checked({**changes, **moved}, self._visible(entry_id, scope).partition)
        while True:
            before = self._visible(entry_id, scope)
            if expected is not None and as_edited(before) != as_edited(expected):
                raise Conflict(f"entry {entry_id!r} was changed meanwhile (read it again)", status=412)
            if all(getattr(before, name) == value for name, value in wanted.items()):
                return before  # nothing to change, so nothing to keep a version of
            after = _edited(before, wanted, self._clock())
            index = vector = parts = None
            rivals: Rivals = ()
            if _IN_INDEX & wanted.keys():
                new, rivals = self._compared(after, anew=before.text != after.text)
                index, vector, parts = new.index, new.vector, new.parts
            with self._writer.transact() as tx:
                if tx.one(scope.partitions(), entry_id) != before:
                    continue  # changed by someone else while it was embedded: start again from there
                _refuse_duplicate(tx, after)
                tx.update(after, change="edited", index=index, vector=vector, parts=parts)
                if after.state == "pruned" != before.state:
                    release(tx, entry_id, after.updated_at, automatic=False)
                audit(tx, _event(after, "edit", fields=", ".join(sorted(wanted))))
                if before.text != after.text:
                    after = compare_anew(tx, after, rivals)
            return after

    def _compared(self, after: Entry, *, anew: bool) -> tuple[NewEntry, Rivals]:
        """An edited entry as it is indexed; if its text changed, what it may replace now, or what may replace it. What its
        words had replaced is looked at as if it held."""
        links = self._store.links([after.id], types=["supersedes"]) if anew else ()
        ids = {end for link in links if link.automatic for end in (link.source, link.target)} - {after.id}
        others = self._store.get([after.partition], sorted(ids)).values()
        free = [
            altered(one, state="active", valid_to=None) if one.state == "superseded" else one
            for one in (*others, after)
        ]
        records = self._writer.records_of(free)
        return replace(records[-1], entry=after), self._writer.replaced_by(records)[-1] if anew else ()

    def retitle(self, titles: Sequence[tuple[Entry, str]], *, scope: Scope, check: Callable[[Tx], None]) -> None:
        """Give entries other titles, all or none: none if one has changed since it was read, or `check` raises."""
        wanted = [(entry, self._checked({"title": title}, entry.partition)) for entry, title in titles]
        records = self._writer.records_of([_edited(entry, title, self._clock()) for entry, title in wanted])
        with self._writer.transact() as tx:
            check(tx)
            for (before, _), new in zip(titles, records, strict=True):
                if tx.one(scope.partitions(), before.id) != before:
                    raise Conflict(f"entry {before.id!r} was changed meanwhile (read it again)", status=412)
                tx.update(new.entry, change="edited", index=new.index, vector=new.vector, parts=new.parts)
                audit(tx, _event(new.entry, "edit", fields="title"))

    def supersede(
        self, old_id: str, new_id: str, *, scope: Scope, at: validate.TimeLike = None, wrong: bool = False
    ) -> Entry:
        old_id, new_id = validate.checked_id(old_id), validate.checked_id(new_id)
        if old_id == new_id:
            raise InvalidInput("new", f"{new_id!r} cannot replace itself")
        moment = validate.as_time("at", at)
        with self._store.transact() as tx:
            old, new = (tx.one(scope.partitions(), id) for id in (old_id, new_id))
            state = "pruned" if wrong else "superseded"
            drawn = {(link.source, link.target, link.type) for link in self._store.links([old_id])}
            if old.state == state and moment is None and (new_id, old_id, "supersedes") in drawn:
                tx.add_links([Link(source=new_id, target=old_id, type="supersedes", created_at=self._clock())])
                return old  # done before, by hand or by itself: now it is by hand
            self._refuse_ring(new_id, old_id, "supersedes")
            return outdate(tx, old, new, self._clock(), at=moment, wrong=wrong)

    def link(self, source: str, target: str, type_: str, *, scope: Scope, confidence: float) -> Link:
        """The link as it stands: drawn now, or before. A link drawn by hand replaces an automatic one."""
        source, target = validate.checked_id(source), validate.checked_id(target)
        if source == target:
            raise InvalidInput("link", f"entry {source!r} cannot be linked to itself")
        sure, now = validate.checked_fraction("confidence", confidence), self._clock()
        link = Link(
            source=source, target=target, type=validate.checked_link_type(type_), created_at=now, confidence=sure
        )
        with self._store.transact() as tx:
            first, _ = (tx.one(scope.partitions(), id) for id in (source, target))
            self._refuse_ring(source, target, link.type)
            if tx.add_links([link]):
                audit(tx, _event(first, "link", at=self._clock(), to=target, type=link.type))
        found = (one for one in self._store.links([source]) if (one.target, one.type) == (target, link.type))
        return next(found, link)

    def _refuse_ring(self, source: str, target: str, type_: str) -> None:
        """`supersedes` and `derived_from` say what came before what, so they cannot lead back. Called in a transaction
        before it writes, so that what is committed is all there is."""
        if type_ in ONE_WAY_LINKS and leads(self._store, target, source, type_):
            raise InvalidInput("link", f"{target!r} already {type_} {source!r}, directly or through others")

    def unlink(self, source: str, target: str, type_: str, *, scope: Scope) -> bool:
        source, target = validate.checked_id(source), validate.checked_id(target)
        with self._store.transact() as tx:
            first, second = (tx.one(scope.partitions(), id) for id in (source, target))
            removed = tx.remove_link(source, target, validate.checked_link_type(type_))
            if removed and type_ == "supersedes":
                hold_again(tx, second, first, self._clock())
            if removed:
                audit(tx, _event(first, "unlink", at=self._clock(), to=target, type=type_))
        return removed

    def links(self, entry_id: str, *, scope: Scope) -> list[Link]:
        """Links of an entry, but none whose other end the scope does not see."""
        self._visible(entry_id, scope)
        found = self._store.links([entry_id])
        ends = {end for link in found for end in (link.source, link.target)}
        seen = self._store.get(scope.partitions(), sorted(ends))
        return [link for link in found if link.source in seen and link.target in seen]

    def replacements(self, entry_id: str, *, scope: Scope) -> list[Entry]:
        """What replaced an entry, or a part of it, as far as the scope sees it."""
        links = [link for link in self._store.links([entry_id], types=["supersedes"]) if link.target == entry_id]
        return [*self._store.get(scope.partitions(), [link.source for link in links]).values()]

    def history(self, entry_id: str, *, scope: Scope) -> list[Version]:
        """The replaced states, then the present one; each is labelled with the change that brought it about."""
        present = self._visible(entry_id, scope)
        replaced = self._store.replaced(entry_id)
        states = [old.entry for old in replaced] + [present]
        changes = [("remembered", present.created_at)] + [(old.change, old.changed_at) for old in replaced]
        return [
            Version(number=number, change=change, changed_at=changed_at, entry=entry)
            for number, (entry, (change, changed_at)) in enumerate(zip(states, changes, strict=True), start=1)
        ]

    def _checked(self, changes: Mapping[str, Any], partition: Partition) -> dict[str, Any]:
        """The new values, checked as given and again as scrubbed."""
        for name in _NEVER_NONE:
            if name in changes and changes[name] is None:
                raise InvalidInput(name, "needs a value")
        checks = {**validate.CHECKS, "state": validate.checked_state}
        wanted = {name: checks[name](value) for name, value in changes.items()}
        scrubbing = self._writer.scrubbing
        return scrubbed_values(wanted, scrubbing.stored(partition)) if scrubbing.on else wanted

    def _visible(self, entry_id: str, scope: Scope) -> Entry:
        return self._store.one(scope.partitions(), validate.checked_id(entry_id))


def as_edited(entry: Entry) -> Entry:
    """The entry without what it gathers by itself: whoever edits it has nothing to lose by that."""
    return replace(
        entry, repeats=0, usage_count=0, success_count=0, failure_count=0, confidence=0.0, updated_at=entry.created_at
    )


def _edited(entry: Entry, wanted: Mapping[str, Any], now: datetime) -> Entry:
    """The entry with the changes and everything that follows from them."""
    after: Entry = replace(entry, **wanted, updated_at=max(now, entry.updated_at))
    if OFFSET in entry.metadata and {"at", "metadata"} & wanted.keys():  # the zone is that of the time
        zone = {} if "at" in wanted else {OFFSET: entry.metadata[OFFSET]}
        others = {name: value for name, value in after.metadata.items() if name != OFFSET}
        after = replace(after, metadata=others | zone)
    validate.refuse_backwards(after.valid_from, after.valid_to)
    if after.state == "superseded" and after.valid_to is None:
        raise InvalidInput("state", "a superseded entry needs valid_to", "supersede it by the entry that replaced it")
    return replace(after, content_hash=content_hash(after), token_count=count_tokens(after.text))


def _refuse_duplicate(tx: Tx, after: Entry) -> None:
    same = tx.find_same(after.partition, after.content_hash)
    if same is not None and same.id != after.id and after.state in ("active", "flagged"):
        raise InvalidInput("text", f"entry {same.id} already says this", "supersede or forget one of them")


def _event(entry: Entry, action: str, *, at: datetime | None = None, **detail: str) -> Event:
    return Event(at=at or entry.updated_at, tenant=entry.tenant, action=action, entry_id=entry.id, detail=dict(detail))
