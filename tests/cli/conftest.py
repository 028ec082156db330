"""The program as a user runs it: a fresh file, an empty environment, both streams kept apart."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from wellworn.cli.program import command_word, program

LIVES = {"extracted_memories": [{"summary": "The user lives in Oslo.", "reference": [0]}]}


@dataclass(frozen=True)
class Answer:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:  # whatever the command prints
        return json.loads(self.out)


@dataclass(frozen=True)
class Cli:
    """Runs commands on one store. The hash embedder keeps it quick; no test here is about ranking."""

    db: Path

    def __call__(self, *args: str, stdin: str | bytes | None = None, env: dict[str, str] | None = None) -> Answer:
        variables = {"WELLWORN_DB": str(self.db), "WELLWORN_EMBEDDER": "hash", "COLUMNS": "200", **(env or {})}
        result = CliRunner().invoke(program(command_word(args)), list(args), input=stdin, env=variables)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Answer(result.exit_code, result.stdout, result.stderr)

    def ok(self, *args: str, stdin: str | bytes | None = None) -> Answer:
        """The answer of a command that must succeed."""
        answer = self(*args, stdin=stdin)
        assert answer.code == 0, answer.err
        return answer

    def json(self, *args: str, stdin: str | bytes | None = None) -> Any:  # whatever the command prints
        return self.ok(*args, "--json", stdin=stdin).json

    def remember(self, text: str, *options: str) -> str:
        """The id of one new entry."""
        ids: Sequence[str] = self.json("remember", text, *options)["ids"]
        assert len(ids) == 1
        return ids[0]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    for name in ("WELLWORN_TENANT", "WELLWORN_USER", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return Cli(tmp_path / "memory.db")


@pytest.fixture
def scripted(tmp_path: Path) -> Any:  # writes a script and gives the model's name
    def write(**replies: list[Any]) -> str:
        path = tmp_path / "replies.json"
        path.write_text(json.dumps(replies), encoding="utf-8")
        return f"scripted:{path}"

    return write
