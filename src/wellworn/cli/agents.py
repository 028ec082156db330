"""What agents start themselves: hooks around each prompt, and the MCP server.

A hook runs in somebody else's loop: whatever goes wrong is a warning on standard error and exit code 0. It runs in its own
process, or in a server of the same memory (`ask`, `answer`): a `HookCall` says which.
"""

from __future__ import annotations

import functools
import gc
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wellworn.cli import render
from wellworn.cli.edge import DASH, can_ask, read_object
from wellworn.cli.target import Target, opened
from wellworn.core.errors import InvalidInput, NotFound, StoreError
from wellworn.core.fence import MIN_CONFIDENCE, fenced_block
from wellworn.core.locks import patience
from wellworn.core.plain import to_plain
from wellworn.core.values import Hit, Kind, Turn, fence_item
from wellworn.core.wellformed import clean_text, counted
from wellworn.doors import without_secrets

if TYPE_CHECKING:
    from wellworn.cli import options
    from wellworn.memory import Memory
    from wellworn.tasks import ReasoningBank, TaskResult, Trajectory

SHOWN = ("task_id", "id", "state", "verdict", "entry_ids", "fault")
SAY = "give --success, --failure or --exit-code, a step with ok, error or exit_code, or a transcript_path"
MAX_PROMPT_CHARS = 20_000
MOST_NAMING = 2
"""Words beside a secret that only name it ("My GitHub token is …"): the prompt tells nothing else."""
WAIT_S, MODEL_WAIT_S = 1.0, 30.0
"""How long a hook waits for a store that others write to: a person waits for the hook, a model has cost more already."""
KNOWN = 3
FITS = 0.65
"""Of the best hit's score: of 25 facts and 32 prompts, twice as many of the shown lines are right, and 1 of 29 is lost."""
KNOWN_KINDS: tuple[Kind, ...] = ("fact", "preference", "pattern", "note", "summary")
"""What is shown beside strategies and guardrails; earlier prompts by themselves are not."""


# -- hooks -----------------------------------------------------------------------------------------------------------


class HookCall:
    """Where a hook reads and writes, and which memory it opens. This one is a process of its own."""

    folder = ""
    """Where relative paths begin."""

    def begin(self, target: Target, llm: str | None) -> None:
        """Called before a hook does anything."""
        logging.getLogger("wellworn").addHandler(logging.NullHandler())
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # starting threads takes longer than what they would do

    def path(self, name: str) -> Path:
        return Path(self.folder, Path(name).expanduser())

    def read(self, file: str) -> Mapping[str, Any]:
        """The JSON object of a file, or of standard input."""
        return read_object(file if file == DASH else os.path.join(self.folder, file))

    def write(self, text: str) -> None:
        """Write to standard output."""
        sys.stdout.write(text)

    def say(self, message: str) -> None:
        """A remark on standard error."""
        render.say(message)

    def bank(self, target: Target, llm: str | None) -> AbstractContextManager[ReasoningBank]:
        return opened(target, new=True, llm=llm)


current: ContextVar[HookCall] = ContextVar("wellworn_call", default=HookCall())  # noqa: B039 - it has no state
"""The call of the present hook."""


def harmless(command: Callable[..., None]) -> Callable[..., None]:
    """Turn every error of a command into a warning: a failing memory never stops the agent around it."""

    @functools.wraps(command)
    def run(target: Target, *, llm: str | None = None, **options: Any) -> None:  # as the command takes them
        call = current.get()
        call.begin(target, llm)
        try:
            command(target, llm=llm, **options)
        except Exception as error:  # the outermost loop is the agent's own
            call.say(f"wellworn: continuing without memory: {type(error).__name__}: {' '.join(str(error).split())}")

    return run


@contextmanager
def _working(target: Target, llm: str | None = None) -> Iterator[ReasoningBank]:
    """The bank of a hook. What it cannot write for a while it leaves: while it works, or else when it closes."""
    wait_s = MODEL_WAIT_S if model_of(llm) else WAIT_S
    with ExitStack() as stack:
        with patience(wait_s):
            bank = stack.enter_context(current.get().bank(target, llm))
        try:
            with patience(wait_s):
                yield bank
        except StoreError:
            wait_s = 0.0  # it has waited
            raise
        finally:
            with patience(wait_s):
                stack.close()


