"""wellworn connect: settings of other programs get our server and keep everything else, byte for byte."""

from __future__ import annotations

import json
import shlex
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from contract.few import few
from wellworn.cli.program import program
from wellworn.doors.clients import CLIENTS, parsed, with_json, without_json

FILES = {
    "claude-code": (".mcp.json", ".claude/settings.json"),
    "cursor": (".cursor/mcp.json",),
    "vscode": (".vscode/mcp.json",),
    "codex": (".codex/config.toml", ".codex/hooks.json"),
    "claude-desktop": ("home/.config/Claude/claude_desktop_config.json",),
}
HOME_FILES = {
    "claude-code": (".claude.json", ".claude/settings.json"),
    "cursor": (".cursor/mcp.json",),
    "vscode": (".config/Code/User/mcp.json",),
    "codex": (".codex/config.toml", ".codex/hooks.json"),
    "claude-desktop": (".config/Claude/claude_desktop_config.json",),
}
OTHER = '{"command": "npx", "args": ["-y", "some-server"]}'
JSON_TEXTS = {
    "none": None,
    "empty object": "{}",
    "empty object on a line": "{}\n",
    "nothing but a line": "\n",
    "empty servers": '{"mcpServers": {}, "servers": {}, "hooks": {}}\n',
    "other settings": '{\n    "theme": "dark",\n    "list": [1, 2]\n}\n',
    "other servers": f'{{\n\t"mcpServers": {{\n\t\t"other": {OTHER}\n\t}},\n\t"servers": {{"other": {OTHER}}},\n\t"x": 1\n}}\n',
    "no servers": '{"mcpServers": {}, "servers": {}, "hooks": {}, "last": true}',
    "other hooks": '{"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "date"}]}], "Stop": []}}\n',
    "comments": '// mine\r\n{\r\n  "a": 1, // one\r\n  /* "mcpServers": {} */\r\n  "b": [2,],\r\n}\r\n',
    "only a comment": "{ // nothing yet\n}\n",
}
TOML_TEXTS = {
    "none": None,
    "other settings": '# mine\nmodel = "o9"  # best\n\n[mcp_servers.other]\ncommand = "npx"\n',
    "no line end": "[features]\nhooks = true",
    "windows": 'model = "o9"\r\n',
    "named in a text": 'about = """\n[mcp_servers.wellworn]\n"""\n',
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder with a home of its own inside; nothing outside is touched."""
    ours = ("WELLWORN_DB", "WELLWORN_USER", "WELLWORN_TENANT")
    for name in (*ours, "CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def connect(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(program("connect"), ["connect", *arguments])
    assert done.exit_code == code, done.output
    return done.output


def content(place: Path) -> dict[str, bytes]:
    return {path.relative_to(place).as_posix(): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def server_in(file: Path, *path: str) -> Any:
    text = file.read_text(encoding="utf-8")
    value = tomllib.loads(text) if file.suffix == ".toml" else parsed(text).value
    for name in path:
        value = value[name]
    return value


@pytest.mark.parametrize("where", ["project", "home"])
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("before", few(JSON_TEXTS, 2))
def test_connect_adds_to_what_is_there_and_remove_restores_it(
    place: Path, client: str, before: str, where: str
) -> None:
    files = [place / name for name in FILES[client]]
    if where == "home":
        files = [place / "home" / name for name in HOME_FILES[client]]
    for file in files:
        text = TOML_TEXTS.get(before, TOML_TEXTS["named in a text"]) if file.suffix == ".toml" else JSON_TEXTS[before]
        if text is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())
            file.chmod(0o600)
    at_first, options = content(place), ["--global"] if where == "home" else []

    connect(client, *options)
    added = content(place)
    ignore = f"{'home/' if where == 'home' or client == 'claude-desktop' else ''}.wellworn/.gitignore"
    assert {file for file in added if added[file] != at_first.get(file)} == {
        ignore,
        *(file.relative_to(place).as_posix() for file in files),
    }
    server = server_in(files[0], *CLIENTS[client].servers, "wellworn")
    assert [server["args"][-3], server["args"][-2]] == ["mcp", "--db"]
    assert Path(server["args"][-1]).is_absolute()
    assert Path(server["command"]).exists()
    if before != "none":
        assert oct(files[0].stat().st_mode & 0o777) == "0o600"
        if before == "other hooks" and CLIENTS[client].hooks:
            commands = [each["hooks"][0]["command"] for each in server_in(files[1], "hooks", "UserPromptSubmit")]
            assert commands[0] == "date"
            assert "hook pre-task" in commands[1]

    connect(client, *options)
    assert content(place) == added  # nothing is added twice
    connect(client, *options, "--db", "elsewhere.db", code=2)
    assert content(place) == added  # nor is anything replaced

    connect(client, *options, "--remove", "--db", "elsewhere.db")
    assert content(place) == at_first
    connect(client, *options, "--remove")
    assert content(place) == at_first


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("broken", ['{"mcpServers": ', '{"a": 1 "b": 2}', "[1, 2]", "key = = 1", '{"a": 1} x', "\xff"])
@pytest.mark.parametrize("remove", [False, True])
def test_a_broken_file_is_an_error_and_stays_as_it_is(place: Path, client: str, broken: str, remove: bool) -> None:
    file = place / FILES[client][-1]  # the last, so that a file before it must not be half done
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(broken.encode("latin-1"))
    before = content(place)
    answer = connect(client, *(["--remove"] if remove else []), code=2 if broken != "[1, 2]" or not remove else 0)
    assert content(place) == before
    assert remove or file.name in answer


def test_what_others_wrote_after_us_stays(place: Path) -> None:
    connect("cursor")
    file = place / ".cursor/mcp.json"
    value = json.loads(file.read_text())
    value["mcpServers"]["other"] = {"url": "https://example.com/mcp"}
    file.write_text(json.dumps({**value, "more": 1}))
    connect("cursor", "--remove")
    assert json.loads(file.read_text()) == {"mcpServers": {"other": {"url": "https://example.com/mcp"}}, "more": 1}

    connect("codex")
    toml = place / ".codex/config.toml"
    toml.write_text(toml.read_text() + '\n# of others\n[mcp_servers.other]\ncommand = "npx"\n')
    connect("codex", "--remove")
    assert toml.read_text() == '\n# of others\n[mcp_servers.other]\ncommand = "npx"\n'
    connect("codex")
    toml.write_text(toml.read_text().replace("args =", "# mine\n\nargs =") + "\n# of others\n[features]\n")
    connect("codex", "--remove")
    assert "wellworn" not in toml.read_text()
    assert toml.read_text().endswith("\n# of others\n[features]\n")
    toml.write_text('[mcp_servers]\nwellworn = { command = "mine" }\n')
    answer = connect("codex", "--remove", code=2)
    assert "not written as a table" in answer
    assert "take out by hand" in answer


@pytest.mark.parametrize("at", [0, 1])
def test_a_hook_of_others_in_our_group_stays(place: Path, at: int) -> None:
    connect("claude-code")
    file, other = place / ".claude/settings.json", {"type": "command", "command": "notify-send done"}
    value = json.loads(file.read_text())
    value["hooks"]["Stop"][0]["hooks"].insert(at, other)
    file.write_text(json.dumps(value))
    assert "Nothing to change." in connect("claude-code")
    value["hooks"]["Stop"] *= 2  # a copy of ours does not stay behind
    file.write_text(json.dumps(value))
    connect("claude-code", "--remove")
    assert json.loads(file.read_text())["hooks"]["Stop"] == [{"hooks": [other]}] * 2


def test_a_hook_of_another_program_in_a_folder_of_our_name_stays(place: Path) -> None:
    file = place / ".claude/settings.json"
    file.parent.mkdir()
    theirs = [{"hooks": [{"type": "command", "command": "cd ~/src/wellworn && make hook post-task"}]}]
    file.write_text(json.dumps({"hooks": {"Stop": theirs}}))
    connect("claude-code")
    connect("claude-code", "--remove")
    assert json.loads(file.read_text())["hooks"]["Stop"] == theirs


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"a": 1, // one\n  OURS\n}', '{"a": 1 // one\n}'),
        ('{"a": 1, // one\n  OURS}', '{"a": 1 // one\n  }'),
        ('{"a": 1, /* one */ OURS,\n}', '{"a": 1 /* one */ ,\n}'),
        ('{\n  OURS,\n  // two\n  "b": 2\n}', '{\n  // two\n  "b": 2\n}'),
        ('{\n  OURS // was\n  , "b": 2\n}', '{\n  // was\n   "b": 2\n}'),
        ("{\n  // none\n  OURS, // yet\n}", "{\n  // none\n   // yet\n}"),
    ],
)
def test_comments_of_others_around_ours_stay(before: str, after: str) -> None:
    text = before.replace("OURS", '"wellworn": {"command": "x"}')
    assert parsed(text).value
    assert without_json(text, ("wellworn",), lambda _: True) == after
    assert "wellworn" not in parsed(after).value


@pytest.mark.parametrize("client", CLIENTS)
def test_what_print_shows_can_be_pasted_into_the_files_it_names(place: Path, client: str) -> None:
    options = ["--global", "--user", "ada", "--llm", "ollama:llama3.2"]
    shown = connect(client, "--print", *options)
    asked = json.loads(connect(client, "--print", *options, "--json"))["files"]
    assert content(place) == {}
    connect(client, *options)
    written = {file: Path(file).read_text() for file in asked}
    assert asked == written
    assert shown == "".join(f"Add to {file}\n\n{text}\n" for file, text in written.items())
    assert all(word in shown for word in ("--user", "ada", "ollama:llama3.2"))


@pytest.mark.parametrize(
    ("client", "variable", "files"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", {".claude.json", "settings.json"}),
        ("codex", "CODEX_HOME", {"config.toml", "hooks.json"}),
    ],
)
def test_a_program_may_keep_its_settings_elsewhere(
    place: Path, monkeypatch: pytest.MonkeyPatch, client: str, variable: str, files: set[str]
) -> None:
    monkeypatch.setenv(variable, str(place / "moved"))
    connect(client, "--global")
    assert {*content(place / "moved")} == files
    assert {*content(place / "home")} == {".wellworn/.gitignore"}


@pytest.mark.parametrize("client", [name for name, client in CLIENTS.items() if client.hooks])
def test_the_hooks_run(place: Path, client: str) -> None:
    """An agent takes exit code 2 of a hook as a veto, so that a wrong option would stop it."""
    connect(client, "--user", "ada", "--llm", "rules", "--embedder", "hash")
    for event, groups in server_in(place / FILES[client][1], "hooks").items():
        line = shlex.split(groups[0]["hooks"][0]["command"])
        given = {"session_id": "s1", "prompt": "mend the build", "hook_event_name": event}
        done = CliRunner().invoke(program("hook"), line[line.index("hook") :], input=json.dumps(given))
        assert done.exit_code == 0, done.output
        assert "No such option" not in done.output


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--llm", "foo", "unknown model 'foo'"),
        ("--llm", "openai:", "unknown model 'openai:'"),
        ("--db", ":memory:", "an agent cannot open"),
        ("--db", "mysql://me:secret@host/db", "an agent cannot open"),
    ],
)
def test_what_no_agent_can_use_is_refused_before_anything_is_written(
    place: Path, option: str, value: str, words: str
) -> None:
    answer = connect("cursor", option, value, code=2)
    assert words in answer
    assert "secret" not in answer
    assert content(place) == {}
    assert "Nothing to change." in connect("cursor", "--remove", option, value)


def test_a_memory_is_kept_where_git_does_not_see_it_unless_there_is_one(place: Path) -> None:
    def db() -> str:
        return str(server_in(place / ".cursor/mcp.json", "mcpServers", "wellworn")["args"][-1])

    connect("cursor", "--db", "memory.db")  # somebody wants it here, though there is none yet
    assert db() == str(place / "memory.db")
    connect("cursor", "--remove")
    connect("cursor")
    assert db() == str(place / ".wellworn/memory.db")
    assert (place / ".wellworn/.gitignore").read_text() == "*\n"
    told = ["remember", "The tests run with make check.", "--embedder", "hash"]
    assert CliRunner().invoke(program("remember"), told).exit_code == 0
    assert (place / ".wellworn/memory.db").exists()  # commands of this folder find it, too
    connect("cursor", "--remove")
    assert (place / ".wellworn/.gitignore").exists()  # what is remembered stays, and stays ignored

    (place / "memory.db").touch()
    assert ".gitignore" in connect("cursor")
    assert db() == str(place / "memory.db")


@pytest.mark.parametrize("options", [[], ["--global"]])
def test_the_folder_stays_while_another_agent_uses_it(place: Path, options: list[str]) -> None:
    ignore = (place / "home" if options else place) / ".wellworn/.gitignore"
    connect("cursor", *options)
    connect("codex", *options)
    connect("cursor", *options, "--remove")
    assert ignore.exists()
    connect("codex", *options, "--remove")
    assert not ignore.parent.exists()


# -- the text itself -------------------------------------------------------------------------------------------------

names = st.text(st.characters(codec="utf-8"), max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=12,
)
PATH = ("mcpServers", "wellworn")


@given(st.dictionaries(names, values, max_size=4), st.sampled_from([None, 1, 4, "\t"]), st.booleans())
def test_any_json_gets_a_value_and_loses_it_again(value: dict[str, Any], indent: Any, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert parsed(text).value == value
    added = with_json(text, PATH, {"command": "x"})
    assert json.loads(added) == {**value, "mcpServers": {"wellworn": {"command": "x"}}}
    assert without_json(added, PATH, lambda _: True) == text


def test_a_file_that_cannot_be_written_is_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(source: Path, _target: Path) -> None:
        raise PermissionError(13, "Permission denied", str(source))

    monkeypatch.setattr("os.replace", refused)
    assert f"{place / '.mcp.json'}: Permission denied" in connect("claude-code", code=2)
    assert list(place.glob("*.tmp")) == list(place.glob(".*.tmp")) == []
