"""recall, show, list, stats, events: what they print, for people and for programs."""

from __future__ import annotations

import json
import os
from dataclasses import fields
from pathlib import Path

import pytest

from wellworn import Entry, Reasoning
from wellworn.cli.render import likelihood
from wellworn.cli.target import added_options, pasteable

from .conftest import Cli

ENTRY_KEYS = {each.name for each in fields(Entry)}


@pytest.fixture
def filled(cli: Cli) -> Cli:
    cli.remember("Ada prefers tokio over async-std.", "--kind", "preference", "--tag", "rust", "--at", "2026-01-01")
    cli.remember("Bob keeps bees in his garden.", "--kind", "fact", "--at", "2026-02-01")
    cli.remember("The build server is called Hal.", "--kind", "fact", "--tag", "ops", "--at", "2026-03-01")
    return cli


def texts(answer: dict[str, list[dict[str, dict[str, str]]]]) -> list[str]:
    return [hit["entry"]["text"] for hit in answer["hits"]]


def test_recall_answers_with_one_document(filled: Cli) -> None:
    answer = filled.json("recall", "which async runtime does Ada like?", "-k", "2")
    assert set(answer) == {"id", "query", "hits", "route", "cost", "searched", "trace", "confidence", "digest", "cut"}
    assert answer["searched"] == 3
    assert texts(answer)[0].startswith("Ada prefers tokio")
    hit = answer["hits"][0]
    assert set(hit) == {"score", "entry", "explanation", "outdated", "sentence", "replaced_by"}
    assert set(hit["entry"]) == ENTRY_KEYS
    assert set(hit["explanation"][0]) == {"name", "value", "weight"}
    assert sum(factor["value"] * factor["weight"] for factor in hit["explanation"]) == pytest.approx(hit["score"])


def test_recall_filters(filled: Cli) -> None:
    for options, expected in {
        "--kind fact": 2,
        "--kind fact --kind preference": 3,
        "--tag ops": 1,
        "--since 2026-02-01": 2,
        "--until 2026-02-01": 1,
        "--layer user": 3,
        "--deadline 600": 3,
    }.items():
        assert filled.json("recall", "Ada Bob server", *options.split())["searched"] == expected, options


def test_recall_sees_what_was_valid_at_a_time(cli: Cli) -> None:
    old = cli.remember("Ada lives in Paris.", "--at", "2020-01-01")
    cli.ok("supersede", old, cli.remember("Ada lives in Rome.", "--at", "2022-01-01"))
    assert texts(cli.json("recall", "where does Ada live?")) == ["Ada lives in Rome."]
    assert texts(cli.json("recall", "where does Ada live?", "--as-of", "2021-01-01")) == ["Ada lives in Paris."]


def test_explain_prints_every_factor(filled: Cli) -> None:
    hit = filled.json("recall", "tokio", "-k", "1")["hits"][0]
    shown = filled.ok("recall", "tokio", "-k", "1", "--explain").out
    for factor in [one for one in hit["explanation"] if one["value"] * one["weight"]]:
        assert factor["name"] in shown
        assert f"{factor['value']:.4f} × " in shown
        assert f"{factor['value'] * factor['weight']:+.4f}" in shown


def test_recall_shows_a_table_or_the_fenced_block_alone(filled: Cli) -> None:
    answer = filled.ok("recall", "bees", "-k", "1")
    assert "Bob keeps bees in his garden." in answer.out
    assert filled.json("recall", "-k", "1", stdin="bees\n")["hits"][0]["entry"]["id"] in answer.out
    assert "1 of 3 entries" in answer.err
    block = filled.ok("recall", "bees", "-k", "1", "--context").out
    assert block.startswith("<memories")
    assert block.endswith("</memories>\n")
    assert filled.json("recall", "bees", "-k", "1", "--context")["context"] == block.rstrip("\n")
    assert "No entry matches" in filled.ok("recall", "bees", "--kind", "strategy").err


def test_bad_options_are_refused_in_one_line(cli: Cli) -> None:
    cli.remember("Bob keeps bees in his garden.")
    assert "max_tokens" in cli("assemble", "Ada", "--max-tokens", "-1").err
    for options in ("-k 0", "--since yesterday-ish", "--kind rumour", "--layer planet", "--deadline -1"):
        answer = cli("recall", "bees", *options.split())
        assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1), options
        assert answer.err.startswith("wellworn: ")


def test_list_pages_and_filters(filled: Cli) -> None:
    everything = filled.json("list")["entries"]
    assert len(everything) == 3
    assert set(everything[0]) == ENTRY_KEYS
    assert filled.json("list", "--limit", "1") == {"entries": everything[:1], "more": True}
    assert "--limit 10 shows more" in filled.ok("list", "--limit", "1").err
    assert "shows more" not in filled.ok("list", "--limit", "3").err
    assert [e["kind"] for e in filled.json("list", "--kind", "fact")["entries"]] == ["fact", "fact"]
    assert len(filled.json("list", "--tag", "ops", "--state", "active")["entries"]) == 1
    assert "Bob keeps bees" in filled.ok("list").out


