"""Every public verb and every command, used by others for what is not theirs: none tells anything, none changes it."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.test_cli_program import commands
from memory.test_malformed import call, keywords_of, verbs
from memory.world import partition_picture
from wellworn import Memory, Scope, WellwornError
from wellworn.cli.program import program

pytestmark = [pytest.mark.crash, pytest.mark.slow]
SECRET = "Zwölfuhrläuten"
ADA = Scope(tenant="acme", user="ada")
OTHERS = [
    Scope(tenant="acme", user="ben"),
    Scope(tenant="acme", user="ben", team="core"),
    Scope(tenant="acme", agent="ada"),
    Scope(tenant="acme", user="ada%"),
    Scope(tenant="rival", user="ada"),
    Scope(tenant="rival", user="ada", team="core"),
    Scope(tenant="acme' OR '1'='1", user="ada"),
]
WHOLE_FILE = {"verify", "admin.backup", "admin.repair", "admin.reembed", "for_user", "for_scope"}
"""Verbs that are not about a person."""
WHOLE_TENANT = {"jobs.run", "jobs.retry"}
"""Verbs that do a tenant's work: tried from other tenants."""
ENDLESS = {"mcp", "serve", "demo", "chat", "hook", "connect"}
"""Commands that wait for a client, or make a world of their own."""
Tally = Callable[[str, int], None]


class World:
    """What Ada has, and a picture of it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.db = folder, folder / "memory.db"
        self.mem = Memory(self.db, embedder="hash:8", durability="normal", background=False)
        ids = self.mem.remember_many([f"{SECRET} at noon.", f"{SECRET} at dusk."], scope=ADA)
        self.mem.edit(ids[0], text=f"{SECRET} at one.", scope=ADA)
        self.mem.link(ids[0], ids[1], "supports", scope=ADA)
        session = self.mem.session("monday", scope=ADA)
        session.add("user", f"I hear {SECRET} every day.")
        session.end()
        for other in OTHERS:
            self.mem.remember("Something at noon.", scope=other)
        recall = self.mem.recall("noon", scope=ADA).id
        self.mem.outcome(recall, cited=[0], scope=ADA)
        job = self.mem.jobs.list(scope=ADA)[0].id
        self.values: dict[str, Any] = {  # of every parameter that can name something of hers
            **dict.fromkeys(("id", "old", "source"), ids[0]),
            **dict.fromkeys(("new", "target"), ids[1]),
            "ids": ids,
            "session_id": "monday",
            "recall_id": recall,
            "query": "noon",
            "text": "noon",
            "items": ["noon"],
            "type": "supports",
            "on": True,
            "k": 50,
            "limit": 1000,
            "turns": True,
            "ignored": True,
            "again": True,
            "state": None,
            "title": "noon",
            "layer": None,
            "kind": None,
        }
        self.jobs = {"id": job}
        self.ids, self.job = ids, job

    def picture(self) -> dict[str, Any]:
        return partition_picture(self.mem, ADA.home())


def given_to(world: World, name: str, verb: Callable[..., Any], dice: random.Random, number: int) -> dict[str, Any]:
    """Ada's own ids and names for what a verb needs, and for some of what it also takes."""
    needed, others = keywords_of(verb)
    values = {**world.values, **(world.jobs if name.startswith("jobs.") else {})}
    values["path"] = world.folder / f"out{number}.jsonl"
    some = [one for one in others if one in values and dice.random() < 0.5]
    return {one: values[one] for one in dict.fromkeys([*needed, *some]) if one in values and values[one] is not None}


def told_by(result: Any, given: dict[str, Any]) -> str:
    """Everything that a verb's answer shows, a session's turns and an export's lines included."""
    shown = repr(result) + (repr(result.turns()) if hasattr(result, "add_turns") else "")
    path = given.get("path")
    return shown + (path.read_text(encoding="utf-8") if isinstance(path, Path) and path.exists() else "")


def test_no_verb_crosses_a_tenant_or_a_user(tmp_path: Path, tally: Tally) -> None:
    world, dice, tried = World(tmp_path), random.Random(3), 0
    before = world.picture()
    for other in OTHERS:
        for name in verbs(world.mem):
            if name in WHOLE_FILE or (name in WHOLE_TENANT and other.tenant == ADA.tenant):
                continue
            for bound in (False, False, False, True, False):
                # Bound to one scope, a memory refuses any other; unbound, the scope sees none of Ada's.
                mem = world.mem.for_scope(other) if bound else world.mem
                asked = verbs(mem)[name]
                given = given_to(world, name, asked, dice, tried) | {"scope": ADA if bound else other}
                tried += 1
                told = ""
                with suppress(WellwornError):
                    told = told_by(call(asked, given), given)
                assert SECRET not in told, f"{name} of {other} with {sorted(given)} told {told[:300]}"
        assert world.picture() == before, f"{other} changed what is Ada's"
    world.mem.close()
    assert tried >= 1000
    tally("attempts across tenants and users", tried)


@pytest.mark.parametrize(("tenant", "user"), [("acme", "ben"), ("rival", "ada")])
def test_no_command_crosses_a_tenant_or_a_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tally: Tally, tenant: str, user: str
) -> None:
    monkeypatch.chdir(tmp_path)
    world, tried = World(tmp_path), 0
    before = world.picture()
    variables = {"WELLWORN_DB": str(world.db), "WELLWORN_EMBEDDER": "hash:8", "COLUMNS": "200"}
    variables |= {"WELLWORN_TENANT": tenant, "WELLWORN_USER": user}
    for name, command in commands():
        words = name.split()[1:]
        if not words or words[0] in ENDLESS or getattr(command, "commands", None):
            continue
        if words[0] == "jobs" and tenant == ADA.tenant:
            continue
        needed = [one for one in command.params if one.param_type_name == "argument"]
        for value in (world.ids[0], world.ids[0][:13], "monday"):
            arguments = [value for _ in needed]
            result = CliRunner().invoke(program(words[0]), [*words, *arguments, "--json"], input="", env=variables)
            tried += 1
            assert SECRET not in result.output, f"{name} {arguments} told {result.output[:300]}"
            if not needed:
                break
    assert world.picture() == before
    world.mem.close()
    tally("attempts across tenants and users", tried)
