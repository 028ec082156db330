"""The memory block inside LlamaIndex's own memory."""

from __future__ import annotations

import pytest

from wellworn import InvalidInput, Memory

pytest.importorskip("llama_index.core", reason="llama-index-core is not installed here: 272 MB (docs/frameworks.md)")

from llama_index.core.llms import ChatMessage
from llama_index.core.memory import Memory as ChatMemory

from wellworn.integrations.frameworks.llama_index import WellwornMemoryBlock

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]  # the framework warns of itself


def of_session(name: str, block: WellwornMemoryBlock) -> ChatMemory:
    """A memory that keeps about one message, so that the rest goes to the block at once."""
    return ChatMemory.from_defaults(
        session_id=name,
        token_limit=20,
        chat_history_token_ratio=0.5,
        token_flush_size=5,
        memory_blocks=[block],
        tokenizer_fn=str.split,
    )


async def test_what_left_the_short_term_memory_comes_back(memory: Memory) -> None:
    ada = memory.for_user("ada")
    block = WellwornMemoryBlock(ada)
    monday = of_session("monday", block)
    for text in ("My bicycle is a green Brompton.", "I take my tea without milk.", "It rains in Bergen all day."):
        await monday.aput_messages(
            [ChatMessage(role="user", content=text), ChatMessage(role="assistant", content="I see.")]
        )
    assert "My bicycle is a green Brompton." in [turn.text for turn in ada.session("monday").turns()]
    friday = of_session("friday", block)
    shown = await friday.aget(input="Which bicycle do I have?")
    assert "green Brompton" in str([message.content for message in shown])
    assert block.faults == {}


async def test_a_message_of_any_length_costs_no_other_message(memory: Memory) -> None:
    ada = memory.for_user("ada")
    await WellwornMemoryBlock(ada).aput(
        [ChatMessage(role="user", content=text) for text in ("I live in Oslo.", "log " * 300_000)]
    )
    oslo, log = [turn.text for turn in ada.session("llama-index").turns()]
    assert (oslo, log[-7:]) == ("I live in Oslo.", "… (cut)")


async def test_every_role_of_a_model_is_the_assistant(memory: Memory) -> None:
    ada, roles = memory.for_user("ada"), ("user", "system", "model", "chatbot", "assistant")
    await WellwornMemoryBlock(ada).aput([ChatMessage(role=role, content=f"Said by {role}.") for role in roles])
    said = [(turn.role, turn.text) for turn in ada.session("llama-index").turns()]
    assert said == [("user", "Said by user."), *(("assistant", f"Said by {role}.") for role in roles[2:])]


def test_a_number_of_memories_that_is_none_is_refused(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="k"):
        WellwornMemoryBlock(memory.for_user("ada"), k=0)


async def test_a_memory_that_fails_is_an_empty_block(memory: Memory) -> None:
    block = WellwornMemoryBlock(memory.for_user("ada"))
    memory.close()
    await block.aput([ChatMessage(role="user", content="I live in Oslo.")])
    assert await block.aget([ChatMessage(role="user", content="Where do I live?")]) == ""
    assert await block.aget([]) == ""
    assert block.faults == {"store": 1, "recall": 1}