def test_show_prints_evidence_and_links(filled: Cli) -> None:
    a, b, _ = [entry["id"] for entry in filled.json("list")["entries"]]
    filled.ok("link", a, "supports", b)
    shown = filled.ok("show", a, "--history").out
    for expected in ("Ada prefers tokio", "evidence", "user me (tenant default)", "supports", "version"):
        assert expected in shown


def test_another_user_or_tenant_sees_nothing(filled: Cli) -> None:
    entry_id = filled.json("list")["entries"][0]["id"]
    for args in (("show", "no-such-id"), ("show", entry_id, "--user", "eve")):
        answer = filled(*args)
        assert (answer.code, answer.out, args[1] in answer.err) == (1, "", True)
    assert filled.json("recall", "tokio", "--tenant", "other")["hits"] == []
    answer = filled.ok("list", "--user", "nobody")
    assert (answer.out, "No entries for user nobody" in answer.err) == ("", True)


def test_an_id_may_be_shortened_to_a_beginning_of_its_own(filled: Cli) -> None:
    ids = [entry["id"] for entry in filled.json("list")["entries"]]
    first, second, third = ids
    begins = [second[:n] for n in range(len(second))]
    shared = max((b for b in begins if first.startswith(b)), key=len)
    own = 1 + max(len(b) for b in begins if first.startswith(b) or third.startswith(b))
    assert filled.json("show", second[:own])["entry"]["id"] == second
    assert filled.json("get", first)["entry"]["id"] == first  # another word for show
    answer = filled("show", shared)
    assert answer.code == 2
    assert "is the beginning of several ids" in answer.err
    assert f"{first} (Ada prefers tokio" in answer.err
    assert filled("forget", shared, "--yes").code == 2
    assert filled("show", first[:-1], "--user", "eve").code == 1


def test_columns_without_a_value_are_left_out(filled: Cli) -> None:
    assert "state" not in filled.ok("list").out
    filled.ok("edit", filled.json("list")["entries"][0]["id"], "--state", "flagged")
    assert "flagged" in filled.ok("list").out


def test_stats_count(filled: Cli) -> None:
    stats = filled.json("admin", "stats")
    assert (stats["entries"], stats["by_kind"]) == (3, {"fact": 2, "preference": 1})
    assert {"links", "versions", "sessions", "turns", "vectors", "embedder", "width", "size_bytes"} <= set(stats)
    assert "fact 2, preference 1" in filled.ok("admin", "stats").out


def test_events_hold_no_text(filled: Cli) -> None:
    answer = filled.ok("admin", "events", "--json")
    assert answer.json["events"]
    assert "tokio" not in answer.out
    assert filled.ok("admin", "events", "--limit", "1").out


def test_stored_control_characters_and_markup_do_not_act(cli: Cli) -> None:
    cli.remember("evil \x1b[31mred\x1b[0m [bold]text[/bold] [/x]")
    for command in (["list"], ["recall", "evil"]):
        shown = cli.ok(*command).out
        assert "\x1b" not in shown
        assert "[bold]text[/bold]" in shown
    cli.remember("evil \x1b[31mtwin")
    refused = cli("show", "0")  # the error names both entries with their text
    assert ("\\x1b[31mtwin" in refused.err, "\x1b" in refused.err) == (True, False)


def test_a_missing_file_is_an_error_and_is_not_made(cli: Cli) -> None:
    for command in (["recall", "x"], ["list"], ["doctor"], ["admin", "stats"]):
        answer = cli(*command)
        assert (answer.code, "no file" in answer.err, cli.db.exists()) == (2, True, False)


def test_explain_shows_the_steps_of_a_recursive_route(filled: Cli) -> None:
    question = "Who directed the film that was shot in the town where Ada was born?"
    answer = filled.ok("recall", question, "--explain")
    assert "route recursive" in answer.err
    assert "drill_down" in answer.out
    assert "drill_down" not in filled.ok("recall", question).out
    assert "route" not in filled.ok("recall", question, "--recursion", "off").err


def test_reason_prints_the_chain_of_evidence_and_what_a_model_concludes(filled: Cli, tmp_path: Path) -> None:
    question = ("reason", "which async runtime does Ada like?")
    answer = filled.json(*question)
    assert set(answer) == {each.name for each in fields(Reasoning)}
    assert (answer["path"][0]["operation"], "tokio" in answer["conclusion"]) == ("read", True)
    shown = filled.ok(*question)
    assert "read" in shown.out
    assert "confidence" in shown.err
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"reason": [{"conclusion": "Ada likes tokio.", "cites": [0]}]}), encoding="utf-8")
    said = filled.ok(*question, "--llm", f"scripted:{script}")
    assert "Ada likes tokio." in said.out
    assert "Concluded by scripted from" in said.err
    script.write_text(json.dumps({"reason": ["no"]}), encoding="utf-8")
    said = filled.ok(*question, "--llm", f"scripted:{script}")
    assert "No model concluded anything: failed: the model's answer of 2 characters" in said.err


