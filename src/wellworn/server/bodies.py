"""The bodies of requests, as the schema tells them.

A body may have no unknown field. Its values are checked by the verbs that they are given to, so that a bad one has the
same error text here as in the library; a type that is `Unchecked` says what the schema shows.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag
from pydantic import SkipValidation as Unchecked

from wellworn.core.fence import MIN_CONFIDENCE
from wellworn.core.values import LAYERS, MAX_NAME_CHARS, Kind, Layer, LinkType, RecursionMode, State, Trust
from wellworn.ingest.validate import MAX_K, MAX_QUERY_CHARS, MAX_TEXT_BYTES, WAIT_S
from wellworn.ops.retention import RetentionPolicy
from wellworn.search.filters import NO_FILTERS, Filters
from wellworn.server.keys import Role
from wellworn.tasks.bank import DEFAULT_K
from wellworn.tasks.bank import MIN_CONFIDENCE as SURE_ITEM
from wellworn.tasks.items import ItemKind

MOST_ITEMS = 1000
"""Entries or turns of one request."""
MOST_GRACE_S = 365 * 86400.0
LEFT_OUT: Any = None
"""A field that the verb does not see unless it is given."""

Text = Annotated[str, Field(min_length=1, max_length=MAX_TEXT_BYTES)]
Query = Annotated[str, Field(min_length=1, max_length=MAX_QUERY_CHARS)]
Id = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS)]
Line = Annotated[str, Field(max_length=MAX_NAME_CHARS)]
AnyText = Annotated[str, Field(max_length=MAX_TEXT_BYTES)]
Time = Annotated[datetime | None, Field(description="ISO 8601; UTC without a zone")]
Fraction = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1, le=MAX_K)]
Place = Annotated[int, Field(ge=0)]


class RequestBody(BaseModel):
    """A body of a request. What was left out is left to the verb's own default."""

    model_config = ConfigDict(extra="forbid")

    def given(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.model_fields_set}


class NewEntryBody(RequestBody):
    """A text to remember: the keywords of `Memory.remember`."""

    text: Unchecked[Text]
    kind: Unchecked[Kind] = "note"
    title: Unchecked[Line] = ""
    tags: Unchecked[list[Line]] = Field(default_factory=list)
    layer: Unchecked[Layer | None] = None
    session_id: Unchecked[Line | None] = None
    turn_refs: Unchecked[list[Place]] = Field(default_factory=list)
    evidence: Unchecked[AnyText | None] = None
    source: Unchecked[Line] = "interaction"
    speaker: Unchecked[Line | None] = None
    confidence: Unchecked[Fraction] = 0.8
    trust: Unchecked[Trust] = "trusted"
    at: Unchecked[Time] = None
    valid_from: Unchecked[Time] = None
    valid_to: Unchecked[Time] = None
    metadata: Unchecked[dict[str, Any] | None] = None


class NewEntriesBody(RequestBody):
    """Texts to remember in one write; more of them go to `/v1/import`."""

    entries: Annotated[list[NewEntryBody], Field(min_length=1, max_length=MOST_ITEMS)]


EntriesBody = Annotated[
    Annotated[NewEntryBody, Tag("one")] | Annotated[NewEntriesBody, Tag("many")],
    Discriminator(lambda body: "many" if isinstance(body, dict) and "entries" in body else "one"),
]
"""One text, or several."""


class ChangeBody(RequestBody):
    """Fields of an entry that are to change; the others stay."""

    text: Unchecked[Text] = LEFT_OUT
    title: Unchecked[Line] = LEFT_OUT
    tags: Unchecked[list[Line]] = LEFT_OUT
    kind: Unchecked[Kind] = LEFT_OUT
    state: Unchecked[State] = LEFT_OUT
    confidence: Unchecked[Fraction] = LEFT_OUT
    trust: Unchecked[Trust] = LEFT_OUT
    at: Unchecked[Time] = None
    valid_from: Unchecked[Time] = None
    valid_to: Unchecked[Time] = None
    metadata: Unchecked[dict[str, Any] | None] = None
    evidence: Unchecked[AnyText | None] = None
    speaker: Unchecked[Line | None] = None


class SupersedeBody(RequestBody):
    """What replaced an entry."""

    new: Unchecked[Id]
    at: Unchecked[Time] = None
    wrong: Unchecked[bool] = False


class LinkBody(RequestBody):
    """A link from one entry to another, read "source TYPE target"."""

    source: Unchecked[Id]
    target: Unchecked[Id]
    type: Unchecked[LinkType]
    confidence: Unchecked[Fraction] = 1.0


class RecallBody(RequestBody):
    """A question and what narrows it."""

    query: Unchecked[Query]
    k: Unchecked[Count] = 5
    recursion: Unchecked[RecursionMode | None] = None
    deadline_s: Unchecked[float | None] = None
    kind: Unchecked[Kind | list[Kind] | None] = None
    tags: Unchecked[Line | list[Line] | None] = None
    layer: Unchecked[Layer | list[Layer] | None] = None
    session_id: Unchecked[Line | None] = None
    except_session: Unchecked[Line | None] = None
    since: Unchecked[Time] = None
    until: Unchecked[Time] = None
    as_of: Unchecked[Time] = None
    min_score: Unchecked[float | None] = None
    min_confidence: Unchecked[Fraction | None] = None

    def filters(self) -> Filters:
        asked = self.model_fields_set - {"query", "k", "recursion", "deadline_s"}
        return Filters.of(**{name: getattr(self, name) for name in asked}) if asked else NO_FILTERS


