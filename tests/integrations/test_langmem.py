"""LangMem's memory tools, as published, on `WellwornStore`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from wellworn import Memory
from wellworn.integrations.langgraph_store import WellwornStore

pytestmark = pytest.mark.slow  # the package takes seconds to import

langmem = pytest.importorskip("langmem", reason="langmem is not installed")

CONFIG: Any = {"configurable": {"user_id": "ada"}}
BEN: Any = {"configurable": {"user_id": "ben"}}
NS = ("memories", "{user_id}")


@pytest.fixture
def store() -> Iterator[WellwornStore]:
    with Memory(":memory:") as memory:
        yield WellwornStore(memory, tenant="acme", fields=["content"])


def id_in(answer: str) -> str:
    found = re.search(r"[0-9a-f]{8}-[0-9a-f-]{27}", answer)
    assert found, answer
    return found[0]


def found_by(answer: str) -> list[str]:
    return [item["value"]["content"] for item in json.loads(answer)]


def test_the_tools_create_find_update_and_delete(store: WellwornStore) -> None:
    manage = langmem.create_manage_memory_tool(namespace=NS, store=store)
    search = langmem.create_search_memory_tool(namespace=NS, store=store)
    bike = id_in(manage.invoke({"content": "Ada rides a green Brompton bicycle.", "action": "create"}, CONFIG))
    manage.invoke({"content": "Ada drinks oolong tea.", "action": "create"}, CONFIG)
    manage.invoke({"content": "Ben rides a bicycle too.", "action": "create"}, BEN)

    answer = search.invoke({"query": "which bicycle?", "limit": 5}, CONFIG)
    assert found_by(answer) == ["Ada rides a green Brompton bicycle.", "Ada drinks oolong tea."]

    manage.invoke({"id": bike, "content": "Ada sold the Brompton.", "action": "update"}, CONFIG)
    assert found_by(search.invoke({"query": "Brompton", "limit": 1}, CONFIG)) == ["Ada sold the Brompton."]
    item = store.get(("memories", "ada"), bike)
    assert item is not None
    assert item.value == {"content": "Ada sold the Brompton."}

    manage.invoke({"id": bike, "action": "delete"}, CONFIG)
    assert found_by(search.invoke({"query": "Brompton"}, CONFIG)) == ["Ada drinks oolong tea."]
    assert found_by(search.invoke({"query": "bicycle"}, BEN)) == ["Ben rides a bicycle too."]