@harmless
def pre_task(
    target: Target,
    task_id: options.TaskId = None,
    query: options.TaskQuery = None,
    domain: options.TaskDomain = "",
    k: options.ItemCount = 1,
    llm: options.LlmName = None,
) -> None:
    """Print what helps with a task, as a block for its prompt, and record that the task has begun.

    Without --query it reads a JSON object from standard input, as Claude Code gives it to UserPromptSubmit hooks: then it
    also prints what is known that bears on the prompt, and keeps a prompt that tells something; with --llm it leaves
    reading that to post-task. Prints nothing if nothing helps. A failing memory is a warning and exit code 0.
    """
    from wellworn.ingest.pii.find import PLACEHOLDER  # here: numpy counts the threads it may start when it is imported
    from wellworn.ingest.scrub import scrubbed_json
    from wellworn.ingest.terms import content_words
    from wellworn.ingest.utterance import UNDO, by_program, goes_on, rejects

    call = current.get()
    given = {} if query is not None else call.read(DASH)
    whole = clean_text(query if query is not None else _word(given, "prompt", "query"))
    said = whole[:MAX_PROMPT_CHARS]
    name = task_id or _word(given, "session_id", "task_id") or "task"
    if not said.strip():
        raise InvalidInput("--query", "is missing", 'give it, or pipe in {"prompt": …}')
    asked = without_secrets(said)
    left = asked if asked == said else PLACEHOLDER.sub("", asked)
    session = _word(given, "session_id") if "prompt" in given else ""
    before = _before(given, left)
    rejected = bool(before.query) and rejects(left, before.output)
    if "prompt" in given and not rejected and (goes_on(left) or by_program(whole)):
        return  # "ok", "go on", a key alone: nothing to look up
    consents = "prompt" in given and not rejected and goes_on(left, before.output)
    with _working(target) as bank:
        with suppress(StoreError):  # a store that is busy can be read
            # What never came to its end is given up: nothing is known of it, and a "no" means it and no work before it.
            given_up = 0 if consents else bank.abandon(name, keep=False)
            if rejected and not given_up:
                _doubt(bank, name, before)
            if session and model_of(llm) and not consents:
                _read_prompts(bank.memory, session)
        work = None
        undoes = rejected and UNDO.search(left)  # no way to do what was asked for
        if not (consents or undoes):
            agent, meant = target.scope.agent or "", without_secrets(before.query) if rejected else asked
            work = bank.begin(task_id=name, query=meant, agent_id=agent, domain=domain, k=k)
        hits = [*(work.hits if work else ()), *(_known(bank.memory, asked) if "prompt" in given else ())]
        if target.json:
            shown = to_plain({"task_id": name, "id": work.task.id if work and work.task else "", "hits": hits})
            call.write(render.json_text(scrubbed_json(shown, without_secrets)))
        elif hits:
            items = [fence_item(hit.entry, outdated=hit.outdated) for hit in hits]
            items = [replace(item, text=without_secrets(item.text)) for item in items]
            call.write(fenced_block(items, max_tokens=1500) + "\n")
        if session and (asked == said or len(content_words(left)) > MOST_NAMING):
            _keep(bank.memory, target, asked, session, llm)
        if work and not work.stored:
            raise StoreError("the store cannot be written to now, so this task teaches nothing")


def _before(given: Mapping[str, Any], prompt: str) -> Trajectory:
    """The work before a prompt that opens with a yes or a no, as the transcript of its session has it."""
    from wellworn.ingest.utterance import leans
    from wellworn.tasks.trajectory import Trajectory

    with suppress(InvalidInput):  # it cannot be read
        if "transcript_path" in given and leans(prompt):
            return _work(given)
    return Trajectory()