class ReasonBody(RequestBody):
    """A question whose answer is a chain of entries."""

    query: Unchecked[Query]
    k: Unchecked[Count] = 5
    as_of: Unchecked[Time] = None


class ContextBody(RequestBody):
    """A message that a model is about to answer."""

    message: Unchecked[Text]
    k: Unchecked[Count] = 5
    min_confidence: Unchecked[Fraction] = MIN_CONFIDENCE
    """Below this confidence nothing is shown, and a line says so; 0 turns it off."""
    citations: Unchecked[bool] = True
    """Ask the model to cite what it used."""


class AnswerBody(RequestBody):
    """What the model answered, and how many memories the context showed for citing."""

    answer: Unchecked[Text]
    shown: Unchecked[Annotated[int, Field(ge=0, le=MAX_K)]]


class OutcomeBody(RequestBody):
    """How a recall turned out: exactly one of these."""

    cited: Unchecked[list[Place] | None] = None
    used: Unchecked[Fraction | None] = None
    ignored: Unchecked[bool] = False
    refined: Unchecked[AnyText | None] = None
    success: Unchecked[bool | None] = None


class TurnBody(RequestBody):
    """One utterance."""

    role: Unchecked[Id]
    text: Unchecked[Text]
    at: Unchecked[Time] = None
    speaker: Unchecked[Line | None] = None
    trust: Unchecked[Trust] = "trusted"
    tags: Unchecked[list[Line]] = Field(default_factory=list)


class TurnsBody(RequestBody):
    """Turns that are added in one durable write."""

    turns: Annotated[list[TurnBody], Field(min_length=1, max_length=MOST_ITEMS)]


class EndBody(RequestBody):
    """How long to wait for the memories that a session becomes."""

    wait: Unchecked[bool | Annotated[float, Field(ge=0, le=WAIT_S)]] = 0.0


class ReflectBody(RequestBody):
    """Which session to read; all that were not read yet when none is named."""

    session_id: Unchecked[Line | None] = None
    again: Unchecked[bool] = False


class TaskBody(RequestBody):
    """A task that is about to be done: the keywords of `ReasoningBank.begin`."""

    task_id: Unchecked[Id]
    query: Unchecked[Query]
    agent_id: Unchecked[Line] = ""
    domain: Unchecked[Line] = ""
    session_id: Unchecked[Line | None] = None
    k: Unchecked[Count] = DEFAULT_K


class FinishBody(RequestBody):
    """What was done for a task: a text, a list of steps, or an object with `steps`, `output`, `exit_code`, …"""

    trajectory: Unchecked[dict[str, Any] | list[Any] | str]
    verdict: Unchecked[bool | None] = None
    """How it went, if somebody knows; else it is judged."""


class ItemsBody(RequestBody):
    """A task, and what narrows the strategies and guardrails that are looked for."""

    query: Unchecked[Query]
    k: Unchecked[Count] = DEFAULT_K
    domain: Unchecked[Line | None] = None
    kind: Unchecked[ItemKind | list[ItemKind] | None] = None
    min_confidence: Unchecked[Fraction] = SURE_ITEM


class ForgetBody(RequestBody):
    """What goes for good: exactly one of `ids`, `session_id`, `everything`."""

    ids: Unchecked[list[str] | None] = None
    session_id: Unchecked[Line | None] = None
    everything: Unchecked[bool] = False
    layer: Unchecked[Layer | None] = None
    turns: Unchecked[bool | None] = None


class RelearnBody(RequestBody):
    """Pairs of a query and the ids of its right entries, learned first."""

    pairs: Annotated[list[tuple[str, list[str]]] | None, Field(max_length=MOST_ITEMS)] = None


class ShareBody(RequestBody):
    """Whether the tenant's users learn from each other."""

    on: Unchecked[bool]


class PractiseBody(RequestBody):
    """How many questions to make."""

    tasks: Unchecked[Annotated[int, Field(ge=1, le=MOST_ITEMS)]] = 60


class RetryBody(RequestBody):
    """Which dead job; all of them when none is named."""

    id: Unchecked[Line | None] = None


class PolicyBody(RequestBody):
    """How many days things are kept; what is not named is kept."""

    kinds: dict[str, float] = Field(default_factory=dict)
    recalls: float | None = None
    calls: float | None = None

    def policy(self) -> RetentionPolicy:
        return RetentionPolicy(kinds=self.kinds, recalls=self.recalls, calls=self.calls)


class ExpireBody(RequestBody):
    """A policy for this once, and whether to count only."""

    policy: PolicyBody | None = None
    dry_run: Unchecked[bool] = False


class KeyBody(RequestBody):
    """A new key: bound to ids on layers, or to the whole tenant when it names none."""

    name: Annotated[str, Field(max_length=MAX_NAME_CHARS)] = ""
    role: Unchecked[Role] = "writer"
    layers: Annotated[dict[str, Annotated[list[str], Field(max_length=64)]], Field(max_length=len(LAYERS))] = Field(
        default_factory=dict
    )
    expires_at: Unchecked[Time] = None


class RotateBody(RequestBody):
    """How long the old key still works."""

    grace_s: Annotated[float, Field(ge=0, le=MOST_GRACE_S)] = 86400.0
