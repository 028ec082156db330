"""A context provider for Microsoft's Agent Framework: recalls before a run, stores what was said after it.

The memories are a message of their own before the conversation, for one run only. Needs the extra `agent-framework`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from wellworn.core.errors import MissingExtra
from wellworn.core.values import Scope
from wellworn.integrations import Faults
from wellworn.integrations.loop import MemoryMiddleware, MiddlewareContext
from wellworn.memory import Memory

try:
    from agent_framework import AgentSession, ContextProvider, Message, SessionContext, SupportsAgentRun
except ModuleNotFoundError as error:
    raise MissingExtra("WellwornContextProvider", "agent-framework") from error

__all__ = ["WellwornContextProvider"]


class WellwornContextProvider(ContextProvider):
    """Memory for `Agent(context_providers=[…])`. `settings` are those of `MemoryMiddleware`.

    Without a `session_id` the turns belong to the session of the run. The framework lets nobody change an answer, so no
    citations are asked for.
    """

    def __init__(
        self, memory: Memory, *, scope: Scope | None = None, session_id: str | None = None, **settings: Any
    ) -> None:
        super().__init__("wellworn")
        self._memory, self._scope, self._session_id = memory, scope, session_id
        self._settings = {"citations": False, **settings}
        self._faults = Faults()
        self._middlewares: dict[str, MemoryMiddleware] = {}
        self._of(session_id or "default")  # says now what is wrong with the settings

    @property
    def faults(self) -> Counter[str]:
        """How often memory failed so far, by step."""
        return sum((one.faults for one in self._middlewares.values()), self._faults.counts)

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        asked, middleware = _asked(context), self._known(session.session_id)
        if asked and middleware is not None:
            seen = MiddlewareContext(user_input=asked, conversation_history=_history(context, session))
            block = await middleware.aenrich_system_prompt(seen)
            if block:
                context.extend_messages(self, [Message("user", [block])])

    async def after_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        asked, middleware = _asked(context), self._known(session.session_id)
        if asked and middleware is not None:
            said = context.response.text if context.response is not None else ""
            await middleware.aafter_response(asked, said)

    def _known(self, session_id: str) -> MemoryMiddleware | None:
        with self._faults.guarded("start"):  # an id may be one that no session can have
            return self._of(session_id)
        return None

    def _of(self, session_id: str) -> MemoryMiddleware:
        name = self._session_id or session_id
        if name not in self._middlewares:
            self._middlewares[name] = MemoryMiddleware(
                self._memory, scope=self._scope, session_id=name, **self._settings
            )
        return self._middlewares[name]


def _history(context: SessionContext, session: AgentSession) -> str:
    """What the model sees of the session: providers that run after this one keep it in the session's state."""
    kept = [one for part in session.state.values() if isinstance(part, dict) for one in part.get("messages") or ()]
    return "\n".join(one.text for one in [*context.get_messages(), *kept] if isinstance(one, Message))


def _asked(context: SessionContext) -> str:
    return "\n".join(message.text for message in context.input_messages if message.role == "user")
