"""remember, edit, link, supersede, forget."""

from __future__ import annotations

import shlex

import pytest

from .conftest import Cli


def test_remember_needs_nothing_but_a_text(cli: Cli) -> None:
    answer = cli.ok("remember", "Ada prefers tokio.")
    (entry_id,) = answer.out.split()
    entry = cli.json("show", entry_id)["entry"]
    assert entry["text"] == "Ada prefers tokio."
    assert entry["partition"] == {"tenant": "default", "layer": "user", "layer_id": "me"}
    assert "Remembered 1 entry" in answer.err


def test_words_without_quotes_make_one_text(cli: Cli) -> None:
    cli.ok("remember", "Ada", "likes", "tea")
    assert [e["text"] for e in cli.json("list")["entries"]] == ["Ada likes tea"]


def test_remember_keeps_what_is_said_about_the_text(cli: Cli) -> None:
    about = (
        "--kind preference --tag rust --tag async --title Runtimes --session-id s1 --at 2026-01-02 --trust untrusted"
    )
    entry = cli.json("show", cli.remember("Ada prefers tokio.", *about.split()))["entry"]
    assert entry["kind"] == "preference"
    assert entry["tags"] == ["rust", "async"]
    assert entry["title"] == "Runtimes"
    assert entry["session_id"] == "s1"
    assert entry["at"] == "2026-01-02T00:00:00Z"
    assert entry["trust"] == "untrusted"


@pytest.mark.parametrize("dash", [[], ["-"]])
def test_remember_reads_standard_input(cli: Cli, dash: list[str]) -> None:
    cli.ok("remember", *dash, stdin="Grüße aus Zürich ✓\n")
    assert "Grüße aus Zürich ✓" in cli.json("list")["entries"][0]["text"]


def test_lines_make_one_entry_each(cli: Cli) -> None:
    ids = cli.json("remember", "--lines", stdin="one fact\n\nanother\u2028fact\r\na third\n")["ids"]
    assert len(ids) == 3
    assert [e["text"] for e in cli.json("list")["entries"]] == ["one fact", "another\u2028fact", "a third"]


@pytest.mark.parametrize("stdin", ["", "  \n ", b"\xff\xfe broken", b"nul \x00 here"])
def test_unusable_input_is_one_clear_line_and_stores_nothing(cli: Cli, stdin: str | bytes) -> None:
    cli.remember("there already")
    answer = cli("remember", "-", stdin=stdin)
    assert answer.code == 2
    assert answer.err.startswith("wellworn: ")
    assert answer.err.count("\n") == 1
    assert cli.json("admin", "stats")["entries"] == 1


def test_an_unknown_kind_names_the_kinds(cli: Cli) -> None:
    answer = cli("remember", "text", "--kind", "rumour")
    assert answer.code == 2
    assert "'rumour'" in answer.err
    assert "preference" in answer.err


def test_edit_changes_and_keeps_history(cli: Cli) -> None:
    entry_id = cli.remember("Ada prefers tokio.", "--tag", "rust")
    edited = cli.json("edit", entry_id, "--text", "Ada prefers smol.", "--kind", "preference", "--tag", "async")
    assert (edited["text"], edited["kind"], edited["tags"]) == ("Ada prefers smol.", "preference", ["async"])
    shown = cli.json("show", entry_id, "--history")
    assert [v["entry"]["text"] for v in shown["history"]] == ["Ada prefers tokio.", "Ada prefers smol."]


def test_edit_can_take_tags_away_and_read_its_text_from_stdin(cli: Cli) -> None:
    entry_id = cli.remember("Ada prefers tokio.", "--tag", "rust")
    edited = cli.json("edit", entry_id, "--no-tags", "--text", "-", stdin="Ada prefers smol.")
    assert (edited["text"], edited["tags"]) == ("Ada prefers smol.", [])


def test_edit_with_tags_and_without_is_refused(cli: Cli) -> None:
    entry_id = cli.remember("Ada prefers tokio.", "--tag", "rust")
    answer = cli("edit", entry_id, "--tag", "async", "--no-tags")
    assert (answer.code, "give one of them" in answer.err) == (2, True)
    assert cli.json("show", entry_id)["entry"]["tags"] == ["rust"]


def test_edit_without_a_change_says_so(cli: Cli) -> None:
    answer = cli("edit", cli.remember("Ada prefers tokio."))
    assert answer.code == 2
    assert "nothing to change" in answer.err


def test_link_and_unlink(cli: Cli) -> None:
    a, b = cli.remember("Ada writes Rust."), cli.remember("Ada prefers tokio.")
    link = cli.json("link", a, "supports", b)
    assert (link["source"], link["target"], link["type"], link["automatic"]) == (a, b, "supports", False)
    assert "supports" in [x["type"] for x in cli.json("show", b)["links"]]
    assert cli.json("unlink", a, "supports", b) == {"removed": True}
    assert cli("unlink", a, "supports", b).code == 1
    assert cli("link", a, "admires", b).code == 2


def test_supersede_hides_the_old_entry_from_recall(cli: Cli) -> None:
    old = cli.remember("Ada lives in Paris.", "--at", "2025-01-01")
    new = cli.remember("Ada lives in Rome.", "--at", "2026-01-01")
    assert cli.json("supersede", old, new)["state"] == "superseded"
    hits = cli.json("recall", "where does Ada live?")["hits"]
    assert [hit["entry"]["id"] for hit in hits] == [new]


