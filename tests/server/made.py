"""Requests made from the schema, so that a new route is attacked without a new test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI


@dataclass(frozen=True)
class Route:
    """One operation of the schema."""

    method: str
    path: str
    operation: dict[str, Any]
    schemas: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def writes(self) -> bool:
        return self.method != "GET"

    @property
    def kind(self) -> str | None:
        """The type of the body; None: it takes none."""
        return next(iter(self.operation.get("requestBody", {}).get("content", {})), None)

    def url(self, id: str) -> str:
        return self.path.replace("{id}", id)

    def query(self, id: str) -> dict[str, str]:
        """The parameters that are needed; a free text is the id."""
        needed = [
            one for one in self.operation.get("parameters", []) if one.get("in") == "query" and one.get("required")
        ]
        return {one["name"]: str(self._value(one["schema"], id)) for one in needed}

    def bodies(self, id: str) -> Iterator[Any]:
        """A body with what is needed, and one more with each field that may be there; free texts are the id."""
        if self.kind != "application/json":
            yield None
            return
        schema = self.operation["requestBody"]["content"][self.kind]["schema"]
        for one in [schema, *schema.get("anyOf", schema.get("oneOf", []))]:
            yield from self._objects(one, id)

    def _objects(self, schema: dict[str, Any], id: str) -> Iterator[Any]:
        schema = self._resolved(schema)
        fields, needed = schema.get("properties", {}), schema.get("required", [])
        least = {name: self._value(fields[name], id) for name in needed}
        yield least
        for name in fields:
            if name not in needed:
                yield {**least, name: self._value(fields[name], id)}

    def _value(self, schema: dict[str, Any], id: str) -> Any:
        schema = self._resolved(schema)
        if "enum" in schema or "const" in schema:
            return schema.get("const", schema.get("enum", [None])[0])
        kind = schema.get("type")
        if kind == "array":
            several = schema.get("prefixItems")
            return [self._value(one, id) for one in several or [schema.get("items", {"type": "string"})]]
        if kind == "object":
            needed = schema.get("required", [])
            return {name: self._value(schema["properties"][name], id) for name in needed}
        plain = {"integer": schema.get("minimum", 1), "number": schema.get("minimum", 1), "boolean": True}
        if schema.get("format") == "date-time":
            return "2030-01-01T00:00:00Z"
        return plain.get(kind or "", id)

    def _resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        if "$ref" in schema:
            return self._resolved(self.schemas[schema["$ref"].rpartition("/")[2]])
        for several in ("anyOf", "oneOf"):
            if several in schema:
                return self._resolved(next(one for one in schema[several] if one.get("type") != "null"))
        return schema


def routes_of(app: FastAPI) -> list[Route]:
    document = app.openapi()
    schemas = document.get("components", {}).get("schemas", {})
    return [
        Route(method.upper(), path, operation, schemas)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if path.startswith("/v1/")
    ]


def arguments(schema: dict[str, Any], id: str) -> Iterator[dict[str, Any]]:
    """Arguments of a tool of MCP, in the same way."""
    made = {"requestBody": {"content": {"application/json": {"schema": schema}}}}
    yield from Route("POST", "", made, schema.get("$defs", {})).bodies(id)
