"""Strategies that leave the agent who learned them: for a team, an organisation, or named agents; and come back.

What moves is a copy. It must have been promoted (peers: be sure and used enough), passes the scrubber once more, and
carries no word of the work it came from: its evidence is what counting says, and its confidence starts at what the
counted successes prove (the lower end of a Wilson interval), not at what the agent believed. The copy is linked
`derived_from` the original, and every share can be revoked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from wellworn.core.errors import InvalidInput, NotFound
from wellworn.core.values import LAYERS, Entry, Link, Partition, Scope
from wellworn.ingest.forget import SHARE, SHARED
from wellworn.ingest.remember import Writer, keep
from wellworn.ingest.validate import Draft
from wellworn.store.port import Event, NewEntry, Record, Store, Tx
from wellworn.tasks.consolidation.rings import leads_to
from wellworn.tasks.consolidation.rows import PROMOTED, live_pages
from wellworn.tasks.domains import domain_of, domain_tags
from wellworn.tasks.items import ORIGIN, is_item

SOURCE = "sharing"
WIDER_LAYERS = ("team", "org", "company")
MIN_JUDGED = 10
"""Uses with a verdict that it takes to be evidence."""
MIN_PROVEN = 0.5
"""The least success rate that they must prove."""
PEER_CONFIDENCE, PEER_USAGE = 0.8, 10
_Z = 1.645  # one-sided, 95 %
_MANY = 100_000


@dataclass(frozen=True, kw_only=True)
class Share:
    """One entry and what became of the wish to share it."""

    id: str
    to: Partition
    copy_id: str | None = None
    """None when it was refused."""
    refused: str = ""


def proven_rate(entry: Entry) -> float:
    """The success rate that an entry's verdicts prove: the lower end of Wilson's interval; 0 without verdicts."""
    n = entry.success_count + entry.failure_count
    if n == 0:
        return 0.0
    p = entry.success_count / n
    middle = p + _Z**2 / (2 * n)
    margin = _Z * math.sqrt(p * (1 - p) / n + _Z**2 / (4 * n**2))
    return max(0.0, (middle - margin) / (1 + _Z**2 / n))


def refusal(entry: Entry, *, promoted: bool, min_confidence: float = 0.0, min_usage: int = 0) -> str:
    """Why an entry may not be shared; empty when it may."""
    if not is_item(entry) or entry.state != "active":
        return f"is a {entry.kind} that is {entry.state}, not an active strategy or guardrail"
    if entry.trust != "trusted":
        return "comes from an untrusted source"
    if promoted and PROMOTED not in entry.metadata:
        return "is not promoted"
    if entry.confidence < min_confidence or entry.usage_count < min_usage:
        return f"has confidence {entry.confidence:.2f} and {entry.usage_count} uses, less than asked for"
    judged = entry.success_count + entry.failure_count
    if judged < MIN_JUDGED:
        return f"has {judged} uses with a verdict, and {MIN_JUDGED} are needed as evidence"
    if proven_rate(entry) < MIN_PROVEN:
        return f"proves a success rate of {proven_rate(entry):.2f}, and {MIN_PROVEN} is needed"
    return ""


@dataclass(frozen=True, kw_only=True)
class Sharing:
    """Moves copies between the partitions of one tenant."""

    store: Store
    writer: Writer

    def share(
        self, ids: Sequence[str], *, scope: Scope, layer: str | None = None, agents: Sequence[str] = ()
    ) -> list[Share]:
        """Share entries that the scope sees with one of its wider layers, or with agents of the tenant by name."""
        targets = _targets(scope, layer, agents)
        found = self.store.get(scope.partitions(), list(ids))
        missing = [id for id in ids if id not in found]
        if missing:
            raise NotFound("entry", missing[0])
        entries = [found[id] for id in dict.fromkeys(ids)]
        return [self._copy(entry, to, refusal(entry, promoted=True)) for to in targets for entry in entries]

    def learn_from_peer(
        self, peer: Scope, *, scope: Scope, min_confidence: float = PEER_CONFIDENCE, min_usage: int = PEER_USAGE
    ) -> list[Share]:
        """Take over what another agent is sure of and has used: copies of its strategies for this scope's agent."""
        if peer.agent is None or scope.agent is None or peer.tenant != scope.tenant or peer.agent == scope.agent:
            said = f"{peer.agent!r} is not another agent of the same tenant than {scope.agent!r}"
            raise InvalidInput("peer", said, "give both scopes an agent, each its own")
        to, source = scope.home("agent"), peer.home("agent")
        wanted = [
            entry
            for page in live_pages(self.store, source)
            for _, entry in page
            if entry.confidence >= min_confidence and entry.usage_count >= min_usage
        ]
        return [self._copy(entry, to, refusal(entry, promoted=False)) for entry in wanted]

    def _copy(self, entry: Entry, to: Partition, refused: str) -> Share:
        if not refused and to == entry.partition:
            refused = "is there already"
        if refused:
            return Share(id=entry.id, to=to, refused=refused)
        now = self.writer.clock()
        record = self.writer.records_of([self._entry(entry, to, now)])[0]
        with self.writer.transact() as tx:
            same = tx.find_same(to, record.entry.content_hash)
            if same is not None and self._known(entry, same):
                return Share(id=entry.id, to=to, copy_id=same.id)
            if same is not None and leads_to(self.store, entry.id, same.id, "derived_from"):
                return Share(id=entry.id, to=to, refused="was learned from there")
            copy_id = self._write(tx, entry, record, now)
        return Share(id=entry.id, to=to, copy_id=copy_id)

    def _known(self, entry: Entry, copy: Entry) -> bool:
        share = self.store.record(entry.partition, SHARE, _key(entry.id, copy.id))
        return share is not None and share.state == "shared"

    def _write(self, tx: Tx, entry: Entry, record: NewEntry, now: datetime) -> str:
        copy_id = keep(tx, record, now)  # the same from another agent: one copy, surer
        tx.add_links([Link(source=copy_id, target=entry.id, type="derived_from", created_at=now)])
        tx.put_record(
            Record(
                partition=entry.partition,
                kind=SHARE,
                key=_key(entry.id, copy_id),
                state="shared",
                names=(entry.id, copy_id),
                body={
                    "id": entry.id,
                    "copy": copy_id,
                    "layer": record.entry.layer,
                    "to": record.entry.partition.layer_id,
                },
                created_at=now,
                updated_at=now,
            )
        )
        tx.audit(
            Event(
                at=now,
                tenant=entry.tenant,
                action="share",
                entry_id=entry.id,
                detail={"copy": copy_id, "layer": record.entry.layer},
            )
        )
        return copy_id

    def _entry(self, entry: Entry, to: Partition, now: datetime) -> Entry:
        """The copy: scrubbed words, counted evidence, the origin without its task."""
        judged = entry.success_count + entry.failure_count
        origin: dict[str, Any] = {
            key: value for key, value in entry.metadata.get(ORIGIN, {}).items() if key in ("agent", "outcome", "by")
        }
        shared = {"id": entry.id, "layer": entry.layer, "from": entry.partition.layer_id, "at": now.isoformat()}
        draft = Draft(
            text=entry.text,
            kind=entry.kind,
            title=entry.title,
            tags=domain_tags(domain_of(entry.tags)),
            layer=to.layer,
            source=SOURCE,
            confidence=round(min(entry.confidence, proven_rate(entry)), 4),
            evidence=f"Succeeded {entry.success_count} of {judged} times, used {entry.usage_count} times.",
            metadata={ORIGIN: origin, SHARED: shared},
        )
        return self.writer.entry(draft, _scope_of(to), now)

    # -- back ----------------------------------------------------------------------------------------------------

    def shares(self, *, partition: Partition, id: str | None = None) -> list[dict[str, Any]]:
        """What was shared of a partition, or of one entry of it, newest first: JSON values with the `state` of each."""
        found = self.store.records(partition=partition, kinds=[SHARE], limit=_MANY)
        return [{**share.body, "state": share.state} for share in found if id in (None, share.body["id"])]

    def revoke(self, id: str, *, scope: Scope, layer: str | None = None, agents: Sequence[str] = ()) -> list[str]:
        """Take back what was shared of an entry, everywhere or from one layer or from some agents; ids of the copies
        that no longer hold. A copy that others shared as well stays for them."""
        entry = self.store.get(scope.partitions(), [id]).get(id)
        if entry is None:
            raise NotFound("entry", id)
        now = self.writer.clock()
        with self.store.transact() as tx:
            shares = self.store.records(partition=entry.partition, kinds=[SHARE], states=["shared"], limit=_MANY)
            meant = [share for share in shares if share.body["id"] == id and _meant(share.body, layer, agents)]
            return [share.body["copy"] for share in meant if self._revoke(tx, share, now)]

    def _revoke(self, tx: Tx, share: Record, now: datetime) -> bool:
        """Whether the copy ended with it."""
        original, copy_id = share.body["id"], share.body["copy"]
        to = Partition(tenant=share.partition.tenant, layer=share.body["layer"], layer_id=share.body["to"])
        tx.put_record(replace(share, state="revoked", updated_at=now))
        tx.remove_link(copy_id, original, "derived_from")
        tx.audit(Event(at=now, tenant=to.tenant, action="revoke", entry_id=original, detail={"copy": copy_id}))
        others = [
            link
            for link in self.store.links([copy_id])
            if link.type == "derived_from" and link.source == copy_id and link.target != original
        ]
        copy = tx.get([to], [copy_id]).get(copy_id)
        if copy is None or others or copy.source != SOURCE:
            return False  # gone, shared by others too, or known there before it was shared
        tx.update(replace(copy, state="pruned", updated_at=max(now, copy.updated_at)), change="revoked")
        return True


def _targets(scope: Scope, layer: str | None, agents: Sequence[str]) -> list[Partition]:
    if (layer is None) == (not agents):
        raise InvalidInput("share", "says not exactly with whom", f"give a layer ({', '.join(WIDER_LAYERS)}) or agents")
    if layer is None:
        return [Scope(tenant=scope.tenant, agent=agent).home("agent") for agent in dict.fromkeys(agents)]
    if layer not in WIDER_LAYERS:
        raise InvalidInput("layer", f"{layer!r} is not one to share with", f"use {', '.join(WIDER_LAYERS)}")
    return [scope.home(layer)]


def _meant(body: dict[str, Any], layer: str | None, agents: Sequence[str]) -> bool:
    if layer is None and not agents:
        return True
    return body["layer"] == layer or (body["layer"] == "agent" and body["to"] in agents)


def _key(id: str, copy_id: str) -> str:
    return f"{id}:{copy_id}"


def _scope_of(partition: Partition) -> Scope:
    return Scope(tenant=partition.tenant, **{layer: partition.layer_id for layer in LAYERS if layer == partition.layer})
