from __future__ import annotations

import gc
import logging
import sys
import traceback
from typing import Any

import pytest

from contract.models import make_request
from models.service import KEY, Service, after, chat, refusal
from wellworn.core.errors import InvalidInput, MissingExtra, ModelFailed
from wellworn.models import AnthropicModel, Message, OllamaModel, OpenAIEmbedder, OpenAIModel, remote
from wellworn.models.remote import Endpoint

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


def model_of(service: Service, **options: Any) -> OpenAIModel:
    return OpenAIModel("test-model", **({"base_url": service.url, "api_key": KEY} | options))


# -- the wire ----------------------------------------------------------------------------------------------------


def test_the_request_goes_out_as_the_service_expects_it(service: Service) -> None:
    messages = (Message(role="system", text="be brief"), Message(role="user", text="héllo"))
    model_of(service).complete(make_request(messages=messages, max_output_tokens=7, temperature=0.5))
    assert service.paths == ["/v1/chat/completions"]
    assert service.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert service.requests[0] == {
        "model": "test-model",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "héllo"}],
        "max_tokens": 7,
        "temperature": 0.5,
    }


def test_the_service_counts_the_tokens_and_else_we_do(service: Service) -> None:
    whole = {"prompt_tokens": 11, "completion_tokens": 3}
    halves: list[Any] = [{"prompt_tokens": 5}, {**whole, "prompt_tokens": "5"}, {**whole, "prompt_tokens": -5}]
    service.script = [chat("a b c", usage=whole), *(chat("one two three", usage=one) for one in (*halves, None))]
    model = model_of(service)
    told, *guesses = [model.complete(make_request("four words are here")) for _ in range(5)]
    assert (told.input_tokens, told.output_tokens, told.estimated) == (11, 3, False)
    assert {(one.input_tokens, one.output_tokens, one.estimated) for one in guesses} == {(8, 3, True)}
    assert told.model == "openai:test-model"


def test_content_may_come_in_parts_or_not_at_all(service: Service) -> None:
    service.script = [chat([{"type": "text", "text": "a"}, {"type": "image"}, "b"]), chat(None)]
    model = model_of(service)
    assert [model.complete(make_request(json=True)).text for _ in range(2)] == ["ab", ""]
    assert service.requests[0]["response_format"] == {"type": "json_object"}
    model.complete(make_request(schema=SCHEMA))
    assert service.requests[2]["response_format"]["json_schema"]["schema"] == SCHEMA


# -- services that refuse parts ----------------------------------------------------------------------------------


def test_a_refused_response_format_is_left_out_and_the_model_remembers(service: Service) -> None:
    service.script = [refusal(400, "json_schema is unknown"), refusal(422, "no response_format here"), chat("{}")]
    model = model_of(service)
    assert model.complete(make_request(schema=SCHEMA)).text == "{}"
    kinds = [request.get("response_format", {}).get("type") for request in service.requests]
    assert kinds == ["json_schema", "json_object", None]
    model.complete(make_request(schema=SCHEMA))
    assert "response_format" not in service.requests[3]
    assert len(service.requests) == 4


def test_the_limit_gets_its_other_name_and_the_temperature_goes(service: Service) -> None:
    service.script = [
        refusal(400, "Unsupported parameter: 'max_tokens' … Use 'max_completion_tokens' instead."),
        refusal(400, "Unsupported value: 'temperature' does not support 0 with this model."),
    ]
    model_of(service).complete(make_request(max_output_tokens=9, json=True))
    assert service.requests[2]["max_completion_tokens"] == 9
    assert not {"max_tokens", "temperature"} & set(service.requests[2])
    assert service.requests[2]["response_format"] == {"type": "json_object"}


def test_a_refusal_that_stays_is_told_after_the_last_concession(service: Service) -> None:
    service.otherwise = refusal(400, "the prompt is too long")
    model = model_of(service)
    with pytest.raises(ModelFailed, match="the prompt is too long"):
        model.complete(make_request(schema=SCHEMA))
    assert len(service.requests) == 3
    service.otherwise = chat("fine")
    model.complete(make_request(schema=SCHEMA))
    assert "response_format" in service.requests[3]  # nothing was learned from a failure


