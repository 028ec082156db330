"""The page in a real browser: every page opens cleanly, and what a person does there works."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from wellworn import Scope
from wellworn.tasks import ReasoningBank

from .conftest import Running, serving
from .page_world import fill

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page

pytestmark = pytest.mark.slow
sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
LIMIT_MS = 60_000
HOSTILE = "<script>alert(1)</script> \"'><img src=x onerror=alert(1)><svg onload=alert(1)> javascript:alert(1)"
ADA = Scope(user="ada", agent="deployer")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("needs chromium (Debian's package of that name)")
    with sync_api.sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, timeout=2 * LIMIT_MS)
        except sync_api.Error as error:  # a machine may forbid what a browser needs
            pytest.skip(f"chromium does not start here: {str(error).splitlines()[0]}")
        yield browser
        browser.close()


@contextmanager
def opened(chromium: Browser, url: str, **options: Any) -> Iterator[Page]:  # options of a browser context
    """A page of a new browser that must not complain, ask or raise."""
    context = chromium.new_context(base_url=url, **options)
    context.set_default_timeout(LIMIT_MS)
    page, complaints = context.new_page(), list[str]()

    def asked(dialog: Dialog) -> None:
        complaints.append(dialog.message)
        dialog.dismiss()

    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", asked)
    yield page
    context.close()
    assert complaints == []


@pytest.fixture(scope="module")
def world() -> Iterator[tuple[Running, dict[str, str]]]:
    with serving(local=ADA) as running:
        running.service.memory.for_scope(ADA).session("long").add("x" * 200, "Good morning.")
        yield running, fill(running.service.memory)


def addresses(ids: dict[str, str]) -> list[str]:
    pages = [
        "person",
        "sessions",
        "session?id=spring-planning",
        "review",
        "tasks",
        "learning",
        "costs",
        "doctor",
        "keys",
        "sign-in",
    ]
    entries = [f"/ui/entries/{ids[name]}" for name in ("lisbon", "oslo")]
    return ["/", "/?q=where+does+Ada+live%3F", "/?q=zxqv", *entries, *(f"/ui/{page}" for page in pages)]


def test_every_page_opens_and_is_accessible(chromium: Browser, world: tuple[Running, dict[str, str]]) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python").Axe()
    running, ids = world
    for look in ({"color_scheme": "light"}, {"color_scheme": "dark", "viewport": {"width": 390, "height": 800}}):
        with opened(chromium, running.url, **look) as page:
            for address in [*addresses(ids), "/ui/session?id=long"]:
                answer = page.goto(address)
                assert answer is not None
                assert answer.status == 200, address
                page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
                wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                assert wider <= 0, address
                found = axe.run(page).response["violations"]
                assert [(one["id"], one["nodes"][0]["html"]) for one in found] == [], (address, look)


def test_a_person_searches_walks_edits_corrects_and_forgets(chromium: Browser) -> None:
    with serving(local=ADA) as running, opened(chromium, running.url) as page:
        ids = fill(running.service.memory)
        ada = running.service.memory.for_user("ada")
        page.goto("/")
        page.locator(".brand").focus()
        page.keyboard.press("/")
        page.keyboard.type("where did Ada live before?")
        page.keyboard.press("Enter")
        old = page.locator(".item.outdated", has_text="Oslo")
        old.get_by_text("Outdated since 2026-04-01 by").wait_for()
        page.locator(".brand").focus()
        page.keyboard.press("j")
        assert page.evaluate("document.activeElement.matches('.item')")

        old.get_by_role("link", name="Ada lives in Lisbon.").click()
        page.wait_for_url(f"**/{ids['lisbon']}*")
        page.locator(".graph").get_by_role("link", name="supersedes: Ada lives in Oslo.").click()
        page.wait_for_url(f"**/{ids['oslo']}*")

        page.goto(f"/ui/entries/{ids['tokio']}")
        page.get_by_text("Edit…").click()
        page.get_by_label("Text").fill("Ada prefers tokio.")
        page.get_by_role("button", name="Save").click()
        page.get_by_role("status").wait_for()
        assert ada.get(ids["tokio"]).text == "Ada prefers tokio."

        page.goto("/ui/person")
        train = page.locator(".item", has_text="takes the train")
        train.get_by_text("Outdated or wrong…").click()
        train.get_by_label("What holds now").fill("Ada cycles to the office on Tuesdays.")
        train.get_by_role("button", name="This is outdated").click()
        page.get_by_role("status").wait_for()
        assert ada.get(ids["train"]).state == "superseded"

        page.goto("/ui/person")
        cycles = page.locator(".item", has_text="cycles")
        cycles.get_by_text("Forget…").click()
        cycles.get_by_role("button", name="Forget it").click()
        page.get_by_text("Forgotten, for good.").wait_for()
        assert not [one for one in ada.entries() if "cycles" in one.text]


def test_a_session_says_what_was_kept_and_why_not(chromium: Browser, world: tuple[Running, dict[str, str]]) -> None:
    with opened(chromium, world[0].url) as page:
        page.goto("/ui/sessions")
        page.get_by_role("link", name="spring-planning").click()
        page.get_by_text("Nothing kept: said by the assistant").wait_for()
        page.locator(".made").first.wait_for()
        page.get_by_role("button", name="Read it again").click()
        page.get_by_role("status").wait_for()


def test_a_question_is_decided_by_one_key(chromium: Browser) -> None:
    with serving(local=ADA) as running, opened(chromium, running.url) as page:
        fill(running.service.memory)
        bank = ReasoningBank(running.service.memory, scope=ADA)
        (question,) = bank.reviews.questions()
        page.goto("/ui/review")
        page.locator(".case:focus").wait_for()
        page.keyboard.press("1")
        page.get_by_text("Nothing waits for a decision.").wait_for()
        assert [bank.item(one.id).state for one in question.entries] == ["active", "superseded"]


def test_a_visitor_signs_in_checks_the_store_and_revokes_a_key(chromium: Browser) -> None:
    with serving(local=None) as running, opened(chromium, running.url) as page:
        fill(running.service.memory)
        page.goto("/ui/doctor")
        page.get_by_label("API key").fill(running.key())
        page.get_by_role("button", name="Sign in").click()
        page.get_by_label("Person").fill("ada")
        page.get_by_label("Question").fill("tokio")
        page.get_by_role("button", name="Search").click()
        page.locator(".item", has_text="tokio").first.wait_for()
        page.get_by_role("link", name="Doctor").click()
        page.get_by_role("button", name="Check the whole store").click()
        page.get_by_text("No flaws in").wait_for()
        page.get_by_role("link", name="Keys").click()
        page.set_viewport_size({"width": 390, "height": 800})
        page.get_by_text("Make a key…").click()
        page.get_by_role("button", name="Make the key").click()
        page.get_by_text("The new key").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
        page.reload()
        assert (page.get_by_text("The new key").count(), page.get_by_role("button", name="Revoke").count()) == (0, 3)
        page.get_by_role("button", name="Revoke laptop").click()
        page.get_by_text("The key is revoked.").wait_for()
        page.get_by_role("button", name="Sign out").click()
        page.get_by_label("API key").wait_for()


def test_stored_scripts_do_nothing_on_any_page(chromium: Browser) -> None:
    scope = Scope(user=HOSTILE, agent=HOSTILE)
    with serving(local=scope) as running:
        memory = running.service.memory.for_scope(scope)
        ids = fill(running.service.memory, user=HOSTILE, agent=HOSTILE)
        (id,) = memory.remember(HOSTILE, title=HOSTILE, tags=[HOSTILE], speaker=HOSTILE, kind="fact")
        memory.link(id, ids["lisbon"], "supports")
        memory.edit(ids["oslo"], text=HOSTILE)
        session = memory.session("spring-planning")
        session.add("user", f"I like {HOSTILE}")
        session.add(HOSTILE[:200], HOSTILE)
        for item in memory.entries(kind=["strategy", "guardrail"]):
            memory.edit(item.id, text=f"{item.id} {HOSTILE}", title=HOSTILE)
        with opened(chromium, running.url) as page:
            for address in (*addresses(ids), f"/ui/entries/{id}", "/?q=%3Cscript%3Ealert(1)%3C/script%3E"):
                page.goto(address)
                page.locator("main").wait_for()
                assert page.locator("main script, main img, main [onerror], a[href^='javascript']").count() == 0
