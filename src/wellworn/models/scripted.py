"""A language model that plays back a script: the public double for tests, demos and dry runs.

Deterministic, needs nothing, keeps every request it got. Knows nothing about what the replies mean.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from wellworn.core.errors import InvalidInput, ModelFailed
from wellworn.core.locks import fork_lock
from wellworn.models.base import Completion, ModelBase
from wellworn.models.port import Reply, Request

Step: TypeAlias = "str | Reply | Exception | Callable[[Request], str | Reply]"
"""What happens at a call: this text, this whole reply, this error raised, or what the function makes of the request."""
Script: TypeAlias = "Step | Iterable[Step] | Mapping[str, Step | Iterable[Step]]"


class ScriptedModel(ModelBase):
    """Plays back `replies`; safe between threads.

    One step answers every call. Several are played in order, and a call after the last one fails. A mapping has such a
    script for each purpose, `*` for any other. `delay_s` passes before each answer; `input_tokens` and `output_tokens`
    are reported as the provider's own counts, without them tokens are estimated.
    """

    def __init__(
        self,
        replies: Script,
        *,
        name: str = "scripted",
        delay_s: float = 0.0,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
    ) -> None:
        super().__init__(name)
        self.requests: list[Request] = []
        """Every request so far, in order."""
        self._delay_s = delay_s
        self._counts = (input_tokens, output_tokens)
        self._lock = fork_lock()
        scripts = replies if isinstance(replies, Mapping) else {"*": replies}
        self._scripts: dict[str, Step | list[Step]] = {
            purpose: steps if isinstance(steps, str | Reply | Exception) or callable(steps) else list(steps)
            for purpose, steps in scripts.items()
        }

    @classmethod
    def from_file(cls, path: str | Path, **options: Any) -> ScriptedModel:  # Any: as the constructor
        """Replies from a JSON file: a list of them, or an object of lists by purpose.

        A reply is a string; anything else is given as JSON.
        """
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            remedy = "a JSON file with a list of replies, or an object of lists by purpose"
            raise InvalidInput("llm", f"cannot read replies from {str(path)!r}: {error}", remedy) from error
        replies = {key: _as_texts(value) for key, value in data.items()} if isinstance(data, dict) else _as_texts(data)
        return cls(replies, **options)

    @property
    def remaining(self) -> int:
        """Steps that were not played yet; scripts of one step for every call do not count."""
        return sum(len(script) for script in self._scripts.values() if isinstance(script, list))

    def _ask(self, request: Request) -> Completion | Reply:
        step = self._next(request)
        time.sleep(self._delay_s)
        if isinstance(step, Exception):
            raise step
        answer = step(request) if callable(step) else step
        if isinstance(answer, Reply):
            return answer
        return Completion(text=answer, input_tokens=self._counts[0], output_tokens=self._counts[1])

    def _next(self, request: Request) -> Step:
        with self._lock:
            self.requests.append(request)
            script = self._scripts.get(request.purpose, self._scripts.get("*"))
            if script is None:
                known = ", ".join(map(repr, self._scripts)) or "none"
                raise ModelFailed(f"model {self.name!r} has no replies for {request.purpose!r}, only for {known}")
            if not isinstance(script, list):
                return script
            if not script:
                problem = f"has no reply left for call {len(self.requests)} (purpose {request.purpose!r})"
                raise ModelFailed(f"model {self.name!r} {problem}: give it more")
            return script.pop(0)


def _as_texts(values: Any) -> list[Step]:  # Any: from a file
    values = values if isinstance(values, list) else [values]
    return [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in values]
