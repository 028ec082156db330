"""No request that the schema allows or forbids makes the server fail (schemathesis)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

from .conftest import Running, serving
from .test_schema import document

pytestmark = pytest.mark.slow  # the package takes seconds to import
DOCUMENT = document()
OPERATIONS = [f"{method.upper()} {path}" for path, methods in DOCUMENT["paths"].items() for method in methods]


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


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_request_makes_the_server_fail(running: Running, operation: str, mode: GenerationMode) -> None:
    """Neither one that the schema allows nor one that it forbids."""
    method, _, path = operation.partition(" ")
    if mode == GenerationMode.NEGATIVE and "/v1/" not in path:
        pytest.skip("it takes nothing that could be wrong")
    schema = schemathesis.openapi.from_dict(DOCUMENT)
    schema.config.update(base_url=running.url)
    checks = [not_a_server_error, content_type_conformance, response_schema_conformance]

    @settings(phases=[Phase.generate], derandomize=True, database=None, max_examples=15)
    @given(case=schema[path][method].as_strategy(generation_mode=mode))
    def calls(case: Any) -> None:
        case.call_and_validate(checks=checks)

    calls()
