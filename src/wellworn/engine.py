"""What the verbs are built on: store, embedder, writer, searcher, learner, jobs, scrubbing, clock.

`Engine` owns the parts and closes them; mechanisms take it, or only the parts they need. It holds no rule of its own.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from wellworn.core.clock import EPOCH, Clock, NewId, SteadyClock, TimeOrderedIds, system_clock
from wellworn.core.errors import InvalidInput, StoreClosed, StoreError
from wellworn.core.locks import fork_lock
from wellworn.core.values import Durability, LearningMode, Partition, RecursionMode
from wellworn.ingest.change import Changer
from wellworn.ingest.forget import Forgetter
from wellworn.ingest.remember import Writer
from wellworn.ingest.replaces import FITTED_FOR
from wellworn.ingest.scrub import ScrubberSpec, choose_scrubbing
from wellworn.ingest.validate import checked_count, checked_flag
from wellworn.jobs.queue import restart_jobs
from wellworn.learning.learner import Learner, checked_mode
from wellworn.learning.policy import read_prior
from wellworn.learning.records import LearningLog
from wellworn.search.pipeline import Searcher, checked_profile
from wellworn.search.profiles import Profile
from wellworn.search.ram import RAM_MB
from wellworn.search.replaced import Truth
from wellworn.search.score import FEATURES
from wellworn.search.steps.router import Recursion, Router, recursion_of
from wellworn.store import choose_store
from wellworn.store.port import RecordFilter, Store

if TYPE_CHECKING:  # loaded where they are used: a plain memory needs none of them
    from wellworn.background import Background
    from wellworn.jobs.worker import Handler
    from wellworn.learning.residual import MatrixReranker
    from wellworn.models.choose import EmbedderSpec, ModelSpec
    from wellworn.models.ledger import Budget, Meter
    from wellworn.models.port import Embedder, Model
    from wellworn.reflection import ReflectionSettings
    from wellworn.search.engines import VectorEngine
    from wellworn.search.steps.limits import ModelAccess
    from wellworn.search.steps.trainer import CombinedMemoryTrainer
    from wellworn.store.sqlite.driver import Key


class Settings(TypedDict, total=False):
    """How a memory works; every setting has a default."""

    embedder: EmbedderSpec
    """`reader` (bundled, the default), `hash`, `openai:MODEL`, `sentence-transformers:MODEL`, None (words only), a
    LangChain `Embeddings`, or a callable."""
    llm: ModelSpec
    """The model that turns sessions into memories: `openai:MODEL`, `ollama:MODEL`, `anthropic:MODEL`, a
    LangChain chat model, a callable, or None for rules (the default)."""
    summarizer: ModelSpec
    """A model that summarises long sessions; None (the default) writes no summaries."""
    budget: Budget | None
    """Caps on what model calls may cost."""
    prices: str | Path | None
    """A YAML file with model prices, instead of the table in the package."""
    learning: LearningMode
    """`on` (the default), `observe` (learn from outcomes, but serve the untrained ranking) or `off`."""
    prior: str | Path | None
    """Where tenants begin that have learned nothing of their own yet: a file written by `learning.export`, or `dialogue`
    for what labelled conversations between two people taught."""
    profile: str | Profile
    """The ranking: `default`, `paper`, or a `Profile`."""
    rerank: bool
    """False: the best candidates of a chat are not read together with the question, which takes about 50 ms. Default True."""
    recursion: RecursionMode | Recursion
    """`on` (the default: questions that need several entries are searched in several steps), `off`, `always`, or a
    `Recursion` with limits, a planner and models."""
    reflection: ReflectionSettings | None
    """When sessions are reflected on."""
    background: bool
    """False leaves background work to `jobs.run`. Default True."""
    tenants: Sequence[str] | Literal["all"] | None
    """Whose background work is done here, with this memory's models: these tenants, or `all`. None (the default):
    those that this memory opened a session of or gave a job to."""
    scrubber: ScrubberSpec
    """`off` (the default), `mask` (personal data and secrets become placeholders such as `[EMAIL_1]` before anything
    is stored, logged or sent), `strict` (names and addresses too), `reject` (they are refused), or a function."""
    durability: Durability
    """`full` (the default: an acknowledged write survives a power cut) or `normal` (it survives a crash of the
    process, not of the machine; faster)."""
    key: Key | None
    """Encrypts the whole file: a passphrase, 32 bytes, 64 hexadecimal digits, a `Path` to a file that holds one, or a
    function that returns one. Default: WELLWORN_KEY, or the file named by WELLWORN_KEY_FILE; without them the file is
    plain."""
    ram_mb: int
    """How many megabytes of indexes are held in memory at most, beside those in use. Default 2000."""
    qdrant: Any
    """A Qdrant (URL, folder or client) that searches the vectors of partitions of 200,000 entries or more."""
    clock: Clock
    new_id: NewId | None
    reembedding: bool
    """True accepts an embedder other than the store's, for `admin.reembed` only."""