def test_openais_own_models_get_the_new_name_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies: list[Any] = []

    def refuse(self: Endpoint, path: str, body: Any) -> Any:
        bodies.append(body)
        raise ModelFailed("not sent")

    monkeypatch.setattr(Endpoint, "post", refuse)
    with pytest.raises(ModelFailed, match="not sent"):
        OpenAIModel("gpt-test", api_key=KEY).complete(make_request())
    assert bodies[0]["max_completion_tokens"] == 1024


# -- patience ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503, 529])
def test_passing_troubles_are_tried_again_with_growing_waits(service: Service, naps: list[float], status: int) -> None:
    service.script = [refusal(status, "not now")] * 2
    assert model_of(service).complete(make_request()).text == "hello"
    assert naps == [0.5, 1.0]
    assert len(service.requests) == 3


def test_the_time_the_service_asks_for_is_waited_and_chance_spreads_the_other_waits(
    service: Service, naps: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "random", lambda: 0.5)
    service.script = [refusal(429, "slow down", Retry_After=wait) for wait in ("7", "1.5", "whenever")]
    model_of(service).complete(make_request())
    assert naps == [7.0, 1.5, 1.5]


def test_too_long_a_wait_is_an_error_at_once_that_may_pass(service: Service, naps: list[float]) -> None:
    service.script = [refusal(429, "tomorrow", Retry_After="3600")]
    with pytest.raises(ModelFailed, match="HTTP 429: tomorrow") as caught:
        model_of(service).complete(make_request())
    assert naps == []
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("status", "remedy"),
    [(400, "longer"), (401, "OPENAI_API_KEY"), (403, "may use"), (404, "model name"), (301, "base_url")],
)
def test_lasting_troubles_fail_at_once_with_a_remedy(service: Service, status: int, remedy: str) -> None:
    service.script = [refusal(status, "because")]
    with pytest.raises(ModelFailed, match=f"HTTP {status}: because .*{remedy}") as caught:
        model_of(service).complete(make_request())
    assert len(service.requests) == 1
    assert not caught.value.retryable


def test_an_empty_account_is_not_tried_again(service: Service) -> None:
    service.script = [(429, {}, {"error": {"code": "insufficient_quota", "message": "You exceeded your quota"}})]
    with pytest.raises(ModelFailed, match="You exceeded your quota") as caught:
        model_of(service).complete(make_request())
    assert len(service.requests) == 1
    assert not caught.value.retryable


def test_a_service_that_does_not_answer_in_time_or_is_busy(service: Service, naps: list[float]) -> None:
    service.script = [after(1.2, chat("too late"))] * 2
    with pytest.raises(ModelFailed, match=r"did not answer in time.*tried 2 times") as caught:
        model_of(service, timeout_s=0.4, retries=1).complete(make_request())
    assert caught.value.retryable
    assert naps == [0.5]
    service.otherwise = (503, {}, b"<html>busy</html>")
    with pytest.raises(ModelFailed, match=r"HTTP 503 \(try again later\)"):
        model_of(service, retries=0).complete(make_request())


# -- wrong answers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "problem", "retryable"),
    [
        (b"<html>", "not JSON", True),
        (b"\xff\xfe", "not JSON", True),
        (b"[" * 100_000, "not JSON", True),
        ({"choices": []}, "no message", False),
        ({"choices": [{"message": {"content": 5}}], "content": [{"type": "text"}]}, "no message", False),
        (None, "no message", False),
    ],
)
def test_a_wrong_answer_is_an_error(service: Service, answer: Any, problem: str, retryable: bool) -> None:
    service.otherwise = (200, {}, answer)
    for model in (model_of(service), AnthropicModel("m", base_url=service.address, api_key=KEY)):
        with pytest.raises(ModelFailed, match=problem) as caught:
            model.complete(make_request())
        assert caught.value.retryable is retryable


def test_an_answer_cut_off_on_the_way_is_tried_again(service: Service) -> None:
    service.script = [(200, {"Content-Length": "100", "Connection": "close"}, b'{"choices"')]
    assert model_of(service).complete(make_request()).text == "hello"


