"""The facade: one sentence per verb, each calling one mechanism.

Chooses the concrete store and embedder; holds no rule of its own. Safe to share between threads. See `aio` for the
awaitable twin.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from wellworn.core.clock import Clock, NewId, TimeOrderedIds, aware, system_clock
from wellworn.core.errors import NotFound, StoreClosed
from wellworn.core.locks import ForkLock
from wellworn.core.values import (
    CacheLevel,
    CurvePoint,
    Entry,
    LearningStatus,
    Link,
    Partition,
    Progress,
    Reasoning,
    Recall,
    Receipt,
    Scope,
    Stats,
    Version,
)
from wellworn.ingest.change import Changer
from wellworn.ingest.forget import Forgetter
from wellworn.ingest.remember import Writer
from wellworn.ingest.scrub import ScrubberSpec, choose_scrubbing
from wellworn.ingest.session import Session
from wellworn.ingest.times import TimeLike, as_time
from wellworn.ingest.validate import (
    Draft,
    checked_count,
    checked_flag,
    checked_fraction,
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
from wellworn.learning.learner import Learner, checked_mode
from wellworn.learning.policy import Prior
from wellworn.learning.state import read_prior
from wellworn.learning.told import told_of
from wellworn.learning.tune import Tuner
from wellworn.models.embedders.base import Embedder
from wellworn.models.embedders.choose import EmbedderSpec, choose_embedder
from wellworn.models.llms.budget import Budget
from wellworn.models.llms.choose import ModelSpec, choose_model
from wellworn.models.llms.prices import Prices
from wellworn.ops.reembed import Reembedded, adopt_model, reembed
from wellworn.reflection.settings import ReflectionSettings
from wellworn.search.evidence import EVIDENCE
from wellworn.search.filters import Filters
from wellworn.search.learned import Learned
from wellworn.search.pipeline import Searcher, checked_profile
from wellworn.search.profiles import Profile
from wellworn.search.steps.combined import CombinedMemoryTrainer
from wellworn.search.steps.library import Library
from wellworn.search.steps.recall import Minds, Recursion, Router, checked_recursion, recursion_of
from wellworn.search.steps.searches import Searches
from wellworn.store.choose import choose_store
from wellworn.store.port import Event, Job, Spent, Store

if TYPE_CHECKING:  # loaded on first use: most programs never export or verify
    from wellworn.models.llms.base import Model
    from wellworn.models.llms.ledger import Meter
    from wellworn.ops.doctor import Report
    from wellworn.ops.transfer import Loaded, Written
    from wellworn.reflection.report import Reflection
    from wellworn.search.assemble import Assembled
    from wellworn.work import Work


class Memory:
    """Memory for agents: remember, recall, edit, link, forget. Open one with `Memory.open`."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder | None,
        *,
        profile: str | Profile = "default",
        scrubber: ScrubberSpec = "off",
        learning: str = "on",
        explore: float = 0.1,
        prior: Prior | None = None,
        llm: Model | None = None,
        summarizer: Model | None = None,
        budget: Budget | None = None,
        prices: Prices | None = None,
        reflection: ReflectionSettings | None = None,
        background: bool = True,
        recursion: str | Recursion = "on",
        clock: Clock = system_clock,
        new_id: NewId | None = None,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._clock = clock
        new_id = new_id or TimeOrderedIds()
        profile, learning = checked_profile(profile), checked_mode(learning)
        self._learner = _learner_for(profile, store, embedder, mode=learning, prior=prior, clock=clock)
        learned = Learned(self._learner, explore=checked_fraction("explore", explore), clock=aware(clock))
        self._profile = profile
        self._scrubbing = choose_scrubbing(scrubber, store, clock=clock)
        self._searcher = Searcher(
            store,
            embedder,
            profile=profile,
            clock=clock,
            new_id=new_id,
            learned=None if learning == "off" else learned,
            scrubbing=self._scrubbing,
        )
        self._recursion = recursion_of(recursion, profile)
        self._searches = None
        if learning != "off" and self._recursion.mode != "off" and self._recursion.learns:
            self._searches = Searches(
                store,
                self._learner,
                explore=self._recursion.explore,
                clock=clock,
                threshold=self._recursion.threshold,
                share=self._recursion.share,
            )
        minds = Minds(metered=partial(_metered, weakref.ref(self)), reasoner=llm)
        self._router = Router(self._searcher, self._recursion, minds=minds, searches=self._searches)
        self._trainer = CombinedMemoryTrainer(store, self._learner, self._searches, clock=clock)
        self._writer = Writer(store, embedder, scrubber=self._scrubbing, clock=clock, new_id=new_id)
        self._changer = Changer(store, embedder, scrubbing=self._scrubbing, clock=clock)
        self._forgetter = Forgetter(store, self._searcher, clock=clock, before=self._learner.write_pending)
        self._lock = ForkLock()
        self._begun: Work | None = None
        self._begin = partial(
            _work,
            store,
            self._writer,
            self._searcher,
            llm=llm,
            summarizer=summarizer,
            budget=budget,
            prices=prices,
            settings=reflection,
            background=checked_flag("background", background),
            clock=aware(clock),
            new_id=new_id,
        )

    @property
    def _work(self) -> Work:
        """Jobs and what runs them, made on first use: most of its modules are needed by nothing else."""
        with self._lock:
            if self._begun is None:
                self._begun = self._begin()
            return self._begun

    @classmethod
    def open(
        cls,
        location: str | Path = "memory.db",
        *,
        embedder: EmbedderSpec = "static",
        profile: str | Profile = "default",
        scrubber: ScrubberSpec = "off",
        durability: str = "full",
        learning: str = "on",
        explore: float = 0.1,
        prior: str | Path | None = None,
        llm: ModelSpec = None,
        summarizer: ModelSpec = None,
        budget: Budget | None = None,
        prices: str | Path | None = None,
        reflection: ReflectionSettings | None = None,
        background: bool = True,
        recursion: str | Recursion = "on",
        clock: Clock = system_clock,
        new_id: NewId | None = None,
        reembedding: bool = False,
    ) -> Memory:
        """Open a memory, making it when new.

        `location` is a file path or `:memory:`. `embedder` is `static` (bundled, the default), `hash`,
        `openai:MODEL`, `sentence-transformers:MODEL`, None (words only), a LangChain `Embeddings`, or a callable.
        `durability` is `full` (an acknowledged write survives a power cut) or `normal` (survives a crash of the
        process, not of the machine; faster). `scrubber` is `off`, `mask` (personal data and secrets become
        placeholders like `[EMAIL_1]` before anything is stored, logged or sent), `reject` (they are refused), or a
        function from text to text. `learning` is `on`, `observe` (learn from outcomes, but serve the
        untrained ranking) or `off`; `explore` is the share of recalls whose last slot tries another candidate once a
        person gives outcomes (in twice that share neighbours change places), 0 for never; `prior` is a file that
        `export_learning` was written to, for tenants who have learned nothing of their own yet.

        `llm` is the model that turns sessions into memories: `openai:MODEL`, `ollama:MODEL`, `anthropic:MODEL`,
        `local:PATH`, a LangChain chat model, a callable, or None for rules. `summarizer` is one that summarises long
        sessions; without it nothing is summarised. `budget` caps what they may cost, by `prices` (a YAML file) instead
        of the table that comes with the package. `reflection` says when sessions are reflected on. `background=False`
        leaves that work to `run_jobs`. `recursion` is `on` (questions that need several entries are searched in several
        steps), `off`, `always`, or a `Recursion` with a threshold, limits, a planner and models.
        `reembedding=True` accepts an embedder other than the store's, for `reembed` only.
        """
        chosen = choose_embedder(embedder)
        model, summaries, table = choose_model(llm), choose_model(summarizer), Prices.load(prices)
        profile, learning = checked_profile(profile), checked_mode(learning)  # before a file is made
        checked_fraction("explore", explore)
        recursion = recursion_of(recursion, profile)
        started = None if prior is None else read_prior(Path(prior), EVIDENCE)
        store = choose_store(location, durability=durability)
        try:
            if not reembedding:
                adopt_model(store, chosen)
            return cls(
                store,
                chosen,
                profile=profile,
                scrubber=scrubber,
                learning=learning,
                explore=explore,
                prior=started,
                llm=model,
                summarizer=summaries,
                budget=budget,
                prices=table,
                reflection=reflection,
                background=background,
                recursion=recursion,
                clock=clock,
                new_id=new_id,
            )
        except BaseException:
            store.close()
            raise

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
        return self._writer.remember([draft], scope=checked_scope(scope))

    def remember_many(
        self,
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
        return self._writer.remember(drafts_of(items, common), scope=checked_scope(scope), progress=progress)

    def session(self, *, scope: Scope, session_id: str) -> Session:
        """A dialogue to add turns to; continues where it was left when the id is known."""
        self._store.heads([])  # a closed memory says so here, not at the first turn
        self._work.start()
        return Session(
            self._writer, self._store, scope=checked_scope(scope), session_id=session_id, watch=self._work.watch
        )

    def sessions(self, *, scope: Scope, layer: str | None = None) -> list[str]:
        """Ids of the sessions kept at the scope's home layer, oldest first."""
        return self._store.sessions(checked_scope(scope).home(layer))

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
        return self._router.recall(query, scope=checked_scope(scope), k=k, filters=filters, recursion=mode)

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
        if self._searches is not None and context.hits:
            self._searches.assembled(found.id, scope.home(), context.covered)
        return context

    def reason(self, question: str, *, scope: Scope, k: int = 5, as_of: TimeLike = None) -> Reasoning:
        """The chain of entries that bears on a question: what was found, what that names or is linked to, and why.

        The conclusion is drawn by the model of `Recursion.models`, or `llm`, from these entries alone and citing them;
        without a model, or where it fails, it is what they say. Sees what is valid now, or at `as_of`.
        """
        scope = checked_scope(scope)
        filters = Filters.of(as_of=as_of)
        moment = filters.as_of or aware(self._clock)()

        def valid(id: str) -> Entry | None:
            entry = self._store.get(scope.partitions(), [id]).get(id)
            if entry is None or entry.state == "pruned" or entry.valid_from > moment:
                return None
            return entry if entry.valid_to is None or moment < entry.valid_to else None

        def library() -> Library:
            searcher = self._searcher.under(self._profile, None, self._scrubbing)
            return Library(searcher=searcher, store=self._store, scope=scope, filters=filters, moment=moment)

        links = partial(self._changer.links, scope=scope)
        return self._router.reason(question, scope=scope, k=k, filters=filters, links=links, get=valid, library=library)

    def get(self, id: str, *, scope: Scope) -> Entry:
        """One entry, whatever its state. `NotFound` when the scope does not see it."""
        id = checked_id(id)
        entry = self._store.get(checked_scope(scope).partitions(), [id]).get(id)
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
        return [entry for _, entry in self._store.select(partitions, selection, limit=limit + offset)][offset:]

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
        if self._scrubbing.on and isinstance(refined, str):
            refined = self._scrubbing.asked(None if scope is None else checked_scope(scope).home())(refined)
        told = told_of(cited=cited, used=used, ignored=ignored, refined=refined, success=success)
        tenant = None if scope is None else checked_scope(scope).tenant
        return self._trainer.outcome(checked_id(recall_id), told, tenant=tenant)

    def learning(self, *, scope: Scope) -> LearningStatus:
        """What serves the scope's home layer now, and on which evidence."""
        return self._trainer.status(checked_scope(scope).home(), self._recursion.threshold)

    def learning_curve(self, *, scope: Scope) -> list[CurvePoint]:
        """How learning came to where it is: one point per outcome of the scope's home, replayed from the log."""
        home = checked_scope(scope).home()
        return curve(self._learner, home)

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
            else [(self._searcher.examine(checked_query(query), scope=scope), checked_ids(ids)) for query, ids in pairs]
        )
        self._trainer.relearn(home.tenant, labelled, whole=checked_flag("whole", whole))
        return self._trainer.status(home, self._recursion.threshold)

    def reset_learning(self, *, scope: Scope) -> int:
        """Forget what the tenant's users taught, for good: what was told so far stays in the log and teaches no more.

        Returns how many states there were. `relearn(whole=True)` takes it back.
        """
        return self._learner.reset(checked_scope(scope).tenant)

    def share_learning(self, on: bool, *, scope: Scope) -> None:
        """Whether the tenant's users learn from each other (numbers only); off also drops what was shared."""
        self._trainer.share(checked_scope(scope).tenant, checked_flag("on", on))

    def export_learning(self, *, scope: Scope) -> dict[str, Any]:
        """What was learned for the tenant and the scope's home, as JSON: numbers only."""
        return self._trainer.save(checked_scope(scope).home())

    def load_learning(self, state: Mapping[str, Any], *, scope: Scope) -> LearningStatus:
        """Put what `export_learning` returned in the place of what was learned; parts it does not have stay."""
        home = checked_scope(scope).home()
        self._trainer.load(home, dict(state))
        return self._trainer.status(home, self._recursion.threshold)

    def practise(self, *, scope: Scope, tasks: int = 60) -> int:
        """Try every way to search on questions made from the scope's own entries, once, so that learning which serves
        best does not begin blind; returns how many questions there were. Nothing is logged, and nothing served changes
        before outcomes say so."""
        from wellworn.search.steps.bootstrap import practise

        scope, count = checked_scope(scope), checked_count("tasks", tasks, least=1)
        if self._searches is None:
            return 0
        searcher = self._searcher.under(self._profile, None, self._scrubbing)
        return practise(self._store, searcher, self._recursion, self._searches, scope=scope, count=count)

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
        return self._work.reflect(checked_scope(scope).home(), name, dry_run=dry, again=anew, progress=progress)

    def jobs(self, *, scope: Scope, state: str | None = None, limit: int = 100) -> list[Job]:
        """The tenant's work in the background, newest first; `state` is `queued`, `running`, `done` or `dead`."""
        wanted = None if state is None else [checked_job_state(state)]
        tenant = checked_scope(scope).tenant
        return self._store.jobs(tenant=tenant, states=wanted, limit=checked_count("limit", limit, least=1))

    def run_jobs(self, *, scope: Scope | None = None, progress: Progress | None = None) -> int:
        """End idle sessions and run every job that is due, of one tenant or of all; returns how many were run."""
        return self._work.run(tenant=None if scope is None else checked_scope(scope).tenant, progress=progress)

    def retry_jobs(self, *, scope: Scope, id: str | None = None) -> int:
        """Queue a dead job of the tenant again, or all of them; returns how many."""
        return self._work.retry(checked_scope(scope).tenant, None if id is None else checked_id(id))

    def model(self, *, scope: Scope, session_id: str | None = None) -> Model | None:
        """The memory's model, for calls of your own: each is in the ledger, under the budget; None without an `llm`."""
        self._store.heads([])  # a closed memory says so here, not at the first call
        name = None if session_id is None else checked_session_id(session_id)
        return self._work.model(checked_scope(scope).home(), name)

    def costs(self, *, scope: Scope, since: TimeLike = None, by: Sequence[str] = ("purpose", "model")) -> list[Spent]:
        """What the tenant's model calls took, added up `by` any of `purpose`, `model`, `day`, `tenant`."""
        return self._store.spent(checked_scope(scope).tenant, since=as_time("since", since), by=checked_groups(by))

    # -- change --------------------------------------------------------------------------------------------------

    def edit(self, id: str, *, scope: Scope, **changes: Any) -> Entry:
        """Change fields of an entry (`text, title, tags, kind, state, confidence, trust, at, valid_from, valid_to,
        metadata, evidence, speaker`); the entry as it stood stays in its history."""
        return self._changer.edit(id, scope=checked_scope(scope), changes=changes)

    def supersede(self, old: str, new: str, *, scope: Scope, at: TimeLike = None, wrong: bool = False) -> Entry:
        """Say that `new` replaced `old` at a time (default: when `new` became valid); returns `old` as it now is.

        What was true until then still answers `as_of` an earlier time; what was `wrong` never answers again.
        """
        return self._changer.supersede(old, new, scope=checked_scope(scope), at=at, wrong=checked_flag("wrong", wrong))

    def link(self, a: str, b: str, type: str, *, scope: Scope, confidence: float = 1.0) -> Link:
        """NewEntry that entry `a` stands in this relation to entry `b`; linking twice changes nothing."""
        return self._changer.link(a, b, type, scope=checked_scope(scope), confidence=confidence)

    def unlink(self, a: str, b: str, type: str, *, scope: Scope) -> bool:
        """Remove a link; False when there was none."""
        return self._changer.unlink(a, b, type, scope=checked_scope(scope))

    def links(self, id: str, *, scope: Scope) -> list[Link]:
        """Every link that starts or ends at an entry, as far as the scope sees the other end."""
        return self._changer.links(id, scope=checked_scope(scope))

    def history(self, id: str, *, scope: Scope) -> list[Version]:
        """Every state the entry has had, oldest first; the last is the present one."""
        return self._changer.history(id, scope=checked_scope(scope))

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
        return self._forgetter.forget(
            scope=checked_scope(scope), ids=ids, session_id=session_id, everything=everything, layer=layer, turns=turns
        )

    # -- care ----------------------------------------------------------------------------------------------------

    def stats(self, *, scope: Scope) -> Stats:
        """How much the scope sees."""
        counts = self._store.counts(checked_scope(scope).partitions())
        model = self._store.model()
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
            size_bytes=self._store.size_bytes(),
            scrubbed=self._scrubbing.counts(scope.partitions()),
            embedding_cache=_cache_metrics(self._embedder),
        )

    def events(self, *, scope: Scope, limit: int = 100) -> list[Event]:
        """The tenant's audit log, newest first: what was done to which entry when, never its text."""
        return self._store.events(checked_scope(scope).tenant, limit=checked_count("limit", limit, least=1))

    def verify(self, *, progress: Progress | None = None) -> Report:
        """Check the whole store: structure, ids, times, counts, links, and that rows, index and vectors agree."""
        from wellworn.ops.doctor import verify

        return verify(self._store, self._embedder, progress=progress)

    def repair(self, *, progress: Progress | None = None) -> Report:
        """Rebuild what can be rebuilt from the entries, and report what cannot."""
        from wellworn.ops.doctor import repair

        report = repair(self._store, self._embedder, progress=progress)
        self._searcher.drop_ram()
        return report

    def reembed(self, *, progress: Progress | None = None) -> Reembedded:
        """Give every entry a vector of this memory's embedder, then serve those; can be stopped and resumed."""
        return reembed(self._store, self._embedder, progress=progress)

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
            self._store, Path(path), format=format, scope=scope, vectors=vectors, clock=self._clock, progress=progress
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

        return load_from(self._store, self._writer, Path(path), format=format, scope=scope, progress=progress)

    def close(self) -> None:
        """Release files and memory. Closing twice is fine; any other call afterwards raises `StoreClosed`."""
        if self._begun is not None:
            self._begun.close()
        self._learner.close()
        self._store.close()
        self._searcher.drop_ram()

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _cache_metrics(embedder: Embedder | None) -> list[CacheLevel]:
    metrics = getattr(embedder, "metrics", None)  # only one with a cache has any
    return list(metrics()) if callable(metrics) else []


