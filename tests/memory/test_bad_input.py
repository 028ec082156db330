"""Bad input: one clear error that names what is wrong, and nothing has changed."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memory.test_malformed import GIVEN, keywords_of, sensible_values, verbs
from memory.test_malformed import call as called
from memory.world import ADA, OpenMemory, picture, texts
from wellworn import EmbeddingFailed, InvalidInput, Memory, NotFound, Scope, ScopeError, WellwornError
from wellworn.core.errors import StoreError, UnknownKind
from wellworn.ingest.chunk import chunk

LONE = "half \ud83d of a pair"
DEEP: dict[str, Any] = {}
for _ in range(100_000):
    DEEP = {"a": DEEP}
CIRCLE: dict[str, Any] = {}
CIRCLE["self"] = CIRCLE


def refused(mem: Memory, call: Callable[[], object], *names: str) -> None:
    """The call raises one of our errors, naming what is wrong, without changing anything."""
    before = picture(mem)
    with pytest.raises(WellwornError) as error:
        call()
    for name in names:
        assert name in str(error.value)
    assert len(str(error.value)) < 1000
    assert picture(mem) == before


def cases(bad: dict[str, list[Any]]) -> list[Any]:
    """A case for each bad value of each parameter."""
    return [pytest.param(name, one, id=f"{name}-{n}") for name, all in bad.items() for n, one in enumerate(all)]


# -- every parameter of remember ---------------------------------------------------------------------------------

BAD: dict[str, list[Any]] = {
    "text": ["", " \n\t\u3000", "nul \x00 inside", LONE, "x" * 10_000_000, b"bytes", None, ["a"]],
    "kind": ["gossip", None, ["fact"], "Fact", ""],
    "title": [None, "x" * 300, "\x00", LONE],
    "tags": ["rust", None, 5, [5], [""], ["\x00"], ["x" * 300], [LONE], [str(n) for n in range(65)], b"ab", [None]],
    "layer": ["planet", 5, "org"],
    "session_id": ["", 5, "\x00", "x" * 300, LONE],
    "turn_refs": [5, None, "12", [-1], [1.5], [True], [2**31], ["1"], [10**30]],
    "evidence": ["", 5, LONE],
    "source": [None, "\x00", "x" * 300],
    "speaker": [5, "\x00", "x" * 300],
    "confidence": [-0.1, 1.1, math.nan, math.inf, "0.5", None, True, 10**400],
    "trust": ["maybe", None, ["trusted"]],
    "at": [*("yesterday", 5, "", "2026-13-01", True, "10000-01-01", "0001-01-01T00:00+23:59", LONE, "x" * 10_000_000)],
    "valid_from": ["soon", 5.0],
    "valid_to": ["later", [], "2000-01-01"],
    "metadata": [
        *([], "x", 0, [("a", 1)], {"x": object()}, {"x": math.nan}, {"x": {1, 2}}, {"x": LONE}, {"x": b"y"}),
        *({("a",): 1}, CIRCLE, DEEP, {"x": "y" * 100_000}, {1: "one", "1": "the other one"}),
    ],
}


@pytest.mark.parametrize(("name", "value"), cases(BAD))
def test_every_bad_value_of_remember_is_named_and_changes_nothing(mem: Memory, name: str, value: Any) -> None:
    mem.remember("was here before", scope=ADA)
    given = {"text": "a fine text", name: value}
    refused(mem, lambda: mem.remember(scope=ADA, **given), name)
    refused(mem, lambda: mem.remember_many(["fine too", given], scope=ADA), name)


@pytest.mark.parametrize(
    "items",
    [5, None, "one text", {"text": "one mapping"}, [5], [["x"]], [{}], [{"text": "x", "colour": "red"}], [{5: "x"}]],
)
def test_items_that_are_none_are_refused(mem: Memory, items: Any) -> None:
    refused(mem, lambda: mem.remember_many(items, scope=ADA), "items")


def test_an_unknown_kind_lists_the_known_ones(mem: Memory) -> None:
    with pytest.raises(UnknownKind, match=r"gossip.*fact.*guardrail"):
        mem.remember("x", scope=ADA, kind="gossip")  # type: ignore[arg-type]


@pytest.mark.parametrize(("keyword", "bad"), [("scope", "acme"), ("scope", ADA.home()), ("progress", "print")])
def test_no_verb_takes_what_is_no_scope_or_cannot_be_called(mem: Memory, path: Path, keyword: str, bad: Any) -> None:
    sensible = sensible_values(path.parent, mem.remember_many(["x y z", "a b c"], scope=ADA))
    mem.admin.export(path.parent / "some.jsonl")
    for name, verb in verbs(mem).items():
        needed, others = keywords_of(verb)
        if keyword in others and name != "admin.import_from":
            given = {one: sensible[one] for one in needed} | GIVEN.get(name, {}) | {keyword: bad}
            given |= {"scope": ADA} if keyword != "scope" and "scope" in others else {}
            refused(mem, lambda verb=verb, given=given: called(verb, given), keyword)  # type: ignore[misc]


@pytest.mark.parametrize("verb", ["remember", "recall", "get", "session", "links", "forget"])
def test_none_is_no_scope(mem: Memory, verb: str) -> None:
    with pytest.raises(ScopeError, match="scope"):
        getattr(mem, verb)(["x"] if verb == "forget" else "x", scope=None)


@pytest.mark.parametrize("name", ["tenant", "user", "org"])
@pytest.mark.parametrize("value", ["", 5, "\x00", LONE, "x" * 257, [], True])
def test_a_scope_is_made_of_names(name: str, value: Any) -> None:
    with pytest.raises(ScopeError, match=name):
        Scope(**{"tenant": "acme", name: value})


# -- recall ------------------------------------------------------------------------------------------------------

BAD_RECALLS: dict[str, list[Any]] = {
    "query": ["", "  \n", None, "\x00", LONE, "x" * 10_000_000],
    "k": [0, 10**9, "5", None, 10**5000, 2.5],
    "kind": ["gossip", [5], ["fact", "gossip"]],
    "tags": [5, [5], [""], "\x00"],
    "layer": ["planet", 5],
    "session_id": [5, ""],
    "since": ["then", 5],
    "until": [[]],
    "as_of": [5.5],
    "min_score": ["1", math.nan],
}


@pytest.mark.parametrize(("name", "value"), cases(BAD_RECALLS))
def test_every_bad_value_of_recall_is_named(mem: Memory, name: str, value: Any) -> None:
    mem.remember("was here before", scope=ADA)
    given = {"query": "a fine question", name: value}
    refused(mem, lambda: mem.recall(scope=ADA, **given), name)


# -- ids ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad", ["", "no-such-id", "\x00", LONE, None, ["x"], "x" * 1_000_000, "' OR 1=1 --"], ids=lambda v: repr(v)[:20]
)
def test_a_bad_id_is_not_found_or_refused_by_every_verb(mem: Memory, bad: Any) -> None:
    (good,) = mem.remember("was here before", scope=ADA)
    pairs = ((good, bad), (bad, good))
    calls: list[tuple[Callable[..., object], tuple[Any, ...]]] = [
        *((verb, (bad,)) for verb in (mem.get, mem.history, mem.links)),
        *((verb, (*ids, "supports")) for verb in (mem.link, mem.unlink) for ids in pairs),
        *((mem.supersede, ids) for ids in pairs),
        (partial(mem.edit, text="y"), (bad,)),
        (mem.forget, ([good, bad],)),
    ]
    for verb, given in calls:
        before = picture(mem)
        with pytest.raises((NotFound, InvalidInput)):
            verb(*given, scope=ADA)
        assert picture(mem) == before


# -- absurd but readable -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [datetime.min, datetime.max, "0001-01-01", "9999-12-31T23:59:59.999999Z", "1582-10-10"])
def test_any_date_of_the_calendar_is_kept_exactly(mem: Memory, at: Any) -> None:
    (entry_id,) = mem.remember("an odd date", scope=ADA, at=at, valid_from=at)
    entry = mem.get(entry_id, scope=ADA)
    assert entry.at == entry.valid_from
    assert entry.at.year in (1, 1582, 9999)
    mem.remember("an ordinary date", scope=ADA)
    for as_of in (None, datetime.max, datetime.min):
        for hit in mem.recall("date", scope=ADA, as_of=as_of):
            assert math.isfinite(hit.score)
    assert mem.verify().ok


def test_superseding_at_the_end_of_the_calendar_is_no_crash(mem: Memory) -> None:
    (old,) = mem.remember("begins at the very end", scope=ADA, valid_from=datetime.max)
    (new,) = mem.remember("begins now", scope=ADA)
    before = picture(mem)
    try:
        mem.supersede(old, new, scope=ADA)
    except WellwornError:
        assert picture(mem) == before
    assert mem.verify().ok


def test_the_largest_text_that_is_allowed_is_stored_whole(mem: Memory) -> None:
    text = ("word " * 199_999)[:999_990] + "end."
    ids = mem.remember(text, scope=ADA)
    assert "".join(mem.get(entry_id, scope=ADA).evidence for entry_id in ids) == text


@pytest.mark.parametrize("sign", [".", "?!", "\n", "a.", "\n ", "…", " \t"], ids=ascii)
def test_long_texts_of_one_sign_are_cut_to_their_end(sign: str) -> None:
    """A quadratic chunker would not come back from this."""
    text = sign * (200_000 // len(sign)) + "x"
    assert "".join(piece.own for piece in chunk(text)) == text


def test_sql_in_any_name_is_only_a_name(mem: Memory) -> None:
    name = '\'; DROP TABLE entries; -- "quoted" OR * 100% _like_ \\x00 {json: []}'
    scope = Scope(tenant=name, user=name)
    given: dict[str, Any] = {"title": name, "tags": [name], "session_id": name, "source": name, "speaker": name}
    (entry_id,) = mem.remember(name, scope=scope, metadata={name: name}, **given)
    mem.session(scope=scope, session_id=name).add(name, name)
    entry = mem.get(entry_id, scope=scope)
    assert {field: getattr(entry, field) for field in given} == given
    assert len(mem.recall(name, scope=scope, tags=name, session_id=name)) == 1
    assert mem.forget(session_id=name, scope=scope).entries == 2
    assert mem.verify().ok


# -- embedders ---------------------------------------------------------------------------------------------------


class Moody:
    """An embedder that does as it is told; `embed` is what the port asks for."""

    name = "moody:1"
    width = 4

    def __init__(self) -> None:
        self.answer: Callable[[int], Any] = self.fine
        self.question: Any = np.array([1, 0, 0, 0], dtype=np.float32)

    @staticmethod
    def fine(count: int) -> Any:
        return np.tile(np.array([1, 0, 0, 0], dtype=np.float32), (count, 1))

    def embed(self, batch: list[str]) -> Any:
        return self.answer(len(batch))

    def embed_query(self, text: str) -> Any:
        return self.question


def broken(count: int) -> Any:
    raise RuntimeError("out of luck")


ANSWERS: dict[str, Callable[[int], Any]] = {
    "nan": lambda n: np.where(np.arange(4 * n).reshape(n, 4) == 4 * n - 1, np.nan, 0.5).astype(np.float32),
    "too few": lambda n: np.ones((n - 1, 4), dtype=np.float32),
    "words": lambda n: [["a", "b", "c", "d"]] * n,
    "raises": broken,
}


@pytest.mark.parametrize("wrapped", ["an embedder", "a callable"])
@pytest.mark.parametrize("mood", ANSWERS)
def test_an_embedder_that_answers_nonsense_changes_nothing(
    opened: OpenMemory, location: str, mood: str, wrapped: str
) -> None:
    moody = Moody()
    mem = opened(location, embedder=moody if wrapped == "an embedder" else moody.embed)
    (entry_id,) = mem.remember("was here before", scope=ADA)
    moody.answer = ANSWERS[mood]
    for call in (
        lambda: mem.remember("a new text", scope=ADA),
        lambda: mem.remember_many([f"text {n}" for n in range(5)], scope=ADA),
        lambda: mem.session(scope=ADA, session_id="s").add("user", "a turn"),
        lambda: mem.edit(entry_id, scope=ADA, text="another text"),
    ):
        before = picture(mem)
        with pytest.raises(EmbeddingFailed):
            call()
        assert picture(mem) == before
    moody.answer = moody.fine
    assert mem.verify().ok
    mem.remember("works again", scope=ADA)
    assert set(texts(mem, "again", ADA)) == {"was here before", "works again"}


@pytest.mark.parametrize("length", [9.0, 1e-3, 1e30])
def test_vectors_of_any_length_are_stored_at_length_one(opened: OpenMemory, location: str, length: float) -> None:
    moody = Moody()
    moody.answer = lambda n: moody.fine(n) * np.float32(length)
    mem = opened(location, embedder=moody)
    mem.remember("a text", scope=ADA)
    assert mem.verify().ok
    assert mem.recall("a question", scope=ADA).hits[0].factors["meaning"] == pytest.approx(10.0)


@pytest.mark.parametrize("answer", [np.full(4, np.nan), np.ones(5), np.ones((1, 4)), None, "x"], ids=str)
def test_a_question_that_cannot_be_embedded_is_searched_by_words(opened: OpenMemory, answer: Any) -> None:
    moody = Moody()
    mem = opened(embedder=moody)
    mem.remember("a text", scope=ADA)
    moody.question = answer
    found = mem.recall("which text?", scope=ADA)
    assert (found.route, [hit.text for hit in found]) == ("words", ["a text"])


def test_an_embedder_that_fails_in_the_middle_of_many_leaves_nothing_behind(opened: OpenMemory, location: str) -> None:
    moody = Moody()
    mem = opened(location, embedder=moody.embed)
    mem.remember("was here before", scope=ADA)
    before = picture(mem)
    calls = []

    def fail_later(count: int) -> Any:
        calls.append(count)
        return broken(count) if len(calls) == 2 else moody.fine(count)

    moody.answer = fail_later
    with pytest.raises(EmbeddingFailed):
        mem.remember_many([f"text number {n}" for n in range(1500)], scope=ADA)
    assert len(calls) == 2
    assert picture(mem) == before


def test_a_scrubber_that_answers_nonsense_changes_nothing(opened: OpenMemory, location: str) -> None:
    for answer in (None, 5, "", "\x00"):
        mem = opened(location, scrubber=lambda text, answer=answer: answer)
        refused(mem, lambda mem=mem: mem.remember("a text", scope=ADA, title="a title"))  # type: ignore[misc]
    mem = opened(location, scrubber=lambda text: "x" * 300 if text == "a title" else text)
    refused(mem, lambda: mem.remember("a text", scope=ADA, title="a title"), "title")


def test_a_clock_without_a_zone_tells_utc(opened: OpenMemory) -> None:
    mem = opened(clock=lambda: datetime(2026, 5, 1))
    (entry_id,) = mem.remember("x", scope=ADA)
    assert mem.get(entry_id, scope=ADA).created_at == datetime(2026, 5, 1, tzinfo=UTC)


@pytest.mark.parametrize("options", [{"profile": []}, {"embedder": 5}, {"embedder": Moody}, {"profile": None}], ids=str)
def test_nonsense_given_to_open_is_one_of_our_errors(opened: OpenMemory, options: dict[str, Any]) -> None:
    with pytest.raises(WellwornError):
        opened(**options).remember("x", scope=ADA)


# -- files, progress, pairs, messages ------------------------------------------------------------------------------


def test_pipes_and_devices_are_refused_at_once(opened: OpenMemory, mem: Memory, tmp_path: Path) -> None:
    mem.remember("was here before", scope=ADA)
    pipe, notes = tmp_path / "pipe.jsonl", tmp_path / "notes"
    notes.mkdir()
    for one in (pipe, notes / "note.md"):
        os.mkfifo(one)
    refused(mem, lambda: mem.admin.export(pipe), str(pipe))
    for path in (pipe, Path("/dev/zero")):
        refused(mem, lambda path=path: mem.admin.load(path), str(path))  # type: ignore[misc]
        with pytest.raises(WellwornError, match=path.name):
            opened(path)
        with pytest.raises(WellwornError, match=path.name):
            opened(prior=path)
    (problem,) = mem.admin.load(notes, scope=ADA).problems
    assert "note.md: it is not a plain file" in problem
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("path", [None, b"x.jsonl", "", "a\x00.jsonl", LONE, "x" * 5000 + ".jsonl"], ids=ascii)
def test_what_is_no_path_is_refused(mem: Memory, path: Any) -> None:
    refused(mem, lambda: mem.admin.export(path), "path")
    refused(mem, lambda: mem.admin.load(path), "path")


@pytest.mark.parametrize(
    "pairs", [5, "tea", ["tea"], [("tea",)], [("tea", "id")], [("tea", [5])], [DEEP], [("tea", [DEEP])]], ids=range(8)
)
def test_pairs_are_queries_with_ids(mem: Memory, pairs: Any) -> None:
    mem.remember("was here before", scope=ADA)
    before = mem.learning.export(scope=ADA)
    refused(mem, lambda: mem.learning.relearn(pairs=pairs, scope=ADA))
    assert mem.learning.export(scope=ADA) == before


def test_a_huge_value_is_shortened_in_every_message() -> None:
    huge = "y" * 1_000_000
    for error in (InvalidInput("text", huge, "the remedy"), NotFound("entry", huge, "the remedy"), StoreError(huge)):
        assert len(str(error)) < 1000
    assert str(InvalidInput("text", huge, "the remedy")).endswith("(the remedy)")


@pytest.mark.parametrize(
    ("call", "name", "near"),
    [
        (lambda _: Memory(":memory:", embeder="hash"), "embeder", "embedder"),  # type: ignore[call-arg]
        (lambda _: Memory.open(":memory:", lerning="off"), "lerning", "learning"),  # type: ignore[call-arg]
        (lambda mem: mem.remember("x", tag=["a"], scope=ADA), "tag", "tags"),
        (lambda mem: mem.recall("x", kinds=["fact"], scope=ADA), "kinds", "kind"),
        (lambda mem: mem.assemble("x", max_token=3, scope=ADA), "max_token", "max_tokens"),
        (lambda mem: mem.for_user("ada", teams="core"), "teams", "team"),
        (lambda mem: mem.remember("x", zzz=1, scope=ADA), "zzz", ""),
    ],
)
def test_an_unknown_argument_is_named_with_the_nearest_one(
    mem: Memory, call: Callable[[Memory], object], name: str, near: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        call(mem)
    assert caught.value.field == name
    assert caught.value.remedy == (f"did you mean {near}?" if near else "")
    assert "__init__" not in str(caught.value)
