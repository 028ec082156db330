"""Who visits the page, whose memory they look at, and how a page is answered.

A visitor of a local service needs no key. Elsewhere they sign in with one; the cookie then holds a random id, and this
process knows whose it is. Every change is a POST that carries the token of that id. A key that is revoked ends the
visit at once.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Depends, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from wellworn.core.cache import LruCache
from wellworn.core.dataclass import dataclass
from wellworn.core.errors import AccessDenied, InvalidInput, NotFound, WellwornError
from wellworn.core.values import LAYERS
from wellworn.core.wellformed import counted, shortened, visible
from wellworn.server.access import Caller
from wellworn.server.guard import PAGE, SIGN_IN, log_fault
from wellworn.server.keys import ROLES, id_in
from wellworn.server.page import words
from wellworn.server.service import LOCAL, Call, MemoryService, accessed
from wellworn.server.wire import status_of, words_of
from wellworn.store.events import ACTOR
from wellworn.tasks import ReasoningBank

STAY_S = 12 * 3600.0
MOST_BROWSERS = 10_000
MOST_PEOPLE = 500
FORM = "application/x-www-form-urlencoded"
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "referrer-policy": "same-origin",  # without any, a form would be sent from the origin `null`
}
FILES = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class Browser:
    """What a cookie stands for."""

    id: str
    token: str
    """Forms carry it; a page of somebody else cannot read it."""
    key_id: str = ""
    """The key that was signed in with; empty: none."""
    ends: float
    made: list[str]
    """Texts of keys that were made and not shown yet."""


class Browsers:
    """The browsers that visit. They are gone when the service ends."""

    def __init__(self, ticks: Callable[[], float] = time.monotonic) -> None:
        self._ticks = ticks
        self._known: LruCache[str, Browser] = LruCache(MOST_BROWSERS)

    def open(self, key_id: str = "") -> Browser:
        id, token = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        browser = Browser(id=id, token=token, key_id=key_id, ends=self._ticks() + STAY_S, made=[])
        self._known.put(id, browser)
        return browser

    def find(self, id: str) -> Browser | None:
        found = self._known.get(id)
        return found if found is not None and self._ticks() < found.ends else None

    def close(self, id: str) -> None:
        self._known.pop(id)


class PageState:
    """What all visits share."""

    def __init__(self, service: MemoryService) -> None:
        self.service = service
        self.browsers = Browsers()
        self.bank = ReasoningBank(service.memory)


@dataclass(frozen=True, kw_only=True)
class Visit:
    """One request for a page."""

    call: Call
    browser: Browser
    bank: ReasoningBank
    request: Request
    form: Mapping[str, str]
    chosen: Mapping[str, str]
    """By layer, the ids that the address names, or the first of the key."""

    def may(self, role: str) -> bool:
        return ROLES.index(self.call.caller.role) >= ROLES.index(role)

    @property
    def named(self) -> bool:
        """Whether it is clear whose memory this is about."""
        return bool(self.call.scope.partitions())

    @property
    def chooses(self) -> bool:
        """Whether the visitor may look at several people."""
        return self.call.caller.bound is None

    @property
    def choice(self) -> tuple[str, Sequence[str]] | None:
        """The layer on which one of the key's ids is chosen, and these ids; None: what is written has one place."""
        return _choice(_layers_of(self.call.caller))

    @property
    def signed_in(self) -> bool:
        return self.call.caller.actor != LOCAL

    def ids(self, layer: Any) -> list[str]:  # a Layer
        """Ids of a layer to choose from."""
        found = self.call.memory.engine.store.partitions(self.call.caller.tenant, layer=layer) if self.chooses else []
        return [one.layer_id for one in found[:MOST_PEOPLE]]

    def at(self, path: str, **query: str) -> str:
        """An address of the page about the same memory."""
        given = {name: value for name, value in {**self.chosen, **query}.items() if value}
        return f"{path}?{urlencode(given)}" if given else path

    def page(self, template: str, status: int = 200, **values: Any) -> Response:  # what the template shows
        """The template as an answer."""
        said = words.SAID.get(self.request.query_params.get("said", ""), "")
        page = _html(template, status, visit=self, here=self.request.url.path, said=said, **values)
        if self.browser.id != self.request.cookies.get(cookie_of(self.request)):
            keep(page, self.request, self.browser)
        return page

    def go(self, path: str, said: str, **query: str) -> Response:
        """On to another page after a change, with a word about it."""
        return RedirectResponse(self.at(path, **query, said=said), 303)


class Visits:
    """The dependency of a page: the visit, of someone who may make it."""

    def __init__(self, role: str, *, whole: bool = False) -> None:
        self._role, self._whole = role, whole

    async def __call__(self, request: Request) -> Visit:
        state: PageState = request.app.state.page
        known = state.browsers.find(request.cookies.get(cookie_of(request), ""))
        caller = await run_in_threadpool(_caller, request, state.service, known)
        access = accessed(request, caller, "page:")
        caller.require(self._role, whole=self._whole)
        form = await form_of(request)
        if request.method == "POST" and (
            known is None or not hmac.compare_digest(form.get("token", "").encode(), known.token.encode())
        ):
            raise AccessDenied("page: this page was opened before the service was started (open it again)")
        ACTOR.set(caller.actor)
        chosen: dict[str, str] = {name: value for name in LAYERS if (value := request.query_params.get(name))}
        layers = _layers_of(caller) | {name: (value,) for name, value in chosen.items()}
        if (choice := _choice(layers)) is not None:
            chosen[choice[0]], layers[choice[0]] = choice[1][0], choice[1][:1]
        scope = access.scope = caller.scope(layers, None)
        memory = state.service.memory.for_scope(scope)
        visit = request.state.visit = Visit(
            call=Call(service=state.service, caller=caller, memory=memory, scope=scope, wanted=None, access=access),
            browser=known or state.browsers.open(),
            bank=state.bank,
            request=request,
            form=form,
            chosen=chosen,
        )
        return visit


