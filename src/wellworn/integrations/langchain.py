"""Reflective memory (RMM) for LangChain agents, as a middleware: one line around any agent.

    agent = create_agent(model, tools, middleware=[RMMMiddleware(Memory.open("memory.db"))], context_schema=RMMContext)
    agent.invoke({"messages": [...]}, context={"user_id": "ada"})

before_agent names the session, before_model recalls, wrap_model_call shows the memories and takes the citation off the
answer, after_model learns from it, after_agent keeps what was said and ends the session. Memory is never a reason for
the agent to fail: what goes wrong is logged and counted (`faults`), and the model is called exactly once.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wellworn.core.clock import TimeOrderedIds
from wellworn.core.errors import InvalidInput, MissingExtra
from wellworn.core.locks import ForkLock
from wellworn.core.values import Scope
from wellworn.ingest.validate import checked_count, checked_flag, checked_k, checked_session_id
from wellworn.memory import Memory
from wellworn.search.filters import Filters

try:
    from langchain.agents.middleware.types import AgentMiddleware, ExtendedModelResponse, ModelRequest, ModelResponse
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langgraph.runtime import Runtime
    from langgraph.types import Command
except ImportError as error:
    raise MissingExtra("the LangChain middleware", "langchain") from error

from wellworn.integrations.rmm.bank import Bank, Found, MemoryBank
from wellworn.integrations.rmm.context import Person, RMMContext, field_of, person_of
from wellworn.integrations.rmm.create import RerankerConfig, create_bank
from wellworn.integrations.rmm.dialogue import after, clean, said, unkept
from wellworn.integrations.rmm.faults import Faults
from wellworn.integrations.rmm.injection import injected
from wellworn.integrations.rmm.proxy import Gate, answered, held_back, stripped, text_of
from wellworn.integrations.rmm.state import RMMState, SessionState, TurnState, question_of, turn_of

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import VectorStore
    from langgraph.store.base import BaseStore

__all__ = ["RMMContext", "RMMMiddleware", "RerankerConfig", "create_rmm_middleware"]

_MOST_BLOCKS = 512
_MOST_THREADS = 10_000

Update = dict[str, Any] | None
"""Of the agent's state."""


@dataclass(frozen=True, kw_only=True)
class _Call:
    """A call of the model on its way: what is sent, and what is needed when the answer comes."""

    request: ModelRequest[Any]
    gate: Gate | None = None
    turn: TurnState | None = None


