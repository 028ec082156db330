"""A context provider for Microsoft's Agent Framework: recalls before a run, stores what was said after it.

The memories are a message of their own before the conversation, for one run only. Needs the extra `agent-framework`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from wellworn.core.errors import MissingExtra
from wellworn.core.values import Scope
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
        self._middlewares: dict[str, MemoryMiddleware] = {}
        self._of(session_id or "default")  # says now what is wrong with the settings

    @property
    def faults(self) -> Counter[str]:
        """How often memory failed so far, by step."""
        return sum((one.faults for one in self._middlewares.values()), Counter[str]())

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        asked = _asked(context)
        if asked:
            block = await self._of(session.session_id).aenrich_system_prompt(MiddlewareContext(user_input=asked))
            if block:
                context.extend_messages(self, [Message("user", [block])])

    async def after_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        asked = _asked(context)
        if asked:
            said = context.response.text if context.response is not None else ""
            await self._of(session.session_id).aafter_response(asked, said)

    def _of(self, session_id: str) -> MemoryMiddleware:
        name = self._session_id or session_id
        if name not in self._middlewares:
            self._middlewares[name] = MemoryMiddleware(
                self._memory, scope=self._scope, session_id=name, **self._settings
            )
        return self._middlewares[name]


def _asked(context: SessionContext) -> str:
    return "\n".join(message.text for message in context.input_messages if message.role == "user")
