"""remember, edit, link, supersede, forget."""

from __future__ import annotations

import shlex

import pytest

from .conftest import Cli


def test_remember_needs_nothing_but_a_text(cli: Cli) -> None:
    answer = cli.ok("remember", "Ada", "prefers", "tokio.")
    (entry_id,) = answer.out.split()
    entry = cli.json("show", entry_id)["entry"]
    assert entry["text"] == "Ada prefers tokio."
    assert entry["partition"] == {"tenant": "default", "layer": "user", "layer_id": "me"}
    assert "Remembered 1 entry" in answer.err


def test_remember_keeps_what_is_said_about_the_text(cli: Cli) -> None:
    about = (
        "--kind preference --tag rust --tag async --title Runtimes --session-id s1 --at 2026-01-02 --trust untrusted"
    )
    entry = cli.json("show", cli.remember("Ada prefers tokio.", *about.split()))["entry"]
    assert (entry["kind"], entry["tags"], entry["title"]) == ("preference", ["rust", "async"], "Runtimes")
    assert (entry["session_id"], entry["at"], entry["trust"]) == ("s1", "2026-01-02T00:00:00Z", "untrusted")


def test_remember_reads_standard_input_as_a_text_or_line_by_line(cli: Cli) -> None:
    for dash in ([], ["-"]):
        assert cli.json("remember", *dash, stdin="Grüße aus Zürich ✓\n")["ids"]
    assert [e["text"] for e in cli.json("list")["entries"]] == ["Grüße aus Zürich ✓"]
    for stdin in ("", "  \n ", b"\xff\xfe broken", b"nul \x00 here"):
        answer = cli("remember", "-", stdin=stdin)
        assert (answer.code, answer.err.startswith("wellworn: "), answer.err.count("\n")) == (2, True, 1)
    cli.ok("forget", "--everything", "--user", "me", "--yes")
    ids = cli.json("remember", "--lines", stdin="one fact\n\nanother\u2028fact\r\na third\n")["ids"]
    assert len(ids) == 3
    assert [e["text"] for e in cli.json("list")["entries"]] == ["one fact", "another\u2028fact", "a third"]


def test_edit_changes_and_keeps_history(cli: Cli) -> None:
    entry_id = cli.remember("Ada prefers tokio.", "--tag", "rust")
    edited = cli.json("edit", entry_id, "--text", "Ada prefers smol.", "--kind", "preference", "--tag", "async")
    assert (edited["text"], edited["kind"], edited["tags"]) == ("Ada prefers smol.", "preference", ["async"])
    edited = cli.json("edit", entry_id, "--no-tags", "--text", "-", stdin="Ada prefers none.")
    assert (edited["text"], edited["tags"]) == ("Ada prefers none.", [])
    versions = [v["entry"]["text"] for v in cli.json("show", entry_id, "--history")["history"]]
    assert versions == ["Ada prefers tokio.", "Ada prefers smol.", "Ada prefers none."]
    for change, problem in (("--tag x --no-tags", "give one of them"), ("", "nothing to change"), ("--kind x", "'x'")):
        answer = cli("edit", entry_id, *change.split())
        assert (answer.code, problem in answer.err) == (2, True)


def test_link_and_unlink(cli: Cli) -> None:
    a, b = cli.remember("Ada writes Rust."), cli.remember("Ada prefers tokio.")
    link = cli.json("link", a, "supports", b)
    assert (link["source"], link["target"], link["type"], link["automatic"]) == (a, b, "supports", False)
    assert "supports" in [x["type"] for x in cli.json("show", b)["links"]]
    assert cli.json("unlink", a, "supports", b) == {"removed": True}
    assert cli("unlink", a, "supports", b).code == 1
    assert cli("link", a, "admires", b).code == 2


def test_supersede_hides_the_old_entry_from_recall_and_is_taken_back_as_it_says(cli: Cli) -> None:
    old = cli.remember("Ada lives in Paris.", "--at", "2025-01-01")
    new = cli.remember("Ada lives in Rome.", "--at", "2026-01-01")
    undo = shlex.split(cli.ok("supersede", old, new).err.split("`")[1])
    hits = cli.json("recall", "where does Ada live?")["hits"]
    assert [hit["entry"]["id"] for hit in hits] == [new]
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


def test_forget_says_that_a_word_is_no_id_before_it_asks(cli: Cli) -> None:
    cli.remember("Ada likes mushrooms and tea.")
    answer = cli("forget", "tea")
    assert (answer.code, "tea" in answer.err, "--yes" in answer.err) == (1, True, False)


def test_forget_says_that_older_versions_are_kept(cli: Cli) -> None:
    old, new = cli.remember("Mia pays 650."), cli.remember("Mia pays 720.")
    cli.ok("supersede", old, new)
    answer = cli.ok("forget", new, "--yes", "--user", "me")
    assert f"to remove that too: `wellworn forget {old}" in answer.err
    assert "still kept" not in cli.ok("forget", old, "--yes").err


def test_forget_asks_on_a_terminal_and_elsewhere_wants_yes(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    entry_id = cli.remember("Ada likes tea.")
    answer = cli("forget", entry_id)
    assert (answer.code, "--yes" in answer.err) == (2, True)
    monkeypatch.setattr("wellworn.cli.edge.can_ask", lambda: True)
    for reply, left, code in (("n\n", 1, 1), ("y\n", 0, 0)):
        answer = cli("forget", entry_id, stdin=reply)
        assert (answer.code, "for good?" in answer.err) == (code, True)
        assert cli.json("admin", "stats")["entries"] == left
    for args in ([], ["some-id", "--everything"], ["--session-id", "s", "--everything"]):
        answer = cli("forget", *args, "--yes")
        assert (answer.code, "needs one of" in answer.err) == (2, True)
