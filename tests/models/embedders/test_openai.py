from __future__ import annotations

import gc
import json
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from wellworn.core.errors import EmbeddingFailed, InvalidInput, MissingExtra
from wellworn.models.embedders.openai import OpenAIEmbedder

KEY = "sk-very-secret-0123456789"

Answer = tuple[int, dict[str, str], Any]


def vectors(body: dict[str, Any]) -> Answer:
    """What a good service says, in reverse order to see that the numbers count."""
    data = [{"index": place, "embedding": [len(text), 1.0]} for place, text in enumerate(body["input"])]
    return 200, {}, {"data": data[::-1]}


class Service(ThreadingHTTPServer):
    """A real HTTP server that answers from a script, then as `vectors`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: list[Answer | Callable[[dict[str, Any]], Answer]] = []
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Service
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(body)
        self.server.headers.append(dict(self.headers))
        self.server.paths.append(self.path)
        step = self.server.script.pop(0) if self.server.script else vectors
        status, headers, answer = step(body) if callable(step) else step
        raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(raw)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    server = Service()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


class Naps(list[float]):
    """A sleep that only writes down how long."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


def embedder_of(service: Service, **options: Any) -> OpenAIEmbedder:
    return OpenAIEmbedder("test-model", **{"base_url": service.url, "api_key": KEY, "sleep": Naps(), **options})


def test_vectors_come_back_in_the_order_of_the_texts(service: Service) -> None:
    embedder = embedder_of(service)
    rows = embedder.embed(["a", "bbb"])
    np.testing.assert_allclose(rows, [[2**-0.5, 2**-0.5], [3 / 10**0.5, 1 / 10**0.5]], atol=1e-6)
    np.testing.assert_array_equal(embedder.embed_query("a"), rows[0])
    assert (embedder.name, embedder.width) == ("openai:test-model", 2)
    assert service.requests[0] == {"model": "test-model", "input": ["a", "bbb"]}
    assert service.paths[0] == "/v1/embeddings"
    assert service.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_texts_go_out_in_batches(service: Service) -> None:
    texts = [f"{'x' * number}" for number in range(1, 8)]
    rows = embedder_of(service, batch_size=3).embed(texts)
    assert [len(request["input"]) for request in service.requests] == [3, 3, 1]
    assert rows.shape == (7, 2)
    assert (np.diff(rows[:, 0]) > 0).all()


def test_blank_texts_are_not_sent_and_surrogates_are_mended(service: Service) -> None:
    rows = embedder_of(service).embed(["", "cut \ud83d", "  "])
    assert service.requests[0]["input"] == ["cut �"]
    assert [bool(row.any()) for row in rows] == [False, True, False]


def test_no_texts_need_no_call_when_the_width_is_known(service: Service) -> None:
    assert embedder_of(service, width=2).embed([]).shape == (0, 2)
    assert service.requests == []
    assert embedder_of(service).embed([]).shape == (0, 2)
    assert len(service.requests) == 1


def test_known_models_know_their_width_and_can_be_shortened(service: Service) -> None:
    assert OpenAIEmbedder("text-embedding-3-large", base_url=service.url).width == 3072
    assert service.requests == []
    short = OpenAIEmbedder("text-embedding-3-small", base_url=service.url, width=2)
    assert short.embed(["a"]).shape == (1, 2)
    assert service.requests[0]["dimensions"] == 2


