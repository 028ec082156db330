"""The verbs for owners and operators, in three groups: `memory.learning`, `memory.jobs`, `memory.admin`.

Each view holds the engine and the way to fill in the scope; it has no rule of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wellworn.core.errors import InvalidInput
from wellworn.core.values import Job, JobState, LearningStatus, Progress, Scope, Stats
from wellworn.engine import Engine
from wellworn.ingest import validate
from wellworn.ingest.validate import TimeLike
from wellworn.jobs.queue import list_jobs
from wellworn.store.events import Event, events

if TYPE_CHECKING:
    from wellworn.models.ledger import Spent
    from wellworn.models.port import Model
    from wellworn.ops.backup import BackedUp
    from wellworn.ops.doctor import Report
    from wellworn.ops.imports import Imported
    from wellworn.ops.reembed import Reembedded
    from wellworn.ops.retention import Expired, RetentionPolicy, SignedReceipt
    from wellworn.ops.transfer import Loaded, Written

FillIn = Callable[[Scope | None], Scope]
"""The scope of a call: the one given, or the one the memory is bound to."""


class MemoryView:
    """A group of verbs of a memory: its engine, how a scope is filled in, and the scope that it is bound to."""

    def __init__(self, engine: Engine, scope: FillIn, *, bound: Scope | None) -> None:
        self._engine = engine
        self._scope = scope
        self._bound = bound

    def _optional(self, scope: Scope | None) -> Scope | None:
        """The scope given or bound; None, which means everything, where neither is."""
        return None if scope is None and self._bound is None else self._scope(scope)

    def _tenant(self, scope: Scope | None) -> str | None:
        """The tenant of a call; None, which means all, where nobody names one."""
        found = self._optional(scope)
        return None if found is None else found.tenant


class LearningView(MemoryView):
    """What was learned from outcomes, and how to steer it."""

    def status(self, *, scope: Scope | None = None) -> LearningStatus:
        """What serves the scope's home layer now, and on which evidence."""
        return self._engine.learner.status(self._scope(scope).home())

    def relearn(
        self, *, pairs: Iterable[tuple[str, Sequence[str]]] | None = None, scope: Scope | None = None
    ) -> LearningStatus:
        """Learn the tenant's log since its last reset again: the same log gives the same weights, bit for bit.

        `pairs` of a query and the ids of its right entries are learned first, as what all users share. They replace
        earlier pairs, which stay when none are given.
        """
        scope = self._scope(scope)
        scope.home()  # refuse one without a layer before anything is written
        labelled = None
        if pairs is not None:
            examine, told = self._engine.searcher.examine, validate.checked_pairs(pairs)
            if told and not self._engine.store.get(scope.partitions(), [id for _, ids in told for id in ids]):
                raise InvalidInput("pairs", "name no entry that is here", "give queries with ids of entries")
            labelled = [(examine(query, scope=scope), ids) for query, ids in told]
        self._engine.learner.relearn(scope.tenant, labelled)
        return self.status(scope=scope)

    def reset(self, *, scope: Scope | None = None) -> int:
        """Discard what the tenant's users taught; past outcomes stay in the log and teach no more.

        Returns how many learned states there were.
        """
        from wellworn.search.steps.trainer import drop_searches

        tenant = self._scope(scope).tenant
        drop_searches(self._engine.store, tenant)
        return self._engine.learner.reset(tenant)

    def share(self, on: bool, *, scope: Scope | None = None) -> None:
        """Choose whether the tenant's users learn from each other (numbers only); off also drops what was shared."""
        self._engine.learner.share(self._scope(scope).tenant, validate.checked_flag("on", on))

    def export(self, *, scope: Scope | None = None) -> dict[str, Any]:
        """What was learned for the tenant and the scope's home, as JSON: numbers only."""
        return self._engine.learner.export(self._scope(scope).home())

    def practise(self, *, tasks: int = 60, scope: Scope | None = None) -> int:
        """Try every way of searching on questions made from the scope's own entries; returns how many there were.

        A search policy (`Recursion(learns=True)`) begins with the result, which alone does not change how questions
        are searched. It happens once for each home layer, and nothing is logged.
        """
        from wellworn.search.steps.trainer import CombinedMemoryTrainer, practise

        scope, count = self._scope(scope), validate.checked_count("tasks", tasks, least=1)
        engine = self._engine
        trainer = engine.searches or CombinedMemoryTrainer(
            engine.store, engine.learner, engine.recursion, clock=engine.clock
        )
        searcher = engine.searcher.under(engine.profile, None, engine.scrubbing)
        return practise(engine.store, searcher, trainer, scope=scope, count=count)