def test_assemble_prints_a_block_within_the_budget_and_says_what_was_left_out(filled: Cli) -> None:
    question = "Which runtime does Ada prefer, and what is the build server called?"
    answer = filled.json("assemble", question, "--max-tokens", "60")
    assert 0 < answer["tokens"] <= 60
    assert len(answer["hits"]) + len(answer["left_out"]) == 3
    assert {one["why"] for one in answer["left_out"]} <= {"budget", "nothing new"}
    assert answer["recalls"][0]["route"] in ("hybrid", "recursive")
    done = filled("assemble", question, "--max-tokens", "60")
    assert done.out.strip() == answer["text"].strip()
    assert f" in {answer['tokens']} of 60 tokens" in done.err


def test_recall_marks_what_is_outdated_since_when_and_by_what(cli: Cli) -> None:
    for day, text in (("2025-01-06", "I live in Oslo."), ("2025-02-05", "I moved to Bergen last week.")):
        cli.ok("session", "add", "user", text, "--session-id", day, "--at", day, "--embedder", "reader")
    found = cli.json("recall", "Where do I live?", "--embedder", "reader")
    now, before = found["hits"]
    assert (now["outdated"], now["replaced_by"]) == (False, [])
    assert (before["outdated"], before["replaced_by"]) == (True, [now["entry"]["id"]])
    table = cli.ok("recall", "Where do I live?", "--embedder", "reader").out
    assert f"outdated since 2025-02-05, replaced by {now['entry']['id']}: I moved to Bergen last week." in table
    listed = cli.ok("list", "--embedder", "reader").out
    assert "superseded   2025-02-05" in listed


def test_recall_marks_what_a_part_of_which_no_longer_holds(cli: Cli) -> None:
    old = cli.remember("My husband is Tiago and we have a cat called Poes.")
    new = cli.remember("Poes ran away.")
    cli.ok("link", new, "supersedes", old)
    assert f"part of this no longer holds, replaced by {new}: Poes ran away." in cli.ok("recall", "Tiago").out
    assert "no longer holds" not in cli.ok("recall", "Tiago", "--as-of", "2999-01-01").out


def test_the_confidence_has_graded_words() -> None:
    words = [likelihood(confidence) for confidence in (0.1, 0.5, 0.62, 0.8)]
    assert words == [f"the answer {it} among them" for it in ("is probably not", "may be", "may be", "is probably")]


def test_a_command_without_words_says_where_they_come_from(cli: Cli) -> None:
    cli.remember("Ada likes tea.")
    for command in ("recall", "reason", "assemble", "remember"):
        for stdin in ("", " \n"):
            answer = cli(command, stdin=stdin)
            assert (answer.code, "pipe it in" in answer.err) == (2, True), command


def test_a_password_is_neither_printed_nor_needed_in_a_hint() -> None:
    url = "postgresql://ada:secret@db.example/agents"
    options = added_options({"db": url, "user": "ada"})
    hint = pasteable("Say so: `wellworn outcome --last --cited 0`", options)
    assert hint == "Say so: `wellworn outcome --last --cited 0 --user ada` (with the address in WELLWORN_DB)"
    bare = added_options({"db": "postgresql://db.example/agents"})
    assert pasteable("`wellworn list`", bare) == "`wellworn list --db postgresql://db.example/agents`"


@pytest.mark.parametrize(
    ("query", "said"), [("What does Ada prefer?", "probably"), ("Who won in 1998?", "probably not")]
)
def test_a_recall_says_how_sure_it_is(cli: Cli, query: str, said: str) -> None:
    place = ("--embedder", "reader")
    cli.ok("remember", "Ada prefers tokio over async-std.", *place)
    sure = cli.json("recall", query, *place)["confidence"]
    assert f"Confidence {sure:.2f}: the answer is {said} among them.\n" in cli.ok("recall", query, *place).err
    assert "Confidence" not in cli.ok("recall", query, "--user", "nobody", *place).err


def test_a_store_that_can_only_be_read_asks_for_no_outcome(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.remember("Ada prefers tokio.")
    assert "wellworn outcome" in cli.ok("recall", "tokio").err
    monkeypatch.setattr("os.access", lambda _, mode: mode != os.W_OK)
    answer = cli.ok("recall", "tokio")
    assert "Ada prefers tokio." in answer.out
    assert "wellworn outcome" not in answer.err
