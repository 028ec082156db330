"""Recall by programs: a model writes Python that searches, reads and asks, sees what it printed, and continues.

For questions over more text than a model reads at once. Off by default. Programs see summaries first and full texts on
demand, and only what the question's scope, time and filters let through. Whatever goes wrong, the caller gets what was
read so far.

Programs run in a process of their own, with `pydantic-monty`, never with `exec`. Its interpreter of a small Python has no
files, no network and no way to the host but the functions it is given. Time, memory, depth and calls are limited.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput, MissingExtra, WellwornError
from wellworn.core.fence import escape
from wellworn.core.lazy import regex
from wellworn.core.values import Entry, RecallResult
from wellworn.models.ledger import Meter as MeteredModel
from wellworn.models.port import Message, Request
from wellworn.models.structured import fraction
from wellworn.search.steps.limits import Calls, LimitMet, Usage, prompt
from wellworn.search.steps.reason import Library, worded
from wellworn.search.steps.router import Limits, checked_numbers

PROGRAM_TOKENS, QUERY_TOKENS = 1_500, 500
"""What a model may answer with a program, and to a query of one."""
SHOWN = 10
"""Hits whose summaries the model begins with."""
OUTPUT_CHARS, PREVIEW_CHARS = 6_000, 120
"""Of what a program printed that the model is shown, and of an entry in a summary."""
_MOST_QUERIES, _MOST_LISTED, _MOST_CHARS = 64, 500, 100_000
"""Prompts at once, entries listed at once, and characters of one text that a program hands over."""
_FENCED = regex(r"```[ \t]*(?:python|py|repl)?[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)

Summary = dict[str, Any]
"""JSON values only: a program gets nothing else."""


@dataclass(frozen=True, kw_only=True)
class ReplLimits:
    """What one question may use in the sandbox."""

    iterations: int = 8
    timeout_s: float = 90.0
    """For everything: models, programs, searches."""
    program_s: float = 2.0
    """Of computing, for one program; waiting for models and searches is not counted."""
    memory_bytes: int = 64_000_000
    calls: int = 200
    """Of functions, by all programs together."""
    model_calls: int = 40
    """Programs and queries together."""
    tokens: int = 200_000
    """Of model calls and of chunks that were read."""
    usd: float = 0.25

    def __post_init__(self) -> None:
        checked_numbers("repl", vars(self), above=0.0)
        if self.timeout_s <= self.program_s + GRACE_S:
            problem = f"{self.timeout_s} leaves no time after a program of {self.program_s} s"
            raise InvalidInput("repl.timeout_s", problem, f"use more than {self.program_s + GRACE_S}")


class Repl:
    """One question at work."""

    def __init__(self, library: Library, root: MeteredModel, sub: MeteredModel, limits: ReplLimits) -> None:
        self._library = library
        self._root = root
        self._sub = sub
        self._limits = limits
        # A program under way is not interrupted before its own time is over, so the rest ends that much earlier.
        time_s = limits.timeout_s - limits.program_s - GRACE_S
        self._usage = Usage(Limits(actions=limits.calls, tokens=limits.tokens, usd=limits.usd, timeout_s=time_s))
        self.calls = Calls(self._usage, most=limits.model_calls, timeout_s=time_s)
        self._seen: dict[str, Entry] = {}
        self._read: dict[str, Entry] = {}
        self._final: RecallResult | None = None
        self._rounds = 0

    def recall(self, question: str) -> RecallResult:
        """The answer that programs found, or why there is none and what was read."""
        try:
            problem = self._work(question) or f"no answer after {self._limits.iterations} rounds"
        except LimitMet as limit:
            problem = f"stopped at the limit of {limit}"
        except MissingExtra:
            raise
        except Stop as stop:
            problem = str(stop)
        except Exception as error:  # models, and what they write, may do anything
            problem = f"failed: {type(error).__name__}"
        if self._final is not None:
            return self._final
        return RecallResult(
            content=None, chunk_ids=[*self._read], confidence=0.0, iterations_used=self._rounds, problem=problem
        )

    def _work(self, question: str) -> str:
        """Run round after round; returns why it stopped without an answer."""
        limits = self._limits
        with sandbox(self._functions(), limits) as run:
            first = self._library.search(question, SHOWN)
            messages = [*opening(question, first.searched, [self._summary(hit.entry) for hit in first.hits])]
            for self._rounds in range(1, limits.iterations + 1):
                self._usage.check()
                request = Request(messages=tuple(messages), purpose="repl", max_output_tokens=PROGRAM_TOKENS)
                said = self.calls.ask(self._root, request)
                ran = run(program_in(said))
                if ran.over:
                    return f"a program was ended: {ran.error}"
                told = shown(ran.printed, ran.error, limits.iterations - self._rounds)
                messages += [Message(role="assistant", text=said), Message(role="user", text=told)]
        return ""

    def _functions(self) -> Functions:
        reading = (self.search_chunks, self.read_chunk, self.list_chunks_by_tag, self.get_linked_chunks)
        asking = (self.llm_query, self.llm_query_batched)
        return {one.__name__: self._counted(one) for one in (*reading, *asking)} | {"FINAL": self._counted(self.final)}

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function as a program gets it: calls are counted, and a limit ends the program."""

        def called(*values: Any, **named: Any) -> Any:
            try:
                self._usage.begin_action()
                return function(*values, **named)
            except LimitMet as limit:
                raise Stop(f"stopped at the limit of {limit}") from None
            except WellwornError as error:
                raise RuntimeError(str(error)) from None

        return called

    # -- what programs call --------------------------------------------------------------------------------------

    def search_chunks(self, query: Any, limit: Any = 10) -> list[Summary]:
        found = self._library.search(_text("query", query), _count(limit, _MOST_LISTED))
        return [self._summary(hit.entry) for hit in found.hits]

    def list_chunks_by_tag(self, tag: Any, limit: Any = 100) -> list[Summary]:
        return [self._summary(entry) for entry in self._library.tagged(_text("tag", tag), _count(limit, _MOST_LISTED))]

    def get_linked_chunks(self, chunk_id: Any) -> list[Summary]:
        wanted = _id(chunk_id)
        return [
            {**self._summary(entry), "link": link.type, "direction": "to" if link.source == wanted else "from"}
            for entry, link in self._library.linked(wanted)
        ]

    def read_chunk(self, chunk_id: Any) -> str:
        wanted = _id(chunk_id)
        entry = self._library.read(wanted)
        if entry is None:
            raise ValueError(f"no chunk {wanted[:80]!r}")
        self._usage.spend(tokens=entry.token_count)
        self._seen[entry.id] = self._read[entry.id] = entry
        return entry.text

    def llm_query(self, prompt: Any) -> str:
        return self.calls.ask(self._sub, _query(_text("prompt", prompt)))

    def llm_query_batched(self, prompts: Any) -> list[str]:
        if not isinstance(prompts, list | tuple) or len(prompts) > _MOST_QUERIES:
            raise ValueError(f"give a list of at most {_MOST_QUERIES} prompts")
        answers = self.calls.ask_all(self._sub, [_query(_text("prompt", one)) for one in prompts])
        limits = [answer for answer in answers if isinstance(answer, LimitMet)]
        if limits:
            raise limits[0]
        return [f"(no answer: {type(one).__name__})" if isinstance(one, Exception) else one for one in answers]

    def final(self, answer: Any, chunk_ids: Any = None, confidence: Any = None) -> None:
        if answer is None or answer == "":
            raise Stop("the model found no answer")
        content = _text("answer", answer)
        named = chunk_ids if isinstance(chunk_ids, list | tuple) else []
        ids = dict.fromkeys(id for one in named if (id := _id(one, check=False)) in self._seen)
        rests_on = worded(content, [self._seen[id] for id in ids or self._read])
        if not rests_on:
            raise ValueError("the answer has no word of a chunk that it cites")
        self._final = RecallResult(
            content=content,
            chunk_ids=[entry.id for entry in rests_on],
            confidence=fraction(confidence, 0.5),
            iterations_used=self._rounds,
        )
        raise Stop("answered")

    def _summary(self, entry: Entry) -> Summary:
        """What a program is told of an entry before it reads it."""
        self._seen[entry.id] = entry
        flat = " ".join(entry.text.split())
        return {
            "id": entry.id,
            "kind": entry.kind,
            "title": entry.title,
            "date": entry.at.date().isoformat(),
            "tags": list(entry.tags),
            "tokens": entry.token_count,
            "preview": flat if len(flat) <= PREVIEW_CHARS else flat[:PREVIEW_CHARS] + "…",
        }