class RMMMiddleware(AgentMiddleware[RMMState, Any]):
    """Memory around an agent; one object serves all users, whose ids come with each run's context.

    `top_m` memories at most are shown, in `max_tokens`. Without `enable_prospective_reflection` the end of a session
    starts nothing; without `enable_retrospective_reflection` no citations are asked for and nothing is learned.
    """

    state_schema = RMMState

    def __init__(
        self,
        memory: Memory | Bank,
        *,
        tenant: str = "default",
        top_m: int = 5,
        max_tokens: int = 1_500,
        min_score: float | None = None,
        enable_prospective_reflection: bool = True,
        enable_retrospective_reflection: bool = True,
    ) -> None:
        super().__init__()
        Scope(tenant=tenant)
        Filters.of(min_score=min_score)
        if isinstance(memory, Memory):
            self._bank: Bank = MemoryBank(
                memory,
                top_m=checked_k(top_m),
                max_tokens=checked_count("max_tokens", max_tokens, least=1),
                min_score=min_score,
            )
        elif all(callable(getattr(memory, name, None)) for name in ("recall", "learn", "keep", "end")):
            self._bank = memory
        else:
            raise InvalidInput("memory", f"must be a Memory, not {type(memory).__name__}", "use Memory.open(…)")
        self._tenant = tenant
        self._reflects = checked_flag("enable_prospective_reflection", enable_prospective_reflection)
        self._cites = checked_flag("enable_retrospective_reflection", enable_retrospective_reflection)
        faults = getattr(memory, "faults", None)
        self._faults: Faults = faults if isinstance(faults, Faults) else Faults()
        self._new_id = TimeOrderedIds()
        self._lock = ForkLock()
        self._blocks: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._threads: OrderedDict[str, Person] = OrderedDict()

    @property
    def faults(self) -> Counter[str]:
        """How often memory failed so far, by step: `start`, `recall`, `rerank`, `show`, `cite`, `learn`, `weights`,
        `store`, `reflect`."""
        return self._faults.counts

    # -- hooks ---------------------------------------------------------------------------------------------------

    def before_agent(self, state: RMMState, runtime: Runtime[Any]) -> Update:
        """Name the person and the session. Nothing is loaded here: a run that is resumed does not come by."""
        with self._faults.guarded("start"):
            session = self._session(state, runtime)
            if session != state.get("rmm_session"):
                return {"rmm_session": session}
        return None

    def before_model(self, state: RMMState, runtime: Runtime[Any]) -> Update:
        """Recall for the user's question, once: a loop through tools goes on with the same memories."""
        with self._faults.guarded("recall"):
            question, person = question_of(state["messages"]), self._person(runtime)
            if person is None or question is None or turn_of(state, question, person) is not None:
                return None
            asked = clean(text_of(question))
            if not asked.strip():
                return None
            found = self._bank.recall(person, asked, except_session=_before_the_model(state))
            self._remember_block(person, found)
            turn = TurnState(
                question=question.id or "",
                person=person.mark,
                recall=found.recall,
                ids=[*found.ids],
                shown=found.shown,
                at=found.at.isoformat(),
            )
            return {"rmm_turn": turn}
        return None

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> Any:
        """Show the memories to the model, and take the citation off its answer."""
        call = self._prepared(request)
        return self._finished(call, handler(call.request))

    def after_model(self, state: RMMState, runtime: Runtime[Any]) -> Update:
        """Learn from what the answer cites."""
        with self._faults.guarded("learn"):
            question, person = question_of(state["messages"]), self._person(runtime)
            turn = None if person is None else turn_of(state, question, person)
            if person is None or turn is None or question is None or "cited" not in turn:
                return None
            with self._faults.guarded("learn"):
                self._bank.learn(
                    person, clean(text_of(question)), turn["recall"], turn["ids"], turn["shown"], turn["cited"]
                )
            return {"rmm_turn": {name: value for name, value in turn.items() if name != "cited"}}
        return None

    def after_agent(self, state: RMMState, runtime: Runtime[Any]) -> Update:
        """Keep what was said, and end the session where the context says so."""
        update: Update = None
        with self._faults.guarded("start"):
            person = self._person(runtime)
            if person is None:
                return None
            session, messages = self._session(state, runtime), state["messages"]
            self._drop_block(person, state.get("rmm_turn"))
            with self._faults.guarded("store"):
                turns = unkept(messages, session.get("kept"))
                self._bank.keep(person, session["id"], said(turns))
                if turns:
                    kept = {"first": session.get("first") or turns[0].id, "kept": turns[-1].id}
                    update = {"rmm_session": {**session, **kept}}
            if self._reflects and field_of(runtime.context, "is_session_end") is True:
                with self._faults.guarded("reflect"):
                    self._bank.end(person, session["id"], said(after(messages, session.get("since"))))
        return update

    # The same for an event loop: what may wait for a disk or a service runs on a thread.

    async def abefore_agent(self, state: RMMState, runtime: Runtime[Any]) -> Update:
        return self.before_agent(state, runtime)  # reads nothing

    async def abefore_model(self, state: RMMState, runtime: Runtime[Any]) -> Update:
        return await asyncio.to_thread(self.before_model, state, runtime)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> Any:
        call = await asyncio.to_thread(self._prepared, request)
        return self._finished(call, await handler(call.request))

    async def aafter_model(self, state: RMMState, runtime: Runtime[Any]) -> Update:
        return await asyncio.to_thread(self.after_model, state, runtime)

    async def aafter_agent(self, state: RMMState, runtime: Runtime[Any]) -> Update:
        return await asyncio.to_thread(self.after_agent, state, runtime)

    # -- the end of a session that no run comes to ---------------------------------------------------------------

    def end_session(self, config: Mapping[str, Any], *, context: object = None, agent: Any = None) -> bool:
        """End the session of a thread whose last run was interrupted, failed or did not say that it is the last.

        `config` is that of the runs. The user is the one this object has last seen in the thread, unless `context`
        names one, or `agent` is given, whose checkpoint knows. True when memory did what was asked.
        """
        thread = dict(config.get("configurable") or {}).get("thread_id")
        values: dict[str, Any] = {} if agent is None else agent.get_state(config).values
        session: SessionState | None = values.get("rmm_session")
        wanted = field_of(context, "session_id") or (session["id"] if session else thread)
        if wanted is None:
            raise InvalidInput("config", "names no thread", "give config={'configurable': {'thread_id': …}}")
        person = self._of_thread(context, session, str(thread))
        before = self.faults["reflect"]
        with self._faults.guarded("reflect"):
            messages = values.get("messages", [])
            since = session.get("since") if session else None
            self._bank.end(person, checked_session_id(str(wanted)), said(after(messages, since)))
        return self.faults["reflect"] == before

    async def aend_session(self, config: Mapping[str, Any], *, context: object = None, agent: Any = None) -> bool:
        return await asyncio.to_thread(self.end_session, config, context=context, agent=agent)

    def _of_thread(self, context: object, session: SessionState | None, thread: str) -> Person:
        if context is not None:
            return person_of(context, tenant=self._tenant)
        if session is not None:
            return Person(tenant=session["tenant"], user=session["user"])
        with self._lock:
            person = self._threads.get(thread)
        if person is None:
            raise InvalidInput("context", f"thread {thread!r} was not seen here", "give context={'user_id': …}")
        return person

    # -- steps ---------------------------------------------------------------------------------------------------

    def _person(self, runtime: Runtime[Any]) -> Person | None:
        """Whose turn it is; None when the context names nobody, which `before_agent` has noted."""
        try:
            return person_of(runtime.context, tenant=self._tenant)
        except InvalidInput:
            return None

    def _session(self, state: RMMState, runtime: Runtime[Any]) -> SessionState:
        """The session of this run: as it was, but for another id or person if the context has one."""
        person = person_of(runtime.context, tenant=self._tenant)
        thread = getattr(runtime.execution_info, "thread_id", None)
        known = state.get("rmm_session")
        if thread is not None:
            with self._lock:
                self._threads[str(thread)] = person
                self._threads.move_to_end(str(thread))
                while len(self._threads) > _MOST_THREADS:
                    self._threads.popitem(last=False)
        id = field_of(runtime.context, "session_id") or (known["id"] if known else thread) or f"run-{self._new_id()}"
        session = SessionState(id=checked_session_id(str(id)), tenant=person.tenant, user=person.user)
        if known is None:
            return session
        if "kept" in known:
            session["kept"] = known["kept"]
        same = (known["tenant"], known["user"]) == (person.tenant, person.user)
        if same and known["id"] == session["id"] and "first" in known:
            session["first"] = known["first"]
        since = known.get("since") if same else known.get("kept")
        if since is not None:
            session["since"] = since
        return session

    def _remember_block(self, person: Person, found: Found) -> None:
        with self._lock:
            self._blocks[person.mark, found.recall] = found.block
            while len(self._blocks) > _MOST_BLOCKS:
                self._blocks.popitem(last=False)

    def _drop_block(self, person: Person, turn: TurnState | None) -> None:
        """The turn is over: what was shown need not stay in memory."""
        with self._lock:
            self._blocks.pop((person.mark, turn["recall"] if turn else ""), None)

    def _block(self, person: Person, turn: TurnState) -> str:
        """The block that was made when the turn began, or the same anew in another process."""
        with self._lock:
            block = self._blocks.get((person.mark, turn["recall"]))
        if block is None:
            block = self._bank.show_again(person, turn["ids"], turn["shown"])
        return block

    def _prepared(self, request: ModelRequest[Any]) -> _Call:
        """The call with rule and memories; as it was where there is nobody to remember for, or memory fails."""
        with self._faults.guarded("show"):
            person = self._person(request.runtime)
            if person is None:
                return _Call(request=request)
            question = question_of(request.state["messages"])
            turn, block = turn_of(request.state, question, person), ""
            if turn is not None and turn["shown"]:
                with self._faults.guarded("show"):
                    block = self._block(person, turn)
            asks = self._cites and request.response_format is None and isinstance(request.model, BaseChatModel)
            sent = injected(request, block, cites=asks, question=None if question is None else question.id)
            if not asks:
                return _Call(request=sent)
            gate = Gate(turn["shown"] if turn is not None and block else 0)
            return _Call(request=sent.override(model=held_back(request.model, gate)), gate=gate, turn=turn)
        return _Call(request=request)

    def _finished(self, call: _Call, response: ModelResponse[Any]) -> Any:
        """The answer without its citation; what it cites goes to the state, for `after_model`."""
        with self._faults.guarded("cite"):
            if call.gate is None or not response.result:
                return response
            answers = [place for place, one in enumerate(response.result) if isinstance(one, AIMessage)]
            if not answers:
                return response
            place = answers[-1]
            plain, citation = stripped(response.result[place], call.gate.shown)
            result = [*response.result[:place], plain, *response.result[place + 1 :]]
            told = ModelResponse(result=result, structured_response=response.structured_response)
            places = citation.places
            if places is None and call.gate.citation is not None:
                places = call.gate.citation.places
            if call.turn is None or not call.gate.shown or not answered(plain):
                return told
            if places is None:
                self._faults.note("cite", "the answer ends without a sound citation")
                return told
            update = {"rmm_turn": {**call.turn, "cited": [*places]}}
            return ExtendedModelResponse(model_response=told, command=Command(update=update))
        return response


