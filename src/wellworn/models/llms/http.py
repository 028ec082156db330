"""A model behind an HTTP endpoint that may refuse parts of a request.

Services differ in what they accept: one knows no `response_format`, another wants a limit under another name, a third
takes no temperature. A part that is refused is left out, the call goes out again, and the model remembers. Knows no
wire format: a subclass writes bodies and reads answers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from wellworn.core.errors import ModelFailed
from wellworn.models.llms.base import Request
from wellworn.models.llms.provider import Provider, Said
from wellworn.models.remote import Answer, Endpoint, Unanswered

_REFUSALS = frozenset({400, 422, 501})
Without = frozenset[str]
"""Parts that are left out of a body, or said otherwise: `schema`, `json`, `temperature`, `max_tokens`."""


class HttpModel(Provider):
    """One model of one endpoint; safe between threads and event loops."""

    def __init__(self, name: str, endpoint: Endpoint, *, path: str, without: Without = frozenset()) -> None:
        super().__init__(name)
        self._endpoint = endpoint
        self._path = path
        self._without = without

    def close(self) -> None:
        """Close the connections. Closing twice is fine."""
        self._endpoint.close()

    def _ask(self, request: Request) -> Said:
        without = self._without
        while True:
            body = self._body(request, without)
            try:
                answer = self._endpoint.post(self._path, body)
            except Unanswered as failure:
                without = self._conceding(body, without, failure)
                continue
            self._without = without
            return self._read(answer)

    async def _aask(self, request: Request) -> Said:
        without = self._without
        while True:
            body = self._body(request, without)
            try:
                answer = await self._endpoint.apost(self._path, body)
            except Unanswered as failure:
                without = self._conceding(body, without, failure)
                continue
            self._without = without
            return self._read(answer)

    @abstractmethod
    def _body(self, request: Request, without: Without) -> dict[str, Any]:
        """The request as this service wants it."""

    @abstractmethod
    def _refused(self, body: Mapping[str, Any], said: str) -> str | None:
        """Which part of the body the service does not take, from what it said (lower case); None if none of them."""

    @abstractmethod
    def _text(self, told: Any) -> Said:
        """The answer in what the service told; KeyError, TypeError or the like when it is not there."""

    def _conceding(self, body: Mapping[str, Any], without: Without, failure: Unanswered) -> Without:
        """With what to try again without; the failure itself when that would not help."""
        part = self._refused(body, failure.said.lower()) if failure.status in _REFUSALS else None
        if part is None or part in without:
            raise ModelFailed(f"model {self.name!r}: {failure.problem}", retryable=failure.retryable) from None
        return without | {part}

    def _read(self, answer: Answer) -> Said:
        host = self._endpoint.host
        try:
            told = answer.json()
        except ValueError:  # cut off on the way, or the page of some gateway
            problem = f"{host} answered with something that is not JSON (check base_url)"
            raise ModelFailed(f"model {self.name!r}: {problem}", retryable=True) from None
        try:
            return self._text(told)
        except (KeyError, TypeError, IndexError, AttributeError, ValueError):
            problem = f"the answer of {host} holds no message (check base_url and the model name)"
            raise ModelFailed(f"model {self.name!r}: {problem}") from None


def joined(content: Any) -> str:  # Any: as the service sent it
    """The text of a message, which is a string or a list of parts; None is an empty one."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    texts = [part if isinstance(part, str) else part.get("text") for part in content]
    return "".join(text for text in texts if isinstance(text, str))
