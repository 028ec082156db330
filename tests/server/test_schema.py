"""The schema: the golden file that the TypeScript client is made from is that of the service."""

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


def test_the_golden_schema_that_the_typescript_client_is_made_from_is_current() -> None:
    unversioned = {**document(), "info": {**document()["info"], "version": "0"}}
    text = f"{json.dumps(unversioned, indent=1, ensure_ascii=False)}\n"
    if os.environ.get("WELLWORN_GOLDEN") == "write":
        TYPESCRIPT.write_text(text, encoding="utf-8")
    assert text == TYPESCRIPT.read_text(encoding="utf-8"), "renew it with WELLWORN_GOLDEN=write pytest"
