"""The schema: what it says, and that no request that it allows or forbids makes the server fail (schemathesis)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

from wellworn.server.app import build_app
from wellworn.server.guard import LOOPBACK, Rules
from wellworn.server.service import MemoryService

from .conftest import ME, Running, serving


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with serving(background=False) as running:
        ada = running.client()
        ada.remember_many(["Ada prefers tokio", "Ben likes rain"])
        ada.session("s").add("user", "I live in Oslo")
        yield running


@schemathesis.serializer("application/x-ndjson")
def lines(_context: Any, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


def document() -> dict[str, Any]:
    from wellworn import Memory

    with Memory(":memory:", embedder="hash", background=False) as memory:
        return build_app(MemoryService(memory, rules=Rules(hosts=LOOPBACK), local=ME)).openapi()


TYPESCRIPT = Path(__file__).parents[2] / "clients" / "typescript" / "openapi.json"
DOCUMENT = document()
OPERATIONS = [f"{method.upper()} {path}" for path, methods in DOCUMENT["paths"].items() for method in methods]


def test_the_schema_is_of_version_3_1_and_names_every_operation() -> None:
    assert DOCUMENT["openapi"].startswith("3.1")
    names = [one["operationId"] for methods in DOCUMENT["paths"].values() for one in methods.values()]
    assert len({*names}) == len(names)
    bodies = DOCUMENT["components"]["schemas"]
    assert bodies["NewEntryBody"]["additionalProperties"] is False
    assert bodies["NewEntryBody"]["properties"]["kind"]["enum"][0] == "fact"
    assert "requestBody" in DOCUMENT["paths"]["/v1/import"]["post"]


def test_the_golden_schema_that_the_typescript_client_is_made_from_is_current() -> None:
    unversioned = {**DOCUMENT, "info": {**DOCUMENT["info"], "version": "0"}}
    text = f"{json.dumps(unversioned, indent=1, ensure_ascii=False)}\n"
    if os.environ.get("WELLWORN_GOLDEN") == "write":
        TYPESCRIPT.write_text(text, encoding="utf-8")
    assert text == TYPESCRIPT.read_text(encoding="utf-8"), "renew it with WELLWORN_GOLDEN=write pytest"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_request_that_it_allows_makes_the_server_fail(running: Running, operation: str) -> None:
    tried(running, operation, GenerationMode.POSITIVE)


@pytest.mark.slow
@pytest.mark.parametrize("operation", [one for one in OPERATIONS if "/v1/" in one])  # the others take nothing
def test_no_request_that_it_forbids_makes_the_server_fail(running: Running, operation: str) -> None:
    tried(running, operation, GenerationMode.NEGATIVE)


def tried(running: Running, operation: str, mode: GenerationMode) -> None:
    method, _, path = operation.partition(" ")
    schema = schemathesis.openapi.from_dict(DOCUMENT)
    schema.config.update(base_url=running.url)
    checks = [not_a_server_error, content_type_conformance, response_schema_conformance]

    @settings(phases=[Phase.generate], derandomize=True, database=None, max_examples=15)
    @given(case=schema[path][method].as_strategy(generation_mode=mode))
    def calls(case: Any) -> None:
        case.call_and_validate(checks=checks)

    calls()