class Engine:
    """The parts of one open memory."""

    def __init__(
        self,
        location: str | Path | Store,
        *,
        embedder: EmbedderSpec = "reader",
        llm: ModelSpec = None,
        summarizer: ModelSpec = None,
        budget: Budget | None = None,
        prices: str | Path | None = None,
        learning: LearningMode = "on",
        prior: str | Path | None = None,
        profile: str | Profile = "default",
        rerank: bool = True,
        recursion: RecursionMode | Recursion = "on",
        reflection: ReflectionSettings | None = None,
        background: bool = True,
        tenants: Sequence[str] | Literal["all"] | None = None,
        scrubber: ScrubberSpec = "off",
        durability: Durability = "full",
        key: Key | None = None,
        ram_mb: int = RAM_MB,
        qdrant: Any = None,
        clock: Clock = system_clock,
        new_id: NewId | None = None,
        reembedding: bool = False,
    ) -> None:
        # Everything is checked before a file is made.
        self.embedder = _embedder(embedder)
        self.llm, summaries = _model(llm), _model(summarizer)
        table = None
        if any(one is not None for one in (self.llm, summaries, prices)):
            from wellworn.models.ledger import Prices

            table = Prices.load(prices)
        self.profile, mode = checked_profile(profile), checked_mode(learning)
        if not checked_flag("rerank", rerank):
            self.profile = replace(self.profile, reads=0)
        self.recursion = recursion_of(recursion, self.profile)
        start = None if prior is None else read_prior(Path(prior), FEATURES)
        in_background = checked_flag("background", background)
        served = _tenants(tenants)
        self._ram_bytes = 1_000_000 * checked_count("ram_mb", ram_mb, least=1)
        self.new_id = new_id or TimeOrderedIds()
        self.store = choose_store(location, durability=durability, key=key)
        self.clock = SteadyClock(clock, _last_write(self.store))
        try:
            from wellworn.ops.files import clean_up

            clean_up(self.store)
            self.renews = False
            """Whether the vectors were to be renewed when it was opened."""
            if not reembedding and self.embedder is not None:
                from wellworn.ops.reembed import adopt_model

                self.renews = not adopt_model(self.store, self.embedder, clock=clock)
            self.scrubbing = choose_scrubbing(scrubber, self.store, clock=self.clock)
            self.learner = Learner(
                LearningLog(self.store),
                mode=mode,
                names=FEATURES,
                clock=self.clock,
                profile=self.profile.name,
                start=start,
                reranker=_reranker(self.profile, self.store, self.embedder),
            )
            self.vectors = self._vector_engine(qdrant, in_background)
            self._build(mode)
        except BaseException:
            self.store.close()
            raise
        self._lock = fork_lock()
        self._background: Background | None = None
        self._handlers: dict[str, Handler] = {}
        self._background_options = {
            "summarizer": summaries,
            "budget": budget,
            "prices": table,
            "settings": reflection,
            "on_thread": in_background,
            "tenants": served,
        }
        if self.renews:
            self.background.renew()

    def _build(self, mode: str) -> None:
        """What works on the store: search, learning, writing, changing, forgetting."""
        self.searcher = Searcher(
            self.store,
            self.embedder,
            profile=self.profile,
            clock=self.clock,
            new_id=self.new_id,
            learner=None if mode == "off" else self.learner,
            scrubbing=self.scrubbing,
            ram_bytes=self._ram_bytes,
            engine=self.vectors,
        )
        self.searches: CombinedMemoryTrainer | None = None
        if mode != "off" and self.recursion.mode != "off" and self.recursion.learns:
            from wellworn.search.steps.trainer import CombinedMemoryTrainer

            self.searches = CombinedMemoryTrainer(self.store, self.learner, self.recursion, clock=self.clock)
        self.trainer = self.searches or self.learner
        access = partial(_model_access, weakref.ref(self))
        self.router = Router(self.searcher, self.recursion, access=access, trainer=self.searches)
        self.writer = Writer(self.store, self.embedder, scrubber=self.scrubbing, clock=self.clock, new_id=self.new_id)
        fitted = self.embedder is not None and self.embedder.name.startswith(FITTED_FOR)
        self.writer.find_replaced = Truth(self.searcher.ram, decides=self.llm is None, fitted=fitted).replaced
        self.changer = Changer(self.store, self.writer)
        self.forgetter = Forgetter(
            self.store, clock=self.clock, caches=self.searcher.forget, before=self.learner.log.write, cut=restart_jobs
        )

    def _vector_engine(self, qdrant: Any, in_background: bool) -> VectorEngine | None:
        if qdrant is not None:
            in_file = "://" not in self.store.location
            if self.store.encrypted and in_file:
                problem = "would hold the vectors of an encrypted memory in plain"
                raise InvalidInput("qdrant", problem, "leave out qdrant=")
            from wellworn.ops.backup import hash_of, place_of
            from wellworn.search.qdrant import QdrantVectors

            return QdrantVectors(qdrant, store=self.store, name=hash_of(place_of(self.store)), sees_all=in_file)
        if not self.store.searches_large:
            return None
        from wellworn.search.engines import StoreIndexes

        return StoreIndexes(self.store, most_bytes=self._ram_bytes, make=in_background, clock=self.clock)

    @property
    def background(self) -> Background:
        """Jobs and what runs them, made on first use: most of its modules are needed by nothing else."""
        with self._lock:
            if self._background is None:
                from wellworn.background import Background

                options: Any = self._background_options
                self._background = Background(self, **options)
                self._background.handle(self._handlers)
            return self._background

    def handle(self, handlers: Mapping[str, Handler]) -> None:
        """Run jobs of these kinds, too: for mechanisms that are built on an open memory."""
        with self._lock:
            self._handlers.update(handlers)
            if self._background is not None:
                self._background.handle(handlers)

    def check_open(self) -> None:
        """Raise now if the store is closed or cannot be read, not at the first use of what is about to be made."""
        self.store.model()

    def close(self) -> None:
        """Stop background work, write what is pending, and release files and memory. Closing twice is fine."""
        if self._background is not None:
            self._background.close()
        self.learner.log.close()
        if self.vectors is not None:
            self.vectors.close()
        self.store.close()
        self.searcher.ram.clear()


