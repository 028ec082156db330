"""A loop around the OpenAI SDK that remembers people from one session to the next, and learns what helped.

    pip install openai
    export OPENAI_API_KEY=…                                  # OpenAI itself
    export OPENAI_BASE_URL=http://localhost:8000/v1          # or vLLM, llama.cpp's server, LM Studio, a gateway
    python examples/openai_loop.py

With neither set it talks to a stand-in on this machine. WELLWORN_EXAMPLE_MODEL names another model.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam
from stand_in import endpoint

from wellworn import Memory
from wellworn.integrations.loop import MemoryMiddleware, MiddlewareContext, create_memory_middleware

MODEL = os.environ.get("WELLWORN_EXAMPLE_MODEL", "gpt-4o-mini")
SYSTEM = "You are a patient assistant."


def ask(client: OpenAI, middleware: MemoryMiddleware, history: list[ChatCompletionMessageParam], question: str) -> str:
    """Ask one question: recall before the model, store and learn after it."""
    system = middleware.enrich_system_prompt(
        MiddlewareContext(user_input=question, current_system_prompt=SYSTEM)
    )  # the memories are in this one call only: the history stays as it was said
    reply = client.chat.completions.create(
        model=MODEL, messages=[{"role": "system", "content": system}, *history, {"role": "user", "content": question}]
    )
    answer = reply.choices[0].message.content or ""
    plain = middleware.plain(question, answer)  # without the citation at its end
    middleware.after_response(question, answer)
    history += [{"role": "user", "content": question}, {"role": "assistant", "content": plain}]
    return plain


@contextmanager
def talking() -> Iterator[OpenAI]:
    """A client for the service that the environment names, or for the stand-in."""
    if os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"):
        with OpenAI(api_key=os.environ.get("OPENAI_API_KEY") or "none") as client:
            yield client
        return
    with endpoint() as address, OpenAI(api_key="none", base_url=f"{address}/v1") as client:
        yield client


def main() -> None:
    with talking() as client, Memory("openai_loop.db") as memory:
        ada = memory.for_user("ada")
        for session_id, questions in (
            ("monday", ["My bicycle is a green Brompton.", "I take my tea without milk."]),
            ("friday", ["Which bicycle do I have?"]),
        ):
            middleware = create_memory_middleware(ada, session_id=session_id)
            history: list[ChatCompletionMessageParam] = []
            for question in questions:
                print(f"{session_id}: {question} → {ask(client, middleware, history, question)}")
            middleware.end_session()  # what was said becomes memories, in the background
        print(f"(outcomes learned from: {ada.learning.status().outcomes})")


if __name__ == "__main__":
    main()
