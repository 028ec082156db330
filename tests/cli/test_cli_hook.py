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


def test_a_transcript_is_the_work_since_the_last_prompt(tmp_path: Path) -> None:
    work = trajectory_in(TRANSCRIPT)
    assert work.query == "Run the tests of the parser"
    steps = [(step.action, step.failed, step.ok) for step in work.steps]
    assert steps == [("Bash", True, False), ("Read", False, None), ("Bash", False, True)]
    assert work.steps[0].text == "I will."
    assert work.steps[1].result == "[tool.pytest]"
    assert (work.output, work.trusted, judge(work).success) == ("All tests pass.", False, True)
    odd = "Run the tests\u2028of the\u0085parser"  # where lines of JSON do not end
    line = json.dumps(json.loads(entry("user", odd)), ensure_ascii=False)
    (tmp_path / "t.jsonl").write_bytes(line.encode() + b"\r\n")
    assert read_transcript(tmp_path / "t.jsonl").query == odd
    strange = ["[]", "7", '{"type": "user", "message": 7}', entry("assistant", 7), entry("user", result("9", "x"))]
    assert trajectory_in(strange).steps == ()


BY_A_PROGRAM = [
    entry("user", "This session is being continued. All tests pass.", isCompactSummary=True),
    entry("user", "<task-notification>\n<status>completed</status>\n</task-notification>"),
    entry("user", {"type": "text", "text": "<bash-stdout>a</bash-stdout><bash-stderr></bash-stderr>"}),
    entry("user", "<local-command-stdout></local-command-stdout>"),
    entry("user", "<system-reminder>Two files changed.</system-reminder>\n"),
]


def test_what_a_program_says_in_the_users_name_is_no_prompt() -> None:
    for line in BY_A_PROGRAM:
        assert trajectory_in([*TRANSCRIPT[:8], line, *TRANSCRIPT[8:]]) == trajectory_in(TRANSCRIPT)
    for said in ("Why is <bash-stdout> empty?", "<system-reminder>a</system-reminder>\nFix the login."):
        assert trajectory_in([*TRANSCRIPT, entry("user", said)]).steps == ()


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
def test_a_prompt_after_which_nothing_was_done_leaves_no_task(cli: Cli, tmp_path: Path, asked: str, told: str) -> None:
    path = tmp_path / "session.jsonl"
    lines = [entry("user", told + asked)]
    for call in QUESTIONS[asked]:
        lines += [entry("assistant", call), entry("user", result(call["id"], "x", error=bool(told)))]
    path.write_text("\n".join([*lines, entry("assistant", {"type": "text", "text": "Here it is."})]))
    prompt(cli, "s1", told + asked)
    over(cli, "Stop", transcript_path=str(path))
    status = cli.json("tasks", "status", *MEANINGS)
    assert (status["tasks"], status["items"]) == (0, 0)
    assert bool(cli.json("list", "--kind", "preference", *MEANINGS)["entries"]) == bool(told)


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
    tables.turn("Deploy the docs site", "make docs", answer="Done. Shall I clear the cache, too?")
    tables.turn("yes", "make clear-cache")  # consent to more work
    assert any('make docs") → Bash(command="make clear-cache' in text for text in learned(cli))
    other.turn("Should the header get other classes?", answer="Shall I rename them?")
    assert "drop.sql" not in other.turn(said)


def test_what_is_told_after_consent_or_with_an_order_to_undo_is_kept(cli: Cli, tmp_path: Path) -> None:
    talk = Talk(cli, tmp_path, "s1")
    talk.turn("Deploy the docs site", "make docs", answer="Shall I clear the cache?")
    talk.turn("Yes. Our production database is Postgres 16.", "make clear-cache")
    talk.turn("No, undo that. My name is Bert.", "make docs-restore")
    kept = " ".join(entry["text"] for entry in cli.json("list", *MEANINGS)["entries"])
    assert "Postgres 16" in kept
    assert "Bert" in kept
    assert not any("Postgres" in text or "restore" in text for text in learned(cli))


REJECTIONS = ["No, that's wrong. The docs go out with ./ship docs", "still not working", "wrong, try ./ship docs", "no"]


@pytest.mark.parametrize("said", few(REJECTIONS, 2))
def test_a_rejection_lowers_what_the_rejected_work_taught(cli: Cli, tmp_path: Path, said: str) -> None:
    talk, other = Talk(cli, tmp_path, "s1"), Talk(cli, tmp_path, "s2")
    talk.turn("Deploy the docs site", "make docs-upload")
    assert "docs-upload" not in talk.turn(said, "./ship docs")
    like = "For tasks like “Deploy the docs site”: This worked: Bash(command="
    assert learned(cli) == {f'{like}"./ship docs").': 0.5, f'{like}"make docs-upload").': 0.05}
    assert "./ship docs" in other.turn("Deploy the docs site")


