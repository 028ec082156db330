"""The bodies of requests, as the schema tells them.

A body may have no unknown field. Its values are checked by the verbs that they are given to, so that a bad one has the
same error text here as in the library; the types say what the schema shows.
"""

from __future__ import annotations

from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, WithJsonSchema

from wellworn.core.fence import MIN_CONFIDENCE
from wellworn.core.values import KINDS, LAYERS, LINK_TYPES, MAX_NAME_CHARS, STATES, RecursionMode
from wellworn.ingest.validate import MAX_K, MAX_QUERY_CHARS, MAX_TEXT_BYTES
from wellworn.ops.retention import RetentionPolicy
from wellworn.server.keys import ROLES
from wellworn.tasks.bank import DEFAULT_K
from wellworn.tasks.bank import MIN_CONFIDENCE as SURE_ITEM
from wellworn.tasks.items import ITEM_KINDS

MOST_ITEMS = 1000
"""Entries or turns of one request."""
MOST_WAIT_S = 30.0
MOST_GRACE_S = 365 * 86400.0


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def _or_list(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "array", "items": schema}, {"type": "null"}]}


_LINE = {"type": "string", "maxLength": MAX_NAME_CHARS}
_OBJECT = {"type": "object", "additionalProperties": True}
_ONE_LAYER = {"type": "string", "enum": [*LAYERS]}
Text = Annotated[Any, WithJsonSchema({"type": "string", "minLength": 1, "maxLength": MAX_TEXT_BYTES})]
Query = Annotated[Any, WithJsonSchema({"type": "string", "minLength": 1, "maxLength": MAX_QUERY_CHARS})]
OptionalText = Annotated[Any, WithJsonSchema(_or_null({"type": "string", "maxLength": MAX_TEXT_BYTES}))]
Line = Annotated[Any, WithJsonSchema(_LINE)]
Id = Annotated[Any, WithJsonSchema({"type": "string", "minLength": 1, "maxLength": MAX_NAME_CHARS})]
OptionalLine = Annotated[Any, WithJsonSchema(_or_null(_LINE))]
Lines = Annotated[Any, WithJsonSchema({"type": "array", "items": _LINE})]
OneKind = Annotated[Any, WithJsonSchema({"type": "string", "enum": [*KINDS]})]
Kinds = Annotated[Any, WithJsonSchema(_or_list({"type": "string", "enum": [*KINDS]}))]
Tags = Annotated[Any, WithJsonSchema(_or_list(_LINE))]
OneLayer = Annotated[Any, WithJsonSchema(_or_null(_ONE_LAYER))]
Layers = Annotated[Any, WithJsonSchema(_or_list(_ONE_LAYER))]
OneState = Annotated[Any, WithJsonSchema({"type": "string", "enum": [*STATES]})]
OneLinkType = Annotated[Any, WithJsonSchema({"type": "string", "enum": [*LINK_TYPES]})]
Trust = Annotated[Any, WithJsonSchema({"type": "string", "enum": ["trusted", "untrusted"]})]
Time = Annotated[
    Any,
    WithJsonSchema(
        {**_or_null({"type": "string", "format": "date-time"}), "description": "ISO 8601; UTC without a zone"}
    ),
]
Fraction = Annotated[Any, WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1})]
OptionalFraction = Annotated[Any, WithJsonSchema(_or_null({"type": "number", "minimum": 0, "maximum": 1}))]
OptionalNumber = Annotated[Any, WithJsonSchema(_or_null({"type": "number"}))]
Seconds = Annotated[Any, WithJsonSchema({"type": "number", "minimum": 0, "maximum": MOST_WAIT_S})]
Count = Annotated[Any, WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MAX_K})]
Places = Annotated[Any, WithJsonSchema(_or_null({"type": "array", "items": {"type": "integer", "minimum": 0}}))]
Numbers = Annotated[Any, WithJsonSchema({"type": "array", "items": {"type": "integer", "minimum": 0}})]
Flag = Annotated[Any, WithJsonSchema({"type": "boolean"})]
OptionalFlag = Annotated[Any, WithJsonSchema(_or_null({"type": "boolean"}))]
Mode = Annotated[Any, WithJsonSchema(_or_null({"type": "string", "enum": [*get_args(RecursionMode)]}))]
Data = Annotated[Any, WithJsonSchema(_or_null(_OBJECT))]
OptionalIds = Annotated[Any, WithJsonSchema(_or_null({"type": "array", "items": {"type": "string"}}))]


class RequestBody(BaseModel):
    """A body of a request. What was left out is left to the verb's own default."""

    model_config = ConfigDict(extra="forbid")

    def given(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.model_fields_set}


class NewEntryBody(RequestBody):
    """A text to remember: the keywords of `Memory.remember`."""

    text: Text
    kind: OneKind = "note"
    title: Line = ""
    tags: Lines = Field(default_factory=list)
    layer: OneLayer = None
    session_id: OptionalLine = None
    turn_refs: Numbers = Field(default_factory=list)
    evidence: OptionalText = None
    source: Line = "interaction"
    speaker: OptionalLine = None
    confidence: Fraction = 0.8
    trust: Trust = "trusted"
    at: Time = None
    valid_from: Time = None
    valid_to: Time = None
    metadata: Data = None


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

    text: Text = None
    title: Line = None
    tags: Lines = None
    kind: OneKind = None
    state: OneState = None
    confidence: Fraction = None
    trust: Trust = None
    at: Time = None
    valid_from: Time = None
    valid_to: Time = None
    metadata: Data = None
    evidence: OptionalText = None
    speaker: OptionalLine = None


