"""The schema: what it says, and that the golden file of the TypeScript client is made from it."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

from wellworn import Memory
from wellworn.server.app import build_app
from wellworn.server.guard import LOOPBACK, Rules
from wellworn.server.service import MemoryService

from .conftest import ME

TYPESCRIPT = Path(__file__).parents[2] / "clients" / "typescript" / "openapi.json"


@cache
def document() -> dict[str, Any]:
    with Memory(":memory:", embedder="hash", background=False) as memory:
        return build_app(MemoryService(memory, rules=Rules(hosts=LOOPBACK), local=ME)).openapi()


def test_the_schema_is_of_version_3_1_and_names_every_operation() -> None:
    described = document()
    assert described["openapi"].startswith("3.1")
    names = [one["operationId"] for methods in described["paths"].values() for one in methods.values()]
    assert len({*names}) == len(names)
    bodies = described["components"]["schemas"]
    assert bodies["NewEntryBody"]["additionalProperties"] is False
    assert bodies["NewEntryBody"]["properties"]["kind"]["enum"][0] == "fact"
    assert "requestBody" in described["paths"]["/v1/import"]["post"]


def test_the_golden_schema_that_the_typescript_client_is_made_from_is_current() -> None:
    unversioned = {**document(), "info": {**document()["info"], "version": "0"}}
    text = f"{json.dumps(unversioned, indent=1, ensure_ascii=False)}\n"
    if os.environ.get("WELLWORN_GOLDEN") == "write":
        TYPESCRIPT.write_text(text, encoding="utf-8")
    assert text == TYPESCRIPT.read_text(encoding="utf-8"), "renew it with WELLWORN_GOLDEN=write pytest"
