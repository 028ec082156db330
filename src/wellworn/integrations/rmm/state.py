"""What the middleware keeps in the agent's state: ids only, well under 4 KB, no memory's text and no weights.

It is checkpointed, so that a run that was interrupted goes on with the memories it began with, in another process too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NotRequired, cast

from langchain.agents import AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AnyMessage, HumanMessage
from typing_extensions import TypedDict

from wellworn.integrations.rmm.context import Person


class TurnState(TypedDict):
    """What was recalled for a question."""

    question: str
    """The id of the human message."""
    person: str
    """For whom, as `Person.mark`."""
    recall: str
    ids: list[str]
    """Memories recalled, those shown first."""
    shown: int
    """How many of them stand in the block."""
    at: str
    """When, in ISO form: the block says how old memories are."""
    cited: NotRequired[list[int]]
    """What the answer cites, until it is learned from."""


class SessionState(TypedDict):
    """The session that this thread belongs to."""

    id: str
    tenant: str
    user: str
    since: NotRequired[str]
    """The id of the last message before this person's, in a thread that was another's before."""
    first: NotRequired[str]
    """The id of the first message that was kept as a turn."""
    kept: NotRequired[str]
    """The id of the last message that was kept as a turn."""


class RMMState(AgentState[Any]):
    """The agent's state with the middleware's own."""

    rmm_turn: NotRequired[Annotated[TurnState | None, PrivateStateAttr]]
    rmm_session: NotRequired[Annotated[SessionState | None, PrivateStateAttr]]


def question_of(messages: Sequence[AnyMessage]) -> HumanMessage | None:
    """The message that a turn answers: the last one of the user's."""
    return next((message for message in reversed(messages) if isinstance(message, HumanMessage)), None)


def turn_of(state: object, question: HumanMessage | None, person: Person) -> TurnState | None:
    """What was recalled for this question of this person, if anything."""
    turn = cast("RMMState", state).get("rmm_turn")
    if not turn or question is None or (turn["question"], turn["person"]) != (question.id, person.mark):
        return None
    return turn
