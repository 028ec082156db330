"""The files of `deploy/`, checked with the tools that will read them; and that every metric they name exists."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from .conftest import serving

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
DASHBOARD = DEPLOY / "grafana/dashboards/wellworn.json"
_NAME = re.compile(r"\b(?:wellworn|process)_[a-z_]+")


def tool(name: str, package: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (Debian package {package})")
    return found


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def exposed() -> set[str]:
    """Every name that a query may use."""
    with serving() as server:
        text = httpx.get(f"{server.url}/metrics").text
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    return {*kinds} | {f"{name}_{end}" for name in kinds for end in ("bucket", "sum", "count")}


def queries(panels: list[dict[str, Any]]) -> list[str]:
    return [target["expr"] for panel in panels for target in panel["targets"]]


@pytest.mark.parametrize(
    "path", ["deploy/prometheus/alerts.yml", "deploy/grafana/dashboards/wellworn.json", "docs/operations.md"]
)
def test_every_metric_that_is_named_exists(path: str, exposed: set[str]) -> None:
    named = {*_NAME.findall((ROOT / path).read_text())} - {"process_", "wellworn_key"}
    assert named
    assert named <= exposed


def test_every_metric_of_ours_is_explained(exposed: set[str]) -> None:
    page = (ROOT / "docs/operations.md").read_text()
    ours = {
        name for name in exposed if name.startswith("wellworn_") and not name.endswith(("_bucket", "_sum", "_count"))
    }
    assert {name for name in ours if not name.endswith("_created") and f"`{name}`" not in page} == set()


def test_prometheus_accepts_its_configuration() -> None:
    promtool = tool("promtool", "prometheus")
    run(promtool, "check", "config", "--syntax-only", str(DEPLOY / "prometheus/prometheus.yml"))
    run(promtool, "check", "rules", str(DEPLOY / "prometheus/alerts.yml"))


def test_alerts_fire_when_they_should_and_not_before() -> None:
    run(tool("promtool", "prometheus"), "test", "rules", str(DEPLOY / "prometheus/alerts_test.yml"))


def test_prometheus_can_run_the_queries_of_the_dashboard(tmp_path: Path) -> None:
    promtool = tool("promtool", "prometheus")
    asked = queries(json.loads(DASHBOARD.read_text())["panels"])
    rules = [{"record": f"panel:{number}", "expr": query} for number, query in enumerate(asked)]
    path = tmp_path / "dashboard.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    run(promtool, "check", "rules", str(path))


def test_prometheus_finds_nothing_wrong_with_the_metrics(exposed: set[str]) -> None:
    promtool = tool("promtool", "prometheus")
    with serving() as server:
        server.client().remember("Ada likes tea")
        text = httpx.get(f"{server.url}/metrics").text
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("profiles", [(), ("watch",), ("scale",), ("watch", "scale")])
def test_compose_accepts_its_file(profiles: tuple[str, ...]) -> None:
    options = [option for name in profiles for option in ("--profile", name)]
    out = run(tool("docker-compose", "docker-compose"), "-f", str(DEPLOY / "compose.yaml"), *options, "config")
    assert "wellworn" in yaml.safe_load(out)["services"]


def test_what_compose_mounts_is_there() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    mounted = [volume.split(":")[0] for one in services.values() for volume in one.get("volumes", ())]
    assert [path for path in mounted if path.startswith("./") and not (DEPLOY / path).exists()] == []
    build = services["wellworn"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).samefile(DEPLOY / "Dockerfile")


IN_A_FILE = {"WELLWORN_KEY_FILE", "WELLWORN_PRICES"}
"""Name a file, which would have to be mounted."""
WHO_CALLS = {"WELLWORN_USER", "WELLWORN_TENANT"}
"""Keys say it in a service."""


def test_compose_passes_on_what_the_service_reads_from_the_environment() -> None:
    service = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["wellworn"]
    sources = [file.read_text() for file in (ROOT / "src/wellworn").rglob("*.py")]
    read = {name for text in sources for name in re.findall(r'"(WELLWORN_[A-Z_]+)"', text)}
    read |= {name for text in sources for name in re.findall(r'"((?:OPENAI|ANTHROPIC)_API_KEY|OLLAMA_HOST)"', text)}
    assert read - IN_A_FILE - WHO_CALLS <= {*service["environment"]}
    unset = [value for value in service["environment"].values() if not re.fullmatch(r"\$\{[A-Z_]+:-[^}]*\}", value)]
    assert unset == []


def test_the_image_runs_as_nobody_special_and_copies_what_is_there() -> None:
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    last = max(number for number, line in enumerate(lines) if line.startswith("FROM "))
    assert any(line.startswith("USER 1") for line in lines[last:])
    assert any(line.startswith("HEALTHCHECK") for line in lines[last:])
    copied = [line.split()[1:-1] for line in lines[:last] if line.startswith("COPY ")]
    assert all((ROOT / name).exists() for names in copied for name in names)
    extras = re.search(r"\.\[([\w,-]+)\]", (DEPLOY / "Dockerfile").read_text())
    known = re.findall(r"^([\w-]+) = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert extras is not None
    assert {"server", "mcp", "oidc", "postgres", "redis", "otel", "encryption"} <= {*extras[1].split(",")} <= {*known}


def test_systemd_accepts_the_unit_and_finds_it_closed(tmp_path: Path) -> None:
    analyze = tool("systemd-analyze", "systemd")
    unit = tmp_path / "wellworn.service"
    text = (DEPLOY / "wellworn.service").read_text()
    unit.write_text(text.replace("/opt/wellworn/bin/wellworn", shutil.which("true") or "/bin/true"))
    run(analyze, "verify", str(unit))
    run(analyze, "security", "--offline=yes", "--threshold=20", str(unit))  # 2.0 of 10; most services have 9
