"""Embeddings over HTTP. Retries, time limits and keys are those of the language model: see test_openai."""

from __future__ import annotations

from typing import Any

import httpx
import numpy as np
import pytest

from models.service import KEY, Answer, Service
from wellworn.core.errors import EmbeddingFailed
from wellworn.core.locks import patience
from wellworn.models import OpenAIEmbedder, openai, remote


def vectors(body: dict[str, Any]) -> Answer:
    """What a good service answers, in reverse order to see that the numbers count."""
    data = [{"index": place, "embedding": [len(text), 1.0]} for place, text in enumerate(body["input"])]
    return 200, {}, {"data": data[::-1]}


@pytest.fixture(autouse=True)
def _embeds(service: Service) -> None:
    service.otherwise = vectors


def embedder_of(service: Service, **options: Any) -> OpenAIEmbedder:
    return OpenAIEmbedder("test-model", **({"base_url": service.url, "api_key": KEY} | options))


def test_vectors_come_back_in_the_order_of_the_texts(service: Service) -> None:
    embedder = embedder_of(service)
    rows = embedder.embed(["a", "bbb"])
    np.testing.assert_allclose(rows, [[2**-0.5, 2**-0.5], [3 / 10**0.5, 1 / 10**0.5]], atol=1e-6)
    np.testing.assert_array_equal(embedder.embed_query("a"), rows[0])
    assert (embedder.name, embedder.width) == ("openai:test-model", 2)
    assert service.requests[0] == {"model": "test-model", "input": ["a", "bbb"]}
    assert service.paths[0] == "/v1/embeddings"
    assert service.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_texts_go_out_in_batches(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai, "BATCH", 3)
    texts = [f"{'x' * number}" for number in range(1, 8)]
    rows = embedder_of(service).embed(texts)
    assert [len(request["input"]) for request in service.requests] == [3, 3, 1]
    assert rows.shape == (7, 2)
    assert (np.diff(rows[:, 0]) > 0).all()


def test_known_models_know_their_width_and_can_be_shortened(service: Service) -> None:
    assert OpenAIEmbedder("text-embedding-3-large", base_url=service.url).width == 3072
    assert embedder_of(service, width=2).embed([]).shape == (0, 2)
    assert service.requests == []
    short = OpenAIEmbedder("text-embedding-3-small", base_url=service.url, width=2)
    assert short.embed(["a"]).shape == (1, 2)
    assert service.requests[0]["dimensions"] == 2


def test_passing_troubles_are_tried_again_and_lasting_ones_fail_with_a_remedy(
    service: Service, naps: list[float]
) -> None:
    service.script = [(503, {}, {}), (429, {"Retry-After": "7"}, {})]
    embedder_of(service).embed(["a"])
    assert naps == [0.5, 7.0]
    service.script = [(401, {}, {"error": {"message": "cannot embed 'a private text'"}})]
    with pytest.raises(EmbeddingFailed, match=r"HTTP 401 .*OPENAI_API_KEY.*nothing was stored") as error:
        embedder_of(service).embed(["a private text"])
    assert "private" not in str(error.value)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"not json", "not JSON"),
        ({"data": [5]}, "not a list of 2 embeddings"),
        ({"data": [{"index": 0, "embedding": [1.0]}]}, "not a list of 2 embeddings"),
        ({"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0, 2.0]}]}, "matrix of numbers"),
        ({"data": [{"index": place, "embedding": [1.0, 2.0, 3.0]} for place in (0, 1)]}, r"expected \(texts, 2\)"),
        ({"data": [{"index": place, "embedding": [float("nan"), 1.0]} for place in (0, 1)]}, "not finite"),
    ],
)
def test_a_wrong_answer_is_an_error(service: Service, answer: Any, problem: str) -> None:
    service.otherwise = (200, {}, answer)
    with pytest.raises(EmbeddingFailed, match=problem):
        embedder_of(service, width=2).embed(["a", "b"])


def test_an_agent_waits_little_for_a_silent_service_and_then_leaves_it_alone(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    def silent(request: httpx.Request) -> httpx.Response:
        asked.append(request.extensions["timeout"]["read"])
        raise httpx.ReadTimeout("silent")

    embedder, now = embedder_of(service, width=2, retries=1), [0.0]
    monkeypatch.setattr(remote, "monotonic", lambda: now[0])
    embedder.endpoint.client = httpx.Client(transport=httpx.MockTransport(silent), base_url=service.url)
    with patience(60):
        for _ in range(2):
            with pytest.raises(EmbeddingFailed):
                embedder.embed_query("Where?")
        assert len(asked) == 1
        now[0] = remote.REST_S
        with pytest.raises(EmbeddingFailed):
            embedder.embed(["Oslo"] * 50)
    with pytest.raises(EmbeddingFailed):
        embedder.embed_query("Where?")  # nobody waits: it is asked as always
    assert asked == [2.52, 3.5, 30.0, 30.0]