def _before_the_model(state: RMMState) -> str | None:
    """The session, if all that was kept of it is still among the messages: recalling it would say it twice."""
    session = state.get("rmm_session")
    if session is None or "first" not in session:
        return None
    return session["id"] if any(message.id == session["first"] for message in state["messages"]) else None


def create_rmm_middleware(
    *,
    vector_store: VectorStore | Callable[[str], VectorStore],
    embeddings: Embeddings,
    store: BaseStore,
    summarization_model: BaseChatModel,
    reranker_config: RerankerConfig | Mapping[str, Any] | None = None,
    enable_prospective_reflection: bool = True,
    enable_retrospective_reflection: bool = True,
    max_tokens: int = 1_500,
    tenant: str = "default",
    search_kwargs: Callable[[str], Mapping[str, Any]] | None = None,
) -> RMMMiddleware:
    """The middleware on LangChain parts of your own.

    `store` holds the memories and what was learned, `vector_store` an index of them that can be rebuilt; a function of
    a user's label gives each user an index of their own. `search_kwargs` gives, for a label, what a search in a shared
    index is to be narrowed with, as in `lambda user: {"filter": {"rmm_user": user}}`. Embeddings of another width than
    the index has are an error here.
    """
    bank = create_bank(
        vector_store=vector_store,
        embeddings=embeddings,
        store=store,
        model=summarization_model,
        config=reranker_config,
        max_tokens=max_tokens,
        learns=enable_retrospective_reflection,
        search_kwargs=search_kwargs,
    )
    return RMMMiddleware(
        bank,
        tenant=tenant,
        enable_prospective_reflection=enable_prospective_reflection,
        enable_retrospective_reflection=enable_retrospective_reflection,
    )
