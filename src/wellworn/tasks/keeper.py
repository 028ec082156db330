"""What looks after the bank of a memory, in one place: consolidate, undo, review, share, revoke, levels, walks.

`ReasoningBank` and the command line call it. Takes the parts of an open memory; holds no rule of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wellworn.core.errors import InvalidInput, NotFound
from wellworn.core.values import Entry, Partition, Progress, Scope
from wellworn.ingest.scrub import ScrubberSpec
from wellworn.ingest.validate import checked_count, checked_fraction, checked_id, checked_scope
from wellworn.memory import Memory
from wellworn.tasks.consolidation.report import Consolidation, Undone
from wellworn.tasks.consolidation.rows import live_pages
from wellworn.tasks.consolidation.run import Consolidator
from wellworn.tasks.consolidation.settings import ConsolidationSettings
from wellworn.tasks.consolidation.stages import Stages, stages_of
from wellworn.tasks.consolidation.watch import CONSOLIDATE, ConsolidationWatch
from wellworn.tasks.engine import scrubbing_of
from wellworn.tasks.graph import Path, walk
from wellworn.tasks.hierarchy import Hierarchy, hierarchy_of
from wellworn.tasks.items import bank_partition
from wellworn.tasks.review import Answer, ReviewCase, Reviews
from wellworn.tasks.sharing import PEER_CONFIDENCE, PEER_USAGE, Share, Sharing


class Keeper:
    """Keeps a bank in order. `layer` names the partition of the scope that is meant; without it, where the bank writes.

    What it writes anew, better words and shared copies, is scrubbed as `ReasoningBank` scrubs.
    """

    def __init__(
        self, memory: Memory, *, settings: ConsolidationSettings | None = None, scrubber: ScrubberSpec = "mask"
    ) -> None:
        if not isinstance(memory, Memory):
            raise InvalidInput("memory", f"must be a Memory, not {type(memory).__name__}", "use Memory.open(…)")
        self._memory = memory
        self._store, work = memory.engine.store, memory.engine.background
        writer = memory.engine.writer.under(scrubbing_of(memory, scrubber))
        self._consolidator = Consolidator(
            store=self._store, clock=writer.clock, new_id=writer.new_id, settings=settings or ConsolidationSettings()
        )
        self.watch = ConsolidationWatch(
            consolidator=self._consolidator, queue=work.queue, clock=writer.clock, committed=work.wake
        )
        self._reviews = Reviews(store=self._store, writer=writer)
        self._sharing = Sharing(store=self._store, writer=writer)
        self._clock = writer.clock
        work.handle({CONSOLIDATE: self.watch.run_job})

    # -- consolidate ---------------------------------------------------------------------------------------------

    def consolidate(
        self, *, scope: Scope, layer: str | None = None, dry_run: bool = False, progress: Progress | None = None
    ) -> Consolidation:
        """Merge duplicates, resolve or flag contradictions, decay, prune, promote; `dry_run` only says what would be.

        Doing it twice changes nothing the second time.
        """
        return self._consolidator.run(_partition(scope, layer), dry_run=dry_run, progress=progress)

    def undo(
        self, run_id: str | None = None, *, scope: Scope, layer: str | None = None, progress: Progress | None = None
    ) -> Undone:
        """Take a consolidation back, by default the last one that was not."""
        run = None if run_id is None else checked_id(run_id)
        return self._consolidator.undo(_partition(scope, layer), run, progress=progress)

    def runs(self, *, scope: Scope, layer: str | None = None, limit: int = 20) -> list[Consolidation]:
        """The consolidations of a partition, newest first."""
        return self._consolidator.runs(_partition(scope, layer), limit=checked_count("limit", limit, least=1))

    def stages(self, *, scope: Scope) -> Stages:
        """How far the items of a scope have come: `stages(scope=scope).of(entry)`."""
        return stages_of(self._store, checked_scope(scope).partitions(), self._clock())

    # -- review --------------------------------------------------------------------------------------------------

    def reviews(
        self, *, scope: Scope, layer: str | None = None, open_only: bool = True, limit: int = 100
    ) -> list[ReviewCase]:
        """Questions for people, newest first."""
        limit = checked_count("limit", limit, least=1)
        return self._reviews.cases(_partition(scope, layer), open_only=open_only, limit=limit)

    def decide(
        self,
        key: str,
        decision: str,
        *,
        scope: Scope,
        layer: str | None = None,
        keep: str | None = None,
        text: str | None = None,
        domains: Mapping[str, str] | None = None,
        ids: Sequence[str] | None = None,
    ) -> ReviewCase | None:
        """Answer a question; returns it as decided, None when its entries were deleted.

        `keep_both`; `keep_one` (`keep`); `merge` (`keep`, `text`); `scope` (`domains`: id → domain); `delete` (`ids`).
        Of one that is often used and little trusted: `correct`, `partial` (`text`), `incorrect`, `delete`.
        """
        partition = _partition(scope, layer)
        answer = Answer(decision=decision, keep=keep, text=text, domains=domains, ids=ids)
        going = self._reviews.decide(partition, key, answer)
        if going:
            self._memory.forget(scope=scope, ids=going)
            return None
        return self._reviews.get(partition, key)

    # -- share ---------------------------------------------------------------------------------------------------

    def share(
        self, ids: Sequence[str], *, scope: Scope, layer: str | None = None, agents: Sequence[str] = ()
    ) -> list[Share]:
        """Copy promoted entries to a wider layer of the scope (`team`, `org`, `company`), or to agents by name."""
        return self._sharing.share(ids, scope=checked_scope(scope), layer=layer, agents=agents)

    def learn_from_peer(
        self, peer: Scope, *, scope: Scope, min_confidence: float = PEER_CONFIDENCE, min_usage: int = PEER_USAGE
    ) -> list[Share]:
        """Copy what another agent of the tenant is sure of and has used to this scope's agent."""
        return self._sharing.learn_from_peer(
            checked_scope(peer),
            scope=checked_scope(scope),
            min_confidence=checked_fraction("min_confidence", min_confidence),
            min_usage=checked_count("min_usage", min_usage),
        )

    def shares(self, *, scope: Scope, id: str | None = None, layer: str | None = None) -> list[dict[str, Any]]:
        """What was shared of a partition, or of one entry of it."""
        return self._sharing.shares(partition=_partition(scope, layer), id=id)

    def revoke(self, id: str, *, scope: Scope, layer: str | None = None, agents: Sequence[str] = ()) -> list[str]:
        """Take back what was shared of an entry; ids of the copies that ended."""
        return self._sharing.revoke(id, scope=checked_scope(scope), layer=layer, agents=agents)

    # -- look ----------------------------------------------------------------------------------------------------

    def hierarchy(self, *, scope: Scope) -> Hierarchy:
        """Every active strategy and guardrail that the scope sees, by level of memory."""
        entries = [
            entry
            for partition in checked_scope(scope).partitions()
            for page in live_pages(self._store, partition)
            for _, entry in page
            if entry.state == "active"
        ]
        return hierarchy_of(entries, self._store.links([entry.id for entry in entries]), self._clock())

    def walk(
        self, id: str, *, scope: Scope, types: Sequence[str] | None = None, hops: int = 2, min_confidence: float = 0.0
    ) -> list[Path]:
        """Entries that links lead to from one, over several hops, the surest first."""
        partitions = checked_scope(scope).partitions()
        if checked_id(id) not in self._store.get(partitions, [id]):
            raise NotFound("entry", id)

        def seen_of(ids: Sequence[str]) -> dict[str, Entry]:
            found = self._store.get(partitions, ids)
            return {id: entry for id, entry in found.items() if entry.state in ("active", "flagged")}

        return walk(
            id,
            links_of=self._store.links,
            seen_of=seen_of,
            types=types,
            hops=hops,
            min_confidence=checked_fraction("min_confidence", min_confidence),
        )


def _partition(scope: Scope, layer: str | None) -> Partition:
    scope = checked_scope(scope)
    return bank_partition(scope) if layer is None else scope.home(layer)
