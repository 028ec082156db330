"""The facade: one sentence per verb, each calling one mechanism.

Chooses the concrete store and embedder; holds no rule of its own. Safe to share between threads. See `aio` for the
awaitable twin.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack

from wellworn.core.errors import NotFound
from wellworn.core.values import (
    CacheLevel,
    CurvePoint,
    Entry,
    LearningStatus,
    Link,
    Progress,
    Reasoning,
    Recall,
    Receipt,
    Scope,
    Stats,
    Version,
)
from wellworn.engine import Engine, Settings
from wellworn.ingest.session import Session
from wellworn.ingest.times import TimeLike, as_time
from wellworn.ingest.validate import (
    Draft,
    checked_count,
    checked_flag,
    checked_groups,
    checked_id,
    checked_ids,
    checked_job_state,
    checked_query,
    checked_scope,
    checked_session_id,
    drafts_of,
)
from wellworn.learning.curve import curve
from wellworn.learning.told import told_of
from wellworn.models.port import Embedder
from wellworn.ops.reembed import Reembedded, reembed
from wellworn.search.filters import Filters
from wellworn.search.steps.library import Library
from wellworn.search.steps.recall import checked_recursion
from wellworn.store.port import Event, Job, Spent, Store

if TYPE_CHECKING:  # loaded on first use: most programs never export or verify
    from wellworn.models.port import Model
    from wellworn.ops.doctor import Report
    from wellworn.ops.transfer import Loaded, Written
    from wellworn.reflection.report import Reflection
    from wellworn.search.assemble import Assembled


class Memory:
    """Memory for agents: remember, recall, edit, link, forget. Open one with `Memory.open`."""

    def __init__(self, location: str | Path | Store = "memory.db", **settings: Unpack[Settings]) -> None:
        """Open a memory, making it when new. `location` is a file path, `:memory:`, or a store of your own."""
        self.engine = Engine(location, **settings)

    @classmethod
    def open(cls, location: str | Path | Store = "memory.db", **settings: Unpack[Settings]) -> Memory:
        """The same as `Memory(location, …)`."""
        return cls(location, **settings)

    # -- remember ------------------------------------------------------------------------------------------------

    def remember(
        self,
        text: str,
        *,
        scope: Scope,
        kind: str = "note",
        title: str = "",
        tags: Sequence[str] = (),
        layer: str | None = None,
        session_id: str | None = None,
        turn_refs: Sequence[int] = (),
        evidence: str | None = None,
        source: str = "interaction",
        speaker: str | None = None,
        confidence: float = 0.8,
        trust: str = "trusted",
        at: TimeLike = None,
        valid_from: TimeLike = None,
        valid_to: TimeLike = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> list[str]:
        """Store a text and return the ids of its entries: one, or one per chunk of a long text.

        A text that is there already is strengthened, not stored twice; its id is returned again.
        """
        draft = Draft(
            text=text,
            kind=kind,
            title=title,
            tags=tags,
            layer=layer,
            session_id=session_id,
            turn_refs=turn_refs,
            evidence=evidence,
            source=source,
            speaker=speaker,
            confidence=confidence,
            trust=trust,
            at=at,
            valid_from=valid_from,
            valid_to=valid_to,
            metadata={} if metadata is None else metadata,
        )
        return self.engine.writer.remember([draft], scope=checked_scope(scope))

    def remember_many(
        self,
        /,
        items: Iterable[str | Mapping[str, Any] | Draft],
        *,
        scope: Scope,
        progress: Progress | None = None,
        **common: Any,
    ) -> list[str]:
        """Store many texts at once and return the ids of all their entries, in order.

        An item is a text, or a mapping with the keywords of `remember`; `common` gives keywords to every item.
        All items are checked before the first is stored. `progress(done, total)` is called after each batch.
        """
        return self.engine.writer.remember(drafts_of(items, common), scope=checked_scope(scope), progress=progress)

    def session(self, *, scope: Scope, session_id: str) -> Session:
        """A dialogue to add turns to; continues where it was left when the id is known."""
        self.engine.store.heads([])  # a closed memory says so here, not at the first turn
        self.engine.background.start()
        return Session(
            self.engine.writer,
            self.engine.store,
            scope=checked_scope(scope),
            session_id=session_id,
            watch=self.engine.background.watch,
        )

    def sessions(self, *, scope: Scope, layer: str | None = None) -> list[str]:
        """Ids of the sessions kept at the scope's home layer, oldest first."""
        return self.engine.store.sessions(checked_scope(scope).home(layer))

    # -- recall --------------------------------------------------------------------------------------------------

    def recall(
        self,
        query: str,
        *,
        scope: Scope,
        k: int = 5,
        kind: str | Sequence[str] | None = None,
        tags: str | Sequence[str] | None = None,
        layer: str | Sequence[str] | None = None,
        session_id: str | None = None,
        except_session: str | None = None,
        since: TimeLike = None,
        until: TimeLike = None,
        as_of: TimeLike = None,
        min_score: float | None = None,
        recursion: str | None = None,
    ) -> Recall:
        """The `k` entries that answer the query best, each with the reasons for its place.

        Sees what is valid now, or at `as_of`. `kind` and `layer` take one or several; an entry must have all
        `tags`; `since`/`until` bound when it happened. `except_session` leaves out a dialogue that the caller still has
        before it. `recursion` is `on`, `off` or `always` for this call.
        """
        filters = Filters.of(
            kind=kind,
            tags=tags,
            layer=layer,
            session_id=session_id,
            except_session=except_session,
            since=since,
            until=until,
            as_of=as_of,
            min_score=min_score,
        )
        mode = None if recursion is None else checked_recursion(recursion)
        return self.engine.router.recall(query, scope=checked_scope(scope), k=k, filters=filters, recursion=mode)

    def assemble(
        self,
        question: str,
        *,
        scope: Scope,
        max_tokens: int = 1500,
        sources: Sequence[Recall] = (),
        k: int = 40,
        kind: str | Sequence[str] | None = None,
        tags: str | Sequence[str] | None = None,
        layer: str | Sequence[str] | None = None,
        except_session: str | None = None,
        since: TimeLike = None,
        until: TimeLike = None,
        as_of: TimeLike = None,
        recursion: str | None = None,
    ) -> Assembled:
        """A context for a question within a token budget: the entries that together say most, and what was left out.

        Chooses among the `k` best hits of a recall, recursive where the question is complex, and those of further
        recalls given as `sources`. Filters are those of `recall`. `Assembled.cited` turns what an answer cites into
        places for `outcome`.
        """
        from wellworn.search.assemble import assemble, checked_budget

        checked_budget(max_tokens)
        found = self.recall(
            question,
            scope=scope,
            k=k,
            kind=kind,
            tags=tags,
            layer=layer,
            except_session=except_session,
            since=since,
            until=until,
            as_of=as_of,
            recursion=recursion,
        )
        context = assemble(found.query, [found, *sources], max_tokens=max_tokens)
        if self.engine.searches is not None and context.hits:
            self.engine.searches.assembled(found.id, scope.home(), context.covered)
        return context

    def reason(self, question: str, *, scope: Scope, k: int = 5, as_of: TimeLike = None) -> Reasoning:
        """The chain of entries that bears on a question: what was found, what that names or is linked to, and why.

        The conclusion is drawn by the model of `Recursion.models`, or `llm`, from these entries alone and citing them;
        without a model, or where it fails, it is what they say. Sees what is valid now, or at `as_of`.
        """
        scope = checked_scope(scope)
        filters = Filters.of(as_of=as_of)
        moment = filters.as_of or self.engine.clock()

        def valid(id: str) -> Entry | None:
            entry = self.engine.store.get(scope.partitions(), [id]).get(id)
            if entry is None or entry.state == "pruned" or entry.valid_from > moment:
                return None
            return entry if entry.valid_to is None or moment < entry.valid_to else None

        def library() -> Library:
            searcher = self.engine.searcher.under(self.engine.profile, None, self.engine.scrubbing)
            return Library(searcher=searcher, store=self.engine.store, scope=scope, filters=filters, moment=moment)

        links = partial(self.engine.changer.links, scope=scope)
        return self.engine.router.reason(
            question, scope=scope, k=k, filters=filters, links=links, get=valid, library=library
        )

    def get(self, id: str, *, scope: Scope) -> Entry:
        """One entry, whatever its state. `NotFound` when the scope does not see it."""
        id = checked_id(id)
        entry = self.engine.store.get(checked_scope(scope).partitions(), [id]).get(id)
        if entry is None:
            raise NotFound("entry", id)
        return entry

    def entries(
        self,
        *,
        scope: Scope,
        kind: str | Sequence[str] | None = None,
        tags: str | Sequence[str] | None = None,
        layer: str | Sequence[str] | None = None,
        session_id: str | None = None,
        state: str | Sequence[str] | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[Entry]:
        """Entries the scope sees, oldest first, one page."""
        limit, offset = checked_count("limit", limit, least=1), checked_count("offset", offset)
        filters = Filters.of(kind=kind, tags=tags, layer=layer, session_id=session_id)
        selection = filters.selection(state)
        partitions = [
            s for s in checked_scope(scope).partitions() if filters.layers is None or s.layer in filters.layers
        ]
        return [entry for _, entry in self.engine.store.select(partitions, selection, limit=limit + offset)][offset:]

    # -- learn ---------------------------------------------------------------------------------------------------

    def outcome(
        self,
        recall_id: str,
        *,
        cited: Sequence[int] | None = None,
        used: float | None = None,
        ignored: bool = False,
        refined: str | None = None,
        success: bool | None = None,
        scope: Scope | None = None,
    ) -> bool:
        """Say what became of a recall, with one of the keywords; True when it counts, False when it was told before.

        `cited` are places in `recall.hits`, none of them useful when empty; `used` is how good they were, 0 to 1;
        `ignored`, that nothing was made of them; `refined`, the query asked instead; `success`, how the work went.
        With `scope`, a recall of another tenant is refused.
        """
        if self.engine.scrubbing.on and isinstance(refined, str):
            refined = self.engine.scrubbing.asked(None if scope is None else checked_scope(scope).home())(refined)
        told = told_of(cited=cited, used=used, ignored=ignored, refined=refined, success=success)
        tenant = None if scope is None else checked_scope(scope).tenant
        return self.engine.trainer.outcome(checked_id(recall_id), told, tenant=tenant)

    def learning(self, *, scope: Scope) -> LearningStatus:
        """What serves the scope's home layer now, and on which evidence."""
        return self.engine.trainer.status(checked_scope(scope).home(), self.engine.recursion.threshold)

    def learning_curve(self, *, scope: Scope) -> list[CurvePoint]:
        """How learning came to where it is: one point per outcome of the scope's home, replayed from the log."""
        home = checked_scope(scope).home()
        return curve(self.engine.learner, home)

    def relearn(
        self, *, scope: Scope, pairs: Iterable[tuple[str, Sequence[str]]] | None = None, whole: bool = False
    ) -> LearningStatus:
        """Learn the tenant's log since its last reset anew: the same log gives the same weights, bit for bit.

        `pairs` of a query and the ids of its right entries are learned first, as what all users share. They take the
        place of earlier pairs, which stay when none are given. `whole=True` takes resets back and learns all the log.
        """
        home = checked_scope(scope).home()
        labelled = (
            None
            if pairs is None
            else [
                (self.engine.searcher.examine(checked_query(query), scope=scope), checked_ids(ids))
                for query, ids in pairs
            ]
        )
        self.engine.trainer.relearn(home.tenant, labelled, whole=checked_flag("whole", whole))
        return self.engine.trainer.status(home, self.engine.recursion.threshold)

    def reset_learning(self, *, scope: Scope) -> int:
        """Forget what the tenant's users taught, for good: what was told so far stays in the log and teaches no more.

        Returns how many states there were. `relearn(whole=True)` takes it back.
        """
        return self.engine.learner.reset(checked_scope(scope).tenant)

    def share_learning(self, on: bool, *, scope: Scope) -> None:
        """Whether the tenant's users learn from each other (numbers only); off also drops what was shared."""
        self.engine.trainer.share(checked_scope(scope).tenant, checked_flag("on", on))

    def export_learning(self, *, scope: Scope) -> dict[str, Any]:
        """What was learned for the tenant and the scope's home, as JSON: numbers only."""
        return self.engine.trainer.save(checked_scope(scope).home())

    def load_learning(self, state: Mapping[str, Any], *, scope: Scope) -> LearningStatus:
        """Put what `export_learning` returned in the place of what was learned; parts it does not have stay."""
        home = checked_scope(scope).home()
        self.engine.trainer.load(home, dict(state))
        return self.engine.trainer.status(home, self.engine.recursion.threshold)

    def practise(self, *, scope: Scope, tasks: int = 60) -> int:
        """Try every way to search on questions made from the scope's own entries, once, so that learning which serves
        best does not begin blind; returns how many questions there were. Nothing is logged, and nothing served changes
        before outcomes say so."""
        from wellworn.search.steps.bootstrap import practise

        scope, count = checked_scope(scope), checked_count("tasks", tasks, least=1)
        if self.engine.searches is None:
            return 0
        searcher = self.engine.searcher.under(self.engine.profile, None, self.engine.scrubbing)
        return practise(
            self.engine.store, searcher, self.engine.recursion, self.engine.searches, scope=scope, count=count
        )

    # -- reflect -------------------------------------------------------------------------------------------------

    def reflect(
        self,
        *,
        scope: Scope,
        session_id: str | None = None,
        dry_run: bool = False,
        again: bool = False,
        progress: Progress | None = None,
    ) -> list[Reflection]:
        """Turn what was said into memories now: a session, or every session of the scope's home not read yet.

        `dry_run` writes nothing and shows what would be. `again` also reads what was reflected on before.
        """
        name = None if session_id is None else checked_session_id(session_id)
        dry, anew = checked_flag("dry_run", dry_run), checked_flag("again", again)
        return self.engine.background.reflect(
            checked_scope(scope).home(), name, dry_run=dry, again=anew, progress=progress
        )

    def jobs(self, *, scope: Scope, state: str | None = None, limit: int = 100) -> list[Job]:
        """The tenant's work in the background, newest first; `state` is `queued`, `running`, `done` or `dead`."""
        wanted = None if state is None else [checked_job_state(state)]
        tenant = checked_scope(scope).tenant
        return self.engine.store.jobs(tenant=tenant, states=wanted, limit=checked_count("limit", limit, least=1))

    def run_jobs(self, *, scope: Scope | None = None, progress: Progress | None = None) -> int:
        """End idle sessions and run every job that is due, of one tenant or of all; returns how many were run."""
        return self.engine.background.run(
            tenant=None if scope is None else checked_scope(scope).tenant, progress=progress
        )

    def retry_jobs(self, *, scope: Scope, id: str | None = None) -> int:
        """Queue a dead job of the tenant again, or all of them; returns how many."""
        return self.engine.background.retry(checked_scope(scope).tenant, None if id is None else checked_id(id))

    def model(self, *, scope: Scope, session_id: str | None = None) -> Model | None:
        """The memory's model, for calls of your own: each is in the ledger, under the budget; None without an `llm`."""
        self.engine.store.heads([])  # a closed memory says so here, not at the first call
        name = None if session_id is None else checked_session_id(session_id)
        return self.engine.background.model(checked_scope(scope).home(), name)

    def costs(self, *, scope: Scope, since: TimeLike = None, by: Sequence[str] = ("purpose", "model")) -> list[Spent]:
        """What the tenant's model calls took, added up `by` any of `purpose`, `model`, `day`, `tenant`."""
        return self.engine.store.spent(
            checked_scope(scope).tenant, since=as_time("since", since), by=checked_groups(by)
        )

    # -- change --------------------------------------------------------------------------------------------------

    def edit(self, /, id: str, *, scope: Scope, **changes: Any) -> Entry:
        """Change fields of an entry (`text, title, tags, kind, state, confidence, trust, at, valid_from, valid_to,
        metadata, evidence, speaker`); the entry as it stood stays in its history."""
        return self.engine.changer.edit(id, scope=checked_scope(scope), changes=changes)

    def supersede(self, old: str, new: str, *, scope: Scope, at: TimeLike = None, wrong: bool = False) -> Entry:
        """Say that `new` replaced `old` at a time (default: when `new` became valid); returns `old` as it now is.

        What was true until then still answers `as_of` an earlier time; what was `wrong` never answers again.
        """
        return self.engine.changer.supersede(
            old, new, scope=checked_scope(scope), at=at, wrong=checked_flag("wrong", wrong)
        )

    def link(self, a: str, b: str, type: str, *, scope: Scope, confidence: float = 1.0) -> Link:
        """NewEntry that entry `a` stands in this relation to entry `b`; linking twice changes nothing."""
        return self.engine.changer.link(a, b, type, scope=checked_scope(scope), confidence=confidence)

    def unlink(self, a: str, b: str, type: str, *, scope: Scope) -> bool:
        """Remove a link; False when there was none."""
        return self.engine.changer.unlink(a, b, type, scope=checked_scope(scope))

    def links(self, id: str, *, scope: Scope) -> list[Link]:
        """Every link that starts or ends at an entry, as far as the scope sees the other end."""
        return self.engine.changer.links(id, scope=checked_scope(scope))

    def history(self, id: str, *, scope: Scope) -> list[Version]:
        """Every state the entry has had, oldest first; the last is the present one."""
        return self.engine.changer.history(id, scope=checked_scope(scope))

    def forget(
        self,
        *,
        scope: Scope,
        ids: Sequence[str] | None = None,
        session_id: str | None = None,
        everything: bool = False,
        layer: str | None = None,
        turns: bool | None = None,
    ) -> Receipt:
        """Remove for good, and say what was removed from where. Give exactly one of `ids`, `session_id`,
        `everything`.

        `session_id` and `everything` act on the scope's home layer (or `layer`), so that a person can be forgotten
        without touching what the team shares. Raw turns go too, except with `ids`, where `turns=True` asks for it.
        """
        return self.engine.forgetter.forget(
            scope=checked_scope(scope), ids=ids, session_id=session_id, everything=everything, layer=layer, turns=turns
        )

    # -- care ----------------------------------------------------------------------------------------------------

    def stats(self, *, scope: Scope) -> Stats:
        """How much the scope sees."""
        counts = self.engine.store.counts(checked_scope(scope).partitions())
        model = self.engine.store.model()
        return Stats(
            entries=counts["entries"],
            links=counts["links"],
            versions=counts["versions"],
            sessions=counts["sessions"],
            turns=counts["turns"],
            vectors=counts["vectors"],
            by_kind={key[5:]: n for key, n in counts.items() if key.startswith("kind:")},
            by_state={key[6:]: n for key, n in counts.items() if key.startswith("state:")},
            embedder=model.name if model else "none",
            width=model.width if model else 0,
            size_bytes=self.engine.store.size_bytes(),
            scrubbed=self.engine.scrubbing.counts(scope.partitions()),
            embedding_cache=_cache_metrics(self.engine.embedder),
        )

    def events(self, *, scope: Scope, limit: int = 100) -> list[Event]:
        """The tenant's audit log, newest first: what was done to which entry when, never its text."""
        return self.engine.store.events(checked_scope(scope).tenant, limit=checked_count("limit", limit, least=1))

    def verify(self, *, progress: Progress | None = None) -> Report:
        """Check the whole store: structure, ids, times, counts, links, and that rows, index and vectors agree."""
        from wellworn.ops.doctor import verify

        return verify(self.engine.store, self.engine.embedder, progress=progress)

    def repair(self, *, progress: Progress | None = None) -> Report:
        """Rebuild what can be rebuilt from the entries, and report what cannot."""
        from wellworn.ops.doctor import repair

        report = repair(self.engine.store, self.engine.embedder, progress=progress)
        self.engine.searcher.drop_ram()
        return report

    def reembed(self, *, progress: Progress | None = None) -> Reembedded:
        """Give every entry a vector of this memory's embedder, then serve those; can be stopped and resumed."""
        return reembed(self.engine.store, self.engine.embedder, progress=progress)

    def export(
        self,
        path: str | Path,
        *,
        format: str | None = None,
        scope: Scope | None = None,
        vectors: bool = True,
        progress: Progress | None = None,
    ) -> Written:
        """Write everything (or a scope) to a `.jsonl` file, lossless, or to a folder of Markdown files."""
        from wellworn.ops.transfer import export_to

        return export_to(
            self.engine.store,
            Path(path),
            format=format,
            scope=scope,
            vectors=vectors,
            clock=self.engine.clock,
            progress=progress,
        )

    def load(
        self,
        path: str | Path,
        *,
        format: str | None = None,
        scope: Scope | None = None,
        progress: Progress | None = None,
    ) -> Loaded:
        """Read an export back, or a folder of Markdown notes into a scope; what is there already is skipped."""
        from wellworn.ops.transfer import load_from

        return load_from(
            self.engine.store, self.engine.writer, Path(path), format=format, scope=scope, progress=progress
        )

    def close(self) -> None:
        """Release files and memory. Closing twice is fine; any other call afterwards raises `StoreClosed`."""
        self.engine.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _cache_metrics(embedder: Embedder | None) -> list[CacheLevel]:
    metrics = getattr(embedder, "metrics", None)  # only one with a cache has any
    return list(metrics()) if callable(metrics) else []
