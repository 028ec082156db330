"""`wellworn serve` and `wellworn keys`: the memory as a service, and who may call it."""

from __future__ import annotations

import ctypes
import gc
import os
import socket
import sys
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wellworn.cli import options, render
from wellworn.cli.answer import Answering
from wellworn.cli.edge import INTERRUPTED
from wellworn.cli.options import argument, command, flag, option
from wellworn.cli.target import Target, as_stored
from wellworn.core.clock import system_clock
from wellworn.core.errors import InvalidInput, MissingExtra
from wellworn.core.values import LAYERS, Scope

if TYPE_CHECKING:
    from wellworn.server.access import OidcSettings
    from wellworn.server.keys import ApiKey
    from wellworn.store.port import Store

DRAIN_S = 30
_M_ARENA_MAX = -8
SERVICE = "Service"
REDIS = "Share rate limits and vectors of slow embedders between machines (env WELLWORN_REDIS)."
app = typer.Typer()
keys = typer.Typer(no_args_is_help=True, help="API keys of the service: create, list, revoke, rotate.")

KeyId = Annotated[str, argument("ID", "The key's id, or the beginning of it.")]


@command(app, "serve", "serve --port 8765", panel=SERVICE)
def serve(
    target: Target,
    host: Annotated[str, option("--host", "ADDRESS", "Where to listen.")] = "127.0.0.1",
    port: Annotated[int, option("--port", "N", "0 takes a free one.", min=0, max=65535)] = 8765,
    require_key: Annotated[bool, flag("--require-key", "Ask for a key on this machine, too.")] = False,
    rate: Annotated[float, option("--rate", "N", "Requests per second that a key may make.", min=0.1)] = 100.0,
    cors_origin: Annotated[
        list[str] | None, option("--cors-origin", "ORIGIN", "Pages of this origin may call; may be repeated.")
    ] = None,
    redis: Annotated[str | None, option("--redis", "URL", REDIS, env="WELLWORN_REDIS")] = None,
    log_json: Annotated[bool, flag("--log-json", "Log each request and fault as a line of JSON.")] = False,
    trace: Annotated[bool, flag("--trace", "Make OpenTelemetry spans (extra otel).")] = False,
    oidc: Annotated[
        str | None, option("--oidc", "ISSUER", "Also take tokens of this issuer; asks for a key here.")
    ] = None,
    audience: Annotated[str, option("--audience", "NAME", "For whom those tokens are made.")] = "",
    claim: Annotated[
        list[str] | None, option("--claim", "WHAT=CLAIM", "Which claim says it, as team=groups; may be repeated.")
    ] = None,
    llm: options.LlmName = None,
    summarizer: options.SummarizerName = None,
) -> None:
    """Serve the memory over HTTP, until it is stopped.

    Programs of this machine need no key: they read and write as --tenant and --user say. On any other address every
    request needs one; the first is made and shown at the start. The schema is at /openapi.json.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # requests run side by side; threads within one only wait
    try:
        import uvicorn
        from uvicorn.config import LOGGING_CONFIG

        from wellworn.server.access import is_loopback
        from wellworn.server.app import build_app
        from wellworn.server.guard import LOOPBACK, Rules, log_as_json
        from wellworn.server.service import MemoryService
    except ImportError:
        raise MissingExtra("`wellworn serve`", "server") from None
    from wellworn.memory import Memory
    from wellworn.models.choose import cached_embedder

    if log_json:
        log_as_json()
    if trace:
        from wellworn.integrations.otel import start_tracing

        start_tracing()
    _bound_memory()
    listening = listen(host, port)
    loopback = is_loopback(host)
    if oidc is None and (audience or claim):
        raise InvalidInput("--oidc", "is missing", "name the issuer, or leave out --audience and --claim")
    trusted = None if oidc is None else _trusted(oidc, audience, claim or [], target.scope.tenant)
    keyless = loopback and not require_key and trusted is None
    models = options.given(llm=None if llm == "rules" else llm, summarizer=summarizer)

    def opened(name: str) -> Memory:
        embedder = cached_embedder(name, redis=redis) if redis else name
        return Memory(target.db, embedder=embedder, tenants="all", **models)

    memory = as_stored(target.embedder, opened)
    target.tell_renewal(memory)
    rules = Rules(hosts=dict.fromkeys((*LOOPBACK, host)) if keyless else None, origins=tuple(cors_origin or ()))
    service = MemoryService(
        memory,
        rules=rules,
        local=target.scope if keyless else None,
        operator=target.scope.tenant,
        rate=rate,
        oidc=trusted,
        redis=redis,
    )
    service.requests.prune()  # in a store that can only be read this is an error
    config = uvicorn.Config(
        build_app(service),
        log_config=None if log_json else LOGGING_CONFIG,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers="FORWARDED_ALLOW_IPS" in os.environ,  # else callers could name another address with each guess
        timeout_keep_alive=30,
        timeout_graceful_shutdown=DRAIN_S,
    )
    first = None if keyless else _first_key(memory.engine.store, target.scope.tenant)
    address, where = _address(listening, host), memory.engine.store.location  # which shows no password
    document = {"address": address, "db": where, **({} if first is None else {"key": first})}
    lines = [f"Serving {where} at {address}"] + ([] if first is None else [f"First key, shown once: {first}"])
    target.answer(document, *lines)
    sys.stdout.flush()
    _collect_seldom()
    answering = Answering(target, llm, every_scope=True)
    answering.start(lambda: memory)
    try:
        uvicorn.Server(config).run(sockets=[listening])
    except KeyboardInterrupt:  # all is closed; threads that wait for a model would hold up the end
        answering.close()
        sys.stdout.flush()
        os._exit(INTERRUPTED)
    finally:
        answering.close()


def _bound_memory() -> None:
    """Let threads share their free memory: otherwise glibc keeps some for each of them, hundreds of megabytes."""
    with suppress(OSError, AttributeError):  # other C libraries
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)


def _collect_seldom() -> None:
    """Look for garbage in cycles every few dozen requests instead of with each: that took a tenth of the time."""
    gc.freeze()  # what was loaded stays
    gc.set_threshold(20_000, 20, 20)


def _trusted(issuer: str, audience: str, claims: list[str], tenant: str) -> OidcSettings:
    from wellworn.server.access import OidcSettings

    pairs = [one.partition("=") for one in claims]
    for what, _, name in pairs:
        if not what or not name:
            raise InvalidInput("--claim", f"{what!r} names no claim", "as in --claim team=groups")
    return OidcSettings(issuer=issuer, audience=audience, tenant=tenant, claims={what: name for what, _, name in pairs})


def listen(host: str, port: int) -> socket.socket:
    """A socket that accepts connections. Its protocol is named: otherwise asyncio leaves Nagle's algorithm on, and each
    answer waits 40 ms."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        problem = f"cannot listen at {host} port {port}: {error.strerror or error}"
        raise InvalidInput("serve", problem, "choose another --port or --host") from None
    return listening


