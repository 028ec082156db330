"""session add, list, show."""

from __future__ import annotations

import json

import pytest

from .conftest import Cli


def test_a_turn_can_be_recalled_at_once(cli: Cli) -> None:
    said = cli.json("session", "add", "user", "I ran the charity race", "--session-id", "s1", "--at", "2026-05-01")
    hit = cli.json("recall", "charity race")["hits"][0]["entry"]
    assert said == {"session_id": "s1", "ids": [hit["id"]]}
    assert (hit["session_id"], hit["turn_refs"], hit["kind"]) == ("s1", [0], "episode")
    assert hit["at"] == "2026-05-01T00:00:00Z"


def test_a_dialogue_comes_in_as_json_lines(cli: Cli) -> None:
    lines = [
        {"role": "user", "text": "I ran a race", "at": "2026-05-01T09:00"},
        {"role": "assistant", "text": "How far?"},
        {"role": "user", "text": "Five miles", "speaker": "Ada"},
    ]
    text = "\n\n".join(json.dumps(line) for line in lines)
    assert len(cli.json("session", "add", "--session-id", "s1", stdin=text)["ids"]) == 3
    turns = cli.json("session", "show", "s1")["turns"]
    assert [turn["text"] for turn in turns] == ["I ran a race", "How far?", "Five miles"]
    assert [turn["number"] for turn in turns] == [0, 1, 2]
    assert turns[0]["at"] == "2026-05-01T09:00:00Z"
    assert turns[2]["speaker"] == "Ada"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("not json", "line 2: is not JSON"),
        ("[1]", "line 2: is a list"),
        ('{"role": "user"}', "line 2: Object missing required field `text`"),
        ('{"role": "user", "text": 5}', "line 2: Expected `str`, got `int` - at `$.text`"),
        ('{"role": "user", "text": "x", "mood": "fine"}', "line 2: has unknown fields ['mood']"),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_added(cli: Cli, line: str, message: str) -> None:
    cli.remember("there already")
    answer = cli("session", "add", "--session-id", "s1", stdin='{"role": "user", "text": "fine"}\n' + line)
    assert answer.code == 2
    assert message in answer.err
    assert cli.json("session", "list") == {"sessions": []}


def test_a_bad_value_says_how_far_it_came(cli: Cli) -> None:
    text = '{"role": "user", "text": "fine"}\n{"role": "user", "text": "later", "at": "soon"}'
    answer = cli("session", "add", "--session-id", "s1", stdin=text)
    assert answer.code == 2
    assert "line 2" in answer.err
    assert "1 turns before it were added" in answer.err


def test_text_may_come_from_standard_input(cli: Cli) -> None:
    cli.ok("session", "add", "user", "--session-id", "s1", stdin="I baked bread")
    assert "I baked bread" in cli.ok("session", "show", "s1").out


def test_sessions_are_listed_one_a_line(cli: Cli) -> None:
    for session_id in ("monday", "tuesday"):
        said = ("--at", "2019-01-02T03:04", "--session-id", session_id)
        cli.ok("session", "add", "user", f"hello on {session_id}", *said)
    rows = [line.split() for line in cli.ok("session", "list").out.splitlines() if "day" in line]
    assert rows == [[name, "1", "2019-01-02", "03:04", "UTC"] for name in ("monday", "tuesday")]


def test_an_unknown_session_leaves_with_one(cli: Cli) -> None:
    cli.remember("there already")
    answer = cli("session", "show", "never")
    assert (answer.code, answer.out) == (1, "")
    assert "'never'" in answer.err
    assert cli.json("session", "list") == {"sessions": []}
