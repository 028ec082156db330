"""A conversation with memory: messages and commands in, sentences out. `wellworn chat` is one on a terminal.

Without a language model it answers from memory alone (`sentences`). Recalling, storing and learning are the work of
`loop`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from wellworn.core.clock import Clock, aware, system_clock
from wellworn.core.errors import NotFound, WellwornError
from wellworn.core.values import Entry, Recall
from wellworn.ingest.utterance import wants_answer
from wellworn.integrations.loop import MemoryMiddleware, MiddlewareContext
from wellworn.integrations.sentences import NOTED, reply, sentence, told, why
from wellworn.memory import Memory
from wellworn.models.port import Message, Model, Request
from wellworn.reflection.values import Reflection

SYSTEM = "You are a helpful assistant with a memory of earlier conversations. Answer in a few sentences."
HISTORY_TURNS = 12
NOT_ASKED = "You have not asked me anything yet."
HELP = """Tell me things, and ask me about them later.
/why      why I gave the last answer
/forget   forget what the last answer rests on; with words, as in /forget my address, what fits them best
/quit     end the conversation"""


class Conversation:
    """One conversation: commands and messages in, sentences out."""

    def __init__(
        self,
        memory: Memory,
        middleware: MemoryMiddleware,
        model: Model | None,
        *,
        tell: Callable[[str], None],
        clock: Clock = system_clock,
    ) -> None:
        self._memory, self._middleware, self._model = memory, middleware, model
        self._tell, self._clock = tell, aware(clock)
        self._last: Recall | None = None
        self._used: Sequence[int] = ()
        self._questions: dict[str, set[str]] = {}
        """Each question, and the ids of the entries that its answer rests on."""
        self._reflections: list[Reflection] = []
        """What became of statements so far. Without a model they become memories at once."""

    def end(self) -> list[Reflection]:
        """End the session and make memories of the rest; returns what became of it all and still holds."""
        self._middleware.end_session()
        self._reflections += self._memory.reflect(session_id=self._middleware.session_id)
        return self.kept

    @property
    def kept(self) -> list[Reflection]:
        """What statements became so far, without what was forgotten or replaced since."""
        return [
            replace(one, memories=[each for each in one.memories if self._holds(each.id)]) for one in self._reflections
        ]

    def _holds(self, id: str) -> bool:
        with suppress(NotFound):
            return self._memory.get(id).state in ("active", "flagged")
        return False

    def run(self, messages: Iterator[str]) -> int:
        """Answer until the person leaves; returns how many messages there were."""
        turns = 0
        for text in messages:
            name, _, about = text.partition(" ")
            if name == "/help":
                self._tell(HELP)
            elif name == "/why":
                self._tell(why(self._last, used=self._used, now=self._clock()) if self._last is not None else NOT_ASKED)
            elif name == "/forget":
                self._forget(self._memory.recall(about) if about.strip() else self._last, messages)
            elif name.startswith("/"):
                self._tell(f"I do not know {name}; /help lists what I know.")
            else:
                self._turn(text)
                turns += 1
        return turns

    def _turn(self, text: str) -> None:
        """Answer one message."""
        context = MiddlewareContext(user_input=text, current_system_prompt=SYSTEM)
        system, answer = self._middleware.enrich_system_prompt(context), ""
        found = self._middleware.recalled(text)
        newer = {} if found is None else self._newer(found)
        if self._model is not None or wants_answer(text):  # /why is about the last question
            self._last, self._used = found, ()
        if self._model is None:
            said = reply(text, found, now=self._clock(), newer=newer)
            self._middleware.after_response(text, "")
            self._tell(" ".join([said, *self._replaced()]) if said == NOTED else said)
        else:
            try:
                answer = self._asked(self._model, system, text)
                citation = self._middleware.cited(text, answer)
                self._used = citation.places or ()
                self._tell(citation.text.strip())
            except WellwornError as error:  # a model that fails ends one answer, not the chat
                self._tell(f"The model did not answer: {error}")
            self._middleware.after_response(text, answer)
        if found is not None and wants_answer(text):
            rests_on = [found.hits[place] for place in self._used] or told(found.hits, newer)
            self._questions[text] = {hit.entry.id for hit in rests_on}

    def _newer(self, found: Recall) -> dict[str, list[Entry]]:
        """What replaced the outdated hits."""
        newer: dict[str, list[Entry]] = {}
        with suppress(WellwornError):  # the answer leaves out what was then
            for hit in found.hits:
                links = self._memory.links(hit.entry.id) if hit.outdated else []
                ends = [one.source for one in links if (one.type, one.target) == ("supersedes", hit.entry.id)]
                newer[hit.entry.id] = [self._memory.get(one) for one in ends]
        return newer

    def _replaced(self) -> list[str]:
        """Make memories of the last statement; says what it replaces."""
        try:
            self._reflections += self._memory.reflect(session_id=self._middleware.session_id)
            turns = self._memory.session(self._middleware.session_id).turns()
            said = next((turn.entry_id or "" for turn in reversed(turns) if turn.role == "user"), "")
            ended = [
                link.target for link in self._memory.links(said) if (link.type, link.source) == ("supersedes", said)
            ]
            return [f"So this no longer holds: “{self._memory.get(one).text}”" for one in ended[:1]]
        except WellwornError:  # the end of the session tries again
            return []

    def _asked(self, model: Model, system: str, text: str) -> str:
        earlier = [
            Message(role="assistant" if turn.role == "assistant" else "user", text=turn.text)
            for turn in self._memory.session(self._middleware.session_id).turns()[-HISTORY_TURNS:]
        ]
        messages = (Message(role="system", text=system), *earlier, Message(role="user", text=text))
        return model.complete(Request(messages=messages, purpose="chat", max_output_tokens=800)).text

    def _forget(self, recall: Recall | None, answers: Iterator[str]) -> None:
        """Forget the best hit, if the person agrees."""
        if recall is None or not recall.hits:
            self._tell("There is nothing to forget. Say what, as in /forget my address.")
            return
        self._tell(f"{sentence(recall.hits[0], now=self._clock())}\nForget this for good? (yes or no)")
        if next(answers, "").lower() not in ("y", "yes"):
            self._tell("Kept.")
            return
        self._last, entry = None, recall.hits[0].entry
        gone = self._middleware.forget(entry, asked=self._questions)
        self._tell("Forgotten." if gone else "It was gone already.")
