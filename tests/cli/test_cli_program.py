"""The program as a process: help, version, streams, signals, exit codes."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import wellworn
from contract.few import few
from wellworn.cli import app
from wellworn.cli.program import PARTS, command_word, program
from wellworn.cli.target import SHARED

from .conftest import Cli

GOLDEN = Path(__file__).parent.parent / "golden" / "cli_help.txt"
WELLWORN = [sys.executable, "-m", "wellworn"]


def commands() -> Iterator[tuple[str, Any]]:  # typer's command classes differ between its versions
    """Every command with its full name, groups before their verbs."""

    def walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
        yield name, command
        for verb, inner in getattr(command, "commands", {}).items():
            yield from walk(f"{name} {verb}", inner)

    yield from walk("wellworn", typer.main.get_command(app))


COMMANDS = dict(commands())


def page(name: str, command: Any) -> str:
    """What the help says, without the layout that typer gives it; shared options stand on the first page only."""
    lines = [*command.help.splitlines(), ""]
    for param in command.params:
        names = ", ".join([*param.opts, *param.secondary_opts])
        if "completion" not in names and (name == "wellworn" or param.name not in SHARED):
            lines.append(f"{names} {param.metavar or ''}".rstrip() + f": {getattr(param, 'help', '')}")
    lines += ["", command.epilog] if command.epilog else []
    return "\n".join([name, *(f"  {line}".rstrip() for line in lines)])


def test_help_is_as_recorded() -> None:
    text = "\n\n".join(page(name, command) for name, command in COMMANDS.items()) + "\n"
    if os.environ.get("WELLWORN_GOLDEN") == "write":
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8"), "renew it with WELLWORN_GOLDEN=write pytest"


@pytest.mark.parametrize("name", few(COMMANDS, 8))
def test_every_command_explains_itself_and_has_json(cli: Cli, name: str) -> None:
    command = COMMANDS[name]
    group = hasattr(command, "commands")
    assert command.help.strip()[0].isupper()
    assert group or "--json" in [opt for param in command.params for opt in param.opts]
    answer = cli.ok(*name.split()[1:], "--help")
    assert group or "Example: wellworn " in answer.out


def test_json_before_a_command(cli: Cli) -> None:
    (version,) = cli.json("--version").values()
    assert cli.ok("--version").out == f"wellworn {version}\n"
    for arguments in (("session", "--json"), ("session", "--json", "list")):
        assert "--json stands before the group, or after its command" in cli(*arguments).err
    assert json.loads(cli("--json", "session").err)["error"]["message"] == "needs a command"
    assert "cannot unpack nofile: No such file" in cli("backup", "verify", "nofile").err


def test_help_loads_nothing_heavy() -> None:
    heavy = ("numpy", "wordllama", "tokenizers", "sqlite3", "yaml")
    code = f"import sys, wellworn.cli; print([m for m in {heavy} if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_each_part_holds_the_commands_that_it_says() -> None:
    for part in PARTS:
        built: Any = typer.main.get_command(program(part.words[0]))
        for word in part.words:
            assert word in built.commands
        assert part.name or set(part.commands) <= set(built.commands)
    whole: Any = typer.main.get_command(app)
    assert set(whole.commands) == {word for part in PARTS for word in part.words}


def test_only_the_part_of_the_command_is_loaded() -> None:
    lines = {
        "recall tea": "recall",
        "--user ada --db=x.db --json session list": "session",
        "--user recall": None,
        "--help": None,
        "recal tea": None,
        "": None,
    }
    assert {line: command_word(line.split()) for line in lines} == lines


def test_a_dozen_commands_are_on_top() -> None:
    panels: dict[str, list[str]] = {}
    for name, command in COMMANDS.items():
        if name.count(" ") == 1 and not command.hidden:
            panels.setdefault(command.rich_help_panel, []).append(name.split()[1])
    assert len(panels["Everyday"]) == 12
    assert panels["More"] == ["move", "import", "learning", "tasks", "jobs", "admin", "backup", "hook"]
    assert panels["Agents"] == ["connect", "mcp"]
    assert panels["Service"] == ["serve", "keys"]


def test_errors_are_json_under_json(cli: Cli) -> None:
    cli.remember("Ada likes tea.")
    for args, code, error in (
        (["show", "nothing"], 1, {"type": "NotFound", "message": "no entry 'nothing' in this scope"}),
        (["remember", "x", "--kind", "rumour"], 2, {"type": "UnknownKind", "field": "kind"}),
        (["recall", "x", "--kk"], 2, {"type": "NoSuchOption", "field": None}),
        (["serch"], 2, {"field": None}),
    ):
        answer = cli(*args, "--json")
        assert (answer.code, answer.out) == (code, "")
        found = json.loads(answer.err)["error"]
        assert set(found) == {"type", "message", "field", "remedy"}
        assert error.items() <= found.items()


def test_what_cannot_be_is_one_line_with_the_value(cli: Cli) -> None:
    for args in (["recall", "x", "-k"], ["serve", "--port"], ["outcome", "--last", "--used"]):
        answer = cli(*args, "abc", "--json")
        assert answer.code == 2
        assert "'abc' is not a" in json.loads(answer.err)["error"]["message"]
    assert "scope.user" in cli("remember", "text", "--user", " ").err
    cli.db.write_bytes(b"this is no database, whatever its name says" * 100)
    answer = cli("list")
    assert (answer.code, answer.err) == (2, f"wellworn: {str(cli.db)!r} is not a wellworn file: give another path\n")


def test_options_may_stand_before_the_command(cli: Cli, tmp_path: Path) -> None:
    other = str(tmp_path / "other.db")
    cli.ok("--db", other, "--user", "ada", "remember", "Ada likes tea.")
    assert cli.ok("--json", "--db", other, "list", "--user", "ada").json["entries"][0]["partition"]["layer_id"] == "ada"
    assert cli.json("--user", "bob", "--db", other, "list", "--user", "ada")["entries"]  # the nearest one counts
    assert not cli.db.exists()


def test_the_environment_or_a_layer_names_the_scope(cli: Cli) -> None:
    cli("remember", "Ada likes tea.", env={"WELLWORN_USER": "ada", "WELLWORN_TENANT": "acme"})
    partition = cli.json("list", "--tenant", "acme", "--user", "ada")["entries"][0]["partition"]
    assert partition == {"tenant": "acme", "layer": "user", "layer_id": "ada"}
    cli.ok("remember", "We deploy on Fridays.", "--team", "core")
    assert cli.json("list")["entries"] == []
    assert cli.json("list", "--team", "core", "--user", "ada")["entries"][0]["partition"]["layer"] == "team"


# -- as a process ------------------------------------------------------------------------------------------------


def run(
    *args: str, db: Path, stdin: bytes = b"", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    variables = {**os.environ, "WELLWORN_DB": str(db), "WELLWORN_EMBEDDER": "hash", **(env or {})}
    return subprocess.run([*WELLWORN, *args], input=stdin, capture_output=True, env=variables, check=False)


def test_piped_output_is_utf8_whatever_the_locale_and_has_no_colour(cli: Cli) -> None:
    assert run("--version", db=cli.db).stdout.startswith(b"wellworn 0.")
    cli.remember("Zoë mag Käse 🧀")
    answer = run("list", db=cli.db, env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"})
    assert answer.returncode == 0, answer.stderr
    assert "Zoë mag Käse 🧀" in answer.stdout.decode("utf-8")
    assert b"\x1b" not in answer.stdout
    coloured = run("list", db=cli.db, env={"FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "xterm-256color"}).stdout
    assert b"\x1b" in coloured
    assert b"\x1b[3" not in coloured  # NO_COLOR leaves weight, takes colour


@pytest.mark.slow
def test_a_closed_pipe_is_quiet(cli: Cli) -> None:
    cli.ok("remember", "--lines", stdin="".join(f"fact number {n} of many\n" for n in range(400)))
    variables = {**os.environ, "WELLWORN_DB": str(cli.db), "WELLWORN_EMBEDDER": "hash"}
    command = [*WELLWORN, "list", "--limit", "400"]
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


WAITING = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a suite run in the background ignores it
from wellworn.cli import main, entries
entries.text_from = lambda words: (print("ready", flush=True), time.sleep(60))
sys.argv = ["wellworn", "remember"]
main()
"""