class JobsView(MemoryView):
    """Background work: what is queued, running, done or given up."""

    def run(self, *, progress: Progress | None = None, scope: Scope | None = None) -> int:
        """End idle sessions and run every job that is due; returns how many were run.

        Of the tenant, or without a scope of the tenants that this memory serves (see the setting `tenants`).
        """
        tenant, progress = self._tenant(scope), validate.checked_progress(progress)
        return self._engine.background.run(tenant=tenant, progress=progress)

    def retry(self, id: str | None = None, *, scope: Scope | None = None) -> int:
        """Queue a dead job of the tenant again, or all of them; returns how many."""
        return self._engine.background.retry(self._scope(scope).tenant, None if id is None else validate.checked_id(id))

    def list(self, *, state: JobState | None = None, limit: int = 100, scope: Scope | None = None) -> Sequence[Job]:
        """The tenant's jobs, newest first."""
        wanted = None if state is None else [validate.checked_job_state(state)]
        limit = validate.checked_count("limit", limit, least=1)
        return list_jobs(self._engine.store, tenant=self._scope(scope).tenant, states=wanted, limit=limit)


class AdminView(MemoryView):
    """Counts, costs, the audit log, moving data in and out, repair.

    Where neither the memory nor the call names a scope, a verb covers the whole store; a scope without a layer, as in
    `Scope(tenant="acme")`, is the whole tenant. Policies and erasures need one.
    """

    def stats(self, *, scope: Scope | None = None) -> Stats:
        """How much there is."""
        store = self._engine.store
        partitions = store.covered(self._optional(scope))
        counts, model = store.counts(partitions), store.model()
        metrics = getattr(self._engine.embedder, "metrics", None)  # only one with a cache has any
        return Stats(
            **{name: counts[name] for name in ("entries", "links", "versions", "sessions", "turns", "vectors")},
            by_kind={key[5:]: n for key, n in counts.items() if key.startswith("kind:")},
            by_state={key[6:]: n for key, n in counts.items() if key.startswith("state:")},
            embedder=model.name if model else "none",
            width=model.width if model else 0,
            size_bytes=counts["bytes"],
            scrubbed=self._engine.scrubbing.counts(partitions),
            embedding_cache=list(metrics()) if callable(metrics) else [],
        )

    def events(self, *, limit: int = 100, scope: Scope | None = None) -> list[Event]:
        """The audit log, newest first: what was done to which entry when, and who called a service, never a text."""
        return events(self._engine.store, self._tenant(scope), limit=validate.checked_count("limit", limit, least=1))

    def costs(
        self, *, since: TimeLike = None, by: Sequence[str] = ("purpose", "model"), scope: Scope | None = None
    ) -> list[Spent]:
        """What model calls cost, added up `by` any of `purpose`, `model`, `day`, `tenant`."""
        from wellworn.models.ledger import spent

        return spent(
            self._engine.store,
            self._tenant(scope),
            since=validate.as_time("since", since),
            by=validate.checked_groups(by),
        )

    def model(self, *, session_id: str | None = None, scope: Scope | None = None) -> Model | None:
        """The memory's model, for calls of your own: each is in the ledger, under the budget; None without an `llm`."""
        self._engine.check_open()
        name = None if session_id is None else validate.checked_session_id(session_id)
        return self._engine.background.model(self._scope(scope).home(), name)

    def repair(self, *, progress: Progress | None = None) -> Report:
        """Rebuild what can be rebuilt from the entries, and report what cannot."""
        from wellworn.ops.doctor import repair

        report = repair(self._engine.store, self._engine.embedder, progress=validate.checked_progress(progress))
        self._engine.searcher.ram.clear()
        return report

    def backup(
        self, folder: str | Path | None = None, *, keep: int | None = None, every: timedelta | None = None
    ) -> BackedUp:
        """Write a compressed backup of the whole store, as it is now, and check it by restoring it.

        `folder` is `<file>.backups` by default. With `keep`, only the newest so many stay. With `every`, nothing is done
        while the last backup is younger than that. `ops.backup` has `check`, `restore` and `list_backups`.
        """
        from wellworn.ops.backup import create

        place = None if folder is None else validate.checked_path("folder", folder)
        if keep is not None:
            validate.checked_count("keep", keep)
        if every is not None and not isinstance(every, timedelta):
            raise InvalidInput("every", f"must be a timedelta, not {type(every).__name__}")
        return create(self._engine.store, place, now=self._engine.clock(), keep=keep, every=every)

    def retention(self, policy: RetentionPolicy | None = None, *, scope: Scope | None = None) -> RetentionPolicy:
        """How long the tenant keeps entries by kind, recalls without an outcome, and calls; with a policy, set it."""
        from wellworn.ops.retention import retention_of, set_retention

        store, tenant = self._engine.store, self._scope(scope).tenant
        if policy is not None:
            set_retention(store, tenant, policy, self._engine.clock())
        return retention_of(store, tenant)

    def expire(
        self, *, policy: RetentionPolicy | None = None, dry_run: bool = False, scope: Scope | None = None
    ) -> Expired:
        """Forget what each tenant's retention policy no longer keeps, or what `policy` does not. Run it from a schedule.

        `dry_run` removes nothing and counts what would go.
        """
        from wellworn.ops.retention import Expired, checked_policy, expire

        engine, tenant = self._engine, self._tenant(scope)
        rules = None if policy is None else checked_policy(policy)
        only_counts = validate.checked_flag("dry_run", dry_run)
        engine.learner.log.flush()
        tenants = {one.tenant for one in engine.store.partitions()} if tenant is None else {tenant}
        done = [
            expire(engine.store, engine.forgetter, one, engine.clock(), policy=rules, dry_run=only_counts)
            for one in sorted(tenants)
        ]
        return Expired(
            entries=sum(one.entries for one in done),
            recalls=sum(one.recalls for one in done),
            calls=sum(one.calls for one in done),
            counted_from=min((one.counted_from for one in done if one.counted_from), default=None),
        )

    def erase(self, *, key: bytes | None = None, scope: Scope | None = None) -> SignedReceipt:
        """Erase the person (or other home layer) of the scope, with everything derived, and return a signed receipt.
        `NotFound` if there is nothing of them.

        `ops.retention.receipt_holds` checks one. Older backups are removed by the next `backup`.
        """
        from wellworn.ops.retention import erase

        if key is not None and not isinstance(key, bytes):
            raise InvalidInput("key", f"must be bytes, not {type(key).__name__}")
        engine = self._engine
        engine.learner.log.flush()
        return erase(
            engine.store, engine.forgetter, engine.learner.relearn, self._scope(scope), engine.clock(), key=key
        )

    def reembed(self, *, progress: Progress | None = None) -> Reembedded:
        """Give every entry a vector of this memory's embedder, then serve those; can be stopped and resumed."""
        from wellworn.ops.reembed import reembed

        return reembed(self._engine.store, self._engine.embedder, progress=validate.checked_progress(progress))

    def export(
        self,
        path: str | Path,
        *,
        vectors: bool = True,
        plain: bool = False,
        progress: Progress | None = None,
        scope: Scope | None = None,
    ) -> Written:
        """Write everything, or one scope, to a `.jsonl` file, lossless, or to a folder of Markdown files.

        Exports are not encrypted, so that of an encrypted store needs `plain=True`. Of a damaged store everything that
        can be read is written; `unreadable` counts the rest.
        """
        from wellworn.ops.transfer import export_to

        return export_to(
            self._engine.store,
            validate.checked_path("path", path),
            scope=self._optional(scope),
            vectors=vectors,
            plain=validate.checked_flag("plain", plain),
            clock=self._engine.clock,
            progress=validate.checked_progress(progress),
        )

    def load(self, path: str | Path, *, progress: Progress | None = None, scope: Scope | None = None) -> Loaded:
        """Read an export back; what is there already is skipped.

        A scope takes its own entries only. If there are none, it takes those of one other owner; several are refused.
        """
        from wellworn.ops.transfer import load_from

        engine = self._engine
        return load_from(
            engine.store,
            engine.writer,
            validate.checked_path("path", path),
            relearn=engine.learner.relearn,
            scope=self._optional(scope),
            progress=validate.checked_progress(progress),
        )

    def import_from(
        self,
        source: str,
        path: str | Path,
        *,
        owner: str | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
        scope: Scope | None = None,
    ) -> Imported:
        """Take over what another system remembers, into the scope's home: `chatgpt`, `claude`, `mem0`, `letta`, `zep`,
        `graphiti`, `langgraph`, `langmem`, `obsidian` or `basic-memory`.

        What is here already is skipped, so an import can be stopped and run again. Of an export of several people or
        namespaces, `owner` names the one to import.
        """
        from wellworn.ingest.session import Session
        from wellworn.ops.imports import Importer
        from wellworn.ops.there import READERS

        if not isinstance(source, str) or source not in READERS:
            raise InvalidInput(
                "source", f"{validate.shown(source)} is not a source", f"use one of {', '.join(READERS)}"
            )
        name, read = READERS[source]
        engine, home = self._engine, self._scope(scope)
        engine.check_open()
        watch = engine.background.reflections
        importer = Importer(
            engine.store,
            engine.writer,
            source=name,
            scope=home,
            session=lambda name: Session(engine.writer, engine.store, scope=home, session_id=name, watch=watch),
            dry_run=validate.checked_flag("dry_run", dry_run),
        )
        place = validate.checked_path("path", path)
        if not place.exists():
            raise InvalidInput("path", f"there is no {str(place)!r}", "give the file or folder of the export")
        whose = None if owner is None else validate.checked_line("owner", owner, blank=False)
        return importer.run([*read(place)], owner=whose, progress=validate.checked_progress(progress))
