"""A memory with a scrubber: nothing that it takes out is anywhere afterwards, and names stay the same."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from memory.world import ADA, OpenMemory
from wellworn import Memory, PersonalData, Scope
from wellworn.core.errors import InvalidInput
from wellworn.models.port import Message, Request
from wellworn.models.scripted import ScriptedModel

SECRETS = [
    "zoe.quill@example.com",
    "+1 415 555 2671",
    "4111 1111 1111 1111",
    "DE89370400440532013000",
    "457-55-5462",
    "203.0.113.77",
    "gh" + "p_" + "A1b2" * 9,
]
ALL = " and ".join(SECRETS)
BOB = Scope(tenant="acme", user="bob")
CUT = [*SECRETS, "zoe.quill", "555 2671", "4111111111111111", "457555462", "14155552671"]


def fill(mem: Memory) -> str:
    """Puts every secret everywhere where a text can be given; returns an entry's id."""
    given: dict[str, Any] = {"title": f"of {SECRETS[0]}", "tags": [SECRETS[0], "plain"], "evidence": f"she said {ALL}"}
    given |= {"speaker": SECRETS[0], "source": SECRETS[5]}
    given["metadata"] = {"note": ALL, "deep": [{SECRETS[0]: SECRETS[2]}]}
    ids = mem.remember(f"Zoe: {ALL}", scope=ADA, **given)
    mem.remember_many([f"number {n}: {secret}" for n, secret in enumerate(SECRETS)], scope=ADA)
    session = mem.session(scope=ADA, session_id="s")
    session.add(SECRETS[0], f"I am reached at {ALL}.", tags=[SECRETS[1]])
    session.add("tool", f"result: {ALL}")
    recall = mem.recall(f"who has {ALL}?", scope=ADA)
    mem.outcome(recall.id, refined=f"whose is {SECRETS[0]}?", scope=ADA)
    mem.edit(ids[0], scope=ADA, text=f"Edited: {ALL}", metadata={"again": ALL}, tags=[SECRETS[3]], speaker=SECRETS[0])
    mem.reflect(scope=ADA)
    several = f"Compare Zoe with Ada: who is reached at {SECRETS[0]} or {SECRETS[1]}, and who came first?"
    assert mem.recall(several, scope=ADA).route == "recursive"
    mem.reason(several, scope=ADA)
    mem.assemble(several, scope=ADA, max_tokens=200)
    return ids[0]


def test_nothing_survives_in_tables_index_vectors_exports_events_or_bytes(
    path: Path, tmp_path: Path, opened: OpenMemory, caplog: pytest.LogCaptureFixture
) -> None:
    embedded: list[str] = []

    def embed(batch: list[str]) -> list[list[float]]:
        embedded.extend(batch)
        return [[1.0, 0.5]] * len(batch)

    caplog.set_level(logging.DEBUG)
    mem = opened(path, embedder=embed, scrubber="mask")
    fill(mem)
    mem.admin.export(tmp_path / "all.jsonl")
    mem.admin.export(tmp_path / "folder")
    seen = "\n".join(
        [*embedded, caplog.text, str(mem.admin.events(scope=ADA, limit=1000)), str(mem.entries(scope=ADA))]
    )
    mem.close()
    files = [*tmp_path.glob("memory.db*"), *(file for file in tmp_path.rglob("*") if file.is_file())]
    content = b"\n".join(file.read_bytes() for file in files)
    assert b"[EMAIL_1]" in content
    assert [value for value in CUT if value in seen or value.encode() in content] == []


def test_an_import_is_scrubbed_too(path: Path, tmp_path: Path, opened: OpenMemory) -> None:
    raw = opened(tmp_path / "raw.db", embedder="hash")
    fill(raw)
    raw.admin.export(tmp_path / "all.jsonl")
    raw.admin.export(tmp_path / "folder")
    raw.close()
    for source in ("all.jsonl", "folder"):
        mem = opened(tmp_path / f"of-{source}.db", scrubber="mask")
        assert mem.admin.load(tmp_path / source).entries > 0
        assert mem.admin.stats(scope=ADA).scrubbed["EMAIL"] > 0
        assert mem.verify().ok
        mem.close()
        content = b"".join(file.read_bytes() for file in tmp_path.glob(f"of-{source}.db*"))
        assert [value for value in CUT if value.encode() in content] == []


