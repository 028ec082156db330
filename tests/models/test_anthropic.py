from __future__ import annotations

from typing import Any

import pytest

from contract.models import make_request
from models.service import KEY, Service, claude, refusal
from wellworn.models import AnthropicModel, Message

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


@pytest.fixture
def claude_service(service: Service) -> Service:
    service.otherwise = claude("hello")
    return service


def model_of(service: Service, **options: Any) -> AnthropicModel:
    given: dict[str, Any] = {"base_url": service.address, "api_key": KEY}
    return AnthropicModel("claude-test", **(given | options))


def test_the_request_goes_out_as_the_service_expects_it(claude_service: Service) -> None:
    said = [("system", "be brief"), ("user", "hi"), ("assistant", "hello"), ("user", "who?"), ("system", "be kind")]
    messages = tuple(Message(role=role, text=text) for role, text in said)  # type: ignore[arg-type]  # the roles
    model_of(claude_service).complete(make_request(messages=messages, max_output_tokens=7, temperature=1.5))
    assert claude_service.paths == ["/v1/messages"]
    headers = {name.lower(): value for name, value in claude_service.headers[0].items()}
    assert headers["x-api-key"] == KEY
    assert headers["anthropic-version"] == "2023-06-01"
    assert claude_service.requests[0] == {
        "model": "claude-test",
        "max_tokens": 7,
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "hello"},
            {"role": "user", "content": "who?"},
        ],
        "system": "be brief\n\nbe kind",
        "temperature": 1.0,
    }
    model_of(claude_service).complete(make_request(messages=(Message(role="system", text="go"),)))
    assert claude_service.requests[1]["messages"] == [{"role": "user", "content": "go"}]
    assert "system" not in claude_service.requests[1]


def test_cached_tokens_count_as_read(claude_service: Service) -> None:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20, "output_tokens": 3}
    claude_service.script = [claude("a", usage=usage)]
    reply = model_of(claude_service).complete(make_request())
    assert (reply.input_tokens, reply.output_tokens, reply.estimated) == (125, 3, False)
    assert reply.model == "anthropic:claude-test"


def test_what_a_model_refuses_is_left_out_from_then_on(claude_service: Service) -> None:
    claude_service.script = [
        refusal(400, "`temperature` is deprecated for this model."),
        refusal(400, "output_config: Extra inputs are not permitted"),
    ]
    model = model_of(claude_service)
    assert model.complete(make_request(schema=SCHEMA)).text == "hello"
    model.complete(make_request(schema=SCHEMA))
    first, second, third, fourth = claude_service.requests
    assert first["output_config"] == {"format": {"type": "json_schema", "schema": SCHEMA}}
    assert "temperature" not in second
    assert "output_config" in second
    assert third == fourth
    assert not {"temperature", "output_config"} & set(third)
