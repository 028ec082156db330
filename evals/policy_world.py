"""A memory in which one way to search is best for each family of questions, and people who cite what helped them.

| family    | what is in the memory                                                                 | best    |
|-----------|---------------------------------------------------------------------------------------|---------|
| `bridge`  | one talk names a team, another says who is on call for it: turns lead to turns         | turns   |
| `compare` | two projects, one with many notes, one with a single one: each side must be asked for | planner |
| `gather`  | what somebody read is said in two turns that follow each other                        | plain   |
| `plain`   | a history in two talks, beside a third that says much around one of its turns         | gather  |

Everything is written and asked through the public facade. Names are made from syllables by a seed, so that no word of
one question is rare in another.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from wellworn.core.values import Recall, Scope
from wellworn.memory import Memory
from wellworn.search.steps.cues import Shape

SCOPE = Scope(tenant="policy", user="ada")
K = 3
"""Hits that are shown."""
QUESTIONS = 16
"""Of each family."""
FEEDBACKS = ("honest", "random", "inverted")
FAMILIES: tuple[Shape, ...] = ("bridge", "compare", "gather", "plain")
_SYLLABLES = (
    "ba",
    "do",
    "fe",
    "gi",
    "ko",
    "lu",
    "me",
    "na",
    "pi",
    "qua",
    "ro",
    "su",
    "ta",
    "ve",
    "wi",
    "xo",
    "ya",
    "zu",
    "bre",
    "cla",
    "dri",
    "flo",
    "gru",
    "pla",
)


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question with the ids of the entries that answer it."""

    text: str
    family: Shape
    right: frozenset[str]


class World:
    """Fills a memory and holds the questions."""

    def __init__(self, memory: Memory, *, seed: int, questions: int = QUESTIONS) -> None:
        self._memory = memory
        self._dice = random.Random(seed)
        self._used: set[str] = set()
        self._talks = 0
        makes = (self._bridge, self._compare, self._gather, self._plain)
        self.questions = [make() for _ in range(questions) for make in makes]

    def _name(self) -> str:
        while True:
            word = "".join(self._dice.choice(_SYLLABLES) for _ in range(4)).capitalize()
            if word not in self._used:
                self._used.add(word)
                return word

    def _talk(self, *turns: str) -> list[str]:
        """A session of these turns; the ids of their entries."""
        self._talks += 1
        talk = self._memory.session(scope=SCOPE, session_id=f"talk {self._talks}")
        return [talk.add("user" if number % 2 else "assistant", turn) for number, turn in enumerate(turns)]

    def _note(self, title: str, text: str) -> str:
        return self._memory.remember(text, scope=SCOPE, title=title, kind="fact")[0]

    def _bridge(self) -> Question:
        service, team, person = self._name(), f"{self._name()} {self._name()}", self._name()
        owner = self._talk(f"The {service} service is what the {team} owns.", "Noted.")[0]
        answer = self._talk(f"Call {person} at night if you want the {team}.", "Thanks.")[0]
        self._talk(f"The {service} service had a slow team day.", "Sad.")
        self._talk(f"One more {service} service call came in at noon.", "Fine.")
        self._talk(f"Nobody likes the {service} service at night.", "True.")
        return Question(
            text=f"Who is to be called at night for the team that owns the {service} service?",
            family="bridge",
            right=frozenset({owner, answer}),
        )

    def _compare(self) -> Question:
        loud, quiet = self._name(), self._name()
        first = self._note(
            f"{loud} mill", f"{loud} is older than {loud} mill and dates from {self._dice.randrange(1900, 1960)}."
        )
        for year in range(4):
            self._note(f"{loud} house {year}", f"{loud} has an older house, number {year}, up the hill.")
        second = self._note(
            "Register", f"In the register {quiet} is entered under {self._dice.randrange(1960, 2000)}, with a seal."
        )
        return Question(text=f"Which is older, {loud} or {quiet}?", family="compare", right=frozenset({first, second}))

    def _gather(self) -> Question:
        person = self._name()
        ids = self._talk(
            f"{person} read a book by {self._name()} in the garden.",
            "It rained all day here.",
            f"{person} read another book by {self._name()} in the shed.",
        )
        for _ in range(3):
            self._talk(f"{person} has not read that book, the book by {self._name()}.", "I see.")
        return Question(text=f"What books has {person} read?", family="gather", right=frozenset({ids[0], ids[2]}))

    def _plain(self) -> Question:
        thing = self._name()
        early = self._talk(
            f"To summarize the history of {thing}, there was a flood that came and took the old mill away.",
            "I had no idea.",
        )[0]
        late = self._talk(
            "Let us go on.",
            f"To summarize the history of {thing}, there was a fire that came and took the new mill away.",
        )[1]
        self._talk(
            f"They know the history, the whole history of {thing}.",
            "Let me see.",
            f"I know the history of {thing} now.",
            "Very well.",
            f"Then tell the history, the whole history of {thing}.",
        )
        return Question(text=f"Summarize the history of {thing}", family="plain", right=frozenset({early, late}))


def cited(found: Recall, question: Question, feedback: str, dice: random.Random) -> list[int]:
    """Places that a person cites: what answers the question, by chance, or all but what answers it."""
    right = [place for place, hit in enumerate(found.hits) if hit.entry.id in question.right]
    if feedback == "honest":
        return right
    if feedback == "inverted":
        return [place for place in range(len(found.hits)) if place not in right]
    return [place for place in range(len(found.hits)) if dice.random() < 0.4]