def test_the_same_value_has_the_same_name_in_every_process_and_after_a_restart(path: Path, opened: OpenMemory) -> None:
    first, second = opened(path, scrubber="mask"), opened(path, scrubber="mask")
    texts = []
    for mem, text in ((first, "a@x.io"), (second, "b@x.io"), (first, "b@x.io, A@X.io"), (second, "c@x.io, a@x.io")):
        (entry_id,) = mem.remember(f"mail {text}", scope=ADA)
        texts.append(mem.get(entry_id, scope=ADA).text)
    first.close()
    third = opened(path, scrubber="mask")
    (entry_id,) = third.remember("again c@x.io", scope=ADA)
    texts.append(third.get(entry_id, scope=ADA).text)
    assert texts == [
        "mail [EMAIL_1]",
        "mail [EMAIL_2]",
        "mail [EMAIL_2], [EMAIL_1]",
        "mail [EMAIL_3], [EMAIL_1]",
        "again [EMAIL_3]",
    ]
    (other,) = third.remember("mail z@x.io", scope=BOB)
    assert third.get(other, scope=BOB).text == "mail [EMAIL_1]"  # another partition counts for itself
    third.forget(scope=ADA, everything=True)
    (entry_id,) = third.remember("mail c@x.io", scope=ADA)
    assert third.get(entry_id, scope=ADA).text == "mail [EMAIL_1]"  # whom the partition knew is forgotten with it


def test_a_question_finds_what_was_masked_and_is_logged_masked(opened: OpenMemory, location: str) -> None:
    mem = opened(location, scrubber="mask")
    for name in ("ada@x.io", "bo@x.io", "cy@x.io"):
        mem.remember(f"{name} asked for a refund", scope=ADA)
    recall = mem.recall("what did bo@x.io ask for?", scope=ADA)
    assert recall.query == "what did [EMAIL_2] ask for?"
    assert recall[0].entry.text == "[EMAIL_2] asked for a refund"
    assert mem.recall("and dee@x.io?", scope=ADA).query == "and [EMAIL]?"  # asking gives no number


def test_reject_refuses_and_counts_and_stores_nothing(opened: OpenMemory, location: str) -> None:
    mem = opened(location, scrubber="reject")
    for write in (
        lambda: mem.remember("mail a@x.io", scope=ADA),
        lambda: mem.remember("fine", scope=ADA, metadata={"to": "a@x.io"}),
        lambda: mem.session(scope=ADA, session_id="s").add("user", "a@x.io"),
    ):
        with pytest.raises(PersonalData, match="holds 1 EMAIL"):
            write()
    with pytest.raises(PersonalData, match=r"items\[1\]"):
        mem.remember_many(["fine", "a@x.io"], scope=ADA)
    assert mem.admin.stats(scope=ADA).entries == 0
    events = mem.admin.events(scope=ADA)
    assert [event.action for event in events] == ["refuse"] * 4
    assert "a@x.io" not in str(events)
    (entry_id,) = mem.remember("nothing personal", scope=ADA)
    assert mem.recall("who is a@x.io?", scope=ADA).query == "who is [EMAIL]?"  # a question is masked, not refused
    assert mem.get(entry_id, scope=ADA).text == "nothing personal"


def test_what_was_taken_out_is_counted(opened: OpenMemory, path: Path) -> None:
    for _ in range(2):  # also after a restart
        mem = opened(path, scrubber="mask")
        mem.remember("a@x.io b@x.io 203.0.113.77", scope=ADA)
        mem.remember("nothing", scope=ADA)
        events = [event.detail for event in mem.admin.events(scope=ADA) if event.action == "scrub"]
        assert events == [{"EMAIL": 2, "IP": 1}] * len(events)
        assert mem.admin.stats(scope=ADA).scrubbed == {"EMAIL": 2 * len(events), "IP": len(events)}
        assert mem.admin.stats(scope=BOB).scrubbed == {}
        mem.close()
    assert len(events) == 2


def test_a_model_is_told_nothing_that_is_masked(opened: OpenMemory, location: str) -> None:
    sent: list[str] = []

    def answer(request: Request) -> str:
        sent.extend(message.text for message in request.messages)
        return "ok"

    mem = opened(location, scrubber="mask", llm=ScriptedModel(answer))
    mem.remember("bo@x.io and ada@x.io", scope=ADA)
    model = mem.admin.model(scope=ADA)
    assert model is not None
    model.complete(Request(messages=(Message(role="user", text="mail ada@x.io or dee@x.io"),), purpose="chat"))
    assert sent == ["mail [EMAIL_2] or [EMAIL_3]"]


def test_off_is_the_default_and_a_wrong_mode_is_refused(opened: OpenMemory) -> None:
    for options in ({}, {"scrubber": "off"}):
        mem = opened(**options)
        (entry_id,) = mem.remember("a@x.io", scope=ADA)
        assert mem.get(entry_id, scope=ADA).text == "a@x.io"
        assert mem.admin.stats(scope=ADA).scrubbed == {}
    for wrong in ("hide", 5):
        with pytest.raises(InvalidInput, match="scrubber"):
            opened(scrubber=wrong)
