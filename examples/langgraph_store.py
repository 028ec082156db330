"""A LangGraph agent whose long-term memory is a wellworn file: it outlives threads, runs and processes.

Runs as it is, with a stand-in for the model; put yours in `answer`. Needs `pip install 'wellworn[langchain]'`.

    python examples/langgraph_store.py
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from wellworn import Memory
from wellworn.integrations.langgraph_store import WellwornStore


class State(TypedDict, total=False):
    said: str
    answer: str


@dataclass(frozen=True, kw_only=True)
class Context:
    user_id: str


def answer(question: str, memories: list[str]) -> str:
    """A stand-in for a language model: it repeats what it was given. Call yours here."""
    return f"I remember: {memories[0]}" if memories and question.endswith("?") else "Noted."


def talk(state: State, runtime: Runtime[Context]) -> State:
    """Recall what helps, answer, and store what was said."""
    store = runtime.store
    assert store is not None, "compile the graph with a store"
    namespace = ("memories", runtime.context.user_id)
    found = store.search(namespace, query=state["said"], limit=3)
    reply = answer(state["said"], [item.value["text"] for item in found])
    if not state["said"].endswith("?"):
        store.put(namespace, str(uuid.uuid4()), {"text": state["said"]})
    return {"answer": reply}


def agent_on(memory: Memory) -> CompiledStateGraph[State, Context, State, State]:
    graph = StateGraph(State, context_schema=Context)
    graph.add_node("talk", talk)
    graph.add_edge(START, "talk")
    graph.add_edge("talk", END)
    store = WellwornStore(memory, tenant="examples", fields=["text"])
    return graph.compile(store=store, checkpointer=InMemorySaver())


def say(agent: CompiledStateGraph[Any, Context, Any, Any], user_id: str, thread: str, said: str) -> str:
    config: Any = {"configurable": {"thread_id": thread}}  # Any: LangGraph's RunnableConfig has many more keys
    reply: str = agent.invoke({"said": said}, config, context=Context(user_id=user_id))["answer"]
    return reply


def main() -> None:
    path = Path("langgraph_store.db")
    with Memory(path) as memory:
        agent = agent_on(memory)
        for said in ("My bicycle is a green Brompton.", "I take my tea without milk.", "I live by the harbour."):
            print("ada, monday: ", said, "→", say(agent, "ada", "monday", said))
        print("ben, monday: ", say(agent, "ben", "monday", "Mine is a red racing bicycle."))
    with Memory(path) as memory:  # another day, another process
        agent = agent_on(memory)
        print("ada, friday: ", say(agent, "ada", "friday", "Which bicycle do I have?"))
        print("ben, friday: ", say(agent, "ben", "friday", "Which bicycle do I have?"))


if __name__ == "__main__":
    main()
