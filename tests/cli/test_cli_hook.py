"""hook pre-task, post-task: a block for the prompt, the work kept, and never an exit code that stops an agent."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import pytest

from contract.few import few
from wellworn import Memory
from wellworn.cli import agents
from wellworn.cli.agents import run_line
from wellworn.core.locks import patience
from wellworn.ingest.utterance import UNDO, goes_on, rejects
from wellworn.tasks.judge import judge
from wellworn.tasks.trajectory import read_transcript, trajectory_in

from .conftest import Cli
from .test_cli_tasks import CLERK, WORK


def entry(role: str, *parts: Any, **fields: Any) -> str:  # a line of a transcript
    content = parts[0] if len(parts) == 1 and isinstance(parts[0], str) else list(parts)
    return json.dumps({"type": role, "message": {"role": role, "content": content}, **fields})


def use(id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def result(id: str, text: str, error: bool = False) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": text, "is_error": error}


TRANSCRIPT = [
    entry("user", "an older prompt"),
    entry("assistant", use("0", "Bash", command="ls")),
    "not json at all",
    json.dumps({"type": "summary", "summary": "x"}),
    entry("user", {"type": "text", "text": "Run the tests of the parser"}),
    entry("assistant", {"type": "text", "text": "I will."}, use("1", "Bash", command="pytest tests/parse")),
    entry("user", result("1", "no such folder", error=True)),
    entry("user", "noise of a helper", isSidechain=True),
    entry("assistant", use("2", "Read", file_path="pyproject.toml")),
    entry("user", {**result("2", ""), "content": [{"type": "text", "text": "[tool.pytest]"}]}),
    entry("assistant", use("3", "Bash", command="pytest tests/parser")),
    entry("user", result("3", "12 passed")),
    entry("assistant", {"type": "text", "text": "All tests pass."}),
]


def test_a_transcript_is_the_work_since_the_last_prompt() -> None:
    work = trajectory_in(TRANSCRIPT)
    assert work.query == "Run the tests of the parser"
    assert [(step.action, step.failed, step.ok) for step in work.steps] == [
        ("Bash", True, False),
        ("Read", False, None),
        ("Bash", False, True),
    ]
    assert work.steps[0].text == "I will."
    assert work.steps[1].result == "[tool.pytest]"
    assert work.output == "All tests pass."
    assert not work.trusted
    assert judge(work).success


@pytest.mark.parametrize(
    "line",
    [
        entry("user", "This session is being continued. All tests pass.", isCompactSummary=True),
        entry("user", "<task-notification>\n<status>completed</status>\n</task-notification>"),
        entry("user", {"type": "text", "text": "<bash-stdout>a</bash-stdout><bash-stderr></bash-stderr>"}),
        entry("user", "<local-command-stdout></local-command-stdout>"),
        entry("user", "<system-reminder>Two files changed.</system-reminder>\n"),
    ],
)
def test_what_a_program_says_in_the_users_name_is_no_prompt(line: str) -> None:
    assert trajectory_in([*TRANSCRIPT[:8], line, *TRANSCRIPT[8:]]) == trajectory_in(TRANSCRIPT)
    assert trajectory_in([*TRANSCRIPT, entry("user", "Why is <bash-stdout> empty?")]).steps == ()
    said = "<system-reminder>a</system-reminder>\nFix the login.\n<system-reminder>b</system-reminder>"
    assert trajectory_in([*TRANSCRIPT, entry("user", said)]).steps == ()


def test_lines_of_a_transcript_end_where_json_lines_end(tmp_path: Path) -> None:
    odd = "Run the tests\u2028of the\u0085parser"
    (tmp_path / "t.jsonl").write_bytes(
        json.dumps(json.loads(entry("user", odd)), ensure_ascii=False).encode() + b"\r\n"
    )
    assert read_transcript(tmp_path / "t.jsonl").query == odd


def item(type: str, **fields: Any) -> str:  # a line of a transcript of Codex 0.166
    return json.dumps({"type": "response_item", "payload": {"type": type, **fields}})


def said(role: str, text: str) -> str:
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": text}])


def ran(id: str, command: str, output: str) -> list[str]:
    call = item("function_call", call_id=id, name="exec_command", arguments=json.dumps({"cmd": command}))
    return [call, item("function_call_output", call_id=id, output=output)]


def test_a_transcript_of_codex_is_read_the_same() -> None:
    work = trajectory_in(
        [
            said("user", "an older prompt"),
            *ran("0", "ls", "Process exited with code 0\nOutput:\nx"),
            json.dumps({"type": "event_msg", "payload": {"type": "token_count"}}),
            said("user", "Run the tests of the parser"),
            said("developer", "<memories/>"),
            *ran(
                "1", "pytest tests/parse", "Wall time: 0.1 seconds\nProcess exited with code 4\nOutput:\nno such folder"
            ),
            item("function_call", call_id="2", name="memory_search", arguments="not JSON"),
            item("function_call_output", call_id="2", output="Process exited with code 0 is what it prints"),
            *ran("3", "make watch", "Process running with session ID 7\nOutput:\nProcess exited with code 1"),
            item("custom_tool_call", call_id="5", name="apply_patch", input="*** Begin Patch"),
            item("custom_tool_call_output", call_id="5", output="Success."),
            *ran("4", "pytest tests/parser", "Process running with session ID 42\nOutput:\n...."),
            item("function_call", call_id="6", name="write_stdin", arguments='{"session_id": 42, "chars": ""}'),
            item("function_call_output", call_id="6", output="Process exited with code 0\nOutput:\n12 passed"),
            said("assistant", "All tests pass."),
        ]
    )
    assert work.query == "Run the tests of the parser"
    assert [(step.action, step.arguments, step.ok) for step in work.steps] == [
        ("Bash", {"command": "pytest tests/parse"}, False),
        ("memory_search", {}, None),
        ("Bash", {"command": "make watch"}, None),
        ("apply_patch", {"input": "*** Begin Patch"}, None),
        ("Bash", {"command": "pytest tests/parser"}, True),
    ]
    assert work.steps[0].error == "no such folder"
    assert work.steps[-1].result == "12 passed"
    assert work.output == "All tests pass."


def test_a_strange_transcript_is_no_work() -> None:
    strange = ["[]", "7", '{"type": "user", "message": 7}', entry("assistant", 7), entry("user", result("9", "x"))]
    assert trajectory_in(strange).steps == ()


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    path = tmp_path / "session.jsonl"
    path.write_text("\n".join(TRANSCRIPT), encoding="utf-8")
    return path


def test_the_hooks_of_a_coding_agent(cli: Cli, transcript: Path) -> None:
    asked = json.dumps({"session_id": "s1", "hook_event_name": "UserPromptSubmit", "prompt": "Run the parser's tests"})
    stopped = json.dumps({"session_id": "s1", "hook_event_name": "Stop", "transcript_path": str(transcript)})
    assert cli.ok("hook", "pre-task", *CLERK, stdin=asked).out == "", "nothing is known yet"
    assert "success" in cli.ok("hook", "post-task", *CLERK, stdin=stopped).err
    block = cli.ok("hook", "pre-task", *CLERK, stdin=asked).out
    assert block.startswith("<memories")
    assert "pytest tests/parser" in block
    assert "untrusted source" in block
    cli.ok("hook", "post-task", *CLERK, stdin=stopped)
    status = cli.json("tasks", "status", *CLERK)
    assert (status["uses"], status["by_state"]) == (1, {"reinforced": 2})


def test_arguments_instead_of_standard_input(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "work.json"
    path.write_text(json.dumps(WORK), encoding="utf-8")
    begun = cli.json("hook", "pre-task", "--task-id", "t1", "--query", "Create user bob", "--domain", "web", "--k", "2")
    ended = cli.json("hook", "post-task", "--task-id", "t1", "--trajectory-file", str(path), "--failure")
    assert begun["id"] == ended["id"]
    assert ended["verdict"]["by"] == "user"
    assert ended["verdict"]["success"] is False
    steps = json.dumps(WORK["steps"])
    cli.ok("hook", "pre-task", "--task-id", "t2", "--query", "Create user bob")
    assert cli.json("hook", "post-task", "--task-id", "t2", "--exit-code", "0", stdin=steps)["verdict"]["success"]


def test_work_that_says_nothing_is_not_learned_from_unless_a_model_judges_it(cli: Cli, tmp_path: Path) -> None:
    vague = json.dumps({"query": "Think about it", "steps": ["I thought about it. Complete!"]})
    cli.ok("hook", "pre-task", "--task-id", "t", "--query", "Think about it")
    assert cli.json("hook", "post-task", "--task-id", "t", stdin=vague) is None
    assert cli.json("tasks", "status")["by_state"] == {"abandoned": 1}
    script = tmp_path / "replies.json"
    script.write_text(json.dumps({"judge": ['{"success": true}'], "distill": ['{"items": []}']}))
    judged = cli.json("hook", "post-task", "--task-id", "t", "--llm", f"scripted:{script}", stdin=vague)
    assert judged["verdict"]["by"].startswith("scripted")


def test_a_second_prompt_gives_up_the_first(cli: Cli) -> None:
    for _ in range(2):
        cli.ok("hook", "pre-task", "--task-id", "s1", "--query", "q")
    assert cli.json("tasks", "status")["by_state"] == {"executing": 1}


QUESTIONS = {
    "thanks": [],
    "what does this function do?": [use("1", "Read", file_path="a.py"), use("2", "Grep", pattern="def f")],
    "where is the config?": [use("1", "Bash", command="ls -la"), use("2", "Bash", command="cat a.toml | head")],
    "is there a newer release?": [
        use("1", "WebSearch", query="x"),
        use("2", "mcp__wellworn__memory_search", query="x"),
    ],
    "plan it": [use("1", "TodoWrite", todos=[])],
}


@pytest.mark.parametrize("told", ["", "I prefer tabs over spaces. "])
@pytest.mark.parametrize("asked", few(QUESTIONS, 2))
@pytest.mark.parametrize("failed", [False, True])
def test_a_prompt_after_which_nothing_was_done_leaves_no_task(
    cli: Cli, tmp_path: Path, asked: str, told: str, failed: bool
) -> None:
    path = tmp_path / "session.jsonl"
    lines = [entry("user", told + asked)]
    for call in QUESTIONS[asked]:
        lines += [entry("assistant", call), entry("user", result(call["id"], "x", error=failed))]
    path.write_text("\n".join([*lines, entry("assistant", {"type": "text", "text": "Here it is."})]))
    prompt(cli, "s1", told + asked)
    over(cli, "Stop", transcript_path=str(path))
    status = cli.json("tasks", "status", *MEANINGS)
    assert (status["tasks"], status["items"]) == (0, 0)
    assert bool(cli.json("list", "--kind", "preference", *MEANINGS)["entries"]) == bool(told)


def test_a_command_or_an_edit_is_a_task(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    for number, call in enumerate([use("1", "Edit", file_path="a.py"), use("1", "Bash", command="python a.py")], 1):
        path.write_text(
            "\n".join([entry("user", "Change the parser"), entry("assistant", call), entry("user", result("1", "x"))])
        )
        prompt(cli, "s1", "Change the parser")
        over(cli, "Stop", transcript_path=str(path))
        assert cli.json("tasks", "status", *MEANINGS)["tasks"] == number


@pytest.mark.parametrize("reaction", ["ok", "thanks!", "great, thank you"])
def test_nothing_is_looked_up_for_a_reaction(cli: Cli, reaction: str) -> None:
    prompt(cli, "s1", "I prefer tabs over spaces, ok?")
    prompt(cli, "s1", "I like it great. Thank the team, ok.")
    assert prompt(cli, "s2", reaction) == ""


@pytest.mark.parametrize("reaction", ["yes, go on", "<task-notification>\nI use pytest now.\n</task-notification>"])
def test_work_after_a_reaction_belongs_to_the_task_under_way(cli: Cli, transcript: Path, reaction: str) -> None:
    prompt(cli, "s1", "Run the tests of the parser")
    prompt(cli, "s1", reaction)
    over(cli, "Stop", transcript_path=str(transcript))
    assert "Run the tests of the parser" in prompt(cli, "s2", "Run the parser's tests")
    assert cli.json("tasks", "status", *MEANINGS)["by_state"] == {"executing": 1, "reinforced": 1}


class Talk:
    """A session whose transcript grows with it."""

    def __init__(self, cli: Cli, path: Path, id: str) -> None:
        self.cli, self.path, self.id, self.lines = cli, path / f"{id}.jsonl", id, list[str]()

    def turn(self, said: str, *commands: str, answer: str = "Done.", stops: bool = True) -> str:
        """What the hook shows for a prompt; then the commands run, and the agent stops unless it is interrupted."""
        given = {"session_id": self.id, "transcript_path": str(self.path)}
        shown = self.cli.ok("hook", "pre-task", *MEANINGS, stdin=json.dumps({**given, "prompt": said})).out
        self.lines.append(entry("user", said))
        for command in commands:
            id = str(len(self.lines))
            self.lines += [entry("assistant", use(id, "Bash", command=command)), entry("user", result(id, "done"))]
        self.lines.append(entry("assistant", {"type": "text", "text": answer}))
        self.path.write_text("\n".join(self.lines))
        if stops:
            self.cli.ok("hook", "post-task", *MEANINGS, stdin=json.dumps(given))
        return shown


def learned(cli: Cli) -> dict[str, float]:
    return {item["text"]: item["confidence"] for item in cli.json("tasks", "list", *MEANINGS)["items"]}


CONSENTS = ["yes, go ahead", "continue", "ok do it", "option 2", "1", "try again", "go on with the next step", "继续"]


@pytest.mark.parametrize("said", few([*CONSENTS, "yes please, and run the tests"], 3))
def test_work_after_consent_belongs_to_the_prompt_before(cli: Cli, tmp_path: Path, said: str) -> None:
    tables, other = Talk(cli, tmp_path, "s1"), Talk(cli, tmp_path, "s2")
    assert tables.turn("Drop the old staging tables", answer="Shall I run drop.sql?") == ""
    assert tables.turn(said, "psql -f drop.sql", "make test") == ""
    assert tables.turn("thanks") == ""
    (item,) = learned(cli)
    assert item.startswith(
        'For tasks like “Drop the old staging tables”: This worked: Bash(command="psql -f drop.sql") →'
    )
    assert cli.json("tasks", "status", *MEANINGS)["tasks"] == 1
    other.turn("Should the header get other classes?", answer="Shall I rename them?")
    assert "drop.sql" not in other.turn(said)


def test_consent_to_more_work_continues_the_task(cli: Cli, tmp_path: Path) -> None:
    talk = Talk(cli, tmp_path, "s1")
    talk.turn("Deploy the docs site", "make docs", answer="Done. Shall I clear the cache, too?")
    talk.turn("yes", "make clear-cache")
    assert any('make docs") → Bash(command="make clear-cache' in text for text in learned(cli))


def test_what_is_told_after_consent_or_with_an_order_to_undo_is_kept(cli: Cli, tmp_path: Path) -> None:
    talk = Talk(cli, tmp_path, "s1")
    talk.turn("Deploy the docs site", "make docs", answer="Shall I clear the cache?")
    talk.turn("Yes. Our production database is Postgres 16.", "make clear-cache")
    talk.turn("No, undo that. My name is Bert.", "make docs-restore")
    kept = " ".join(entry["text"] for entry in cli.json("list", *MEANINGS)["entries"])
    assert "Postgres 16" in kept
    assert "Bert" in kept
    assert not any("Postgres" in text or "restore" in text for text in learned(cli))


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("Sure, now upgrade react to 19", "Shall I clear the cache?"),
        ("Sure, upgrade react to 19", "Done. Anything else?"),
        ("Yes/no flags of the command line are confusing, rename them", "Shall I clear the cache?"),
    ],
)
def test_a_yes_that_asks_for_something_else_is_a_new_task(said: str, answer: str) -> None:
    assert not goes_on(said, answer)


def test_consent_to_nothing_teaches_nothing(cli: Cli, tmp_path: Path) -> None:
    assert Talk(cli, tmp_path, "s1").turn("continue", "psql -f drop.sql", "make test") == ""
    assert learned(cli) == {}


REJECTIONS = ["No, that's wrong. The docs go out with ./ship docs", "still not working", "wrong, try ./ship docs", "no"]


@pytest.mark.parametrize("said", few(REJECTIONS, 2))
def test_a_rejection_lowers_what_the_rejected_work_taught(cli: Cli, tmp_path: Path, said: str) -> None:
    talk, other = Talk(cli, tmp_path, "s1"), Talk(cli, tmp_path, "s2")
    talk.turn("Deploy the docs site", "make docs-upload")
    assert "docs-upload" not in talk.turn(said, "./ship docs")
    like = "For tasks like “Deploy the docs site”: This worked: Bash(command="
    assert learned(cli) == {f'{like}"./ship docs").': 0.5, f'{like}"make docs-upload").': 0.05}
    assert "./ship docs" in other.turn("Deploy the docs site")


def test_what_undoes_the_work_is_no_way_to_do_it(cli: Cli, tmp_path: Path) -> None:
    talk = Talk(cli, tmp_path, "s1")
    talk.turn("Deploy the docs site", "make docs-upload")
    talk.turn("That broke the site, undo it", "make docs-restore")
    assert [*learned(cli).values()] == [0.05]


def test_undo_is_an_order_and_no_mere_word() -> None:
    assert UNDO.search("That's wrong. Can you undo it?")
    assert UNDO.search("No, please revert")
    assert not UNDO.search("That's not what I meant. The editor needs an undo button")


def test_a_rejection_of_interrupted_work_means_no_work_before_it(cli: Cli, tmp_path: Path) -> None:
    talk = Talk(cli, tmp_path, "s1")
    talk.turn("Deploy the docs site", "make docs-upload")
    talk.turn("Rename the billing module to invoices", "mv billing invoices", "make test", stops=False)
    talk.turn("No, that's wrong, call it bills", "mv invoices bills", "make test")
    assert [*learned(cli).values()] == [0.5, 0.5]


@pytest.mark.parametrize(
    "said",
    """
    Nein, danke | Non, merci | Não, obrigado | нет, спасибо | no, nothing else | No, all good | no, that is all | No, not yet
    no, it's perfect | no - it works now, thanks | No, that looks great. Now write the changelog | No-op handler please
    Everything is faster after your change, thanks! | No errors since your fix | No. 5 in the list: add a test
    This is broken: the login page on Safari. Please fix | This failed in production last night, find out why
    non-blocking IO: add it | It doesn't work on Windows, add support | still no idea how to use it, explain
    """.strip()
    .replace("\n", "|")
    .split("|"),
)
def test_thanks_praise_and_requests_reject_nothing(said: str) -> None:
    assert not rejects(said.strip(), "Done.")


@pytest.mark.parametrize(
    "said",
    [
        "That broke the site, undo it",
        "this is not what I asked for, use x",
        "The site is down since your change. Fix it.",
        "that did not work",
        "No, it is all wrong",
        "it doesn't work. Try x",
        "The app does not start since your change",
    ],
)
def test_what_says_that_the_work_failed_rejects_it(said: str) -> None:
    assert rejects(said, "Done.")


@pytest.mark.parametrize("answer", ["Deployed. Shall I also clear the cache?", ""])
def test_a_no_to_a_question_rejects_no_work(cli: Cli, tmp_path: Path, answer: str) -> None:
    talk = Talk(cli, tmp_path, "s1")
    talk.turn("Deploy the docs site", "make docs-upload", answer=answer)
    if not answer:
        talk.turn("What is the capital of France?", answer="Paris.")
    talk.turn("no, that's all" if answer else "No, that's wrong.")
    assert [*learned(cli).values()] == [0.5]


def test_a_recipe_names_the_edited_file_and_not_its_text(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    edit = use("2", "Edit", file_path="src/date.py", old_string="a = 1", new_string="a = 2")
    calls = [use("1", "Read", file_path="src/date.py"), edit, use("3", "Bash", command="make check")]
    lines = [line for one in calls for line in (entry("assistant", one), entry("user", result(one["id"], "done")))]
    path.write_text("\n".join([entry("user", "Fix the failing date test"), *lines]))
    prompt(cli, "s1", "Fix the failing date test")
    over(cli, "Stop", transcript_path=str(path))
    shown = prompt(cli, "s2", "Fix the failing date test")
    assert 'This worked: Edit(file_path="src/date.py") → Bash(command="make check").' in shown


def test_an_interrupted_task_is_gone_with_its_session(cli: Cli) -> None:
    prompt(cli, "s1", "Fix the parser")
    over(cli, "SessionEnd")
    assert cli.json("tasks", "status", *MEANINGS)["tasks"] == 0


@pytest.mark.parametrize("verb", ["pre-task", "post-task"])
@pytest.mark.parametrize("stdin", ["", "not json", "7", "{}", '{"prompt": 7}', '{"prompt": "x", "stepz": []}', "[7]"])
def test_bad_input_is_a_warning_and_exit_code_0(cli: Cli, verb: str, stdin: str) -> None:
    answer = cli("hook", verb, stdin=stdin)
    assert answer.code == 0
    assert answer.out == ""


@pytest.mark.parametrize("verb", ["pre-task", "post-task"])
def test_a_memory_that_cannot_be_opened_is_a_warning_and_exit_code_0(cli: Cli, verb: str, tmp_path: Path) -> None:
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"this is no database" * 100)
    answer = cli("hook", verb, "--db", str(broken), stdin=json.dumps({"prompt": "q"} if verb == "pre-task" else WORK))
    assert (answer.code, answer.out) == (0, "")
    assert "continuing without memory" in answer.err


def test_claude_code_is_served_by_its_hooks(cli: Cli, transcript: Path) -> None:
    """What one session says and does stands beside the prompts of the next, without any tool call."""
    told = {"session_id": "s1", "prompt": "I prefer tabs over spaces. Run the tests of the parser"}
    assert cli.ok("hook", "pre-task", stdin=json.dumps(told)).out == ""
    over = {"session_id": "s1", "transcript_path": str(transcript), "stop_hook_active": False}
    cli.ok("hook", "post-task", stdin=json.dumps(over))
    asked = {"session_id": "s2", "prompt": "Run the tests of the parser: do I prefer tabs over spaces?"}
    shown = cli.ok("hook", "pre-task", stdin=json.dumps(asked)).out
    assert "pytest tests/parser" in shown
    assert "The user prefers tabs over spaces." in shown
    assert cli.json("session", "list")["sessions"] == ["s1"]  # a prompt that only asks is not kept


ASKED = {"hook_event_name": "UserPromptSubmit", "cwd": "/home/me/project", "permission_mode": "default"}
STOPPED = {"hook_event_name": "Stop", "cwd": "/home/me/project", "stop_hook_active": False}
MEANINGS = ("--embedder", "static")


def prompt(cli: Cli, session: str, text: str, *options: str) -> str:
    """What a hook shows beside a prompt."""
    given = json.dumps({**ASKED, "session_id": session, "prompt": text})
    return cli.ok("hook", "pre-task", *MEANINGS, *options, stdin=given).out


def over(cli: Cli, event: str, *options: str, **given: Any) -> str:
    verb = "session-end" if event == "SessionEnd" else "post-task"
    told = json.dumps({**STOPPED, "hook_event_name": event, "session_id": "s1", **given})
    return cli.ok("hook", verb, *MEANINGS, *options, stdin=told).err


@pytest.mark.parametrize("ended", few(["running", "Stop", "Stop without a transcript", "SessionEnd"], 2))
@pytest.mark.parametrize("asks", ["s1", "s2"])
def test_what_changed_is_known_to_every_session_with_the_next_prompt(
    cli: Cli, transcript: Path, asks: str, ended: str
) -> None:
    """Also while the agent still works, or after it was interrupted: then no Stop hook runs."""
    prompt(cli, "s1", "I live in Oslo.")
    over(cli, "Stop", transcript_path=str(transcript))
    prompt(cli, "s2", "Run the tests")
    prompt(cli, "s1", "I moved to Bergen. Fix the parser.")
    if ended != "running":
        path = {} if "without" in ended else {"transcript_path": str(transcript)}
        over(cli, ended.split()[0], **path)
    shown = prompt(cli, asks, "Where do I live?")
    assert "The user moved to Bergen." in shown
    assert "Oslo" not in shown
    assert "parser" not in shown


def test_a_model_reads_when_the_agent_stops_and_rules_what_an_interrupted_turn_left(cli: Cli, tmp_path: Path) -> None:
    script = tmp_path / "replies.json"
    reply = {"extracted_memories": [{"summary": "The user moved to Bergen.", "reference": [0]}]}
    script.write_text(json.dumps({"extract": [reply]}))
    model = ("--llm", f"scripted:{script}")
    prompt(cli, "s1", "I moved to Bergen.", *model)
    over(cli, "Stop", *model)
    assert [each["calls"] for each in cli.json("admin", "costs", *MEANINGS)["spent"]] == [1]
    prompt(cli, "s3", "I have a dog called Rex.", *model)
    assert "dog called Rex" in prompt(cli, "s3", "What is my dog called?", *model)
    assert [each["calls"] for each in cli.json("admin", "costs", *MEANINGS)["spent"]] == [1]


@pytest.mark.parametrize(
    "given", [{}, {"transcript_path": None}, {"transcript_path": "none.jsonl"}, {"transcript": "t.jsonl"}]
)
def test_a_stop_without_a_transcript_names_it_and_still_keeps_what_was_told(cli: Cli, given: dict[str, Any]) -> None:
    prompt(cli, "s1", "I moved to Bergen.")
    assert "transcript_path" in over(cli, "Stop", **given)
    assert "Bergen" in prompt(cli, "s2", "Where do I live?")


def test_a_hook_keeps_what_lasts_and_not_the_order(cli: Cli) -> None:
    for prompt in ("The tests run with make check. Please fix the parser.", "The parser test fails again, fix it"):
        cli.ok("hook", "pre-task", stdin=json.dumps({"session_id": "s1", "prompt": prompt}))
    cli.ok("hook", "session-end", stdin=json.dumps({"session_id": "s1"}))
    assert [one["text"] for one in cli.json("list", "--kind", "fact")["entries"]] == ["The tests run with make check."]


def test_a_prompt_with_broken_characters_is_served_and_kept(cli: Cli) -> None:
    prompt(cli, "s1", "I prefer tabs over\x00 spaces \ud83d")
    assert "tabs over spaces" in prompt(cli, "s2", "Tabs\x00 or spaces \udc00?")


def test_what_fits_far_less_than_the_best_is_not_shown(cli: Cli) -> None:
    facts = ("Mails are sent with Postmark.", "Logs are shipped to Loki.", "Secrets are kept in Vault.")
    for fact in (*facts, "Login goes through Keycloak.", "Metrics go to Prometheus."):
        cli.remember(fact, "--kind", "fact", *MEANINGS)
    assert prompt(cli, "s1", "send a welcome mail after signup").count("\n[") == 1
    assert prompt(cli, "s1", "add a metric for failed logins").count("\n[") == 2


SECRETS = (
    "sk-proj-abcd1234EFGH5678ijkl9012MNOP",
    "hunter2-Prod!99",
    "s3cr3tPw",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
)


@pytest.mark.parametrize("option", ["mask", "keep"])
def test_secrets_are_masked_in_what_hooks_store_log_and_show(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    monkeypatch.setenv("WELLWORN_SECRETS", option)
    key, password, in_url, token = SECRETS
    prompt(cli, "s1", f"Our staging API key is {key} and the staging host is stage.example.com.")
    prompt(cli, "s1", f"We use postgres://admin:{in_url}@db.internal:5432/app. The database password is {password}.")
    cli.remember(f"The release bot deploys with {token} from ada@example.com.", "--embedder", "static")  # a person asks
    asked = "Which host, database and release bot do we use in staging?"
    shown = prompt(cli, "s2", asked) + prompt(cli, "s2", f"Deploy to the staging host with {key}", "--json")
    stored = b"".join(file.read_bytes() for file in cli.db.parent.glob("memory.db*")).decode("latin-1")
    kept = option == "keep"
    assert [secret in shown + stored.replace(token, "") for secret in SECRETS] == [kept] * 4
    assert ("The release bot deploys with [API_KEY] from ada@example.com." in shown) is not kept
    assert "stage.example.com" in shown


@pytest.mark.parametrize("said", ["{}", "token: {}", "My GitHub token is {}."])
def test_a_prompt_that_is_nothing_but_a_secret_is_no_memory(cli: Cli, said: str) -> None:
    prompt(cli, "s1", said.format(SECRETS[-1]))
    assert not cli.db.exists() or cli.json("list", *MEANINGS)["entries"] == []


def test_a_busy_store_is_read_and_nobody_waits_for_it(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    prompt(cli, "s1", "I prefer tabs over spaces.")
    monkeypatch.setattr(agents, "WAIT_S", 0.01)
    waits: list[float] = []

    def noted(wait_s: float) -> AbstractContextManager[None]:
        waits.append(wait_s)
        return patience(wait_s)

    monkeypatch.setattr(agents, "patience", noted)
    with Memory(cli.db), closing(sqlite3.connect(cli.db)) as other:
        other.execute("BEGIN IMMEDIATE")
        for text in ("Tabs or spaces?", "I prefer vim over nano. Tabs or spaces?"):
            given = json.dumps({**ASKED, "session_id": "s1", "prompt": text})
            answer = cli.ok("hook", "pre-task", *MEANINGS, stdin=given)
            assert "The user prefers tabs over spaces." in answer.out
            assert answer.err.count("\n") == 1
            assert "continuing without memory: Store" in answer.err
        assert "StoreBusy" in over(cli, "SessionEnd")
    assert waits == [0.01, 0.01, 0.0] * 3  # to close it does not wait again


def test_what_an_interrupted_agent_was_told_is_kept_at_the_end_of_its_session(cli: Cli) -> None:
    told = {"session_id": "s1", "prompt": "I prefer tabs over spaces."}
    cli.ok("hook", "pre-task", stdin=json.dumps(told))
    for _ in range(2):
        assert cli.ok("hook", "session-end", stdin=json.dumps({"session_id": "s1", "reason": "exit"})).err == ""
    found = cli.json("list", "--kind", "preference")["entries"]
    assert [one["text"] for one in found] == ["The user prefers tabs over spaces."]
    assert cli.ok("hook", "session-end", stdin=json.dumps({"session_id": "unknown"})).err == ""
    assert "session_id" in cli.ok("hook", "session-end", stdin="{}").err


def test_a_hook_says_why_nothing_was_kept(cli: Cli, tmp_path: Path) -> None:
    task = ("--task-id", "t9", "--agent", "clerk")
    cli.ok("hook", "pre-task", *task, "--query", "Create user bob")
    assert "nothing says how it went" in cli.ok("hook", "post-task", *task, stdin="").err
    assert "wellworn hook pre-task" in cli.ok("hook", "post-task", *task, "--success", stdin="").err
    assert '"steps"' in cli.ok("hook", "post-task", *task, stdin="done").err
    steps = [("pytest", 1), ("make check", 0)]
    work = [{"action": "bash", "arguments": {"command": one}, "exit_code": code} for one, code in steps]
    cli.ok("hook", "pre-task", *task, "--query", "Run the tests")
    unclear = cli.ok("hook", "post-task", *task, stdin=json.dumps({"steps": work})).err
    assert "not clear how it went" in unclear
    assert "--success" in unclear
    missing = str(tmp_path / "none.json")
    assert f"cannot read {missing!r}" in cli.ok("hook", "post-task", *task, "--trajectory-file", missing).err


# -- as agents start them --------------------------------------------------------------------------------------------

NOT_FOR_HOOKS = {
    "typer",
    "click",
    "rich",
    "pydantic",
    "yaml",
    "httpx",
    "asyncio",
    "langchain_core",
    "fastapi",
    "jinja2",
}
NOT_BEFORE_WORK = {"tokenizers", "safetensors", "wellworn.tasks.sharing"}
NOT_TO_ASK = NOT_BEFORE_WORK | {"wellworn.background", "wellworn.models.ledger"}
"""What a prompt does not load that only asks; what a prompt tells is read by a reflection."""
AS_AGENTS_START_IT = """
import sys
from wellworn.cli.agents import run_line
assert "numpy" not in sys.modules  # which reads how many threads it may start when it is imported
assert run_line(sys.argv[1:])
print("loaded", *sys.modules)
"""


def test_a_hook_loads_no_parser_and_no_framework(tmp_path: Path) -> None:
    """And it answers as the whole program does."""
    line = ["--db", str(tmp_path / "memory.db"), "--user", "ada"]

    def start(*args: str, unloaded: frozenset[str] | set[str] = frozenset(), **given: Any) -> tuple[str, str]:
        command = [sys.executable, "-c", AS_AGENTS_START_IT, *args, *line]
        done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-2000:]
        out, _, loaded = done.stdout.rpartition("loaded ")
        assert {*loaded.split()} & (NOT_FOR_HOOKS | unloaded) == set()
        return out, done.stderr

    step = {"tool": "Bash", "args": {"command": "make check"}, "ok": True}
    told = {"session_id": "s1", "prompt": "I prefer tabs over spaces. Run the tests"}
    start("hook", "pre-task", unloaded=NOT_BEFORE_WORK, **told)
    assert start("hook", "post-task", session_id="s1", steps=[step])[1] == "s1: success, 1 item learned\n"
    asked = {"session_id": "s2", "prompt": "Run the tests: do I prefer tabs over spaces?"}
    shown, _ = start("hook", "pre-task", unloaded=NOT_TO_ASK, **asked)
    assert "make check" in shown
    assert "Ada prefers tabs over spaces." in shown
    parsed = [sys.executable, "-m", "wellworn", *line, "hook", "pre-task"]
    done = subprocess.run(parsed, input=json.dumps(asked), capture_output=True, text=True, timeout=300)
    assert done.stdout == shown


def test_the_rest_of_the_mcp_sdk_loads_when_it_is_asked_for() -> None:
    code = """
import sys
from wellworn.cli import agents
agents.OpenedLater.start = lambda self: None
agents.run_line(["mcp"])
assert not {"mcp.client", "httpx2._client", "uvicorn"} & {*sys.modules}
from pydantic import BaseModel
assert "defer_build" not in BaseModel.model_config
from mcp import ClientSession
import httpx2, mcp.client.stdio
from uvicorn.main import Server
assert httpx2.AsyncClient and mcp.server.MCPServer and mcp.types.Tool
print("whole")
"""
    done = subprocess.run([sys.executable, "-c", code], input="", capture_output=True, text=True, timeout=300)
    assert done.stdout == "whole\n", done.stderr[-2000:]


@pytest.mark.parametrize(
    "line", ["", "recall x", "mcp --help", "hook pre-task --json", "hook pre-task --db", "--db x mcp"]
)
def test_other_lines_are_left_to_the_whole_program(line: str) -> None:
    assert not run_line(line.split())
