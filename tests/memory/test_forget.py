"""forget: gone for good, from everywhere, and nothing else with it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from contract.few import few
from contract.models import make_request
from jobs.world import make_job
from memory.world import (
    ADA,
    BEN,
    FOREIGN_ADA,
    Clock,
    OpenMemory,
    file_bytes,
    holds_text,
    partition_picture,
    picture,
    texts,
)
from wellworn import InvalidInput, Memory, NotFound, Recursion, Scope, ScopeError
from wellworn.core.hashes import hash64
from wellworn.ingest.terms import _term
from wellworn.jobs.queue import list_jobs, put_job
from wellworn.models import Meter, ScriptedModel
from wellworn.models.ledger import spent, total_cost

MARKER = "zqxmarker"
ADA_IN_ORG = Scope(tenant="acme", user="ada", org="all")
BEN_IN_ORG = Scope(tenant="acme", user="ben", org="all")


def call(mem: Memory, session: str) -> None:
    model = ScriptedModel("fine", input_tokens=100, output_tokens=10)
    Meter(model, mem.engine.store, tenant="acme", session=session).complete(make_request())


def fill(mem: Memory, scope: Scope, word: str, count: int = 12) -> list[str]:
    """A life with one word everywhere: texts, titles, tags, speakers, evidence, metadata, versions, turns, links."""
    words: dict[str, Any] = {
        "title": f"{word} title",
        "tags": [f"{word}-tag", "plain"],
        "speaker": word,
        "source": word,
    }
    items = [{"text": f"{word} fact {n} of many", "evidence": f"said: {word} {n}"} for n in range(count)]
    ids = mem.remember_many(items, scope=scope, metadata={word: [word]}, **words)
    mem.remember((f"{word} goes on and on. " * 20 + "\n\n") * 10, scope=scope, session_id=f"{word}-session")
    mem.edit(ids[0], scope=scope, text=f"{word} was edited", title=f"{word} again")
    mem.supersede(ids[1], ids[2], scope=scope)
    mem.link(ids[3], ids[4], "supports", scope=scope)
    session = mem.session(scope=scope, session_id=f"{word}-session")
    for n in range(count):
        session.add("user", f"{word} turn {n}", speaker=f"{word} Smith", tags=[f"{word}-said"])
    mem.recall(f"{word} fact", scope=scope, k=50)
    return ids


# -- by id -------------------------------------------------------------------------------------------------------


def test_ids_are_removed_with_all_that_hangs_on_them(mem: Memory, clock: Clock) -> None:
    first, second, third = mem.remember_many(["one bee", "two bees", "three bees"], scope=ADA)
    mem.edit(second, scope=ADA, text="two busy bees")
    mem.recall("bees", scope=ADA)
    receipt = mem.forget(ids=[second], scope=ADA)
    assert (receipt.entries, receipt.index_records, receipt.vectors, receipt.versions) == (1, 1, 1, 1)
    assert receipt.links == 2  # follows the first, is followed by the third
    assert receipt.ids == [second]
    assert receipt.cached >= 1
    assert receipt.at == clock.now
    assert receipt.partitions == ADA.partitions()
    with pytest.raises(NotFound):
        mem.get(second, scope=ADA)
    assert set(texts(mem, "bees", ADA)) == {"one bee", "three bees"}
    assert mem.links(first, scope=ADA) == mem.links(third, scope=ADA) == []
    assert mem.verify().ok


def test_a_raw_turn_stays_unless_it_is_asked_for(mem: Memory) -> None:
    session = mem.session(scope=ADA, session_id="s")
    first, second = session.add("user", "first words"), session.add("user", "second words")
    receipt = mem.forget(ids=[first], scope=ADA)
    assert (receipt.turns, receipt.kept["turns"]) == (0, 2)
    assert [turn.text for turn in session.turns()] == ["first words", "second words"]
    receipt = mem.forget(ids=[second], scope=ADA, turns=True)
    assert (receipt.turns, receipt.sessions) == (1, 0)
    assert [turn.text for turn in session.turns()] == ["first words"]
    assert mem.verify().ok


def test_one_unknown_id_and_nothing_is_forgotten(mem: Memory) -> None:
    (mine,) = mem.remember("mine", scope=ADA)
    (bens,) = mem.remember("of Ben", scope=BEN)
    before = picture(mem)
    for wrong in ("no-such-id", bens):
        with pytest.raises(NotFound, match=wrong):
            mem.forget(ids=[mine, wrong], scope=ADA)
    assert picture(mem) == before


def test_no_ids_are_nothing_to_forget_and_one_twice_counts_once(mem: Memory) -> None:
    (mine,) = mem.remember("mine", scope=ADA)
    before = picture(mem)
    assert (mem.forget(ids=[], scope=ADA).entries, mem.forget(session_id="never", scope=ADA).entries) == (0, 0)
    assert picture(mem) == before
    assert mem.forget(ids=[mine, mine], scope=ADA).entries == 1


# -- by session --------------------------------------------------------------------------------------------------


def test_a_session_goes_with_its_turns_and_entries_and_no_other_does(mem: Memory) -> None:
    for name in ("s", "t"):
        session = mem.session(scope=ADA, session_id=name)
        session.add("user", f"first of {name}")
        session.add("user", f"second of {name}")
    mem.remember("noted in s", scope=ADA, session_id="s")
    receipt = mem.forget(session_id="s", scope=ADA)
    assert (receipt.entries, receipt.turns, receipt.sessions) == (3, 2, 1)
    assert mem.sessions(scope=ADA) == ["t"]
    assert mem.recall("first", scope=ADA, session_id="s").hits == []
    assert set(texts(mem, "first second noted", ADA, k=20)) == {"first of t", "second of t"}
    assert mem.session(scope=ADA, session_id="s").add("user", "begun anew")
    assert [turn.number for turn in mem.session(scope=ADA, session_id="s").turns()] == [0]
    assert mem.verify().ok


def test_the_turns_of_a_session_can_be_kept(mem: Memory) -> None:
    session = mem.session(scope=ADA, session_id="s")
    session.add("user", "first words")
    receipt = mem.forget(session_id="s", scope=ADA, turns=False)
    assert (receipt.entries, receipt.turns, receipt.kept["turns"]) == (1, 0, 1)
    session.add("user", "second words")
    assert [(turn.text, turn.number) for turn in session.turns()] == [("first words", 0), ("second words", 1)]
    assert mem.verify().ok


# -- everything --------------------------------------------------------------------------------------------------


def test_a_person_is_forgotten_and_the_receipt_counts_it_all(mem: Memory) -> None:
    fill(mem, ADA, MARKER)
    stats = mem.admin.stats(scope=ADA)
    receipt = mem.forget(everything=True, scope=ADA)
    assert (receipt.entries, receipt.vectors, receipt.index_records) == (stats.entries, stats.vectors, stats.entries)
    assert (receipt.links, receipt.versions) == (stats.links, stats.versions)
    assert (receipt.turns, receipt.sessions) == (stats.turns, stats.sessions) == (12, 1)
    assert len(receipt.ids) == stats.entries
    assert receipt.kept == {}
    after = mem.admin.stats(scope=ADA)
    assert (after.entries, after.links, after.turns, after.sessions, after.versions, after.vectors) == (0,) * 6
    assert (mem.recall(MARKER, scope=ADA).hits, mem.sessions(scope=ADA), mem.entries(scope=ADA)) == ([], [], [])
    events = mem.admin.events(scope=ADA, limit=1000)
    assert (events[0].action, int(events[0].detail["entries"]) > 12, MARKER in str(events)) == ("forget", True, False)
    assert mem.verify().ok
    (entry_id,) = mem.remember(f"{MARKER} fact 3 of many", scope=ADA)  # and may come back
    assert mem.get(entry_id, scope=ADA).repeats == 0
    assert len(mem.recall(MARKER, scope=ADA).hits) == 1


def test_nobody_else_is_touched(mem: Memory) -> None:
    others = [BEN, FOREIGN_ADA, Scope(tenant="acme", agent="ada"), Scope(tenant="acme", org="all")]
    fill(mem, ADA, MARKER)
    for number, scope in enumerate(others):
        fill(mem, scope, f"other{number}", 6)
    before = [partition_picture(mem, scope.partitions()[0]) for scope in others]
    answers = [[(h.entry, h.score) for h in mem.recall("fact of many", scope=scope, k=9)] for scope in others]
    mem.forget(session_id=f"{MARKER}-session", scope=ADA)
    mem.forget(ids=[mem.entries(scope=ADA)[0].id], scope=ADA)
    mem.forget(everything=True, scope=ADA)
    assert [partition_picture(mem, scope.partitions()[0]) for scope in others] == before
    assert [[(h.entry, h.score) for h in mem.recall("fact of many", scope=s, k=9)] for s in others] == answers


def test_what_the_organisation_shares_stays_when_a_person_goes(mem: Memory) -> None:
    mem.remember("the shared rule", scope=ADA_IN_ORG, layer="org", session_id="s")
    (private,) = mem.remember("the private note", scope=ADA_IN_ORG, session_id="s")
    (shared,) = [e.id for e in mem.entries(scope=ADA_IN_ORG) if e.layer == "org"]
    mem.link(private, shared, "elaborates", scope=ADA_IN_ORG)
    assert mem.forget(session_id="s", scope=ADA_IN_ORG).kept == {"org": 1}
    mem.remember("the private note", scope=ADA_IN_ORG)
    assert mem.forget(everything=True, scope=ADA_IN_ORG).kept == {"org": 1}
    assert texts(mem, "rule note", BEN_IN_ORG) == ["the shared rule"]
    assert mem.links(shared, scope=BEN_IN_ORG) == []
    mem.remember("the private note", scope=ADA_IN_ORG)
    receipt = mem.forget(everything=True, scope=ADA_IN_ORG, layer="org")  # a layer can be named
    assert (receipt.entries, receipt.kept) == (1, {"user": 1})
    assert texts(mem, "rule note", ADA_IN_ORG) == ["the private note"]
    with pytest.raises(ScopeError):
        mem.forget(everything=True, scope=ADA_IN_ORG, layer="team")
    assert mem.verify().ok


@pytest.mark.parametrize(
    "wrong",
    [
        *({}, {"ids": ["x"], "everything": True}, {"ids": [], "session_id": "s"}, {"everything": False}),
        *({"ids": "an-id"}, {"session_id": ""}, {"everything": 1}, {"ids": 5}, {"ids": [["x"]]}, {"ids": [None]}),
        *({"session_id": "s", "turns": "no"}, {"everything": True, "layer": 5}, {"everything": True, "turns": False}),
    ],
    ids=str,
)
def test_what_to_forget_must_be_said_clearly(mem: Memory, wrong: dict[str, Any]) -> None:
    mem.session(scope=ADA, session_id="s").add("user", "still here")
    before = picture(mem)
    with pytest.raises((InvalidInput, NotFound)):
        mem.forget(scope=ADA, **wrong)
    assert picture(mem) == before


# -- nothing is left ---------------------------------------------------------------------------------------------


def forget_it(mem: Memory, how: str) -> None:
    if how == "everything":
        mem.forget(everything=True, scope=ADA)
    elif how == "session":
        mem.forget(session_id="gone", scope=ADA)
    else:
        ids = [e.id for e in mem.entries(scope=ADA, session_id="gone", limit=10_000)]
        mem.forget(ids=ids, scope=ADA, turns=True)


@pytest.mark.parametrize(
    ("how", "closed"), few([(how, closed) for how in ("everything", "session", "ids") for closed in (False, True)])
)
def test_no_byte_of_it_is_left_in_the_files(path: Path, opened: OpenMemory, how: str, closed: bool) -> None:
    mem = opened(path)
    session = mem.session(scope=ADA, session_id="gone")
    for n in range(60):  # between others', so that pages are shared, split and merged
        tags = [f"{MARKER}#{n}", "plain"]
        session.add("user", f"{MARKER} turn {n} " + "x" * (37 * n % 900), speaker=f"{MARKER}{n}", tags=tags)
        mem.remember(f"Ben says {n} " + "y" * (53 * n % 700), scope=BEN, tags=[f"t{n}", "u"])
        given: dict[str, Any] = {"title": f"{MARKER} {n}", "source": MARKER, "metadata": {MARKER: "m" * (n * 11)}}
        given |= {"evidence": f"{MARKER} said " + "e" * (29 * n % 2500), "session_id": "gone"}
        (entry_id,) = mem.remember(f"{MARKER} note {n} " + "z" * (71 * n % 1500), scope=ADA, **given)
        mem.edit(entry_id, scope=ADA, text=f"{MARKER} edited {n} " + "w" * (13 * n % 300))
        mem.edit(entry_id, scope=ADA, title=f"{MARKER} again", tags=tags)
    assert MARKER.encode() in file_bytes(path)
    forget_it(mem, how)
    if closed:
        mem.close()
    assert MARKER.encode() not in file_bytes(path)
    if not closed:
        assert mem.verify().ok
        assert mem.admin.stats(scope=BEN).entries == 60


@pytest.mark.parametrize("how", ["everything", "session", "ids"])
def test_jobs_and_the_ledger_do_not_name_it_any_more(path: Path, opened: OpenMemory, how: str) -> None:
    mem = opened(path)
    name = f"{MARKER}-s"
    session = mem.session(scope=ADA, session_id=name)
    ids = [session.add("user", f"turn {n}") for n in range(3)]
    for n, state in enumerate(["queued", "done", "dead"] * 20):
        job = make_job(f"j{n}", partition=ADA.home(), key=f"{name}:{n}", payload={"session": name}, state=state)
        with mem.engine.store.transact() as tx:  # between others', so that pages are shared
            put_job(tx, job)
            put_job(tx, make_job(f"b{n}", partition=BEN.home(), payload={"session": "ben's"}))
        call(mem, name)
        call(mem, "ben's")
    assert MARKER.encode() in file_bytes(path)
    given = {"everything": {"everything": True}, "session": {"session_id": name}, "ids": {"ids": ids, "turns": True}}
    receipt = mem.forget(scope=ADA, **given[how])  # type: ignore[arg-type]
    assert (receipt.turns, receipt.jobs) == (3, 60)
    assert MARKER.encode() not in file_bytes(path)
    assert [one.calls for one in spent(mem.engine.store, "acme")] == [120]
    assert total_cost(mem.engine.store, "acme", "session ben's").tokens == 60 * 110
    assert total_cost(mem.engine.store, "acme", "session secret").tokens == 0
    assert len(list_jobs(mem.engine.store)) == 60
    assert mem.verify().ok


def test_not_even_the_persons_name_is_left(path: Path, opened: OpenMemory) -> None:
    mem = opened(path)
    person = Scope(tenant="acme", user=f"{MARKER}@example.org")
    session = mem.session(scope=person, session_id=f"{MARKER}-s")
    session.add("user", "hello")
    mem.remember("a note", scope=person)
    mem.forget(everything=True, scope=person)
    assert MARKER.encode() not in file_bytes(path)


@pytest.mark.parametrize("how", ["everything", "session", "ids"])
@pytest.mark.parametrize("embedder", ["hash", "callable"])
def test_no_object_of_the_memory_holds_it_any_more(opened: OpenMemory, location: str, how: str, embedder: str) -> None:
    def embed(batch: list[str]) -> list[list[float]]:
        return [[float(len(text)), 1.0] for text in batch]

    mem = opened(location, embedder=embed if embedder == "callable" else embedder)
    session = mem.session(scope=ADA, session_id="gone")
    for n in range(5):
        session.add("user", f"{MARKER} turn {n}", speaker=MARKER, tags=[MARKER])
    (entry_id,) = mem.remember(f"{MARKER} note", scope=ADA, session_id="gone", title=MARKER)
    mem.edit(entry_id, scope=ADA, text=f"{MARKER} edited")
    mem.recall(f"{MARKER} note", scope=ADA, k=50)
    caches = [_term, hash64]
    assert holds_text(mem, MARKER)
    assert holds_text(caches, MARKER)
    forget_it(mem, how)
    assert holds_text(mem, MARKER) == []
    assert holds_text(caches, MARKER) == []
    if embedder == "callable":
        assert len(mem.engine.embedder) == 0  # type: ignore[arg-type]


def test_another_memory_object_lets_go_of_it_when_it_next_looks(path: Path, opened: OpenMemory) -> None:
    mem, other = opened(path), opened(path)
    session = mem.session(scope=ADA, session_id="gone")
    session.add("user", f"{MARKER} turn")
    mem.remember("something else", scope=ADA)
    for how in ("session", "everything"):
        other.recall(MARKER, scope=ADA)
        forget_it(mem, how)
        other.recall("anything", scope=ADA)
        assert holds_text(other, MARKER) == []
        session.add("user", f"{MARKER} turn")


def test_what_a_reader_elsewhere_kept_from_being_scrubbed_is_scrubbed_later(path: Path, opened: OpenMemory) -> None:
    mem = opened(path)
    mem.remember(f"{MARKER} note", scope=ADA)
    reader = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM entries").fetchone()
    assert mem.forget(everything=True, scope=ADA).scrubbed is False
    reader.close()
    mem.close()
    assert MARKER.encode() not in file_bytes(path)


def test_a_query_that_held_a_forgotten_text_is_blanked(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    said = "My sister Mia is allergic to Macadamia nuts."
    with Memory(path) as mem:
        ada = mem.for_user("ada")
        ada.recall(said)
        ada.remember("The bicycle is red.")
        ada.recall(f"Hello! {said}")
        (by_id,) = ada.remember(said)
        ada.recall("macadamia")
        kept = ada.recall("bicycle")
        assert ada.forget([by_id]).recalls >= 2
        ada.recall("I play the Theorbo.")
        ada.session("monday").add("user", "I play the Theorbo.")
        assert ada.forget(session_id="monday").recalls >= 1
        ada.outcome(kept.id, cited=[0])
        assert mem.verify().ok
    for file in tmp_path.iterdir():
        assert not [word for word in (b"acadamia", b"heorbo") if word in file.read_bytes()]


# -- what rests on a turn ----------------------------------------------------------------------------------------


def test_with_a_turn_go_the_memories_that_rest_on_it_alone(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Memory(path, background=False) as mem:
        ada = mem.for_user("ada")
        said = ada.session("a").add("user", f"My doctor is called {MARKER}.")
        ada.session("a").add("user", "I live in Oslo.")
        ada.session("b").add("user", "I live in Oslo.")
        ada.reflect()
        assert MARKER in " ".join(one.text for one in ada.entries(kind="fact"))
        assert ada.forget([said], turns=True).entries == 2
        assert [(one.text, one.repeats) for one in ada.entries(kind="fact")] == [("Ada lives in Oslo.", 1)]
        first = ada.entries(kind="episode")[0]
        ada.forget([first.id])  # it was also said elsewhere
        assert [(one.text, one.evidence, one.turn_refs) for one in ada.entries(kind="fact")] == [
            ("Ada lives in Oslo.", "ada: I live in Oslo.", [])
        ]
        assert mem.verify().ok
    assert MARKER.encode() not in file_bytes(path)


def test_a_memory_of_several_turns_goes_if_it_says_what_only_the_forgotten_one_said() -> None:
    told = '{"extracted_memories": [{"summary": "%s", "reference": [0, 1]}]}'
    for summary, left in ((f"Ada likes {MARKER} and tea.", []), ("Ada likes tea.", ["ada: And I like tea."])):
        model = ScriptedModel({"extract": told % summary})
        with Memory(":memory:", llm=model, background=False) as mem:
            ada = mem.for_user("ada")
            said = ada.session("a").add("user", f"I like {MARKER}.")
            ada.session("a").add("user", "And I like tea.")
            ada.reflect()
            [fact] = [one for one in ada.entries() if one.kind != "episode"]
            ada.edit(fact.id, text="Ada likes tea.")
            ada.edit(fact.id, text=summary)
            ada.forget([said])
            kept = [one for one in ada.entries() if one.kind != "episode"]
            assert [one.evidence for one in kept] == left
            assert [one.turn_refs for one in kept] == [[1] for _ in left]
            assert not any(MARKER in version.entry.evidence for one in kept for version in ada.history(one.id))


def test_the_words_of_a_turn_go_from_the_evidence_of_other_memories_too(path: Path, opened: OpenMemory) -> None:
    mem = opened(path)
    mem.session("s", scope=ADA).add("user", f"My bank PIN is {MARKER}. I live in Oslo.")
    mem.reflect(scope=ADA)
    fact, other = mem.entries(kind="fact", scope=ADA)
    mem.edit(other.id, scope=ADA, tags=["home"])  # an older state has the evidence too
    assert MARKER in fact.text
    mem.forget([fact.id], turns=True, scope=ADA)
    [left] = mem.entries(scope=ADA)
    assert (left.text, left.evidence, left.turn_refs) == (other.text, "", [])
    assert MARKER.encode() not in file_bytes(path)
    assert mem.verify().ok


def test_neither_a_refined_query_nor_a_search_is_left(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Memory(path, background=False, recursion=Recursion(mode="always", learns=True)) as mem:
        ada = mem.for_user("ada")
        ada.remember_many(["Leland is a small town.", "The film Overdrive was shot in Leland."])
        ada.outcome(ada.recall("who helps me?").id, refined=f"Who is the doctor {MARKER}?")
        ada.recall(f"My doctor is {MARKER}. Which film was shot in Leland?", k=1)
        (by_id,) = ada.remember(f"My doctor is {MARKER}.")
        mem.engine.learner.log.flush()
        assert MARKER.encode() in file_bytes(path)
        ada.forget([by_id])
    assert MARKER.encode() not in file_bytes(path)


def test_an_entry_of_a_layer_that_the_scope_does_not_see_stays() -> None:
    with Memory(":memory:") as mem:
        turn = mem.session("s", scope=ADA).add("user", "Our office is in Bergen.")
        (known,) = mem.remember("The office is in Bergen.", scope=Scope(tenant="acme", org="all"))
        mem.link(known, turn, "derived_from", scope=ADA_IN_ORG)
        assert mem.forget([turn], scope=ADA).entries == 1
        assert mem.get(known, scope=ADA_IN_ORG).text == "The office is in Bergen."
