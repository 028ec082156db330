"""`wellworn chat`: what a person reads, with a model and without one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from .conftest import LIVES, Cli


def said(cli: Cli, *lines: str, options: tuple[str, ...] = ()) -> list[str]:
    """What the chat answers, line by line."""
    out = cli.ok("chat", *options, stdin="\n".join([*lines, "/quit", ""])).out
    return [line for line in out.splitlines() if not line.startswith("you> ")]


GONE = "There is nothing to take back. What is forgotten is gone for good."


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_log_of_a_piped_chat_holds_both_sides(cli: Cli, options: tuple[str, ...]) -> None:
    spoken = "My dentist is Dr. Holm.\n\nWho is my dentist?\n/why\n/quit\n"
    answer = cli.ok("chat", *options, stdin=spoken)
    log = (answer.err if options else answer.out).splitlines()
    assert [line for line in log if line.startswith("you> ")] == [
        "you> My dentist is Dr. Holm.",
        "you> Who is my dentist?",
        "you> /why",
    ]
    assert log[log.index("you> Who is my dentist?") + 1] == "You told me today: “My dentist is Dr. Holm.”"


def test_a_piped_chat_refuses_what_is_not_utf_8(cli: Cli) -> None:
    answer = cli("chat", stdin="Ich wohne in München.\n".encode("latin-1"))
    assert answer.code == 2
    assert "standard input: is not UTF-8 at byte 14" in answer.err


# -- with a model ------------------------------------------------------------------------------------------------


def test_a_chat_recalls_cites_and_becomes_memories(cli: Cli, scripted: Any) -> None:
    model = scripted(chat=["Noted!", "In Oslo [0]."], extract=[LIVES])
    lines = said(cli, "I live in Oslo.", "Where do I live?", options=("--llm", model, "--session-id", "c1"))
    assert lines[:2] == ["Noted!", "In Oslo."]
    turns = [turn["text"] for turn in cli.json("session", "show", "c1")["turns"]]
    assert turns == ["I live in Oslo.", "Noted!", "Where do I live?", "In Oslo."]
    assert [entry["text"] for entry in cli.json("list", "--kind", "fact")["entries"]] == ["The user lives in Oslo."]
    assert cli.json("learning", "status")["outcomes"] == 1
    assert {tuple(one["key"]) for one in cli.json("admin", "costs")["spent"]} == {
        ("chat", "scripted"),
        ("extract", "scripted"),
    }


def test_only_what_the_model_was_shown_is_judged(cli: Cli, scripted: Any) -> None:
    for number in range(9):
        cli.ok("remember", f"Ada's bicycle number {number} is {'very ' * 190}green.")
    model = scripted(chat=["Green. [0]"])
    said(cli, "Which bicycle?", options=("-k", "2", "--llm", model, "--session-id", "c2"))
    assert cli.json("learning", "status")["outcomes"] == 1


def test_a_model_that_fails_does_not_end_the_chat(cli: Cli, scripted: Any) -> None:
    lines = said(cli, "One.", "Two.", options=("--llm", scripted(chat=[]), "--session-id", "c1"))
    assert "\n".join(lines).count("The model did not answer") == 2
    assert len(cli.json("session", "show", "c1")["turns"]) == 2


# -- without one -------------------------------------------------------------------------------------------------


def test_without_a_model_it_answers_from_memory_with_the_source(cli: Cli) -> None:
    cli.ok("session", "add", "user", "My bicycle is a green Brompton.", "--session-id", "s", "--at", "2026-03-03")
    (answer,) = said(cli, "Which bicycle is mine?")
    assert answer.startswith("You told me on 3 March")
    assert answer.endswith(": “My bicycle is a green Brompton.”")


def test_statements_are_acknowledged_and_what_it_does_not_know_it_says(cli: Cli) -> None:
    spoken = ["My dentist is Dr. Holm.", "Who is my dentist?", "Who cuts the hedge?", "Thanks!"]
    unknown = "I do not know that. Tell me, and I will remember it."
    dentist = "You told me today: “My dentist is Dr. Holm.”"
    lines = said(cli, *spoken, options=("--session-id", "c1"))
    assert lines == ["Noted.", dentist, unknown, "Any time."]
    assert [turn["text"] for turn in cli.json("session", "show", "c1")["turns"]] == spoken  # not its own answers
    assert said(Cli(cli.db.with_name("empty.db")), "Who cuts the hedge?")[0].startswith("I do not know that.")
    answer = cli.ok("chat", "--json", stdin="My tea is oolong.\n/quit\n")
    assert answer.json["turns"] == 1
    assert "Noted." in answer.err
    assert "I will remember:" in cli.ok("chat", stdin="My bike is red.\n").err


def test_a_statement_that_changes_something_says_what(cli: Cli) -> None:
    said(cli, "I live in Oslo.")
    first, second = said(cli, "I moved to Bergen last week.", "My tea is oolong.")
    assert first.startswith("Noted. So this no longer holds: “")
    assert "Oslo" in first
    assert second == "Noted."
    third = said(cli, "My husband is Tiago and we have a cat called Poes.", "Poes died on Sunday.", "Where do I live?")
    part = "Noted. So part of this no longer holds: “My husband is Tiago and we have a cat called Poes.”"
    assert third[1] == f"{part} (/undo if it does)"


@pytest.mark.parametrize("asked", ["What do you know about me?", "Tell me everything you know about me."])
def test_what_holds_is_told_when_all_is_asked_for(cli: Cli, asked: str) -> None:
    assert said(cli, asked)[0] != "You told me:"  # there is nothing yet
    said(cli, "I live in Oslo.", "I'm allergic to nuts.", "I moved to Bergen.")
    for _ in range(2):  # nor is the question remembered
        assert said(cli, asked) == ["You told me:", "- I moved to Bergen.", "- I'm allergic to nuts."]
    assert said(cli, "What did Clara say?") == ["I do not know that. Tell me, and I will remember it."]


def test_what_is_known_about_something_is_told(cli: Cli) -> None:
    said(cli, "We have a cat called Poes.", "My tea is oolong.")
    asked = ["Tell me about my cat.", "What did I tell you about Poes?", "Do you remember my cat?"]
    assert said(cli, *asked) == ["You told me today: “We have a cat called Poes.”"] * 3


def test_why_says_it_in_words_without_ids_and_tables(cli: Cli) -> None:
    entry = cli.remember("My dentist is Dr. Holm.")
    lines = said(cli, "/why", "Who is my dentist?", "Thanks!", "/why", "Who cuts the hedge?", "/why")
    assert lines[0] == "You have not asked me anything yet."
    reasons = lines[lines.index("For “Who is my dentist?” I found this:") :]
    assert reasons[1].endswith("“My dentist is Dr. Holm.”")
    assert reasons[2].startswith("  Because it has your words")
    assert any("“Who cuts the hedge?”" in line for line in reasons)
    assert not any(sign in line for line in lines for sign in ("0.", "terms", "┃", entry[:8]))


def test_forgetting_asks_first_and_is_for_good(cli: Cli) -> None:
    said(cli, "My dentist is Dr. Holm.", "My tea is oolong.")
    lines = said(cli, "/forget my dentist", "no", "Who is my dentist?", "/forget", "yes", "Who is my dentist?")
    assert lines[1:4] == ["Forget this for good? (yes or no)", "Kept.", "You told me today: “My dentist is Dr. Holm.”"]
    assert lines[6] == "Forgotten."
    assert "Holm" not in lines[7]
    everything = json.dumps(cli.json("list"))
    assert "Holm" not in everything
    assert "oolong" in everything
    assert said(cli, "/forget")[0].startswith("There is nothing to forget.")


@pytest.mark.parametrize(
    ("versions", "words", "question"),
    [
        (["My rent is 650 euros.", "My rent is now 720."], "my rent", "How much is my rent?"),
        (["I live in Oslo.", "I moved to Bergen.", "I moved to Rome last week."], "where I live", "Where do I live?"),
    ],
)
def test_what_is_forgotten_goes_with_what_it_replaced(cli: Cli, versions: list[str], words: str, question: str) -> None:
    said(cli, *versions)
    lines = said(cli, f"/forget {words}", "yes", question)
    older = "1 older version" if len(versions) == 2 else f"{len(versions) - 1} older versions"
    assert lines[0].endswith(f"“{versions[-1]}”")
    assert lines[1:] == [
        *(f"- before: “{one}”" for one in reversed(versions[:-1])),
        f"Forget this and the {older} for good? (yes or no)",
        "Forgotten.",
        "I do not know that. Tell me, and I will remember it.",
    ]
    assert not any(one in json.dumps(cli.json("list")) for one in versions)


def test_what_something_else_replaced_too_is_kept(cli: Cli) -> None:
    old, new, other = map(cli.remember, ("Mia pays 650.", "Mia pays 720.", "Mia pays Tom."))
    for one in (new, other):
        cli.ok("link", one, "supersedes", old)
    assert said(cli, "/forget Mia pays 720", "yes")[1] == "Forget this for good? (yes or no)"
    assert [entry["id"] for entry in cli.json("list")["entries"]] == [old, other]


NOT_TO_BE_KEPT = (
    "my phone number is 555 0101, forget it",
    "Off the record: my phone number is 555 0101.",
    "My phone number is 555 0101. Don't save that anywhere!",
    "my phone number is 555 0101. don’t remember that, please",
    "My phone number is 555 0101. Do not write this down.",
)
ABOUT_FORGETTING = (
    "Forget it is what my dentist Kim always says.",
    "My wife's birthday is 4 May, don't forget it!",
    "My dentist is Kim, I will never forget that.",
    "Forget-me-nots are my favourite flowers.",
    "I always forget my keys.",
    "Forget the old plan, we meet on Friday.",
    "Don't forget my keys",
)


def test_what_is_not_to_be_kept_is_not_kept(cli: Cli) -> None:
    assert said(cli, *NOT_TO_BE_KEPT) == ["I have not kept that."] * len(NOT_TO_BE_KEPT)
    assert cli.json("list")["entries"] == []
    said(cli, "My phone number is 555 0101.", "Please forget that.")  # a mere wish takes back the last statement
    assert "0101" not in json.dumps(cli.json("list"))


def test_words_about_forgetting_are_kept(cli: Cli) -> None:
    for text in ABOUT_FORGETTING:
        assert said(cli, text)[0].startswith("Noted."), text


def test_what_fits_nothing_is_not_forgotten(cli: Cli) -> None:
    said(cli, "My dentist is Dr. Holm.", "My tea is oolong.")
    expected = "Nothing that I remember fits “football”. Say what, as in /forget my address."
    assert said(cli, "/forget football") == [expected]
    lines = said(cli, "Who is my dentist?", "Who cuts the hedge?", "/forget")  # the last answer rests on nothing
    assert lines[-1] == "There is nothing to forget. Say what, as in /forget my address."


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("What is my tea?", "You told me today: “My tea is oolong.”"),
        ("/forgt", "I do not know /forgt; /help lists what I know."),
        ("yes, I live in Oslo", "Noted."),
    ],
)
def test_a_line_that_is_no_answer_keeps_the_entry_and_is_answered(cli: Cli, line: str, expected: str) -> None:
    said(cli, "My dentist is Dr. Holm.", "My tea is oolong.")
    lines = said(cli, "Who is my dentist?", "/forget", line, "/why")
    assert lines[3:5] == ["Kept, as you did not say yes.", expected]
    assert f"For “{line if line.startswith('What') else 'Who is my dentist?'}” I found this:" in lines
    assert "Holm" in json.dumps(cli.json("list"))


@pytest.mark.parametrize(
    "wish", ["/forget my dentist", "Please forget that my dentist is Dr. Holm", "delete my dentist"]
)
def test_a_wish_to_forget_is_answered_with_yes_or_no_as_people_write_them(cli: Cli, wish: str) -> None:
    said(cli, "My dentist is Dr. Holm.")
    for answer, expected in (("No!", "Kept."), ("nah", "Kept."), ("yes, forget it", "Forgotten.")):
        assert said(cli, wish, answer)[1:] == ["Forget this for good? (yes or no)", expected]
    assert not cli.json("list")["entries"], "nor is the wish kept"


def test_forgetting_everything_has_its_command(cli: Cli) -> None:
    expected = "`wellworn forget --everything --user leo` forgets all that you told me."
    wishes = ["/forget everything", "forget everything about me", "/forget me"]
    assert said(cli, *wishes, options=("--user", "leo")) == [expected] * 3


@pytest.mark.parametrize(
    ("old", "new", "question"),
    [
        ("I live in Oslo.", "I moved to Bergen.", "Where do I live?"),
        ("My rent is 650 euros.", "My rent is now 720.", "How much is my rent?"),
    ],
)
def test_undo_takes_the_new_back_so_that_the_old_holds_again(cli: Cli, old: str, new: str, question: str) -> None:
    said(cli, old)
    lines = said(cli, new, "Thanks!", "/undo", question, "/undo")
    assert lines[2:] == [f"Taken back: “{new}”", f"You told me today: “{old}”", GONE]


def test_what_is_forgotten_is_not_taken_back(cli: Cli) -> None:
    assert said(cli, "My tea is oolong.", "We drive a Skoda.", "/forget the Skoda", "yes", "/undo")[-1] == GONE
    assert "oolong" in json.dumps(cli.json("list"))


def test_what_holds_again_still_does_when_the_conversation_ends(cli: Cli) -> None:
    said(cli, "I live in Oslo.")
    said(cli, "I moved to Bergen.", "/undo")
    assert not cli.json("list", "--state", "superseded")["entries"]
    assert any("Oslo" in line for line in said(cli, "Where do I live?"))


def test_help_and_what_is_no_command(cli: Cli) -> None:
    lines = said(cli, "/help", "/dance")
    assert {"/why", "/forget", "/undo", "/quit"} <= {line.split()[0] for line in lines}
    assert lines[-1] == "I do not know /dance; /help lists what I know."


@pytest.mark.parametrize("model", [False, True])
def test_what_is_forgotten_is_forgotten_in_this_conversation_too(cli: Cli, scripted: Any, model: bool) -> None:
    asks = ["My dentist is Dr. Holm.", "My tea is oolong.", "Is Holm my dentist?", "/forget", "yes"]
    replies = scripted(chat=["Noted.", "Noted.", "Yes, Holm is. [0]"], extract=[{"extracted_memories": []}])
    options = ("--llm", replies) if model else ()
    answer = cli.ok("chat", "--session-id", "c1", *options, stdin="\n".join([*asks, "/quit", ""]))
    assert "Forgotten." in answer.out
    assert "Holm" not in answer.err  # what it will remember
    assert "Holm" not in json.dumps([cli.json("session", "show", "c1"), cli.json("list", "--limit", "100")])
    assert b"Holm" not in cli.db.read_bytes()
    assert "oolong" in json.dumps(cli.json("session", "show", "c1"))


def test_what_is_typed_at_a_terminal_can_be_edited(tmp_path: Path) -> None:
    pytest.importorskip("readline")
    ours, theirs = pytest.importorskip("pty").openpty()
    program = [sys.executable, "-m", "wellworn", "chat", "--db", str(tmp_path / "memory.db")]
    env, shown = {**os.environ, "TERM": "xterm", "INPUTRC": os.devnull, "WELLWORN_EMBEDDER": "hash"}, b""
    with subprocess.Popen(program, stdin=theirs, stdout=theirs, stderr=theirs, env=env):
        os.close(theirs)
        for typed in (b"I prefer ta.\x1b[D\x1b[De\r", b"/quit\r"):  # twice to the left
            while not shown.endswith(b"you> "):
                shown += os.read(ours, 1024)
            os.write(ours, typed)
            shown += b"\n"
        with suppress(OSError):  # on Linux reading fails when the program has ended
            while part := os.read(ours, 1024):
                shown += part
    os.close(ours)
    assert "The user prefers tea." in shown.decode()