def opening(question: str, size: int, summaries: Sequence[Summary]) -> tuple[Message, Message]:
    """What a model begins with: the instructions, and the question with summaries of its best hits."""
    lines = [escape(json.dumps(summary, ensure_ascii=False)) for summary in summaries]
    told = [f"<question>{escape(question)}</question>", f"<chunks>{size}</chunks>", "<summaries>", *lines]
    return Message(role="system", text=prompt("repl")), Message(role="user", text="\n".join([*told, "</summaries>"]))


def shown(printed: str, error: str, left: int, most: int = OUTPUT_CHARS) -> str:
    """What a model is told of its program: the beginning and the end of what it printed, and its error."""
    if len(printed) > most:
        half = most // 2
        printed = f"{printed[:half]}\n… {len(printed) - 2 * half} characters left out …\n{printed[-half:]}"
    parts = [f"<output>\n{html.escape(printed, quote=False)}\n</output>"]
    parts += [f"<error>{html.escape(error[:most], quote=False)}</error>"] if error else []
    return "\n".join([*parts, f"{left} rounds left."])


def program_in(said: str) -> str:
    """The code in an answer: its blocks one after another, or all of it when there is none."""
    blocks = _FENCED.findall(said.rpartition("</think>")[2])
    return "\n".join(blocks) if blocks else said