# -- keys and addresses ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 400, 401, 429, 500])
def test_no_error_tells_the_key(service: Service, status: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    echo = {"error": {"message": f"{'x' * 190} bad key {KEY}, Bearer {KEY}"}}
    service.otherwise = (status, {}, echo)
    model = model_of(service)
    with pytest.raises(ModelFailed) as caught:
        model.complete(make_request())
    told = "".join(traceback.format_exception(caught.value)) + repr(caught.value.__dict__) + repr(model)
    assert KEY not in told
    assert KEY[:8] not in str(caught.value)
    assert KEY not in caplog.text


def test_a_password_in_the_address_is_used_but_not_told(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    model = model_of(service, base_url=service.url.replace("://", "://ada:hush-hush@"), api_key="")
    model.complete(make_request())
    assert service.headers[0]["Authorization"].startswith("Basic ")
    service.otherwise = refusal(404, "no")
    with pytest.raises(ModelFailed) as caught:
        model.complete(make_request())
    assert "hush-hush" not in "".join(traceback.format_exception(caught.value)) + caplog.text


@pytest.mark.parametrize("kind", [OpenAIModel, AnthropicModel, OpenAIEmbedder])
def test_key_and_address_come_from_the_environment(
    kind: Any, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "ANTHROPIC" if kind is AnthropicModel else "OPENAI"
    with pytest.raises(InvalidInput, match=f"{name}_API_KEY"):
        kind("gpt-4o-mini")
    monkeypatch.setenv(f"{name}_BASE_URL", service.url)
    sent = kind("test-model").endpoint.client
    assert not {"authorization", "x-api-key"} & set(sent.headers)  # a local server needs none
    monkeypatch.setenv(f"{name}_API_KEY", f"{KEY}\n")
    sent = kind("test-model").endpoint.client
    assert str(sent.base_url).startswith(service.url)
    assert KEY in f"{sent.headers.get('authorization')} {sent.headers.get('x-api-key')}"


@pytest.mark.parametrize("key", [f"{KEY}\nX-Other: 1", f"{KEY}é", f"{KEY} {KEY}"])
def test_a_key_that_is_no_header_is_refused_without_telling_it(key: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        OpenAIModel("m", api_key=key)
    assert KEY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("base_url", "localhost:80/v1"),
        ("base_url", "ftp://host/v1"),
        ("base_url", "http://host:port/v1"),
        ("timeout_s", 0),
    ],
)
def test_impossible_settings_are_refused(service: Service, name: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=name):
        model_of(service, **{name: value})


@pytest.mark.parametrize(
    ("kind", "extra"), [(OpenAIModel, "openai"), (OpenAIEmbedder, "openai"), (AnthropicModel, "anthropic")]
)
def test_without_httpx_the_error_names_the_extra(kind: Any, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtra, match=rf"pip install 'wellworn\[{extra}\]'"):
        kind("m", base_url="http://localhost/v1")


def test_connections_close_with_the_model(service: Service) -> None:
    model = model_of(service)
    model.complete(make_request())
    client = model.endpoint.client
    del model
    gc.collect()
    assert client.is_closed


# -- Ollama ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://localhost:11434/v1/"),
        ("10.0.0.5:99", "http://10.0.0.5:99/v1/"),
        ("http://gpu.lan", "http://gpu.lan/v1/"),
        ("https://gpu.lan:8443/ollama/", "https://gpu.lan:8443/ollama/v1/"),
        ("[::1]", "http://[::1]:11434/v1/"),
    ],
)
def test_ollama_is_found_where_its_variable_says(host: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", host)
    assert str(OllamaModel("m").endpoint.client.base_url) == url


def test_ollama_never_gets_the_key_of_openai(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://elsewhere/v1")
    monkeypatch.setenv("OLLAMA_HOST", service.address)
    model = OllamaModel("llama3.2:3b")
    assert model.complete(make_request()).model == "ollama:llama3.2:3b"
    assert service.requests[0]["model"] == "llama3.2:3b"
    assert "Authorization" not in service.headers[0]
    service.otherwise = refusal(404, "model 'x' not found")
    with pytest.raises(ModelFailed, match="ollama pull llama3"):
        model.complete(make_request())
    with pytest.raises(ModelFailed, match=r"no connection to 127\.0\.0\.1.*check base_url") as caught:
        OllamaModel("m", host="127.0.0.1:1").complete(make_request())
    assert caught.value.retryable