def _layers_of(caller: Caller) -> dict[str, Sequence[str]]:
    usual = caller.bound or caller.usual
    return {each: ids for each in LAYERS if usual and (ids := usual.ids(each))}


def _choice(layers: Mapping[str, Sequence[str]]) -> tuple[str, Sequence[str]] | None:
    """The first layer, where each has several ids: a page is about one place."""
    return next(iter(layers.items()), None) if all(len(ids) > 1 for ids in layers.values()) else None


def _caller(request: Request, service: MemoryService, browser: Browser | None) -> Caller:
    if browser is not None and browser.key_id:
        return service.gate.admit_key(browser.key_id)
    address = request.client.host if request.client else ""
    return service.gate.admit(request.headers, address, request.scope["http_version"])


class PageRoute(APIRoute):
    """A route whose errors are pages, too."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            try:
                return await handle(request)
            except WellwornError as error:
                log_fault(error)
                status, message = status_of(error), words.sentences(words_of(error), getattr(error, "remedy", ""))
                if isinstance(error, NotFound):
                    message = f"There is no {error.what} {error.name!r} here."
            except RequestValidationError as error:
                long = [one["ctx"]["max_length"] for one in error.errors() if one["type"] == "string_too_long"]
                problem = f"What you ask for is too long: at most {long[0]:,} characters." if long else ""
                status, message = 422, problem or "The address is not complete."
            if status == 401:
                return RedirectResponse(SIGN_IN, 303)
            visit: Visit | None = getattr(request.state, "visit", None)  # as far as it came
            if visit is not None:
                return visit.page("problem.html", status, message=message)
            return _nobody("problem.html", status, message=message)

        return handled


# -- signing in --------------------------------------------------------------------------------------------------------

Looks = Annotated[Visit, Depends(Visits("reader"))]
ui = APIRouter(prefix=PAGE.rstrip("/"), route_class=PageRoute, include_in_schema=False)


@ui.get("/sign-in")
def sign_in_page() -> Response:
    return _nobody("sign_in.html", problem="")


@ui.post("/sign-in")
async def sign_in(request: Request) -> Response:
    """Take a key, and give a cookie for it."""
    state: PageState = request.app.state.page
    token = (await form_of(request)).get("key", "").strip()
    given = token if id_in(token) else ""  # no token of an issuer
    try:
        shown = ({"authorization": f"Bearer {given}"}, request.client.host if request.client else "")
        await run_in_threadpool(state.service.gate.admit, *shown)
    except AccessDenied as error:
        return _nobody("sign_in.html", status_of(error), problem=words.sentences(str(error)))
    state.browsers.close(request.cookies.get(cookie_of(request), ""))
    answer = RedirectResponse("/", 303)
    keep(answer, request, state.browsers.open(id_in(token)))
    return answer


@ui.post("/sign-out")
async def sign_out(visit: Looks) -> Response:
    state: PageState = visit.request.app.state.page
    state.browsers.close(visit.browser.id)
    answer = RedirectResponse(SIGN_IN, 303)
    answer.delete_cookie(cookie_of(visit.request))
    return answer


def cookie_of(request: Request) -> str:
    """The name of the cookie: two services of one machine share its cookies, so the port is part of it."""
    return f"wellworn_{request.url.port or ''}"


def keep(answer: Response, request: Request, browser: Browser) -> None:
    answer.set_cookie(
        cookie_of(request),
        browser.id,
        max_age=int(STAY_S),
        httponly=True,
        samesite="strict",
        secure="https" in (request.url.scheme, request.headers.get("x-forwarded-proto")),
    )


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a form, with the line ends of a text file."""
    if request.method != "POST":
        return {}
    if request.headers.get("content-type", "").partition(";")[0].strip() != FORM:
        raise InvalidInput("form", "is of another type", f"send {FORM}")
    try:
        text = (await request.body()).decode()
        fields = await run_in_threadpool(parse_qsl, text, keep_blank_values=True, max_num_fields=100)
    except ValueError:
        raise InvalidInput("form", "cannot be read", "open the page again") from None
    return {name: value.replace("\r\n", "\n") for name, value in fields}


# -- templates ---------------------------------------------------------------------------------------------------------


def _shown(value: object) -> object:
    """What a template writes: characters that nobody sees are shown, whatever the text comes from."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


_templates = Environment(
    loader=FileSystemLoader(FILES / "templates"),
    autoescape=True,
    finalize=_shown,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.filters.update(
    {each.__name__: each for each in (words.day, words.moment, words.percent, words.plain, words.times)}
)
_templates.filters.update(counted=counted, short=shortened, reasons=words.reasons, because=words.because)


def _html(template: str, status: int, **values: Any) -> Response:  # what the template shows
    return HTMLResponse(_templates.get_template(template).render(**values), status, HEADERS)


def _nobody(template: str, status: int = 200, **values: Any) -> Response:  # what the template shows
    """The template for somebody whom we do not know."""
    return _html(template, status, visit=None, here="", said="", **values)