def _doubt(bank: ReasoningBank, name: str, work: Trajectory) -> None:
    """Make the strategies less sure that rejected work has taught; other work of the session is not meant."""
    from wellworn.learning.records import LOWEST
    from wellworn.tasks import judge
    from wellworn.tasks.attempts import REJECTED_STEP

    last = next((task for task in bank.tasks() if task.task_id == name), None)
    if last is None or not judge.does(work) or last.query.split() != without_secrets(work.query).split():
        return
    for id in last.entry_ids:
        with suppress(NotFound):  # it was forgotten
            item = bank.item(id)
            if item.kind == "strategy":
                bank.memory.edit(id, confidence=max(LOWEST, round(item.confidence - REJECTED_STEP, 6)))


def _known(memory: Memory, prompt: str) -> list[Hit]:
    """What is known that bears on a prompt: the best, and what fits about as well."""
    hits = memory.recall(prompt, k=KNOWN, kind=KNOWN_KINDS, min_confidence=MIN_CONFIDENCE).hits
    return [hit for hit in hits if hit is hits[0] or hit.score >= FITS * hits[0].score]


def _keep(memory: Memory, target: Target, prompt: str, session: str, llm: str | None) -> None:
    """Keep a prompt that tells something; most only ask for work.

    Rules read it at once, so that no other session misses it. A model takes longer: it reads when the agent stops, and
    rules read only what is left of a turn that never came to its end.
    """
    from wellworn.ingest.session import Session
    from wellworn.reflection.rules import extract

    engine = memory.engine
    if extract([Turn(session_id=session, number=0, role="user", text=prompt, at=engine.clock())])[0]:
        Session(engine.writer, engine.store, scope=target.scope, session_id=session, watch=None).add("user", prompt)
        if not model_of(llm):
            _read_prompts(memory, session)


def model_of(llm: str | None) -> str | None:
    """The model that --llm names; None where it says that rules do."""
    return None if llm in ("rules", "none") else llm


def _read_prompts(memory: Memory, session: str) -> None:
    """Turn what the prompts of a session told into memories."""
    with suppress(NotFound):  # no prompt was kept
        memory.reflect(session)


@harmless
def post_task(
    target: Target,
    task_id: options.TaskId = None,
    trajectory_file: options.TrajectoryFile = None,
    success: options.TaskSuccess = None,
    exit_code: options.ExitCode = None,
    domain: options.TaskDomain = "",
    llm: options.LlmName = None,
) -> None:
    """Judge a task that pre-task began, store what it teaches, and update the items it was given.

    Without --trajectory-file it reads a JSON object from standard input: a trajectory, or what Claude Code gives to
    Stop hooks, whose transcript is read; then what the user said in the prompts becomes memories, too. A failing memory
    is a warning and exit code 0.
    """
    call = current.get()
    given = call.read(trajectory_file or DASH)
    name = task_id or _word(given, "session_id", "task_id") or "task"
    with _working(target, llm) as bank:
        if session := _word(given, "session_id"):
            _read_prompts(bank.memory, session)
        work = _work(given)
        work = work if exit_code is None else replace(work, exit_code=exit_code)
        work = work if success is None else replace(work, verdict=success)
        out = _finish(bank, name, work, agent=target.scope.agent or "", domain=domain, model=model_of(llm) is not None)
        bank.run_due()
    if target.json:
        call.write(render.json_text(out and {name: getattr(out, name) for name in SHOWN}))
    elif out is not None:
        call.say(f"{name}: {out.verdict.outcome}, {out.fault or counted(len(out.entry_ids), 'items') + ' learned'}")
    elif work.steps:
        call.say(f"{name}: it is not clear how it went, so nothing was learned; say it with --success or --failure")
    else:
        remedy = "its transcript has no result of a command" if "transcript_path" in given else SAY
        call.say(f"{name}: nothing says how it went, so nothing was learned; {remedy}")


@harmless
def session_end(target: Target, llm: options.LlmName = None) -> None:
    """End a session: what its prompts told becomes memories, also where the agent was interrupted before it stopped.

    Reads a JSON object with a session_id from standard input, as Claude Code gives it to SessionEnd hooks. A failing
    memory is a warning and exit code 0.
    """
    session = _word(current.get().read(DASH), "session_id")
    if not session:
        raise InvalidInput("session_id", "is missing", 'pipe in {"session_id": …}')
    with _working(target, llm) as bank:
        bank.abandon(session, keep=False)
        _read_prompts(bank.memory, session)
        with suppress(NotFound):  # no prompt was kept
            bank.memory.session(session).end()


