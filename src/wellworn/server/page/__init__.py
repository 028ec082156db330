"""The pages: each handler calls verbs of `Memory` in the visitor's scope, and a template shows the result.

No rule of memory lives here. Pages look; only POSTs change anything.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI, Query, Response

from wellworn.core.errors import Conflict, InvalidInput, NotFound
from wellworn.core.fence import MIN_CONFIDENCE, NOTHING
from wellworn.core.values import KINDS, Entry, Receipt
from wellworn.core.wellformed import visible
from wellworn.jobs.queue import list_jobs
from wellworn.reflection.service import REFLECT
from wellworn.server.guard import PAGE
from wellworn.server.keys import create_key, list_keys, revoke_key
from wellworn.server.page import words
from wellworn.server.page.visit import FILES, HEADERS, Looks, PageRoute, PageState, Visit, Visits, ui
from wellworn.server.service import etag_of

HITS = 10
MOST_SHOWN = 500
MOST_LINKS = 60
KNOWLEDGE = [kind for kind in KINDS if kind != "episode"]
"""What is known, without the turns it was said in."""
_TYPES = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}

Changes = Annotated[Visit, Depends(Visits("writer"))]
Administers = Annotated[Visit, Depends(Visits("admin"))]
Keeps = Annotated[Visit, Depends(Visits("admin", whole=True))]
"""Administers the whole tenant."""
Line = Annotated[str, Query(max_length=1000)]

pages = APIRouter(route_class=PageRoute, include_in_schema=False)


def add_page(app: FastAPI) -> None:
    """Put the page into the service."""
    app.state.page = PageState(app.state.service)
    app.router.routes += [*pages.routes, *ui.routes]


@ui.get("/files/{name}")
def files(name: str) -> Response:
    if name not in _TYPES:
        raise NotFound("file", name)
    return Response((FILES / name).read_bytes(), 200, {**HEADERS, "cache-control": "max-age=300"}, _TYPES[name])


# -- search ------------------------------------------------------------------------------------------------------------


@pages.get("/")
def search(visit: Looks, q: Line = "") -> Response:
    """Search, with the reasons of each hit."""
    memory = visit.call.memory
    if not q.strip() or not visit.named:
        empty = visit.named and not memory.entries(limit=1)
        return visit.page("search.html", q=q, recall=None, command=_first_command(visit) if empty else "")
    recall = memory.recall(q, k=HITS)
    visit.call.access.count = len(recall.hits)
    unlikely = recall.confidence is not None and recall.confidence < MIN_CONFIDENCE
    replaced = {hit.entry.id: _replaced_by(visit, hit.entry) for hit in recall if hit.outdated}
    return visit.page("search.html", q=q, recall=recall, unlikely=unlikely, replaced=replaced, nothing=NOTHING)


def _first_command(visit: Visit) -> str:
    """What remembers something here, typed where the service runs; a visitor with a key is told no path."""
    home = visit.call.scope.home()
    options = {f"--{home.layer}": home.layer_id} | ({"--tenant": home.tenant} if home.tenant != "default" else {})
    options |= {} if visit.signed_in else {"--db": visit.call.memory.engine.store.location}
    return shlex.join(
        ["wellworn", "remember", "Ada prefers tokio.", *(part for one in options.items() for part in one)]
    )


def _replaced_by(visit: Visit, entry: Entry) -> Entry | None:
    """What took its place first."""
    found = visit.call.memory.engine.changer.replacements(entry.id, scope=visit.call.scope)
    return min(found, key=lambda one: one.valid_from, default=None)


# -- an entry ----------------------------------------------------------------------------------------------------------


@ui.get("/entries/{id}")
def entry(visit: Looks, id: str) -> Response:
    """One entry: what it rests on, what became of it, what it is linked to."""
    return _entry(visit, id)


def _entry(visit: Visit, id: str, status: int = 200, typed: Mapping[str, object] | None = None) -> Response:
    """The page of an entry; `typed` is an edit that was refused, to be looked at again."""
    memory, store = visit.call.memory, visit.call.memory.engine.store
    found = memory.get(id)
    versions, links = memory.history(id), memory.links(id)
    ends = [link.target if link.source == id else link.source for link in links]
    others = store.get(visit.call.scope.partitions(), ends)
    turns = [] if found.session_id is None else store.turns(found.partition, found.session_id)
    neighbours, now = words.neighbours(found, links, others), memory.engine.clock()
    return visit.page(
        "entry.html",
        status,
        entry=found,
        typed=typed,
        etag=etag_of(found),
        outdated=words.outdated(found, now),
        replaced=_replaced_by(visit, found),
        versions=versions[::-1],
        turns=[turn for turn in turns if turn.number in found.turn_refs],
        neighbours=neighbours[:MOST_LINKS],
        most_drawn=words.MOST_DRAWN,
        span=words.span(found, [version.changed_at for version in versions], now),
        size=(words.WIDTH, words.height(len(neighbours))),
        kinds=KINDS,
    )


@ui.post("/entries/{id}/edit")
def edit(visit: Changes, id: str) -> Response:
    memory, form = visit.call.memory, visit.form
    expected = memory.get(id)
    tags, joined = expected.tags, ", ".join(expected.tags)
    if _edited(form.get("tags", ""), joined) != joined:
        tags = [tag.strip() for tag in form.get("tags", "").split(",") if tag.strip()]
    text = _edited(form.get("text", ""), expected.text)
    changes = {"text": text, "kind": form.get("kind", expected.kind), "tags": tags}
    if form.get("etag") == etag_of(expected):
        with suppress(Conflict):
            after = memory.engine.changer.edit(id, scope=visit.call.scope, changes=changes, expected=expected)
            return visit.go(f"{PAGE}entries/{id}", "same" if after == expected else "edited")
    return _entry(visit, id, 412, changes)


def _edited(sent: str, was: str) -> str:
    """What a field came back as; whoever left it as it was shown left the characters that it does not show, too."""
    return was if sent == words.plain(was) else sent


@ui.post("/entries/{id}/outdate")
def outdate(visit: Changes, id: str) -> Response:
    """It holds no longer, or never did; with what holds instead, if the visitor says so."""
    memory, wrong = visit.call.memory, "wrong" in visit.form
    old, text = memory.get(id), visit.form.get("instead", "").strip()
    if text:
        new = memory.remember(text, kind=old.kind, tags=old.tags, layer=old.layer, speaker=old.speaker)[0]
        if new == id:
            raise InvalidInput("instead", "the entry says this already", "say what holds now, or leave it empty")
        memory.supersede(id, new, wrong=wrong)
    else:
        memory.edit(id, **({"state": "pruned"} if wrong else {"valid_to": memory.engine.clock()}))
    return visit.go(f"{PAGE}entries/{id}", "wrong" if wrong else "outdated")


@ui.post("/entries/{id}/forget")
def forget(visit: Changes, id: str) -> Response:
    return _forgotten(visit, "person", visit.call.memory.forget([id], turns="turns" in visit.form))


def _forgotten(visit: Visit, page: str, receipt: Receipt) -> Response:
    """On to a page that says whether anything is gone."""
    gone = receipt.entries or receipt.turns or receipt.sessions
    return visit.go(f"{PAGE}{page}", "forgotten" if gone else "nothing")


# -- a person ----------------------------------------------------------------------------------------------------------


@ui.get("/person")
def person(visit: Looks) -> Response:
    """What is known about the person, by kind."""
    if not visit.named:
        return visit.page("choose.html")
    memory, home = visit.call.memory, visit.call.scope.home()
    found = memory.entries(kind=KNOWLEDGE, layer=home.layer, limit=MOST_SHOWN + 1)  # type: ignore[arg-type]
    visit.call.access.count = len(found)
    now = memory.engine.clock()
    found.sort(key=lambda one: (KNOWLEDGE.index(one.kind), -one.at.timestamp()))
    groups = []
    for kind, several in groupby(found[:MOST_SHOWN], key=lambda one: one.kind):
        of_kind = [*several]
        holds = [one for one in of_kind if not words.outdated(one, now)]
        groups.append((kind, holds, [one for one in of_kind if words.outdated(one, now)]))
    return visit.page("person.html", home=home, groups=groups, more=len(found) > MOST_SHOWN)


@ui.post("/person/forget")
def forget_person(visit: Administers) -> Response:
    """Forget everything about the person, who must be named once more."""
    home = visit.call.scope.home()
    if visible(visit.form.get("name", "")) != visible(home.layer_id):
        raise InvalidInput("name", "is not that of the person", f"type {home.layer_id!r} to forget everything")
    return _forgotten(visit, "person", visit.call.memory.forget(everything=True))


# -- sessions ----------------------------------------------------------------------------------------------------------


@ui.get("/sessions")
def sessions(visit: Looks) -> Response:
    """Dialogues, the latest first."""
    if not visit.named:
        return visit.page("choose.html")
    store = visit.call.memory.engine.store
    home = visit.call.scope.home()
    heads, said = store.sessions(home), store.last_said(home)
    visit.call.access.count = len(heads)
    heads.sort(key=lambda head: head.touched_at, reverse=True)
    found = [(said.get(head.id, head.touched_at), head) for head in heads[:MOST_SHOWN]]
    found.sort(key=lambda one: one[0], reverse=True)
    return visit.page("sessions.html", sessions=found, more=len(heads) - len(found))


@ui.get("/session")
def session(visit: Looks, id: Line) -> Response:
    """The turns of a dialogue, what was extracted from each, or why nothing was."""
    memory, home = visit.call.memory, visit.call.scope.home()
    head = memory.engine.store.session(home, id)
    if head is None:
        raise NotFound("session", id)
    visit.call.access.id = id
    made = memory.entries(session_id=id, kind=KNOWLEDGE, layer=home.layer, limit=MOST_SHOWN)  # type: ignore[arg-type]
    jobs = [
        job
        for job in list_jobs(memory.engine.store, partition=home, kinds=[REFLECT])
        if job.payload.get("session") == id and job.state == "done"
    ]
    skipped: dict[int, str] = {}
    for job in reversed(jobs):  # the latest has the last word
        skipped |= {int(number): why for number, why in job.result.get("skipped", {}).items()}
    turns = memory.session(id).turns()
    of_turn = {turn.number: [one for one in made if turn.number in one.turn_refs] for turn in turns}
    return visit.page("session.html", head=head, turns=turns, of_turn=of_turn, skipped=skipped, jobs=jobs)


@ui.post("/session/reflect")
def reflect(visit: Changes, id: Line) -> Response:
    visit.call.memory.reflect(id, again="again" in visit.form)
    return visit.go(f"{PAGE}session", "reflected", id=id)


@ui.post("/session/forget")
def forget_session(visit: Changes, id: Line) -> Response:
    return _forgotten(visit, "sessions", visit.call.memory.forget(session_id=id))


# -- agents ------------------------------------------------------------------------------------------------------------


@ui.get("/review")
def review(visit: Looks) -> Response:
    """Questions that people decide, one key each."""
    if not visit.named:
        return visit.page("choose.html")
    return visit.page("review.html", questions=visit.bank.reviews.questions(scope=visit.call.scope))


@ui.post("/review")
def decide(visit: Changes) -> Response:
    form = visit.form
    decision, _, keep = form.get("decision", "").partition(" ")
    key, text = form.get("key", ""), form.get("text") or None
    if decision == "partial" and text is not None:
        text = _edited(text, visit.call.memory.get(key).text)
    visit.bank.reviews.decide(key, decision, keep=keep or None, text=text, scope=visit.call.scope)
    return visit.go(f"{PAGE}review", "decided")


@ui.get("/tasks")
def tasks(visit: Looks) -> Response:
    """What agents did, and what they learned from it."""
    if not visit.named:
        return visit.page("choose.html")
    bank, scope = visit.bank, visit.call.scope
    return visit.page(
        "tasks.html",
        stats=bank.stats(scope=scope),
        items=bank.items(scope=scope, limit=50),
        tasks=bank.tasks(scope=scope, limit=50),
    )


# -- care --------------------------------------------------------------------------------------------------------------


@ui.get("/learning")
def learning(visit: Looks) -> Response:
    """What was learned from outcomes, and whether it serves."""
    if not visit.named:
        return visit.page("choose.html")
    status = visit.call.memory.learning.status()
    weights = sorted(status.weights.items(), key=lambda one: -abs(one[1]))
    return visit.page("learning.html", learned=replace(status, weights=dict(weights)))


@ui.get("/costs")
def costs(visit: Keeps) -> Response:
    """What calls of models cost."""
    admin = visit.call.memory.admin
    return visit.page("costs.html", total=admin.costs(by=()), spent=admin.costs(), days=admin.costs(by=("day",))[-31:])


@ui.get("/doctor")
def doctor(visit: Keeps) -> Response:
    """How much there is, and a check of it."""
    return visit.page("doctor.html", stats=visit.call.memory.admin.stats(), report=None)


@ui.post("/doctor")
def check(visit: Administers) -> Response:
    visit.call.require_store("doctor")
    memory = visit.call.memory
    return visit.page("doctor.html", stats=memory.admin.stats(), report=memory.verify())


@ui.get("/keys")
def keys(visit: Keeps) -> Response:
    """Who may call the service, and the text of a key that was just made: it is in no address and shown once."""
    found = list_keys(visit.call.memory.engine.store, visit.call.caller.tenant)
    made = [*visit.browser.made]
    if visit.request.method == "GET":
        visit.browser.made.clear()
    return visit.page("keys.html", keys=found, made=made, now=visit.call.memory.engine.clock())


@ui.post("/keys/create")
def make_key(visit: Keeps) -> Response:
    form, engine, tenant = visit.form, visit.call.memory.engine, visit.call.caller.tenant
    person, role = form.get("person", "").strip(), form.get("role", "writer")
    layers = {"user": [person]} if person else {}
    _, text = create_key(
        engine.store, tenant=tenant, role=role, now=engine.clock(), name=form.get("name", ""), layers=layers
    )
    visit.browser.made.append(text)
    return visit.go(f"{PAGE}keys", "")


@ui.post("/keys/revoke")
def revoke(visit: Keeps) -> Response:
    engine, tenant = visit.call.memory.engine, visit.call.caller.tenant
    revoke_key(engine.store, visit.form.get("id", ""), now=engine.clock(), tenant=tenant)
    return visit.go(f"{PAGE}keys", "revoked")


@ui.get("/{path:path}", dependencies=[Depends(Visits("reader"))])  # the last: whatever is none of the above
def unknown(path: str) -> Response:
    raise NotFound("page", path)
