"""Metrics, traces and logs: what they count and say, who may read them, and that none holds memory text."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys

import httpx
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client.parser import text_string_to_metric_families

from wellworn import Memory, Scope, StoreCorrupt
from wellworn.integrations.otel import start_tracing
from wellworn.models import ScriptedModel
from wellworn.server import metrics
from wellworn.server.guard import ACCESS, JsonLines
from wellworn.tasks import ReasoningBank
from wellworn.tasks.trajectory import Trajectory

from .conftest import ME, WAIT_S, Running, serving

SECRET = "zanzibar"
"""A word of every text here: it may not be in any metric, span or log line."""
SEARCH = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "memory_search", "arguments": {"query": SECRET}},
}


def numbers(text: str) -> dict[str, float]:
    """Each sample as `name{label=value,…}`."""
    return {
        f"{one.name}{{{','.join(f'{key}={value}' for key, value in sorted(one.labels.items()))}}}": one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def live(memory: Memory) -> None:
    """One turn of the loop: remember, recall, outcome, session, reflection with a model, a task that succeeds."""
    memory.remember(f"Ada likes {SECRET}", scope=ME)
    first, second = (memory.recall(f"what of {SECRET}?", scope=ME) for _ in range(2))
    memory.outcome(first.id, cited=[0], scope=ME)
    memory.outcome(second.id, cited=[], scope=ME)
    talk = memory.session("talk", scope=ME)
    talk.add("user", f"I moved to {SECRET} in May")
    talk.end()
    memory.jobs.run(scope=ME)
    work = Trajectory(query=f"go to {SECRET}", output="done", verdict=True)
    ReasoningBank(memory, scope=Scope(user="me", agent="a")).run_task(
        task_id="t", query=f"go to {SECRET}", execute=lambda _: work
    )


def test_metrics_tell_the_loop_and_no_text() -> None:
    model = ScriptedModel("[]", input_tokens=7, output_tokens=3)
    with serving(llm=model, background=False) as server:
        live(server.service.memory)
        logging.getLogger("wellworn.models").warning("the provider is down")
        text = httpx.get(f"{server.url}/metrics").text
    found = numbers(text)
    assert found["wellworn_recall_seconds_count{route=hybrid}"] >= 2
    assert found["wellworn_entries{kind=note}"] == 1
    assert found["wellworn_entries{kind=episode}"] == 1
    assert found["wellworn_outcomes_total{kind=cited}"] == found["wellworn_outcomes_total{kind=not_cited}"] == 1
    assert found["wellworn_jobs{kind=reflect,state=queued}"] == found["wellworn_jobs_late_seconds{}"] == 0
    calls = [value for name, value in found.items() if name.startswith("wellworn_model_calls_total{model=scripted")]
    tokens = [value for name, value in found.items() if name.startswith("wellworn_model_tokens_total{direction=input")]
    assert sum(calls) == len(model.requests) > 0
    assert sum(tokens) == 7 * len(model.requests)
    assert found["wellworn_tasks_total{result=success}"] == 1
    assert found["wellworn_errors_total{component=models}"] >= 1
    assert found["wellworn_events_total{action=remember}"] >= 2
    assert found["wellworn_store_up{}"] == 1
    assert SECRET not in text


def test_a_task_that_nobody_can_judge_is_no_failure(server: Running) -> None:
    tasks = server.client().tasks
    for number, verdict in enumerate((None, False, True)):
        tasks.begin(task_id=f"t{number}", query="go there")
        work = Trajectory(query="go there") if verdict is None else Trajectory(query="go there", output="done")
        tasks.finish(f"t{number}", work, verdict=verdict)
    found = numbers(server.http().get("/metrics").text)
    ended = {name: found[f"wellworn_tasks_total{{result={name}}}"] for name in metrics.RESULTS}
    assert ended == {"success": 1, "failure": 1, "unsure": 1, "abandoned": 0}


def test_metrics_are_for_whoever_runs_the_service() -> None:
    with serving(local=None, tenants="all") as server:
        answers = [
            server.http(key).get("/metrics").status_code
            for key in (
                server.key(role="reader"),
                server.key(role="admin", user=["ada"]),
                server.key(role="admin", tenant="acme"),
            )
        ]
    assert answers == [200, 403, 403]


def test_the_store_is_read_now_and_then() -> None:
    now = 0.0
    with Memory(":memory:", embedder="hash", background=False) as memory:
        read = metrics.Metrics(memory.engine, ticks=lambda: now)

        def notes() -> tuple[float, float]:
            found = numbers(read.exposed().decode())
            return found["wellworn_store_up{}"], found["wellworn_entries{kind=note}"]

        assert notes() == (1, 0)
        memory.remember("Ada likes tea", scope=ME)
        assert notes() == (1, 0)
        now = metrics.FRESH_S
        assert notes() == (1, 1)
    now = 2 * metrics.FRESH_S
    assert notes() == (0, 1)  # the store is closed: what was read last


# -- traces ------------------------------------------------------------------------------------------------------------


def test_spans_follow_the_loop_without_text() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    stop = start_tracing(provider)
    try:
        with Memory(":memory:", embedder="hash", background=False, llm=ScriptedModel("[]")) as memory:
            live(memory)
            with pytest.raises(Exception, match=SECRET):
                memory.reflect(f"no session {SECRET}", scope=ME)
            with pytest.raises(Exception, match="recall"):
                memory.outcome("nothing", cited=[], scope=ME)
    finally:
        stop()
    with Memory(":memory:", embedder="hash", background=False) as memory:
        memory.remember("after the end", scope=ME)
    spans = exporter.get_finished_spans()
    names = [span.name.removeprefix("wellworn.") for span in spans]
    assert {*names} == {"recall", "remember", "outcome", "session_end", "job", "reflect", "model_call"}
    by_id = {span.context.span_id: span for span in spans}
    parent = {
        span.name: by_id[span.parent.span_id].name for span in spans if span.parent and span.parent.span_id in by_id
    }
    assert parent["wellworn.reflect"] == "wellworn.job"
    assert parent["wellworn.model_call"] in ("wellworn.reflect", "wellworn.recall")
    recall = next(span for span in spans if span.name == "wellworn.recall")
    assert recall.attributes is not None
    assert recall.attributes["wellworn.hits"] == 1
    failed = [span for span in spans if span.attributes and "error.type" in span.attributes]
    assert [(span.name, dict(span.attributes or {})["error.type"]) for span in failed] == [
        ("wellworn.outcome", "NotFound")
    ]
    assert all(SECRET not in span.to_json() for span in spans)


SERVED = """
from fastapi.testclient import TestClient
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from wellworn import Memory, Scope
from wellworn.integrations.otel import start_tracing
from wellworn.server.app import build_app
from wellworn.server.guard import Rules
from wellworn.server.service import MemoryService

exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
start_tracing()
service = MemoryService(Memory(":memory:", embedder="hash"), rules=Rules(hosts=None), local=Scope(user="me"))
read = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "memory://entries/zanzibar"}}
with TestClient(build_app(service)) as http:
    codes = [
        http.get("/", params={"q": "zanzibar"}).status_code,
        http.get("/v1/entries", params={"user": "zanzibar", "tag": "zanzibar"}).status_code,
        http.get("/v1/entries/zanzibar").status_code,
        http.post("/v1/recall", json={"query": "zanzibar"}).status_code,
        http.post("/mcp", json=read, headers={"accept": "application/json"}).status_code,
    ]
spans = [span.to_json() for span in exporter.get_finished_spans()]
print([int(one) for one in codes], any("wellworn.recall" in one for one in spans), [one for one in spans if "zanzibar" in one])
"""


def test_no_span_of_the_service_or_its_frameworks_shows_text_or_names() -> None:
    """In a process of its own: the provider of a process is set once."""
    pytest.importorskip("mcp")
    done = subprocess.run([sys.executable, "-c", SERVED], capture_output=True, text=True, check=True, timeout=WAIT_S)
    assert done.stdout.strip() == "[200, 200, 404, 200, 200] True []"


# -- logs --------------------------------------------------------------------------------------------------------------


def test_logs_are_json_with_the_request_and_without_text(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonLines())
    log, access = logging.getLogger("wellworn"), logging.getLogger(ACCESS)
    log.addHandler(handler)
    access.setLevel(logging.INFO)

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError(SECRET)

    try:
        http = server.http()
        ids = [
            http.post("/v1/recall", json={"query": SECRET}, headers={"x-request-id": given}).headers["x-request-id"]
            for given in ("from-a-proxy.1", f"not plain {SECRET}")
        ]
        monkeypatch.setattr(server.service.memory.engine.router, "recall", fails)
        broken = http.post("/v1/recall?user=zanzibar", json={"query": SECRET})
        log.warning("it failed: %s", ValueError(SECRET))
    finally:
        log.removeHandler(handler)
        access.setLevel(logging.NOTSET)
    assert (broken.status_code, broken.headers["x-content-type-options"]) == (500, "nosniff")
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    assert ids[0] == "from-a-proxy.1"
    assert SECRET not in ids[1]
    asked = [line for line in lines if line.get("route") == "/v1/recall"]
    assert [line["request_id"] for line in asked] == [*ids, broken.headers["x-request-id"]]
    assert (asked[0]["status"], asked[0]["method"], asked[0]["actor"]) == (200, "POST", "local")
    fault = next(line for line in lines if line.get("error"))
    assert (fault["error"], fault["request_id"]) == ("RuntimeError", broken.headers["x-request-id"])
    assert any("test_telemetry.py" in frame for frame in fault["trace"])
    assert lines[-1]["message"] == "it failed: ValueError"
    assert SECRET not in written.getvalue()


def test_a_store_that_fails_is_a_fault_whoever_asks(
    server: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise StoreCorrupt(SECRET)

    http, engine = server.http(), server.service.memory.engine
    monkeypatch.setattr(engine.router, "recall", fails)
    monkeypatch.setattr(engine.store, "records", fails)
    guess = {"authorization": "Bearer ww_0123456789abcdef_x"}
    answers = [
        http.post("/v1/recall", json={"query": SECRET}),
        http.get("/?q=tea"),
        http.get("/v1/stats", headers=guess),
        http.post("/mcp", json=SEARCH, headers={"accept": "application/json, text/event-stream"}),
    ]
    assert [answer.status_code for answer in answers] == [500, 500, 500, 200]
    faults = [one for one in caplog.records if one.name == "wellworn.server" and one.levelname == "ERROR"]
    assert [json.loads(JsonLines().format(one))["error"] for one in faults] == ["StoreCorrupt"] * 4
    assert SECRET not in "".join(JsonLines().format(one) for one in faults)
    assert numbers(http.get("/metrics").text)["wellworn_errors_total{component=server}"] == 4