@pytest.mark.parametrize(
    ("answer", "turns", "confidence"),
    [
        ("Done.", ["That broke the site, undo it"], 0.05),
        ("Shall I also clear the cache?", ["no, that's all"], 0.5),
        ("", ["What is the capital of France?", "No, that's wrong."], 0.5),
    ],
)
def test_what_undoes_the_work_teaches_nothing_and_other_rejections_mean_other_work(
    cli: Cli, tmp_path: Path, answer: str, turns: list[str], confidence: float
) -> None:
    talk = Talk(cli, tmp_path, "s1")
    assert talk.turn("continue", "psql -f drop.sql", "make test") == ""  # consent to nothing
    talk.turn("Deploy the docs site", "make docs-upload", answer=answer)
    for said in turns:
        talk.turn(said, *["make docs-restore"] * ("undo" in said), answer="Paris.")
    assert [*learned(cli).values()] == [confidence]


def test_a_rejection_of_interrupted_work_means_no_work_before_it(cli: Cli, tmp_path: Path) -> None:
    talk = Talk(cli, tmp_path, "s1")
    talk.turn("Deploy the docs site", "make docs-upload")
    talk.turn("Rename the billing module to invoices", "mv billing invoices", "make test", stops=False)
    talk.turn("No, that's wrong, call it bills", "mv invoices bills", "make test")
    assert [*learned(cli).values()] == [0.5, 0.5]


NO_REJECTIONS = """
    Nein, danke | Non, merci | Não, obrigado | нет, спасибо | no, nothing else | No, all good | no, that is all | No, not yet |
    no, it's perfect | no - it works now, thanks | No, that looks great. Now write the changelog | No-op handler please |
    Everything is faster after your change, thanks! | No errors since your fix | No. 5 in the list: add a test |
    This is broken: the login page on Safari. Please fix | This failed in production last night, find out why |
    non-blocking IO: add it | It doesn't work on Windows, add support | still no idea how to use it, explain
"""
FAILURES = """
    That broke the site, undo it | this is not what I asked for, use x | The site is down since your change. Fix it. |
    that did not work | No, it is all wrong | it doesn't work. Try x | The app does not start since your change
"""


def test_what_consents_rejects_or_undoes_is_told_from_what_does_not() -> None:
    for said in NO_REJECTIONS.split("|"):
        assert not rejects(said.strip(), "Done."), said
    for said in FAILURES.split("|"):
        assert rejects(said.strip(), "Done."), said
    assert not goes_on("Sure, now upgrade react to 19", "Shall I clear the cache?")
    assert not goes_on("Sure, upgrade react to 19", "Done. Anything else?")
    assert not goes_on("Yes/no flags of the command line are confusing, rename them", "Shall I clear the cache?")
    assert UNDO.search("That's wrong. Can you undo it?")
    assert UNDO.search("No, please revert")
    assert not UNDO.search("That's not what I meant. The editor needs an undo button")


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


@pytest.mark.parametrize("verb", ["pre-task", "post-task"])
def test_what_goes_wrong_is_a_warning_and_exit_code_0(cli: Cli, verb: str, tmp_path: Path) -> None:
    for stdin in ("", "not json", "7", "{}", '{"prompt": 7}', '{"prompt": "x", "stepz": []}', "[7]"):
        answer = cli("hook", verb, stdin=stdin)
        assert (answer.code, answer.out) == (0, ""), stdin
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"this is no database" * 100)
    answer = cli("hook", verb, "--db", str(broken), stdin=json.dumps({"prompt": "q"} if verb == "pre-task" else WORK))
    assert (answer.code, answer.out) == (0, "")
    assert "continuing without memory" in answer.err


ASKED = {"hook_event_name": "UserPromptSubmit", "cwd": "/home/me/project", "permission_mode": "default"}
STOPPED = {"hook_event_name": "Stop", "cwd": "/home/me/project", "stop_hook_active": False}
MEANINGS = ("--embedder", "reader")


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
    cli.remember(f"The release bot deploys with {token} from ada@example.com.", "--embedder", "reader")  # a person asks
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
    for said in ("I prefer\x00 tabs over spaces.", "The tests run with make check. Please fix the parser.", "Fix it"):
        prompt(cli, "s1", said)
    for _ in range(2):
        assert over(cli, "SessionEnd", reason="exit") == ""
    found = cli.json("list", "--kind", "preference", "--kind", "fact", *MEANINGS)["entries"]
    assert [one["text"] for one in found] == ["The user prefers tabs over spaces.", "The tests run with make check."]
    assert cli.json("tasks", "status", *MEANINGS)["tasks"] == 0  # an interrupted task is gone
    assert over(cli, "SessionEnd", session_id="unknown") == ""
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

NOT_FOR_HOOKS = {"yaml", "httpx", "langchain_core", "fastapi", "jinja2"}
NOT_BEFORE_WORK = {"tokenizers", "safetensors", "wellworn.tasks.sharing"}
NOT_TO_ASK = NOT_BEFORE_WORK | {"wellworn.background", "wellworn.models.ledger"}
"""What a prompt does not load that only asks; what a prompt tells is read by a reflection."""
AS_AGENTS_START_IT = """
import sys
from wellworn.cli import agents, main
assert "numpy" not in sys.modules  # which reads how many threads it may start when it is imported
try:
    main()
finally:
    print("loaded", *sys.modules)
"""


def test_a_hook_loads_no_framework(tmp_path: Path) -> None:
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