def test_an_interrupt_leaves_quietly_with_130() -> None:
    process = subprocess.Popen([sys.executable, "-c", WAITING], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=300)
    assert (process.returncode, out, errors) == (130, b"", b"")


# -- hints -------------------------------------------------------------------------------------------------------


def hints() -> list[str]:
    """Every command that the package names in backticks."""
    source = Path(wellworn.__file__).parent
    found = [re.findall(r"`wellworn ([^`]+)`", path.read_text(encoding="utf-8")) for path in source.rglob("*.py")]
    return sorted({one for some in found for one in some} - {"--help"})


def test_every_hint_names_a_command_and_options_that_exist() -> None:
    for hint in hints():
        command = COMMANDS["wellworn"]
        words = hint.replace("{", " {").split()
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        assert not hasattr(command, "commands") or not words, hint
        known = {opt for param in command.params for opt in (*param.opts, *param.secondary_opts)}
        assert {word for word in words if word.startswith("--")} <= known, hint


@pytest.mark.parametrize(
    "command", [("recall", "tea"), ("supersede", "A", "B"), ("session", "show", "nope"), ("tasks", "retrieve", "x")]
)
def test_a_printed_command_works_when_it_is_pasted(cli: Cli, tmp_path: Path, command: tuple[str, ...]) -> None:
    where = ("--user", "ada lovelace", "--db", str(tmp_path / "other file.db"), "--tenant", "acme")
    ids = {"A": cli.remember("Ada likes tea.", *where), "B": cli.remember("Ada likes mate.", *where)}
    answer = cli(*(ids.get(word, word) for word in command), *where)
    (hint,) = re.findall(r"`wellworn ([^`]+)`", answer.err)
    assert cli.ok(*shlex.split(hint))
    again = cli(*(ids.get(word, word) for word in command), *where, "--json")
    assert again.code != 1 or hint in json.loads(again.err)["error"]["remedy"]


FAILING = """reason x --llm nobody | recall x --embedder nobody | chat --llm openai:some | chat --llm anthropic:some | tasks status
    | tasks list --kind 7 | jobs retry none | keys rotate none | reflect --session-id none | outcome none --cited 0
    | forget none --yes"""


def test_no_remedy_is_in_words_of_python(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    cli.remember("Ada likes tea.")
    for line in FAILING.split("|"):
        said = cli(*line.split()).err
        assert said, line
        assert not re.search(r"\w\(|=…|\ba Model\b|an Embedder|callable|ReasoningBank|\bScope|scopes", said), said
