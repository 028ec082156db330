"""A memory block for LlamaIndex: what no longer fits into the chat is stored, and comes back when it is asked about.

    pip install 'wellworn[llama-index]'
    python examples/llama_index_memory.py

The block works with every agent and chat engine that takes a memory; this example needs no model.
"""

from __future__ import annotations

import asyncio

from llama_index.core.llms import ChatMessage
from llama_index.core.memory import Memory as ChatMemory

from wellworn import Memory
from wellworn.integrations.frameworks.llama_index import WellwornMemoryBlock


async def main() -> None:
    with Memory("llama_index_memory.db") as memory:
        block = WellwornMemoryBlock(memory.for_user("ada"))
        monday = ChatMemory.from_defaults(
            session_id="monday",
            memory_blocks=[block],
            token_limit=20,
            token_flush_size=5,
            chat_history_token_ratio=0.5,
            tokenizer_fn=str.split,
        )
        for text in ("My bicycle is a green Brompton.", "I take my tea without milk.", "It rains in Bergen all day."):
            await monday.aput_messages(
                [ChatMessage(role="user", content=text), ChatMessage(role="assistant", content="I see.")]
            )
        shown = await block.aget([ChatMessage(role="user", content="Which bicycle do I have?")])
        print("comes back:", "My bicycle is a green Brompton." in shown)


if __name__ == "__main__":
    asyncio.run(main())
