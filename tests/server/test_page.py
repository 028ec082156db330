"""Who may open the page, and what it lets them do."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import httpx
import pytest
from fastapi.routing import APIRoute

from wellworn import Scope
from wellworn.core.fence import NOTHING
from wellworn.core.wellformed import visible
from wellworn.server.keys import id_in, list_keys, revoke_key
from wellworn.server.page.visit import ui

from .conftest import Running, serving
from .page_world import fill

ADA = Scope(user="ada", agent="deployer")
POSTS = sorted({route.path for route in ui.routes if isinstance(route, APIRoute) and "POST" in (route.methods or ())})
CHANGES = [path for path in POSTS if path != "/ui/sign-in"]
PAGES = ("/", "/ui/person", "/ui/sessions", "/ui/review", "/ui/tasks", "/ui/learning")
ADMIN_PAGES = ("/ui/costs", "/ui/doctor", "/ui/keys")
HOSTILE = "<script>alert(1)</script>\u202e \"'><img src=x onerror=alert(1)> {{ 7*7 }}"


@pytest.fixture
def guarded() -> Iterator[Running]:
    """A service that wants keys."""
    with serving(local=None) as running:
        yield running


def signed_in(running: Running, key: str) -> httpx.Client:
    http = running.http()
    answer = http.post("/ui/sign-in", data={"key": key})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    return http


def token_of(page: httpx.Response) -> str:
    found = re.search(r'name="token" value="([^"]+)"', page.text)
    assert found is not None
    return found[1]


def test_a_visitor_signs_in_with_a_key_and_the_cookie_does_not_hold_it(guarded: Running) -> None:
    http, key = guarded.http(), guarded.key(user=["ada"])
    for path in (*PAGES, *ADMIN_PAGES):
        assert http.get(path).headers["location"] == "/ui/sign-in"
    assert http.post("/ui/sign-in", data={"key": key + "x"}).status_code == 401
    answer = http.post("/ui/sign-in", data={"key": key})
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "secure" not in cookie
    assert key.partition("_")[2].lower() not in cookie
    assert http.get("/").status_code == 200
    assert http.get("/v1/stats").status_code == 401  # the cookie is for the page alone
    behind_tls = guarded.http().post("/ui/sign-in", data={"key": key}, headers={"x-forwarded-proto": "https"})
    assert "secure" in behind_tls.headers["set-cookie"].lower()
    assert http.post("/ui/sign-out", data={"token": token_of(http.get("/"))}).status_code == 303
    assert http.get("/").status_code == 303


def test_a_revoked_key_ends_the_visit_and_guessing_is_limited(guarded: Running) -> None:
    key = guarded.key(user=["ada"])
    http, engine = signed_in(guarded, key), guarded.service.memory.engine
    assert http.get("/").status_code == 200
    revoke_key(engine.store, id_in(key), now=engine.clock())
    assert http.get("/").headers["location"] == "/ui/sign-in"
    tries = {guarded.http().post("/ui/sign-in", data={"key": "ww_no_key"}).status_code for _ in range(12)}
    assert tries == {401, 429}


def test_guesses_that_are_no_keys_are_limited_too_and_forms_are_small(guarded: Running) -> None:
    http = guarded.http()
    assert http.post("/ui/sign-in", data={"key": "x" * 4_000}).status_code == 413
    assert [http.post("/ui/sign-in", data={"key": "no key"}).status_code for _ in range(12)] == [401] * 10 + [429] * 2
    visitor = signed_in(guarded, guarded.key(user=["ada"]))
    long = {"token": token_of(visitor.get("/")), "id": "x" * 64_000}
    assert visitor.post("/ui/session/forget", data=long).status_code == 413
    assert visitor.post("/ui/review", data=long).status_code == 404


def test_a_change_needs_the_token_of_the_page_and_its_origin(server: Running) -> None:
    http = server.http()
    token = token_of(http.get("/ui/doctor"))
    strange = {"origin": "http://elsewhere.example"}
    other = server.http()  # another browser
    for path in CHANGES:
        address = path.format(id="0198c0de-0000-7000-8000-000000000000")
        for data in ({"token": ""}, {"token": "guessed"}):
            assert http.post(address, data=data).status_code == 403, path
        assert other.post(address, data={"token": token}).status_code == 403, path
        assert http.post(address, data={"token": token}, headers=strange).status_code == 403, path
        assert http.post(address, json={"token": token}).status_code == 422, path


@pytest.mark.parametrize("role", ["reader", "writer"])
def test_pages_offer_what_the_role_may_do(role: str, guarded: Running) -> None:
    ids = fill(guarded.service.memory)
    http = signed_in(guarded, guarded.key(role=role))
    looks = [f"{path}?user=ada&agent=deployer" for path in PAGES]
    entry = f"/ui/entries/{ids['tokio']}"
    looks += [f"{entry}?user=ada", "/ui/session?user=ada&id=spring-planning"]
    for path in looks:
        page = http.get(path)
        assert page.status_code == 200, path
        actions = set(re.findall(r'method="post" action="([^"?]+)', page.text)) - {"/ui/sign-out"}
        offers = path.partition("?")[0] in ("/ui/person", "/ui/review", "/ui/session", entry)
        assert bool(actions) == (role == "writer" and offers), path
    for path in ADMIN_PAGES:
        assert http.get(path).status_code == 403
    if role == "reader":
        token = token_of(http.get("/?user=ada"))
        assert http.post(f"{entry}/forget?user=ada", data={"token": token}).status_code == 403


def test_a_key_sees_its_own_tenant_and_its_own_person(guarded: Running) -> None:
    ids = fill(guarded.service.memory)
    guarded.key(tenant="acme", role="writer")
    other = signed_in(guarded, guarded.key(tenant="acme"))
    assert other.get(f"/ui/entries/{ids['tokio']}?user=ada").status_code == 404
    assert "tokio" not in other.get("/?user=ada&q=tokio").text.replace('value="tokio"', "").replace("<title>tokio", "")
    keys = other.get("/ui/keys")
    assert "laptop" not in keys.text
    (laptop,) = list_keys(guarded.service.memory.engine.store, "default")
    assert other.post("/ui/keys/revoke", data={"token": token_of(keys), "id": laptop.id}).status_code == 404
    made = other.post("/ui/keys/create", data={"token": token_of(keys), "name": "phone", "person": "ada"})
    assert (made.status_code, made.headers["location"]) == (303, "/ui/keys")  # to load it again makes no second key
    (text,) = re.findall(r"ww_[0-9a-f]+_[\w-]+", other.get("/ui/keys").text)
    assert guarded.client(text).entries() == []  # acme's ada
    assert text not in other.get("/ui/keys").text
    bound = signed_in(guarded, guarded.key(user=["ben"]))
    assert bound.post("/ui/keys/create", data={"token": token_of(bound.get("/"))}).status_code == 403
    assert bound.get("/?user=ada").status_code == 403
    assert [bound.get(path).status_code for path in ADMIN_PAGES] == [403] * 3
    assert 'name="user"' not in bound.get("/").text


def test_a_key_of_several_teams_chooses_one(guarded: Running) -> None:
    for team in ("core", "web"):
        guarded.service.memory.for_scope(Scope(team=team)).remember(f"The {team} team meets on Fridays.")
    http = signed_in(guarded, guarded.key(team=["core", "web"], org=["acme", "initech"]))
    for path in PAGES:
        page = http.get(path)
        assert page.status_code == 200, path
        assert re.search(r'<select name="team".*\n<option value="core" selected>', page.text), path
    assert "The core team" in http.get("/ui/person").text
    page = http.get("/ui/person", params={"team": "web"})
    assert "The web team" in page.text
    assert "The core team" not in page.text
    assert 'href="/ui/sessions?team=web"' in page.text
    assert http.get("/ui/person", params={"team": "ops"}).status_code == 403


def test_texts_are_shown_and_never_obeyed() -> None:
    with serving(local=Scope(user=HOSTILE)) as running:
        ada = running.service.memory.for_user(HOSTILE)
        (id,) = ada.remember(HOSTILE, title=HOSTILE, tags=[HOSTILE], speaker=HOSTILE, kind="fact")
        ada.session(HOSTILE).add("user", HOSTILE)
        http = running.http()
        found = {
            path: http.get(path, params=query).text
            for path, query in {
                "/": {"q": HOSTILE},
                "/ui/person": {},
                "/ui/sessions": {},
                "/ui/session": {"id": HOSTILE},
                f"/ui/entries/{id}": {},
                "/ui/tasks": {},
                "/ui/review": {},
                "/ui/learning": {},
            }.items()
        }
    for path, text in found.items():
        assert "<script>alert" not in text, path
        assert "<img" not in text, path
        assert "\u202e" not in text, path
        assert "49" not in re.sub(r"\d{4,}|[\d:.]{3,}|value=\"[^\"]{40,}\"|[0-9a-f-]{36}", "", text), path
        assert "&lt;script&gt;" in text, path
        assert "\\u202e" in text, path


def test_what_has_unseen_characters_in_its_name_is_forgotten_too() -> None:
    name = "\ufeff2026\u200f-05\u00ad\n"
    with serving(local=Scope(user=name)) as running:
        memory, http = running.service.memory.for_user(name), running.http()
        memory.session(name).add("user", "My PIN is 4711.")
        memory.remember("Zoe is ill.")
        page = http.get("/ui/session", params={"id": name})
        found = re.search(r'action="(/ui/session/forget[^"]*)"', page.text)
        assert found is not None
        address, token = html.unescape(found[1]), {"token": token_of(page)}
        told = [http.post(address, data=token, follow_redirects=True).text for _ in range(2)]
        assert memory.sessions() == []
        shown = {**token, "name": visible(name)}
        told += [http.post("/ui/person/forget", data=shown, follow_redirects=True).text for _ in range(2)]
        assert memory.entries() == []
    assert ["Forgotten, for good." in one for one in told] == [True, False] * 2
    assert ["There was nothing to forget." in one for one in told] == [False, True] * 2


def test_a_change_of_somebody_else_is_not_overwritten(server: Running) -> None:
    me = server.service.memory.for_user("me")
    (id,) = me.remember("The tram stops at nine.")
    http = server.http()
    page = http.get(f"/ui/entries/{id}")
    form = {"token": token_of(page), "text": "The tram stops at ten.\r\nReally.", "kind": "note", "tags": "tram, town"}
    found = re.search(r'name="etag" value="([^"]+)"', page.text)
    assert found is not None
    etag = found[1].replace("&#34;", '"')
    assert http.post(f"/ui/entries/{id}/edit", data={**form, "etag": etag}).status_code == 303
    entry = me.get(id)
    assert (entry.text, entry.tags) == ("The tram stops at ten.\nReally.", ["tram", "town"])
    refused = http.post(f"/ui/entries/{id}/edit", data={**form, "etag": etag, "text": "Not at <nine>."})
    assert (refused.status_code, "was changed meanwhile" in refused.text) == (412, True)
    assert me.get(id) == entry
    again = fields_of(refused, f"/ui/entries/{id}/edit")
    assert (again["text"], again["tags"]) == ("Not at <nine>.", "tram, town")
    me.remember(entry.text)  # said again, it counts, which is no change of somebody else
    assert http.post(f"/ui/entries/{id}/edit", data={**again, "kind": "note"}).status_code == 303
    assert (me.get(id).text, me.get(id).repeats) == ("Not at <nine>.", 1)


def fields_of(page: httpx.Response, action: str) -> dict[str, str]:
    """The form of this action as a browser sends it when nobody has touched it."""
    form = page.text.partition(f'method="post" action="{action}')[2].partition("</form>")[0]
    fields = re.findall(r'<input[^>]*? name="(\w+)"[^>]*? value="([^"]*)"', form)
    fields += re.findall(r'<textarea name="(\w+)"[^>]*>\n(.*?)</textarea>', form, re.S)
    return {name: html.unescape(value).replace("\n", "\r\n") for name, value in fields}


def test_a_field_that_nobody_touched_stays_as_it_is(server: Running) -> None:
    me, http = server.service.memory.for_user("me"), server.http()
    text, tags = "Donau\u00addampf\u200f\nschiff \u202e", ["a,b", "c\ufeff"]
    (id,) = me.remember(text, tags=tags)
    address = f"/ui/entries/{id}"
    sent = {**fields_of(http.get(address), f"{address}/edit"), "kind": "fact"}
    assert http.post(f"{address}/edit", data=sent).status_code == 303
    entry = me.get(id)
    assert (entry.text, entry.tags, entry.kind) == (text, tags, "fact")
    sent = {**fields_of(http.get(address), f"{address}/edit"), "kind": "fact"}
    assert "Nothing was changed." in http.post(f"{address}/edit", data=sent, follow_redirects=True).text
    sent = {**fields_of(http.get(address), f"{address}/edit"), "tags": "b", "kind": "fact"}
    assert http.post(f"{address}/edit", data=sent).status_code == 303
    assert (me.get(id).text, me.get(id).tags) == (text, ["b"])


@pytest.mark.parametrize(
    ("form", "state", "answers", "told"),
    [
        ({}, "active", [], ["Marked as outdated.", "Outdated since"]),
        ({"wrong": "on"}, "pruned", [], ["Marked as never true.", "It was never true."]),
        ({"instead": "The tram stops at ten."}, "superseded", ["ten"], ["Marked as outdated.", "by The tram stops"]),
        (
            {"wrong": "on", "instead": "The tram stops at ten."},
            "pruned",
            ["ten"],
            ["Marked as never true.", "It was never true. Instead: The tram stops at ten."],
        ),
    ],
)
def test_what_is_outdated_gives_way(
    form: dict[str, str], state: str, answers: list[str], told: list[str], server: Running
) -> None:
    me = server.service.memory.for_user("me")
    (id,) = me.remember("The tram stops at nine.", kind="fact", at="2026-01-01")
    http = server.http()
    token = token_of(http.get(f"/ui/entries/{id}"))
    page = http.post(f"/ui/entries/{id}/outdate", data={"token": token, **form}, follow_redirects=True)
    shown = " ".join(re.sub("<[^>]+>", "", page.text).split())
    assert [one for one in told if one not in shown] == []
    assert me.get(id).state == state
    assert [hit.text for hit in me.recall("when does the tram stop?")] == [
        f"The tram stops at {one}." for one in answers
    ]


def test_an_empty_memory_says_how_to_add_a_first_one(server: Running) -> None:
    http = server.http()
    page = html.unescape(http.get("/?user=ben").text)
    assert "POST /v1/entries?user=ben" in page
    assert "wellworn remember 'Ada prefers tokio.' --user ben --db " in page
    server.client().for_user("ben").remember("Ben likes tea.")
    assert "POST /v1/entries" not in http.get("/?user=ben").text
    assert 'of me yet. Others: <a href="/?user=ben">ben</a>.' in http.get("/").text


def test_sessions_stand_by_when_they_were_said(server: Running) -> None:
    me = server.service.memory.for_user("me")
    for id, at in (("new", "2026-05-04T09:30"), ("old", "2019-01-02T03:04")):
        me.session(id).add("user", "Good morning.", at=at)
    page = server.http().get("/ui/sessions").text
    assert re.findall(r"<time>(.+?)</time>", page) == ["2026-05-04 09:30", "2019-01-02 03:04"]
    assert "Times are UTC." in page


def test_errors_are_sentences_on_a_page_about_the_same_person(server: Running) -> None:
    (id,) = server.service.memory.for_user("ben").remember("The tram stops at nine.")
    http, address = server.http(), f"/ui/entries/{id}/"
    sent = fields_of(http.get(f"{address[:-1]}?user=ben"), address + "edit")
    told = {
        "The text is empty.": http.post(f"{address}edit?user=ben", data={**sent, "text": " "}),
        "The entry says this already.": http.post(
            f"{address}outdate?user=ben", data={**sent, "instead": "The tram stops at nine."}
        ),
        "There is no page 'nothing/here' here.": http.get("/ui/nothing/here?user=ben"),
        "There is no entry 'xyz' here.": http.get("/ui/entries/xyz?user=ben"),
        NOTHING: http.get("/?user=ben&q=walnuts"),
    }
    assert "too long: at most 1,000 characters" in http.get("/", params={"q": "x" * 3_000}).text
    for words, answer in told.items():
        assert words in html.unescape(answer.text)
        assert 'href="/ui/sessions?user=ben"' in answer.text
        assert words == NOTHING or '<a href="/?user=ben">Back to the search' in answer.text