def _address(listening: socket.socket, host: str) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"


def _first_key(store: Store, tenant: str) -> str | None:
    """A key of an admin, when there is none yet."""
    from wellworn.server.keys import create_key, list_keys

    now = system_clock()
    if any(key.role == "admin" and key.active(now) for key in list_keys(store)):
        return None
    return create_key(store, tenant=tenant, role="admin", now=now, name="first")[1]


# -- keys --------------------------------------------------------------------------------------------------------------


@command(keys, "create", "keys create laptop --role writer --user ada")
def create(
    target: Target,
    name: Annotated[str, argument("NAME", "What the key is for.")] = "",
    role: Annotated[str, option("--role", "ROLE", "reader, writer or admin.")] = "writer",
    expires: Annotated[datetime | None, option("--expires", "TIME", "When it ends to work (UTC).")] = None,
) -> None:
    """Make a key and print it; it is not shown again.

    It belongs to --tenant. With --user, --team or another layer it is bound to these ids; without, it may name any.
    """
    from wellworn.server.keys import create_key

    scope = target.scope
    named = Scope() if target.owner is None else target.owner
    layers: dict[str, tuple[str, ...]] = {layer: ids for layer in LAYERS if (ids := named.ids(layer))}
    end = None if expires is None else expires.replace(tzinfo=UTC)
    with closing(target.open_store(new=True)) as store:
        key, text = create_key(
            store, tenant=scope.tenant, role=role, now=system_clock(), name=name, layers=layers, expires_at=end
        )
    target.answer({"key": text, **_shown(key)}, text)
    target.say(f"Key {key.id} (role {key.role}) for {_reach(key)}. It is not shown again.")


@command(keys, "list", "keys list")
def list_all(target: Target) -> None:
    """List the keys of every tenant, newest first."""
    from wellworn.server.keys import list_keys

    with closing(target.open_store()) as store:
        found = list_keys(store)
    rows = [
        (key.id, key.name, key.role, _reach(key), f"{key.created_at:%Y-%m-%d}", _state(key, system_clock()))
        for key in found
    ]
    target.answer(
        {"keys": [_shown(key) for key in found]}, render.table(("id", "name", "role", "for", "created", "state"), rows)
    )


@command(keys, "revoke", "keys revoke 3f2a")
def revoke(target: Target, id: KeyId) -> None:
    """Refuse a key from now on, also where the service is running."""
    from wellworn.server.keys import revoke_key

    with closing(target.open_store()) as store:
        key = revoke_key(store, id, now=system_clock())
    target.answer(_shown(key), f"revoked {key.id}")


@command(keys, "rotate", "keys rotate 3f2a --grace-hours 24")
def rotate(
    target: Target,
    id: KeyId,
    grace_hours: Annotated[float, option("--grace-hours", "N", "How long the old key still works.", min=0)] = 24.0,
) -> None:
    """Make a key in the place of another and print it; it is not shown again."""
    from wellworn.server.keys import rotate_key

    if grace_hours > 24 * 365:
        raise InvalidInput("--grace-hours", f"{grace_hours:g} is more than a year", "create a key instead")
    with closing(target.open_store()) as store:
        key, text = rotate_key(store, id, now=system_clock(), grace=timedelta(hours=grace_hours))
    target.answer({"key": text, **_shown(key)}, text)
    target.say(f"Key {key.id} replaces {id}, which works for {grace_hours:g} more hours.")


def _reach(key: ApiKey) -> str:
    layers = ", ".join(f"{layer} {' '.join(ids)}" for layer, ids in key.layers.items()) or "everyone"
    return layers if key.tenant == "default" else f"{layers} (tenant {key.tenant})"


def _state(key: ApiKey, now: datetime) -> str:
    if key.revoked_at is not None:
        return f"revoked {key.revoked_at:%Y-%m-%d}"
    if key.expires_at is None:
        return "active"
    return f"{'expires' if key.active(now) else 'expired'} {key.expires_at:%Y-%m-%d}"


def _shown(key: ApiKey) -> dict[str, Any]:
    """What may be printed of a key: not its hash."""
    from wellworn.core.plain import to_plain

    plain: dict[str, Any] = to_plain(key)
    del plain["digest"]
    return plain
