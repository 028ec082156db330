"""Items that leave the agent who learned them: for a team, an organisation, or named agents; and come back.

What moves is a copy. It must have been promoted (for peers: be sure and used enough), passes the scrubber once more,
and carries no word of the work it came from: its evidence is a count, and its confidence starts at what the counted
successes speak for, not at what the agent believed. The copy is linked `derived_from` the original, and sharing can be
revoked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput, NotFound
from wellworn.core.plain import to_plain
from wellworn.core.values import Entry, Link, Partition, Scope
from wellworn.ingest.forget import SHARE, SHARED
from wellworn.ingest.remember import keep
from wellworn.ingest.validate import Draft, checked_count, checked_fraction, checked_id, checked_ids, checked_scope
from wellworn.store.events import Event, audit
from wellworn.store.port import Record, RecordFilter
from wellworn.tasks.consolidate import live_items
from wellworn.tasks.engine import OfBank
from wellworn.tasks.items import CALLS_TAG, ORIGIN, PATTERN, PROMOTED, REVIEWED, TAG, is_item, pattern_of

SOURCE = "sharing"
WIDER_LAYERS = ("team", "org", "company")
MIN_PROVEN = 0.6
"""The least success rate that the verdicts must speak for: two successes and no failure are the least evidence."""
PEER_CONFIDENCE, PEER_USAGE = 0.8, 10
_MANY = 100_000


@dataclass(frozen=True, kw_only=True)
class Share:
    """The result of sharing one entry with one partition."""

    id: str
    to: Partition
    copy_id: str | None = None
    """None when it was refused."""
    refused: str = ""


def proven_rate(entry: Entry) -> float:
    """The success rate that an entry's verdicts speak for: (successes + 1) / (verdicts + 2)."""
    return (entry.success_count + 1) / (entry.success_count + entry.failure_count + 2)


def refusal(entry: Entry, *, promoted: bool) -> str:
    """Why an entry may not be shared; empty when it may."""
    if not is_item(entry) or entry.state != "active":
        return f"is a {entry.kind} that is {entry.state}, not an active strategy or guardrail"
    if entry.trust != "trusted":
        return f"comes from an untrusted source; `wellworn tasks review {entry.id} --decide correct` trusts it"
    if REVIEWED in entry.metadata:  # a person has read it, which is more than counting
        return ""
    if promoted and PROMOTED not in entry.metadata:
        return "is not promoted"
    counts = f"has {entry.success_count} successes and {entry.failure_count} failures, which is not enough evidence"
    return "" if proven_rate(entry) >= MIN_PROVEN else counts