def test_key_and_address_come_from_the_environment(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\n")
    monkeypatch.setenv("OPENAI_BASE_URL", service.url)
    OpenAIEmbedder("test-model").embed(["a"])
    assert service.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_a_local_server_needs_no_key_but_the_public_one_does(service: Service) -> None:
    OpenAIEmbedder("test-model", base_url=service.url).embed(["a"])
    assert "Authorization" not in service.headers[0]
    with pytest.raises(InvalidInput, match="OPENAI_API_KEY"):
        OpenAIEmbedder("text-embedding-3-small")


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_passing_troubles_are_tried_again_with_growing_waits(service: Service, status: int) -> None:
    naps = Naps()
    service.script = [(status, {}, {}), (status, {}, {})]
    embedder_of(service, sleep=naps).embed(["a"])
    assert naps == [0.5, 1.0]
    assert len(service.requests) == 3


def test_the_time_the_service_asks_for_is_waited(service: Service) -> None:
    naps = Naps()
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    waits = ["7", "1.5", soon, "whenever"]
    service.script = [(429, {"Retry-After": wait}, {}) for wait in waits]
    embedder_of(service, sleep=naps, retries=4).embed(["a"])
    assert naps[:2] == [7.0, 1.5]
    assert 15 < naps[2] <= 20
    assert naps[3] == 4.0


def test_too_long_a_wait_is_an_error_at_once(service: Service) -> None:
    naps = Naps()
    service.script = [(429, {"Retry-After": "3600"}, {})]
    with pytest.raises(EmbeddingFailed, match="HTTP 429"):
        embedder_of(service, sleep=naps).embed(["a"])
    assert naps == []


def test_an_empty_account_is_not_tried_again(service: Service) -> None:
    service.script = [(429, {}, {"error": {"code": "insufficient_quota", "message": "You exceeded your quota"}})]
    with pytest.raises(EmbeddingFailed, match="You exceeded your quota"):
        embedder_of(service).embed(["a"])
    assert len(service.requests) == 1


def test_after_the_last_attempt_the_error_tells_status_and_number(service: Service) -> None:
    service.script = [(503, {}, b"<html>busy</html>")] * 3
    with pytest.raises(EmbeddingFailed, match=r"127\.0\.0\.1 answered HTTP 503 \(try again later\) \(tried 3 times\)"):
        embedder_of(service, retries=2).embed(["a"])


@pytest.mark.parametrize(
    ("status", "remedy"),
    [(400, "longer"), (401, "OPENAI_API_KEY"), (403, "may use"), (404, "base_url"), (301, "base_url")],
)
def test_lasting_troubles_fail_at_once_with_a_remedy(service: Service, status: int, remedy: str) -> None:
    service.script = [(status, {}, {"error": {"message": "because"}})]
    with pytest.raises(EmbeddingFailed, match=f"HTTP {status}: because .*{remedy}"):
        embedder_of(service).embed(["a"])
    assert len(service.requests) == 1


def test_a_service_that_does_not_answer_in_time(service: Service) -> None:
    def slow(body: dict[str, Any]) -> Answer:
        time.sleep(0.3)
        return vectors(body)

    naps = Naps()
    service.script = [slow]
    embedder = embedder_of(service, timeout_s=0.1, sleep=naps)
    assert embedder.embed(["a"]).shape == (1, 2)
    assert naps == [0.5]
    service.script = [slow, slow]
    with pytest.raises(EmbeddingFailed, match="did not answer in time"):
        embedder_of(service, timeout_s=0.1, retries=1).embed(["a"])


def test_no_service_at_all() -> None:
    embedder = OpenAIEmbedder("m", base_url="http://127.0.0.1:1/v1", retries=1, sleep=Naps())
    with pytest.raises(EmbeddingFailed, match=r"no connection to 127\.0\.0\.1.*check base_url"):
        embedder.embed(["a"])


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"not json", "not an embeddings list"),
        ([], "not an embeddings list"),
        ({"data": [5]}, "not an embeddings list"),
        ({"data": [{"index": 0}]}, "not an embeddings list"),
        ({"data": [{"index": 0, "embedding": [1.0]}]}, "1 vectors for 2 texts"),
        ({"data": [{"index": 0, "embedding": [1.0]}] * 2}, "do not match"),
        ({"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0, 2.0]}]}, "matrix of numbers"),
        ({"data": [{"index": place, "embedding": [1.0, 2.0, 3.0]} for place in (0, 1)]}, r"expected \(texts, 2\)"),
        ({"data": [{"index": place, "embedding": [float("nan"), 1.0]} for place in (0, 1)]}, "not finite"),
    ],
)
def test_a_wrong_answer_is_an_error(service: Service, answer: Any, problem: str) -> None:
    service.script = [(200, {}, answer)]
    with pytest.raises(EmbeddingFailed, match=problem):
        embedder_of(service, width=2).embed(["a", "b"])


@pytest.mark.parametrize("status", [200, 400, 401, 429, 500])
def test_no_error_tells_the_key(service: Service, status: int) -> None:
    echo = {"error": {"message": f"{'x' * 190} bad key {KEY}, Bearer {KEY}"}}
    service.script = [(status, {}, echo)] * 4
    embedder = embedder_of(service)
    with pytest.raises(EmbeddingFailed) as caught:
        embedder.embed(["a"])
    told = "".join(traceback.format_exception(caught.value)) + repr(caught.value.__dict__) + repr(embedder)
    assert KEY not in told
    assert KEY[:8] not in str(caught.value)


@pytest.mark.parametrize("key", [f"{KEY}\nX-Other: 1", f"{KEY}é", f"{KEY} {KEY}"])
def test_a_key_that_is_no_header_is_refused_without_telling_it(key: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        OpenAIEmbedder("m", api_key=key)
    assert KEY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("url", ["localhost:80/v1", "ftp://host/v1", "http://", "http://host:port/v1"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="base_url"):
        OpenAIEmbedder("m", base_url=url)


def test_impossible_numbers_are_refused(service: Service) -> None:
    with pytest.raises(InvalidInput, match="batch_size"):
        embedder_of(service, batch_size=0)
    with pytest.raises(InvalidInput, match="width"):
        embedder_of(service, width=0)


def test_without_httpx_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtra, match=r"pip install 'wellworn\[openai\]'"):
        OpenAIEmbedder("m", base_url="http://localhost/v1")


def test_connections_close_with_the_embedder(service: Service) -> None:
    embedder = embedder_of(service)
    embedder.embed(["a"])
    client = embedder._endpoint.client
    embedder.close()
    embedder.close()
    assert client.is_closed
    other = embedder_of(service)
    client = other._endpoint.client
    del other
    gc.collect()
    assert client.is_closed
