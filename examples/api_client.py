"""A client that tunes itself: how long to wait, how much time to allow, which header to send, learned per resource.

Each request is a run of up to four attempts. What differed between those that failed and the one that worked is kept,
and the next request to that resource begins with it. Runs as it is, against a stand-in for a service whose rules the
client does not know; put your own `Service.get` in its place.

    python examples/api_client.py
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace

from wellworn import Memory, Scope
from wellworn.tasks import ReasoningBank, Work

SETTING = re.compile(r'\b(wait_s|timeout_s|header)=("[^"]*"|[\d.]+)')


@dataclass(frozen=True)
class Settings:
    """What a request can be made with."""

    wait_s: float = 0
    timeout_s: float = 1
    header: str = ""


class Service:
    """Stands for a real one: users are limited in rate, analytics are slow, media come in ranges."""

    def get(self, path: str, settings: Settings) -> str:
        """The error, or nothing when it worked."""
        resource = path.split("/")[1]
        if resource == "users" and settings.wait_s < 2:
            return "429 too many requests"
        if resource == "analytics" and settings.timeout_s < 10:
            return "504 timed out"
        if resource == "media" and settings.header != "Range":
            return "416 range required"
        return ""


class Client:
    """Asks the bank before a request, and tells it afterwards."""

    def __init__(self, bank: ReasoningBank, service: Service) -> None:
        self._bank = bank
        self._service = service

    def get(self, resource: str, id: int) -> int:
        """Make a request; returns how many attempts it took."""

        def attempt(work: Work) -> dict[str, object]:
            settings = learned(work) if work.number == 1 else refined(work)
            error = self._service.get(f"/{resource}/{id}", settings)
            call = {"tool": f"GET /{resource}", "args": {"id": id, **vars(settings)}, "error": error, "ok": not error}
            return {"steps": [call]}

        run = self._bank.matts_sequential(
            task_id=f"{resource}-{id}",
            query=f"GET /{resource} number {id}",
            domain=f"api.{resource}",
            execute=attempt,
            r=4,
        )
        return len(run.attempts)


def learned(work: Work) -> Settings:
    """The defaults, but for what an item says to do; what it says has failed comes after these words."""
    advice = re.split(r", those | failed ", work.hits[0].entry.text)[0] if work.hits else ""
    return replace(Settings(), **{name: json.loads(value) for name, value in SETTING.findall(advice)})


def refined(work: Work) -> Settings:
    """One setting changed, by what the last attempt ran into."""
    step = work.previous[-1][0].steps[-1]
    last = Settings(**{name: step.arguments[name] for name in vars(Settings())})
    if step.error.startswith("429"):
        return replace(last, wait_s=2 * last.wait_s or 1)
    if step.error.startswith("504"):
        return replace(last, timeout_s=4 * last.timeout_s)
    return replace(last, header="Range")


def main() -> None:
    with Memory(":memory:") as memory:
        bank = ReasoningBank(memory, scope=Scope(tenant="examples", agent="api-client"))
        client = Client(bank, Service())
        for round_ in (1, 2, 3):
            took = {resource: client.get(resource, 10 * round_) for resource in ("users", "analytics", "media")}
            print(f"round {round_}:", ", ".join(f"{name} {n} attempt{'s'[: n > 1]}" for name, n in took.items()))
        for resource in ("users", "analytics", "media"):
            print(bank.retrieve(f"GET /{resource} number 99", domain=f"api.{resource}")[0].entry.text)


if __name__ == "__main__":
    main()