class Sharing(OfBank):
    """Copies items between the partitions of one tenant."""

    def share(
        self, ids: Sequence[str], *, layer: str | None = None, agents: Sequence[str] = (), scope: Scope | None = None
    ) -> list[Share]:
        """Copy promoted items to a wider layer of the scope (`team`, `org`, `company`), or to agents by name."""
        own = self._parts.scope(scope)
        if (layer is None) == (not agents):
            remedy = f"give a layer ({', '.join(WIDER_LAYERS)}) or agents"
            raise InvalidInput("share", "says not exactly with whom", remedy)
        if layer is not None and layer not in WIDER_LAYERS:
            raise InvalidInput("layer", f"{layer!r} is not one to share with", f"use {', '.join(WIDER_LAYERS)}")
        named = [Scope(tenant=own.tenant, agent=agent).home("agent") for agent in checked_ids(agents, "agents")]
        targets = named if layer is None else [own.home(layer)]
        wanted = checked_ids(ids)
        found = self._store.get(own.partitions(), wanted)
        if missing := [id for id in wanted if id not in found]:
            raise NotFound("entry", missing[0])
        entries = [found[id] for id in wanted]
        return [self._copy(entry, to, refusal(entry, promoted=True)) for to in targets for entry in entries]

    def learn_from_peer(
        self,
        peer: Scope | str,
        *,
        min_confidence: float = PEER_CONFIDENCE,
        min_usage: int = PEER_USAGE,
        scope: Scope | None = None,
    ) -> list[Share]:
        """Copy what another agent of the tenant (its name or scope) is sure of and has used to this scope's agent."""
        own = self._parts.scope(scope)
        peer = Scope(tenant=own.tenant, agent=peer) if isinstance(peer, str) else checked_scope(peer)
        least, uses = checked_fraction("min_confidence", min_confidence), checked_count("min_usage", min_usage)
        if peer.agent is None or own.agent is None or peer.tenant != own.tenant or peer.agent == own.agent:
            said = f"{peer.agent!r} is not another agent of the same tenant than {own.agent!r}"
            raise InvalidInput("peer", said, "name an agent for both, each its own")
        entries = [entry for _, entry in live_items(self._store, peer.home("agent"))]
        wanted = [entry for entry in entries if entry.confidence >= least and entry.usage_count >= uses]
        return [self._copy(entry, own.home("agent"), refusal(entry, promoted=False)) for entry in wanted]

    def _copy(self, entry: Entry, to: Partition, refused: str) -> Share:
        if refused or to == entry.partition:
            return Share(id=entry.id, to=to, refused=refused or "is there already")
        now, writer = self._clock(), self._writer
        (record,) = writer.records_of([writer.entry(self._draft(entry, to), to.scope, now)])
        with writer.transact() as tx:
            same = tx.find_same(to, record.entry.content_hash)
            if same is not None and same.id == entry.metadata.get(SHARED, {}).get("id"):
                return Share(id=entry.id, to=to, refused="was learned from there")
            shared = None if same is None else tx.record(entry.partition, SHARE, f"{entry.id}:{same.id}")
            if same is not None and shared is not None and shared.state == "shared":
                return Share(id=entry.id, to=to, copy_id=same.id)
            copy_id = keep(tx, record, now)  # the same from another agent: one copy, surer
            tx.add_links([Link(source=copy_id, target=entry.id, type="derived_from", created_at=now)])
            told = Record(
                partition=entry.partition,
                kind=SHARE,
                key=f"{entry.id}:{copy_id}",
                state="shared",
                names=(entry.id, copy_id),
                body={"id": entry.id, "copy": copy_id, "layer": to.layer, "to": to.layer_id},
                created_at=now,
                updated_at=now,
            )
            tx.put_records([told])
            audit(tx, Event(at=now, tenant=to.tenant, action="share", entry_id=entry.id, detail={"copy": copy_id}))
        return Share(id=entry.id, to=to, copy_id=copy_id)

    def _draft(self, entry: Entry, to: Partition) -> Draft:
        """The copy: counted evidence, the origin without its task. The writer scrubs it."""
        judged, pattern = entry.success_count + entry.failure_count, pattern_of(entry)
        origin = entry.metadata.get(ORIGIN, {})
        proven = entry.confidence if REVIEWED in entry.metadata else min(entry.confidence, proven_rate(entry))
        moved = {"id": entry.id, "from": entry.partition.layer_id, "at": self._clock().isoformat()}
        return Draft(
            text=entry.text,
            kind=entry.kind,
            title=entry.title,
            tags=[tag for tag in entry.tags if tag.startswith((TAG, CALLS_TAG))],
            layer=to.layer,
            source=SOURCE,
            confidence=round(proven, 4),
            evidence=f"Succeeded {entry.success_count} of {judged} times, used {entry.usage_count} times.",
            metadata={
                ORIGIN: {key: origin[key] for key in ("agent", "outcome", "by") if key in origin},
                SHARED: moved,
                **({PATTERN: to_plain(pattern)} if pattern.task else {}),
            },
        )

    def revoke(self, id: str, *, scope: Scope | None = None) -> list[str]:
        """Take back what was shared of an item; ids of the copies that no longer hold. A copy that others shared as
        well stays for them."""
        entry = self._store.one(self._parts.scope(scope).partitions(), checked_id(id))
        now, ended = self._clock(), []
        with self._store.transact() as tx:
            shares = RecordFilter(partition=entry.partition, kinds=[SHARE], states=["shared"], limit=_MANY)
            for share in [one for one in self._store.records(shares) if one.body["id"] == id]:
                copy_id, layer, to = share.body["copy"], share.body["layer"], share.body["to"]
                tx.put_records([replace(share, state="revoked", updated_at=now)])
                tx.remove_link(copy_id, id, "derived_from")
                event = Event(at=now, tenant=entry.tenant, action="revoke", entry_id=id)
                audit(tx, replace(event, detail={"copy": copy_id}))
                copy = tx.get([replace(entry.partition, layer=layer, layer_id=to)], [copy_id]).get(copy_id)
                others = [link for link in self._store.links([copy_id], types=["derived_from"]) if link.target != id]
                if copy is not None and copy.source == SOURCE and not others:  # else known there before, or of others
                    tx.update(replace(copy, state="pruned", updated_at=max(now, copy.updated_at)), change="revoked")
                    ended.append(copy_id)
        return ended