def _query(text: str) -> Request:
    return Request.of(prompt("repl_query"), text, purpose="repl_query", max_output_tokens=QUERY_TOKENS)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise TypeError(f"{name} must be a text, not {type(value).__name__}")
    if len(value) > _MOST_CHARS:
        raise ValueError(f"{name} has {len(value)} characters, more than {_MOST_CHARS}")
    return value


def _id(value: Any, *, check: bool = True) -> str:
    """An id, or the summary that has it."""
    found = value.get("id") if isinstance(value, dict) else value
    return _text("id", found) if check else str(found)


def _count(value: Any, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"limit must be a whole number, not {type(value).__name__}")
    return min(max(value, 1), most)


# -- the sandbox -------------------------------------------------------------------------------------------------------

GRACE_S = 1.0
"""How much longer than its time a program may take before its process is killed."""
_DEPTH = 200
_MOST_PRINTED = 1_000_000
"""Bytes; a program that prints more is ended."""
_LOOKUPS = 200
"""Names that a program may look up, beside its calls."""

Functions = Mapping[str, Callable[..., Any]]  # any JSON values in and out


class Stop(Exception):
    """Raised by a function to end the program at once; the program cannot catch it."""


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What a program did."""

    printed: str
    error: str = ""
    """The program's mistake, as a model may be shown it."""
    over: bool = False
    """Whether the session cannot continue."""


def check_installed() -> Any:  # the module
    """The sandbox's package; `MissingExtra` where there is none."""
    try:
        import pydantic_monty
    except ImportError as error:
        raise MissingExtra("running programs that a model wrote", "repl") from error
    return pydantic_monty


@contextmanager
def sandbox(functions: Functions, limits: ReplLimits) -> Iterator[Callable[[str], Ran]]:
    """One session: what it gives runs a program to its end or its limits. Variables are kept between programs."""
    monty = check_installed()
    pool = monty.Monty(
        max_processes=1,
        request_timeout=limits.program_s + GRACE_S,
        checkout_timeout=limits.program_s + GRACE_S,
        feed_duration_limit_grace=GRACE_S,
    )
    enforced = {
        "max_feed_duration_secs": limits.program_s,
        "max_memory": limits.memory_bytes,
        "max_recursion_depth": _DEPTH,
        "max_suspensions": limits.calls + _LOOKUPS,
        "max_total_sleep_secs": 0.0,
    }
    with pool, pool.checkout(limits=enforced) as session:
        yield partial(_run, monty, session, dict(functions))


def _run(monty: Any, session: Any, functions: Functions, program: str) -> Ran:  # their module and session
    """Run one program. `Stop` from a function goes through."""
    printed = monty.CollectString(_MOST_PRINTED)
    error, over = "", False
    try:
        state = session.feed_start(program, external_lookup=functions, print_callback=printed)
        while not isinstance(state, monty.MontyComplete):
            ours = isinstance(state, monty.FunctionSnapshot) and not state.is_os_function and state.object_id is None
            state = _answered(state, functions.get(state.function_name) if ours else None)
    except monty.MontyRuntimeError as raised:
        error = raised.display("type-msg")
        over = isinstance(raised.exception(), TimeoutError | MemoryError) or "suspension limit" in error
    except (monty.MontySyntaxError, monty.MontyConversionError) as raised:
        error = str(raised)
    except monty.MontyError as raised:  # its process is gone
        error, over = f"{type(raised).__name__}: the program's process was ended", True
    return Ran(printed=printed.output, error=error, over=over)


def _answered(state: Any, function: Callable[..., Any] | None) -> Any:  # their snapshots
    """The next state after a program waited: for a function of ours, or for what the sandbox decides itself."""
    if function is None:
        return state.resume_auto()
    try:
        answer = {"return_value": function(*state.args, **state.kwargs)}
    except (TypeError, ValueError, RuntimeError) as error:  # the program's own fault: it may go on
        answer = {"exception": RuntimeError(f"{type(error).__name__}: {error}")}
    return state.resume(answer)