class SupersedeBody(RequestBody):
    """What replaced an entry."""

    new: Id
    at: Time = None
    wrong: Flag = False


class LinkBody(RequestBody):
    """A link from one entry to another, read "source TYPE target"."""

    source: Id
    target: Id
    type: OneLinkType
    confidence: Fraction = 1.0


class RecallBody(RequestBody):
    """A question and what narrows it."""

    query: Query
    k: Count = 5
    recursion: Mode = None
    deadline_s: OptionalNumber = None
    kind: Kinds = None
    tags: Tags = None
    layer: Layers = None
    session_id: OptionalLine = None
    except_session: OptionalLine = None
    since: Time = None
    until: Time = None
    as_of: Time = None
    min_score: OptionalNumber = None
    min_confidence: OptionalFraction = None


class ReasonBody(RequestBody):
    """A question whose answer is a chain of entries."""

    query: Query
    k: Count = 5
    as_of: Time = None


class ContextBody(RequestBody):
    """A message that a model is about to answer."""

    message: Text
    k: Count = 5
    min_confidence: Fraction = MIN_CONFIDENCE
    """Below this confidence nothing is shown, and a line says so; 0 turns it off."""
    citations: Flag = True
    """Ask the model to cite what it used."""


class AnswerBody(RequestBody):
    """What the model answered, and how many memories the context showed for citing."""

    answer: Text
    shown: Annotated[Any, WithJsonSchema({"type": "integer", "minimum": 0, "maximum": MAX_K})]


class OutcomeBody(RequestBody):
    """How a recall turned out: exactly one of these."""

    cited: Places = None
    used: OptionalFraction = None
    ignored: Flag = False
    refined: OptionalText = None
    success: OptionalFlag = None


class TurnBody(RequestBody):
    """One utterance."""

    role: Id
    text: Text
    at: Time = None
    speaker: OptionalLine = None
    trust: Trust = "trusted"
    tags: Lines = Field(default_factory=list)


class TurnsBody(RequestBody):
    """Turns that are added in one durable write."""

    turns: Annotated[list[TurnBody], Field(min_length=1, max_length=MOST_ITEMS)]


class EndBody(RequestBody):
    """How long to wait for the memories that a session becomes."""

    wait: Seconds = 0.0


class ReflectBody(RequestBody):
    """Which session to read; all that were not read yet when none is named."""

    session_id: OptionalLine = None
    again: Flag = False


class TaskBody(RequestBody):
    """A task that is about to be done: the keywords of `ReasoningBank.begin`."""

    task_id: Id
    query: Query
    agent_id: Line = ""
    domain: Line = ""
    session_id: OptionalLine = None
    k: Count = DEFAULT_K


class FinishBody(RequestBody):
    """What was done for a task: a text, a list of steps, or an object with `steps`, `output`, `exit_code`, …"""

    trajectory: Annotated[Any, WithJsonSchema({"anyOf": [_OBJECT, {"type": "array", "items": {}}, {"type": "string"}]})]
    verdict: OptionalFlag = None
    """How it went, if somebody knows; else it is judged."""


class ItemsBody(RequestBody):
    """A task, and what narrows the strategies and guardrails that are looked for."""

    query: Query
    k: Count = DEFAULT_K
    domain: OptionalLine = None
    kind: Annotated[Any, WithJsonSchema(_or_list({"type": "string", "enum": [*ITEM_KINDS]}))] = None
    min_confidence: Fraction = SURE_ITEM


class ForgetBody(RequestBody):
    """What goes for good: exactly one of `ids`, `session_id`, `everything`."""

    ids: OptionalIds = None
    session_id: OptionalLine = None
    everything: Flag = False
    layer: OneLayer = None
    turns: OptionalFlag = None


class RelearnBody(RequestBody):
    """Pairs of a query and the ids of its right entries, learned first."""

    pairs: Annotated[list[tuple[str, list[str]]] | None, Field(max_length=MOST_ITEMS)] = None


class ShareBody(RequestBody):
    """Whether the tenant's users learn from each other."""

    on: Flag


class PractiseBody(RequestBody):
    """How many questions to make."""

    tasks: Annotated[Any, WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MOST_ITEMS})] = 60


class RetryBody(RequestBody):
    """Which dead job; all of them when none is named."""

    id: OptionalLine = None


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
    dry_run: Flag = False


class KeyBody(RequestBody):
    """A new key: bound to ids on layers, or to the whole tenant when it names none."""

    name: Annotated[str, Field(max_length=MAX_NAME_CHARS)] = ""
    role: Annotated[Any, WithJsonSchema({"type": "string", "enum": [*ROLES]})] = "writer"
    layers: Annotated[dict[str, Annotated[list[str], Field(max_length=64)]], Field(max_length=len(LAYERS))] = Field(
        default_factory=dict
    )
    expires_at: Time = None


class RotateBody(RequestBody):
    """How long the old key still works."""

    grace_s: Annotated[float, Field(ge=0, le=MOST_GRACE_S)] = 86400.0