def _finish(
    bank: ReasoningBank, name: str, work: Trajectory, *, agent: str, domain: str, model: bool
) -> TaskResult | None:
    """Finish the task that was begun, or else record the work by itself; None if nothing says how it went.

    The judge counts work without a sign as failed. Without a model such failures would teach nothing. A prompt after
    which nothing was done ("thanks", "what does this do?") was no task, unless the agent asks before it begins.
    """
    from wellworn.ingest.utterance import wants_answer
    from wellworn.tasks import judge

    if not judge.does(work) and wants_answer(work.output):
        return None
    if not judge.does(work) or (not model and not judge.judge(work).teaches):
        bank.abandon(name, why="nothing says how it went", keep=judge.does(work))
        return None
    try:
        return bank.finish(name, work)
    except NotFound:
        if not work.query.strip():
            remedy = 'begin it with wellworn hook pre-task, or pipe in the work with its "query"'
            raise NotFound("task under way", name, remedy) from None
        return bank.record(work, task_id=name, agent_id=agent, domain=domain)


def _word(given: Mapping[str, Any], *names: str) -> str:
    return next((str(given[name]) for name in names if isinstance(given.get(name), str)), "")


def _work(given: Mapping[str, Any]) -> Trajectory:
    from wellworn.tasks import trajectory_of
    from wellworn.tasks.trajectory import read_transcript

    if isinstance(given.get("transcript_path"), str):
        return read_transcript(current.get().path(given["transcript_path"]))
    try:
        return trajectory_of({name: value for name, value in given.items() if name not in ("task_id", "session_id")})
    except InvalidInput as error:
        if "steps" in given:
            raise
        remedy = f"give it, or the work itself: its input {error.problem}, {error.remedy}"
        raise InvalidInput("transcript_path", "is missing", remedy) from None


# -- the MCP server --------------------------------------------------------------------------------------------------


class OpenedLater:
    """The memory of a target, opened on another thread while the client shakes hands.

    A memory that does not open is tried again with the next call: the server stays, each call says what is wrong.
    """

    def __init__(self, target: Target, llm: str | None) -> None:
        self._target = target
        self._llm = llm
        self._lock = threading.Lock()
        self._memory: Memory | None = None

    def __call__(self, _access: str) -> Memory:
        with self._lock:
            if self._memory is None:
                self._memory = self._target.open(new=True, background=True, llm=self._llm)
            return self._memory

    def start(self) -> None:
        threading.Thread(target=self._warm, daemon=True).start()

    def _warm(self) -> None:
        """Load what the first search needs; it is none itself, so nothing is logged."""
        with suppress(Exception):  # the first call reports it
            memory = self("read")
            memory.engine.searcher.examine("what is remembered?", scope=self._target.scope)

    def close(self) -> None:
        with self._lock:
            if self._memory is not None:
                self._memory.close()


def serve_mcp(target: Target, llm: options.LlmName = None) -> None:
    """Serve the memory over MCP, on standard input and output.

    Clients start it themselves: `wellworn connect claude-code` writes their settings. It ends when they close its input.
    """
    if can_ask():
        target.say("Waiting for an MCP client on standard input; `wellworn connect` sets one up.")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    import signal

    from wellworn.cli.answer import Answering

    memory = OpenedLater(target, llm)
    answering = Answering(target, llm)
    memory.start()
    answering.start(lambda: memory("read"))
    ends = (signal.SIGINT, signal.SIGTERM)

    def leave(number: int, _frame: object) -> None:
        """Close the file and go. The SDK would wait for the client to close our input first; clients that send a signal
        do not, and kill us soon. A second signal ends the process at once."""
        for each in ends:
            signal.signal(each, signal.SIG_DFL)
        answering.close()
        memory.close()
        signal.raise_signal(number)

    for each in ends:
        signal.signal(each, leave)
    try:
        gc.disable()  # what imports make is no garbage, and looking for some takes a quarter of the start
        from wellworn.doors.mcp import build_server

        server = build_server(memory)
        gc.enable()
        gc.freeze()
        server.run()
    finally:
        answering.close()
        memory.close()