def _work(*parts: Any, settings: ReflectionSettings | None, **keywords: Any) -> Work:  # as `Work` takes them
    from wellworn.work import Work

    return Work(*parts, settings=settings or ReflectionSettings(), **keywords)


def _metered(memory: weakref.ref[Memory], model: Model, partition: Partition) -> Meter:
    """A model as recalls may ask it. Held weakly, so that a memory which is let go is gone at once."""
    found = memory()
    if found is None:
        raise StoreClosed("the memory was closed; open it again")
    return found._work.meter(model, partition)


def _learner_for(
    profile: Profile, store: Store, embedder: Embedder | None, *, mode: str, prior: Prior | None, clock: Clock
) -> Learner:
    """The paper's reranker needs vectors; everything else learns by named features."""
    if profile.reranker == "paper" and embedder is not None:
        from wellworn.learning.paper import PaperLearner

        return PaperLearner(
            store,
            mode=mode,
            names=EVIDENCE,
            clock=clock,
            embed_query=embedder.embed_query,
            width=embedder.width,
            profile=profile.name,
        )
    tuner = None if embedder is None else Tuner(store, embedder.embed_query, embedder.width)
    return Learner(store, mode=mode, names=EVIDENCE, clock=clock, profile=profile.name, start=prior, tuner=tuner)
