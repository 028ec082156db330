"""The context provider with a real agent of Microsoft's Agent Framework, whose client is scripted."""

from __future__ import annotations

from typing import Any

import pytest

from wellworn import Memory

pytest.importorskip("agent_framework", reason="agent-framework-core is not installed here")

from agent_framework import Agent, AgentSession, BaseChatClient, ChatResponse, Message

from wellworn.integrations.frameworks.agent_framework import WellwornContextProvider

pytestmark = pytest.mark.slow  # the package takes seconds to import


class Scripted(BaseChatClient[Any]):
    """Says whether it was shown Oslo before the question."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: list[list[str]] = []

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **kwargs: Any) -> Any:
        self.shown.append([message.text for message in messages])
        text = "You live in Oslo." if "I live in Oslo." in self.shown[-1][0] else "Noted."

        async def answer() -> ChatResponse[Any]:
            return ChatResponse(messages=[Message("assistant", [text])])

        return answer()


async def test_an_agent_remembers_from_one_session_to_the_next(memory: Memory) -> None:
    ada = memory.for_user("ada")
    ada.session("before").add("user", "I live in Oslo.")
    client, provider = Scripted(), WellwornContextProvider(ada, session_id="now")
    agent = Agent(client=client, context_providers=[provider])
    answer = await agent.run("Where do I live?", session=agent.create_session())
    assert answer.text == "You live in Oslo."
    assert client.shown[0][-1] == "Where do I live?"
    assert [turn.text for turn in ada.session("now").turns()] == ["Where do I live?", "You live in Oslo."]
    assert provider.faults == {}


async def test_turns_belong_to_the_session_of_the_run_and_faults_stop_nothing(memory: Memory) -> None:
    ada = memory.for_user("ada")
    provider = WellwornContextProvider(ada)
    agent = Agent(client=Scripted(), context_providers=[provider])
    session = agent.create_session()
    await agent.run("I live in Oslo.", session=session)
    assert ada.sessions() == [session.session_id]
    memory.close()
    assert (await agent.run("Where do I work?", session=agent.create_session())).text == "Noted."
    assert provider.faults == {"recall": 1, "store": 1}


async def test_a_run_sees_no_turn_of_its_session_twice(memory: Memory) -> None:
    ada = memory.for_user("ada")
    client, provider = Scripted(), WellwornContextProvider(ada)
    agent = Agent(client=client, context_providers=[provider])
    session = agent.create_session()
    for text in ("My dog is called Rex.", "What is my dog called?"):
        await agent.run(text, session=session)
    assert client.shown[-1] == ["My dog is called Rex.", "Noted.", "What is my dog called?"]
    await agent.run(
        "What is my dog called?", session=AgentSession(session_id=session.session_id)
    )  # without its history
    assert "My dog is called Rex." in client.shown[-1][0]


async def test_an_id_that_no_session_can_have_stops_nothing(memory: Memory) -> None:
    provider = WellwornContextProvider(memory.for_user("ada"))
    agent = Agent(client=Scripted(), context_providers=[provider])
    assert (await agent.run("Hello", session=AgentSession(session_id="x" * 300))).text == "Noted."
    assert provider.faults == {"start": 2}
