"""The facade: one sentence per verb, each calling one mechanism.

`Memory` is safe to share between threads. `memory.for_user("ada")` gives the same verbs with the scope filled in. The
verbs for owners and operators are grouped: `memory.learning`, `memory.jobs`, `memory.admin`. See `aio` for async code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack

from wellworn.core.errors import InvalidInput, ScopeError
from wellworn.core.scope import Layer, Scope
from wellworn.core.values import (
    Entry,
    Kind,
    Link,
    LinkType,
    Progress,
    Reasoning,
    Recall,
    Receipt,
    RecursionMode,
    State,
    Version,
)
from wellworn.engine import Engine, Settings
from wellworn.ingest import validate
from wellworn.ingest.session import Session
from wellworn.ingest.validate import Details, Draft, TimeLike
from wellworn.learning.records import MaySee, outcome_input, seen_by
from wellworn.search.filters import NO_FILTERS, FilterOptions, Filters
from wellworn.store.port import Store
from wellworn.views import AdminView, JobsView, LearningView

if TYPE_CHECKING:  # loaded on first use
    from wellworn.ops.doctor import Report
    from wellworn.reflection import Reflection
    from wellworn.search.assemble import Assembled


class Memory:
    """Memory for agents: remember, recall, report outcomes, edit, forget.

    `scope` says whose memory a call sees and writes. A memory from `for_user` has it filled in; otherwise every call
    needs it.
    """

    def __init__(self, location: str | Path | Store = "memory.db", **settings: Unpack[Settings]) -> None:
        """Open a memory, and make it when it is new. `location` is a file path, `:memory:`, or a store of your own."""
        validate.refuse_unknown("Memory", settings, Settings.__annotations__)
        self._bind(Engine(location, **settings), None)
        if self.engine.store.stale_index:
            from wellworn.ops.doctor import renew_index

            renew_index(self.engine.store)
            for tenant in {one.tenant for one in self.engine.store.partitions()}:
                self.engine.learner.relearn(tenant)  # an earlier release learned other features
            self.engine.store.stale_index = False

    @classmethod
    def open(cls, location: str | Path | Store = "memory.db", **settings: Unpack[Settings]) -> Memory:
        """The same as `Memory(location, …)`."""
        return cls(location, **settings)

    def _bind(self, engine: Engine, scope: Scope | None) -> None:
        self.engine = engine
        self.scope = scope
        """The scope that is filled in; None when every call names its own."""
        self.learning = LearningView(engine, self._scope, bound=scope)
        self.jobs = JobsView(engine, self._scope, bound=scope)
        self.admin = AdminView(engine, self._scope, bound=scope)

    def for_user(self, user: str, *, tenant: str = "default", **layers: str) -> Memory:
        """The memory of one person: the same verbs, without `scope`. `layers` adds ids, as in `team="core"`.

        It shares this memory's file and caches; closing one closes both.
        """
        return self.for_scope(validate.scope_of_user(user, tenant, layers))

    def for_scope(self, scope: Scope) -> Memory:
        """The same verbs with any scope filled in."""
        bound = object.__new__(type(self))
        bound._bind(self.engine, validate.checked_scope(scope))
        return bound

    def _scope(self, scope: Scope | None) -> Scope:
        """The scope of a call: the one given, or the one this memory is bound to."""
        if scope is None:
            if self.scope is None:
                raise ScopeError("scope", "is missing", "pass scope=Scope(user='ada'), or use memory.for_user('ada')")
            return self.scope
        scope = validate.checked_scope(scope)
        if self.scope is not None and not scope.within(self.scope):
            raise ScopeError(
                "scope", f"{scope} reaches beyond {self.scope}, to which this memory is bound", "leave it out"
            )
        return scope

    # -- remember ------------------------------------------------------------------------------------------------

    def remember(
        self, text: str, *, kind: Kind = "note", scope: Scope | None = None, **details: Unpack[Details]
    ) -> list[str]:
        """Store a text and return the ids of its entries: one, or one per chunk of a long text.

        A text that is there already is strengthened, not stored twice; its id is returned again.
        """
        validate.refuse_unknown("remember", details, Details.__annotations__, ("kind",))
        return self.engine.writer.remember([Draft(text=text, kind=kind, **details)], scope=self._scope(scope))

    def remember_many(
        self,
        /,
        items: Iterable[str | Mapping[str, Any] | Draft],
        *,
        progress: Progress | None = None,
        scope: Scope | None = None,
        **common: Any,
    ) -> list[str]:
        """Store many texts at once and return the ids of all their entries, in order.

        An item is a text, or a mapping with the keywords of `remember`; `common` gives keywords to every item.
        All items are checked before the first is stored. `progress(done, total)` is called after each batch.
        """
        return self.engine.writer.remember(
            validate.drafts_of(items, common), scope=self._scope(scope), progress=validate.checked_progress(progress)
        )

    def session(self, session_id: str, *, scope: Scope | None = None) -> Session:
        """A dialogue to add turns to; a known id continues that dialogue."""
        scope, engine = self._scope(scope), self.engine
        engine.check_open()
        engine.background.start(scope.tenant)
        return Session(
            engine.writer, engine.store, scope=scope, session_id=session_id, watch=engine.background.reflections
        )

    def sessions(self, *, layer: Layer | None = None, scope: Scope | None = None) -> list[str]:
        """Ids of the sessions of the scope's home layer, oldest first."""
        return [head.id for head in self.engine.store.sessions(self._scope(scope).home(layer))]

    def reflect(
        self,
        session_id: str | None = None,
        *,
        again: bool = False,
        progress: Progress | None = None,
        scope: Scope | None = None,
    ) -> list[Reflection]:
        """Turn what was said into memories now: one session, or every session of the scope's home not read yet.

        `again` also reads sessions that were read before.
        """
        name = None if session_id is None else validate.checked_session_id(session_id)
        anew, home = validate.checked_flag("again", again), self._scope(scope).home()
        return self.engine.background.reflect(home, name, again=anew, progress=validate.checked_progress(progress))

    # -- recall --------------------------------------------------------------------------------------------------

    def recall(
        self,
        query: str,
        *,
        k: int = 5,
        recursion: RecursionMode | None = None,
        deadline_s: float | None = None,
        scope: Scope | None = None,
        **filters: Unpack[FilterOptions],
    ) -> Recall:
        """The `k` entries that answer the query best, each with the reasons for its place.

        It sees what is valid now, or at `as_of`. `recursion` is `on`, `off` or `always` for this call. After
        `deadline_s` seconds it answers with what was found by then, and says so in `cut`, whatever hangs.
        """
        conditions = NO_FILTERS
        if filters:
            validate.refuse_unknown("recall", filters, FilterOptions.__annotations__, ("k", "recursion", "scope"))
            conditions = Filters.of(**filters)
        return self.engine.router.recall(
            query, scope=self._scope(scope), k=k, filters=conditions, recursion=recursion, deadline_s=deadline_s
        )

    def assemble(
        self,
        query: str,
        *,
        max_tokens: int = 1500,
        sources: Sequence[Recall] = (),
        k: int = 40,
        recursion: RecursionMode | None = None,
        scope: Scope | None = None,
        **filters: Unpack[FilterOptions],
    ) -> Assembled:
        """A context for a question within a token budget: the entries that together say most, and what was left out.

        It chooses among the `k` best hits of a recall and the hits of further recalls given as `sources`.
        `Assembled.cited` turns what an answer cites into places for `outcome`.
        """
        from wellworn.search.assemble import assemble, checked_budget

        validate.refuse_unknown(
            "assemble", filters, FilterOptions.__annotations__, ("k", "max_tokens", "sources", "scope")
        )
        checked_budget(max_tokens)
        if not isinstance(sources, Sequence) or not all(isinstance(one, Recall) for one in sources):
            raise InvalidInput("sources", "is not a list of recalls", "as in sources=[memory.recall(…)]")
        scope = self._scope(scope)
        found = self.recall(query, k=k, recursion=recursion, scope=scope, **filters)
        return assemble(found.query, [found, *sources], max_tokens=max_tokens)

    def reason(self, query: str, *, k: int = 5, as_of: TimeLike = None, scope: Scope | None = None) -> Reasoning:
        """The chain of entries that bears on a question: what was found, what that names or is linked to, and why.

        A model (that of `Recursion.models`, or `llm`) draws the conclusion from these entries alone and cites them;
        without a model, or where it fails, the conclusion is what the entries say. Where nothing relevant is remembered
        the conclusion says so, and the path is empty.
        """
        from wellworn.search.steps.reason import Library

        engine = self.engine
        library = Library(
            searcher=engine.searcher.under(engine.profile, None, engine.scrubbing),
            store=engine.store,
            scope=self._scope(scope),
            moment=Filters.of(as_of=as_of).as_of or engine.clock(),
        )
        return engine.router.steps.reason(query, library, k=k)

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
        """Report how a recall turned out (choose one option); False when this was reported before.

        `cited` are places in `recall.hits` that the answer used, possibly none; `used` is how good the hits were, 0 to
        1; `ignored` says that nobody used them; `refined` is the query asked instead, which is not kept; `success` is how the work
        went.
        A recall that the scope does not see is not found. Without a scope, the recall must be of a tenant that this
        memory recalled for, or of the only one that the store has.
        """
        within = None if scope is None and self.scope is None else self._scope(scope)
        reported = outcome_input(cited=cited, used=used, ignored=ignored, refined=refined, success=success)
        may_see = self._recalled_for() if within is None else seen_by(within)
        return self.engine.trainer.outcome(validate.checked_id(recall_id), reported, may_see=may_see)

    def _recalled_for(self) -> MaySee:
        """The recalls of tenants that this memory recalled for, else of the only tenant of the store."""
        tenants = set(self.engine.learner.log.tenants)
        if not tenants:
            tenants = {one.tenant for one in self.engine.store.partitions()}
            if len(tenants) > 1:
                raise ScopeError("scope", "is missing, and the store has several tenants", "pass scope=…")
        return lambda partition: partition.tenant in tenants

    # -- look ----------------------------------------------------------------------------------------------------

    def get(self, id: str, *, scope: Scope | None = None) -> Entry:
        """One entry, whatever its state. `NotFound` when the scope does not see it."""
        return self.engine.store.one(self._scope(scope).partitions(), validate.checked_id(id))

    def entries(
        self,
        *,
        kind: Kind | Sequence[Kind] | None = None,
        tags: str | Sequence[str] | None = None,
        layer: Layer | Sequence[Layer] | None = None,
        session_id: str | None = None,
        state: State | Sequence[State] | None = None,
        limit: int = 100,
        offset: int = 0,
        scope: Scope | None = None,
    ) -> list[Entry]:
        """Entries that the scope sees, oldest first, one page."""
        limit, offset = validate.checked_count("limit", limit, least=1), validate.checked_count("offset", offset)
        filters = Filters.of(kind=kind, tags=tags, layer=layer, session_id=session_id)
        seen = self._scope(scope).partitions()
        partitions = [one for one in seen if filters.layers is None or one.layer in filters.layers]
        page = self.engine.store.select(partitions, filters.selection(state), skip=offset, limit=limit)
        return [entry for _, entry in page]

    def history(self, id: str, *, scope: Scope | None = None) -> list[Version]:
        """Every state the entry has had, oldest first; the last is the present one."""
        return self.engine.changer.history(id, scope=self._scope(scope))

    def links(self, id: str, *, scope: Scope | None = None) -> list[Link]:
        """Every link that starts or ends at an entry, as far as the scope sees the other end."""
        return self.engine.changer.links(id, scope=self._scope(scope))

    # -- change --------------------------------------------------------------------------------------------------

    def edit(self, /, id: str, *, scope: Scope | None = None, **changes: Any) -> Entry:
        """Change fields of an entry (`text, title, tags, kind, state, confidence, trust, at, valid_from, valid_to,
        metadata, evidence, speaker`); the former state stays in its history."""
        return self.engine.changer.edit(id, scope=self._scope(scope), changes=changes)

    def supersede(
        self, old: str, new: str, *, at: TimeLike = None, wrong: bool = False, scope: Scope | None = None
    ) -> Entry:
        """Record that `new` replaced `old` at a time (default: when `new` became valid); returns `old` as it is now.

        What was true until then still answers `as_of` an earlier time; what was `wrong` never answers again.
        """
        wrong = validate.checked_flag("wrong", wrong)
        return self.engine.changer.supersede(old, new, scope=self._scope(scope), at=at, wrong=wrong)

    def link(
        self, source: str, target: str, type: LinkType, *, confidence: float = 1.0, scope: Scope | None = None
    ) -> Link:
        """Record that one entry stands in this relation to another; linking twice changes nothing."""
        return self.engine.changer.link(source, target, type, scope=self._scope(scope), confidence=confidence)

    def unlink(self, source: str, target: str, type: LinkType, *, scope: Scope | None = None) -> bool:
        """Remove a link; False when there was none.

        Without a `supersedes` link the older entry holds again, unless something else ended it.
        """
        return self.engine.changer.unlink(source, target, type, scope=self._scope(scope))

    def forget(
        self,
        ids: Sequence[str] | None = None,
        *,
        session_id: str | None = None,
        everything: bool = False,
        layer: Layer | None = None,
        turns: bool | None = None,
        scope: Scope | None = None,
    ) -> Receipt:
        """Remove for good, and report what was removed. Give exactly one of `ids`, `session_id`, `everything`.

        `session_id` and `everything` act on the scope's home layer (or `layer`), so that a person can be forgotten
        without touching what the team shares. Raw turns go too, except with `ids`, where `turns=True` asks for it.
        """
        return self.engine.forgetter.forget(
            scope=self._scope(scope), ids=ids, session_id=session_id, everything=everything, layer=layer, turns=turns
        )

    # -- care ----------------------------------------------------------------------------------------------------

    def verify(self, *, progress: Progress | None = None) -> Report:
        """Check the whole store: structure, ids, times, counts, links, and that rows, index and vectors agree."""
        from wellworn.ops.doctor import verify

        return verify(self.engine.store, self.engine.embedder, progress=validate.checked_progress(progress))

    def close(self) -> None:
        """Release files and memory. Closing twice is fine; any other call afterwards raises `StoreClosed`."""
        self.engine.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        where = repr(self.engine.store.location)
        return f"Memory({where})" if self.scope is None else f"Memory({where}).for_scope({self.scope})"
