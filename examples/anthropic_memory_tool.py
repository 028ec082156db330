"""Claude's own memory tool, with the files kept as entries of a memory: searchable, with a history, per person.

    pip install 'wellworn[memory-tool]'
    export ANTHROPIC_API_KEY=…
    python examples/anthropic_memory_tool.py

Without a key it talks to a stand-in on this machine. WELLWORN_EXAMPLE_MODEL names another model.
"""

from __future__ import annotations

from anthropic import Anthropic
from anthropic_loop import MODEL, talking

from wellworn import Memory
from wellworn.integrations.frameworks.memory_tool import WellwornMemoryTool


def ask(client: Anthropic, tool: WellwornMemoryTool, question: str) -> str:
    """Let Claude read and write its files until it answers. Every question is a conversation of its own."""
    runner = client.beta.messages.tool_runner(
        model=MODEL,
        max_tokens=800,
        tools=[tool],
        messages=[{"role": "user", "content": question}],
        betas=["context-management-2025-06-27"],
    )
    return "".join(block.text for block in runner.until_done().content if block.type == "text")


def main() -> None:
    with talking() as client, Memory("anthropic_memory_tool.db") as memory:
        ada = memory.for_user("ada")
        tool = WellwornMemoryTool(ada)
        for question in ("My bicycle is a green Brompton.", "Which bicycle do I have?"):
            print(f"{question} → {ask(client, tool, question)}")
        print("recall finds it too:", ada.recall("bicycle").hits[0].entry.title)


if __name__ == "__main__":
    main()