def _model_access(engine: weakref.ref[Engine]) -> ModelAccess:
    """How recalls may ask models."""
    from wellworn.search.steps.limits import ModelAccess

    found = engine()
    return ModelAccess(metered=partial(_metered, engine), reasoner=None if found is None else found.llm)


def _metered(engine: weakref.ref[Engine], model: Model, partition: Partition) -> Meter:
    """A model as recalls may ask it. Held weakly, so that a memory which is let go is gone at once."""
    found = engine()
    if found is None:
        raise StoreClosed("the memory was closed; open it again")
    return found.background.meter(model, partition)


def _tenants(tenants: Sequence[str] | Literal["all"] | None) -> Sequence[str] | Literal["all"] | None:
    if tenants is None or tenants == "all":
        return tenants
    if isinstance(tenants, str) or not all(isinstance(one, str) and one for one in tenants):
        raise InvalidInput("tenants", f"{tenants!r:.80} is not a list of tenants", "use ['acme', …] or 'all'")
    return [*tenants]


def _last_write(store: Store) -> datetime:
    """When the last record was made, as every write makes one."""
    with suppress(StoreError):
        for record in store.records(RecordFilter(limit=1)):
            return record.created_at
    return EPOCH


def _embedder(spec: EmbedderSpec) -> Embedder | None:
    if spec == "reader":  # the default needs none of the providers
        from wellworn.language.reader import bundled

        return bundled()
    from wellworn.models.choose import choose_embedder

    return choose_embedder(spec)


def _model(spec: ModelSpec) -> Model | None:
    if spec is None:
        return None
    from wellworn.models.choose import choose_model

    return choose_model(spec)


def _reranker(profile: Profile, store: Store, embedder: Embedder | None) -> MatrixReranker | None:
    """The optional reranker that a profile names; it needs vectors."""
    if profile.reranker == "linear" or embedder is None:
        return None
    from wellworn.learning.residual import MatrixReranker

    return MatrixReranker(store, embed=embedder.embed_query, width=embedder.width)