def test_a_wrong_supersede_is_taken_back_as_it_says(cli: Cli) -> None:
    old = cli.remember("Ada lives in Paris.", "--at", "2025-01-01")
    new = cli.remember("Ada lives in Rome.", "--at", "2026-01-01")
    undo = shlex.split(cli.ok("supersede", old, new).err.split("`")[1])
    assert "holds again: Ada lives in Paris." in cli.ok(*undo[1:]).err
    entry = cli.json("show", old)["entry"]
    assert (entry["state"], entry["valid_to"]) == ("active", None)


# -- forget ------------------------------------------------------------------------------------------------------


def test_forget_by_id_prints_the_receipt(cli: Cli) -> None:
    gone, stays = cli.remember("Ada likes tea."), cli.remember("Bob likes coffee.")
    receipt = cli.json("forget", gone, "--yes")
    assert receipt["entries"] == 1
    assert receipt["ids"] == [gone]
    assert [e["id"] for e in cli.json("list")["entries"]] == [stays]
    assert cli("show", gone).code == 1


def test_forget_everything_of_one_person_leaves_the_other(cli: Cli) -> None:
    cli.ok("remember", "Ada likes tea.", "--user", "ada")
    cli.ok("remember", "Bob likes coffee.", "--user", "bob")
    receipt = cli.ok("forget", "--everything", "--user", "ada", "-y")
    assert "entries" in receipt.out
    assert cli.json("list", "--user", "ada")["entries"] == []
    assert len(cli.json("list", "--user", "bob")["entries"]) == 1


def test_forget_a_session_takes_its_turns(cli: Cli) -> None:
    cli.ok("session", "add", "user", "I ran a race", "--session-id", "s1")
    cli.ok("session", "add", "user", "I baked bread", "--session-id", "s2")
    receipt = cli.json("forget", "--session-id", "s1", "--yes")
    assert (receipt["entries"], receipt["turns"]) == (1, 1)
    assert cli.json("session", "list") == {"sessions": ["s2"]}


def test_what_is_not_there_is_one_line_and_exit_code_1(cli: Cli) -> None:
    cli.remember("Ada likes tea.")
    for command in (
        "forget --session-id nope --yes",
        "forget --everything --user nope --yes",
        "forget nope --yes",
        "admin erase --user nope --yes",
        "unlink nope supports nope",
        "session show nope",
        "outcome nope --none",
        "session end nope",
        "reflect --session-id nope",
        "tasks revoke nope",
    ):
        answer = cli(*command.split())
        assert (answer.code, answer.out, answer.err.count("\n")) == (1, "", 1), command
        assert "nope" in answer.err


@pytest.mark.parametrize("command", [("forget", "--everything"), ("admin", "erase")])
def test_a_person_whose_data_goes_must_be_named(cli: Cli, command: tuple[str, ...]) -> None:
    cli.remember("Ada likes tea.")
    for named in ((), ("--tenant", "default")):
        answer = cli(*command, "--yes", *named)
        assert (answer.code, answer.err.count("\n")) == (2, 1)
        assert "--user" in answer.err
    assert cli.json("admin", "stats")["entries"] == 1
    cli.ok(*command, "--yes", "--user", "me")
    assert cli.json("admin", "stats")["entries"] == 0


@pytest.mark.parametrize("word", ["mushrooms", "tea"])
def test_forget_says_that_a_word_is_no_id_before_it_asks(cli: Cli, word: str) -> None:
    cli.remember("Ada likes mushrooms and tea.")
    answer = cli("forget", word)
    assert answer.code == 1
    assert word in answer.err
    assert "--yes" not in answer.err


def test_forget_says_that_older_versions_are_kept(cli: Cli) -> None:
    old, new = cli.remember("Mia pays 650."), cli.remember("Mia pays 720.")
    cli.ok("supersede", old, new)
    answer = cli.ok("forget", new, "--yes", "--user", "me")
    assert f"to remove that too: `wellworn forget {old}" in answer.err
    assert "still kept" not in cli.ok("forget", old, "--yes").err


def test_forget_without_a_terminal_wants_yes(cli: Cli) -> None:
    entry_id = cli.remember("Ada likes tea.")
    answer = cli("forget", entry_id)
    assert answer.code == 2
    assert "--yes" in answer.err
    assert cli.json("admin", "stats")["entries"] == 1


@pytest.mark.parametrize(("reply", "left", "code"), [("n\n", 1, 1), ("y\n", 0, 0)])
def test_forget_asks_on_a_terminal(cli: Cli, monkeypatch: pytest.MonkeyPatch, reply: str, left: int, code: int) -> None:
    entry_id = cli.remember("Ada likes tea.")
    with monkeypatch.context() as patched:
        patched.setattr("wellworn.cli.edge.can_ask", lambda: True)
        answer = cli("forget", entry_id, stdin=reply)
    assert answer.code == code
    assert "for good?" in answer.err
    assert cli.json("admin", "stats")["entries"] == left


@pytest.mark.parametrize("args", [[], ["some-id", "--everything"], ["--session-id", "s", "--everything"]])
def test_forget_wants_exactly_one_way_to_say_what(cli: Cli, args: list[str]) -> None:
    cli.remember("Ada likes tea.")
    answer = cli("forget", *args, "--yes")
    assert answer.code == 2
    assert "needs one of" in answer.err
    assert cli.json("admin", "stats")["entries"] == 1
