"""A loop around the Anthropic SDK that remembers people from one session to the next, and learns what helped.

    pip install anthropic
    export ANTHROPIC_API_KEY=…
    python examples/anthropic_loop.py

Without a key it talks to a stand-in on this machine. WELLWORN_EXAMPLE_MODEL names another model.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from anthropic import Anthropic
from anthropic.types import MessageParam
from stand_in import endpoint

from wellworn import Memory
from wellworn.integrations.loop import MemoryMiddleware, MiddlewareContext, create_memory_middleware

MODEL = os.environ.get("WELLWORN_EXAMPLE_MODEL", "claude-sonnet-5-5")
SYSTEM = "You are a patient assistant."


def ask(client: Anthropic, middleware: MemoryMiddleware, history: list[MessageParam], question: str) -> str:
    """Ask one question: recall before the model, store and learn after it."""
    system = middleware.enrich_system_prompt(MiddlewareContext(user_input=question, current_system_prompt=SYSTEM))
    reply = client.messages.create(
        model=MODEL, max_tokens=800, system=system, messages=[*history, {"role": "user", "content": question}]
    )
    answer = "".join(block.text for block in reply.content if block.type == "text")
    plain = middleware.plain(question, answer)  # without the citation at its end
    middleware.after_response(question, answer)
    history += [{"role": "user", "content": question}, {"role": "assistant", "content": plain}]
    return plain


@contextmanager
def talking() -> Iterator[Anthropic]:
    """A client for the service that the environment names, or for the stand-in."""
    if os.environ.get("ANTHROPIC_API_KEY"):
        with Anthropic() as client:
            yield client
        return
    with endpoint() as address, Anthropic(api_key="none", base_url=address) as client:
        yield client


def main() -> None:
    with talking() as client, Memory("anthropic_loop.db") as memory:
        ada = memory.for_user("ada")
        for session_id, questions in (
            ("monday", ["My bicycle is a green Brompton.", "I take my tea without milk."]),
            ("friday", ["Which bicycle do I have?"]),
        ):
            middleware = create_memory_middleware(ada, session_id=session_id)
            history: list[MessageParam] = []
            for question in questions:
                print(f"{session_id}: {question} → {ask(client, middleware, history, question)}")
            middleware.end_session()
        print(f"(outcomes learned from: {ada.learning.status().outcomes})")


if __name__ == "__main__":
    main()
