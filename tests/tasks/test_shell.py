"""A judge that reads shells: programs and sub-commands, exit codes, tests, and what only looks."""

from __future__ import annotations

from typing import Any

import pytest

from wellworn.tasks import trajectory_of
from wellworn.tasks.distill import distill
from wellworn.tasks.judge import judge
from wellworn.tasks.shell import looks, programs, read_output


def ran(command: str, code: int | None = None, output: str = "") -> dict[str, Any]:
    return {"tool": "Bash", "args": {"command": command}, "result": output, "exit_code": code}


EDIT = {"tool": "Edit", "args": {"path": "a.py"}, "result": "written"}


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        ("cd app && make test", [("make", "test")]),
        ("pytest -q tests/a.py | tail -5", [("pytest",)]),
        ("python3 -m pytest", [("pytest",)]),
        ("uv run pytest", [("pytest",)]),
        ("python3 run.py --fast", [("python3", "run.py")]),
        ("npm run build", [("npm", "run", "build")]),
        ("docker compose up -d", [("docker", "compose", "up")]),
        ("DEBUG=1 sudo make install", [("make", "install")]),
        ("git commit -m 'ls && rm'", [("git", "commit")]),
        ("bash -c 'npm test'", [("npm", "test")]),
        ("timeout 60 cargo build; ls", [("cargo", "build")]),
        ("ls -la", [("ls",)]),
    ],
)
def test_a_command_is_its_programs_and_sub_commands(command: str, meant: list[tuple[str, ...]]) -> None:
    assert list(programs(command)) == meant


DID_AND_LOOKED = [
    ("kubectl -n prod apply -f shop.yml", "kubectl -n prod get pods"),
    ("kubectl --context prod -n test rollout restart shop", "kubectl --context prod -n test rollout status shop"),
    ("git -C app push", "git -C app status"),
    ("aws --profile dev s3 cp a s3://b", "aws --profile dev s3 ls"),
    ("aws ec2 run-instances --count 1", "aws ec2 describe-instances"),
    ("docker compose -f dev.yml up", "docker compose -f dev.yml ps"),
    ("docker -H staging restart web", "docker -H staging logs web"),
    ("gh -R me/shop pr create", "gh -R me/shop pr view 3"),
    ("make -C app install", "make -C app status"),
    ("kubectl exec -it web -- touch ready", "kubectl exec -it web -- cat ready"),
    # These were written after the rule.
    ("helm -n shop upgrade --install api ./chart", "helm -n shop history api"),
    ("terraform -chdir=infra apply -auto-approve", "terraform -chdir=infra show"),
    ("systemctl --user restart shop.service", "systemctl --user status shop.service"),
    ("gcloud --project shop compute instances create web", "gcloud --project shop compute instances list"),
    ("flux --namespace apps reconcile kustomization shop", "flux --namespace apps get kustomizations"),
    ("heroku config:set -a shop X=1", "heroku config -a shop"),
    ("az --subscription dev vm start -n web", "az --subscription dev vm list"),
    ("pulumi --cwd infra up --yes", "pulumi --cwd infra stack"),
    ("svn --username ada commit -m x", "svn --username ada info"),
    ("brew --prefix x upgrade jq", "brew --prefix x list"),
]


@pytest.mark.parametrize(("did", "looked"), DID_AND_LOOKED)
def test_the_value_of_an_option_is_no_sub_command(did: str, looked: str) -> None:
    life = trajectory_of(
        {"query": "Deploy the shop", "steps": [ran(did, 1, "error: Unauthorized"), ran(looked, 0, "x")]}
    )
    assert not judge(life).success
    assert not any(item.kind == "strategy" for item in distill([(life, judge(life))]).items)
    again = trajectory_of(
        {"query": "Deploy the shop", "steps": [ran(did, 1, "timed out"), ran(f"{did} -v", 0, "done")]}
    )
    assert judge(again).success


@pytest.mark.parametrize(
    "command",
    [
        "pnpm --filter api test",
        "npm --prefix web test",
        "yarn workspace web test",
        "docker compose exec web pytest",
        "conda run -n env pytest",
        "uv run --package api pytest",
        "poetry -C app run pytest",
        "make -C build test",
        # These were written after the rule.
        "cargo +nightly test",
        "cargo --config net.offline=true test --manifest-path app/Cargo.toml",
        "docker run --rm -v .:/app shop npm test",
        "docker compose -f ci.yml run --rm web pytest -q",
        "kubectl -n ci exec runner -- go test ./...",
        "pipenv run --verbose pytest",
        "hatch -e dev run pytest",
        "npx --yes vitest run",
        "gradle -p app test",
        "mvn -f app/pom.xml test",
        "dotnet test --no-build",
        "bazel --output_base /tmp/b test //...",
    ],
)
def test_a_test_is_seen_behind_options(command: str) -> None:
    missing = ran("npm test", 1, "npm ERR! Missing script: test")
    work = trajectory_of({"query": "Run the tests", "steps": [missing, ran(command, 0, "42 passed")]})
    assert judge(work).success


@pytest.mark.parametrize("command", ["ls", "cat a | head", "git status", "docker ps", "grep -r x .", "sed -n 1,5p a"])
def test_looking_is_not_doing(command: str) -> None:
    assert all(looks(program) for program in programs(command))


@pytest.mark.parametrize("command", ["git push", "docker run x", "sed -i s/a/b/ f", "make", "rm a", "./deploy.sh"])
def test_doing_is_not_looking(command: str) -> None:
    assert not any(looks(program) for program in programs(command))


@pytest.mark.parametrize(
    "output",
    [
        "cp: cannot create regular file '/etc/a': Permission denied",
        "git@host: Permission denied (publickey).",
        "zsh: command not found: terraform\nzsh: terraform: command not found",
        "cat: notes.txt: No such file or directory",
        "fatal: not a git repository",
        "error: failed to push some refs",
    ],
)
def test_what_programs_print_when_they_fail(output: str) -> None:
    assert read_output(output) is False


@pytest.mark.parametrize(
    ("command", "output", "outcome"),
    [
        ("dotnet test 2>&1 | tail -3", "Failed!  - Failed:     2, Passed:   140, Skipped:     0", "unsure"),
        ("npx vitest run | tail -3", "      Tests  2 failed | 186 passed (188)", "failure"),
        ("mvn verify | tail -20", "[INFO] BUILD FAILURE", "unsure"),
        ("npx tsc --noEmit | head", "src/app.ts(12,5): error TS2322: Type 'string' is not assignable.", "unsure"),
        ("go build ./... 2>&1 | head", "# app/api\napi/h.go:12:3: undefined: foo", "unsure"),
        ("terraform apply 2>&1 | tail -8", "│ Error: creating S3 Bucket (audit): BucketAlreadyExists", "unsure"),
        ("mysql app < m.sql || true", "ERROR 1054 (42S22) at line 1: Unknown column 'x'", "unsure"),
        ("ansible-playbook site.yml | tail -1", "web1 : ok=4 changed=1 unreachable=0 failed=1", "unsure"),
        ("psql -f m.sql", 'psql:m.sql:3: ERROR:  column "x" does not exist', "unsure"),
        ("psql app <<EOF\nselect x;\nEOF", 'ERROR:  column "x" does not exist', "unsure"),
        ("npx playwright test | tail", "  1 failed\n    a.spec.ts:3 › login\n  12 passed (3.4s)", "failure"),
        ("node --test | tail", "# tests 3\n# pass 2\n# fail 1", "unsure"),
        ("cargo run | tail", "    Finished dev target(s) in 3s\n     Running `app`\nError: boom", "unsure"),
        ("npx playwright test | tail", "  ✓ 1 shows an error\n  ✓ 2 failed login\n  12 passed (3.4s)", "success"),
        ("node --test | tail", "# tests 3\n# pass 3\n# fail 0\n# cancelled 0", "success"),
        ("bats test | tail", "ok 1 shows an error\nok 2 fails on x", "success"),
        ("cargo build 2>&1 | tail", "   Compiling error-chain v0.12\n    Finished dev target(s) in 3.2s", "success"),
        ("psql -c 'select * from jobs'", " id | state\n error | 3\n 1 failed 3", "success"),
        ("psql -f m.sql", " 1 failed 3", "success"),
        ("dotnet test | tail -3", "Passed!  - Failed:     0, Passed:   142, Skipped:     0", "success"),
        ("npm test | tail", "Error: Uncaught [Error: boom]\n      Tests  188 passed (188)", "success"),
        ("ctest | tail -2", "100% tests passed, 0 tests failed out of 50", "success"),
        ("npm run build | tail -2", "dist/assets/error-page.js  3 kB\n✓ built in 8.21s", "success"),
        ("git commit -m x; git log --oneline | head -1", "3af21c9 Fix the error of a failed login", "success"),
        ("npm test", "Error: Uncaught [Error: boom]", "success"),
    ],
)
def test_an_exit_code_that_is_not_the_programs_own_needs_an_output_without_failures(
    command: str, output: str, outcome: str
) -> None:
    assert judge(trajectory_of({"query": "Get it done", "steps": [ran(command, 0, output)]})).outcome == outcome
    again = [ran(command.split(" |")[0], 1, "it failed"), EDIT, ran(command, 0, output), ran("git push", 0)]
    assert judge(trajectory_of({"query": "Get it done", "steps": again})).success == (outcome == "success")


@pytest.mark.parametrize(
    ("command", "output", "success"),
    [
        ("pytest -q", "9 skipped in 0.03s", False),
        ("pytest -k x | tail -1", "=== 12 deselected in 0.02s ===", False),
        ("go test ./...", "?   \tapp\t[no test files]", False),
        ("go test -run X ./...", "ok  \tapp\t0.1s [no tests to run]", False),
        ("cargo test foo", "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 18 filtered out", False),
        ("python -m unittest", "Ran 0 tests in 0.000s\n\nOK", False),
        ("npx jest --passWithNoTests x", "No tests found, exiting with code 0", False),
        ("make test", "make: Nothing to be done for 'test'.", False),
        ("./gradlew test", "> Task :test NO-SOURCE\nBUILD SUCCESSFUL in 1s", False),
        ("mvn test -DskipTests", "[INFO] Tests are skipped.\n[INFO] BUILD SUCCESS", False),
        ("npx vitest run", "      Tests  12 skipped (12)", False),
        ("bundle exec rspec", "0 examples, 0 failures", False),
        ("cargo test", "test result: ok. 18 passed; 0 failed\n\nrunning 0 tests\n\ntest result: ok. 0 passed", True),
        ("go test ./...", "?   \tapp\t[no test files]\nok  \tapp/api\t0.1s", True),
        ("./gradlew test", "> Task :a:test NO-SOURCE\n> Task :b:test\nBUILD SUCCESSFUL in 1s", True),
        ("./gradlew test", "> Task :a:test UP-TO-DATE\n> Task :b:test NO-SOURCE\nBUILD SUCCESSFUL in 1s", True),
        ("make test", "lint ok\nno test warnings\n42 checks ok", True),
        ("ctest", "No tests were found!!!", False),
        ("npx jest", "Tests:       2 skipped, 12 passed, 14 total", True),
        ("make", "make: Nothing to be done for 'all'.", True),
    ],
)
def test_a_run_of_no_test_proves_nothing(command: str, output: str, success: bool) -> None:
    assert judge(trajectory_of({"query": "Get it done", "steps": [EDIT, ran(command, 0, output)]})).success == success


@pytest.mark.parametrize(
    ("failed", "worked", "success"),
    [
        ("git rebase origin/main", "git rebase --abort", False),
        ("kubectl apply -f x.yaml", "kubectl apply -f x.yaml --dry-run=client", False),
        ("terraform apply", "terraform apply --help", False),
        ("git commit -m x", "git commit --no-verify -m x", False),
        ("pytest -q", "pytest -q --deselect tests/a.py::t", False),
        ("pytest -q", "pytest -q -k 'not t'", False),
        ("npm publish --dry-run", "npm publish --dry-run --tag next", True),
        ("pip install x", "pip install --ignore-installed x", True),
        ("pytest -q", "pytest -q -k parser", True),
    ],
)
def test_a_command_that_does_less_makes_nothing_good(failed: str, worked: str, success: bool) -> None:
    work = trajectory_of({"query": "Get it done", "steps": [ran(failed, 1, "it failed"), EDIT, ran(worked, 0, "done")]})
    assert judge(work).success == success
    assert success or not any(item.kind == "strategy" for item in distill([(work, judge(work))]).items)


@pytest.mark.parametrize(
    ("failed", "worked", "check", "success"),
    [
        ("npm ci", "cd web && npm install 2>&1 | tail -3", "npm test", True),
        ("yarn install", "pnpm install", "pnpm test", True),
        ("make deps", "pip install -e .", "pytest", True),
        ("pip install x", "uv pip install x", "pytest", True),
        ("pip install x", "pip3 install y", "pytest", False),
        ("npm ci", "pip install -e .", "pytest", False),
        ("npm ci", "npm install", "ls", False),
        ("npm ci", "git commit -m x", "npm test", False),
        ("fly deploy", "npm install", "npm test", False),
    ],
)
def test_another_way_to_install_counts_if_a_check_holds_later(
    failed: str, worked: str, check: str, success: bool
) -> None:
    steps = [ran(failed, 1, "out of sync"), ran(worked, 0, "done"), ran(check, 0, PASSES)]
    work = trajectory_of({"query": "Get it done", "steps": steps})
    assert judge(work).success == success
    strategies = [item for item in distill([(work, judge(work))]).items if item.kind == "strategy"]
    assert any(worked in call.args["command"] for item in strategies for call in item.pattern.calls) == success


FAILED = {
    "a build, then a look": [ran("make", 2), ran("ls", 0, "a b")],
    "tests, then a look": [ran("pytest", 1, "1 failed, 2 passed in 0.1s"), ran("cat a.py", 0, "x")],
    "an installation, then an echo": [ran("npm install", 1, "npm ERR! 404"), ran("echo done", 0, "done")],
    "no rights": [ran("./deploy.sh", 126, "bash: ./deploy.sh: Permission denied"), ran("cat deploy.sh", 0, "x")],
    "no rights and no exit codes": [ran("cp a /etc/", None, "cp: '/etc/a': Permission denied"), ran("ls", None, "a")],
    "a chain": [ran("make && ls", 2), ran("ls", 0)],
    "a pipe that hides the exit code": [ran("pytest | tail -3", 0, "1 failed, 3 passed in 0.2s")],
    "other work after a failed build": [
        ran("make", 2, "make: *** [all] Error 1"),
        ran("touch x", 0),
        ran("git add x", 0),
    ],
}
UNSURE = {
    "other tests": [
        ran("pytest tests/a", 1, "1 failed in 0.1s"),
        EDIT,
        ran("pytest tests/b -q", 0, "3 passed in 0.1s"),
    ],
    "the change put away": [
        ran("pytest", 1, "1 failed in 0.1s"),
        ran("git stash", 0),
        ran("pytest", 0, "3 passed in 0.1s"),
    ],
    "the change put away in the same line": [
        ran("pytest", 1, "1 failed in 0.1s"),
        ran("git stash && pytest", 0, "3 passed in 0.1s"),
    ],
    "the change thrown away": [
        ran("pytest", 1, "1 failed in 0.1s"),
        ran("git reset --hard", 0),
        ran("pytest", 0, "3 passed in 0.1s"),
    ],
    "fewer things": [
        ran("ruff check .", 1, "build/a.py:1:1: F401 x\nFound 1 error."),
        EDIT,
        ran("ruff check --exclude build .", 0, "All checks passed!"),
    ],
    "never ready": [
        ran("kubectl apply -f x.yaml", 0, "configured"),
        ran("kubectl rollout status deploy/x", 1, "error: timed out waiting for the condition"),
        ran("kubectl get pods", 0, "x-7d9 0/1 CrashLoopBackOff"),
    ],
    "never ready, rolled back": [
        ran("kubectl apply -f x.yaml", 0, "configured"),
        ran("kubectl rollout status deploy/x", 1, "error: timed out waiting for the condition"),
        ran("kubectl rollout undo deploy/x", 0, "rolled back"),
    ],
    "only looking": [ran("ls", 0), ran("cat x", 0)],
    "another sub-command": [ran("docker build .", 1), ran("docker pull x", 0)],
    "another script": [ran("python migrate.py", 1), ran("python hello.py", 0, "hi")],
    "another tool for it": [ran("pip install x", 1), ran("uv pip install x", 0)],
    "tests pass, the deployment does not": [ran("pytest", 0, "3 passed in 0.1s"), ran("fly deploy", 1), ran("ls", 0)],
}
WORKED = {
    "the same again": [ran("git push", 1), ran("git pull --rebase", 0), ran("git push", 0)],
    "tests after the change": [ran("pytest", 1, "1 failed in 0.1s"), EDIT, ran("pytest", 0, "3 passed in 0.1s")],
    "the same test by a part of its name": [
        ran("npx jest src/a.test.ts", 1, "Tests: 1 failed, 3 total"),
        EDIT,
        ran("npx jest a.test", 0, "Tests:       3 passed, 3 total"),
    ],
    "more tests": [ran("go test ./a", 1, "FAIL\ta\t0.1s"), EDIT, ran("go test ./...", 0, "ok  \ta\t0.1s")],
    "fewer tests": [
        ran("pytest tests/", 1, "1 failed in 0.1s"),
        EDIT,
        ran("pytest tests/a.py::t", 0, "1 passed in 0.1s"),
    ],
    "put away, then mended": [
        ran("pytest", 1, "1 failed in 0.1s"),
        ran("git checkout a.py", 0),
        EDIT,
        ran("pytest", 0, "3 passed in 0.1s"),
    ],
    "in a branch of its own": [
        ran("pytest", 1, "1 failed in 0.1s"),
        EDIT,
        ran("git checkout -b fix", 0),
        ran("pytest", 0, "3 passed in 0.1s"),
    ],
    "unstaged": [
        ran("pytest", 1, "1 failed in 0.1s"),
        EDIT,
        ran("git reset HEAD tmp.txt", 0),
        ran("pytest", 0, "3 passed in 0.1s"),
    ],
    "merged": [
        ran("pytest", 1, "1 failed in 0.1s"),
        EDIT,
        ran("git commit -am x && git checkout main && git merge fix", 0),
        ran("pytest", 0, "3 passed in 0.1s"),
    ],
    "ready at last": [
        ran("kubectl apply -f x.yaml", 0, "configured"),
        ran("kubectl rollout status deploy/x", 1, "error: timed out waiting for the condition"),
        ran("kubectl rollout status deploy/x", 0, "successfully rolled out"),
    ],
    "a look at what is not there": [
        ran("pytest", 0, "3 passed in 0.1s"),
        ran("cat x", 1, "cat: x: No such file or directory"),
        ran("git diff --stat", 0, "a.py"),
    ],
    "nothing found, then done": [ran("grep foo a", 1), ran("git commit -m x", 0)],
}


PASSES, FAILS = "3 passed in 0.1s", "1 failed, 2 passed in 0.1s"
DEPENDENCY = ran("pip install -e .", 0)
SCRIPTED = ran("sed -i s/a/b/ a.py", 0)
HEREDOC = ran("cat > a.py <<'EOF'\nx = 1\nEOF", 0)
MENDED_BY = [
    ("pytest", "make check"),
    ("pytest -q tests/a.py", "make test"),
    ("pytest", "cd app && npm run test:unit | tail -3"),
    ("npm test", "npx vitest run"),
    ("npm test", "node --test"),
    ("cargo build", "make build"),
    ("npx tsc --noEmit", "npm run typecheck"),
    ("npm run lint", "npx eslint ."),
    ("ruff check .", "make lint"),
    ("ruff check . && pytest", "make check"),
    ("./gradlew test", "./gradlew check"),
    ("python manage.py test", "pytest"),
    ("go test ./pkg", "make ci"),
    ("pytest", "./run_tests.sh"),
]
NOT_MENDED_BY = [
    ("pytest", "ls"),
    ("pytest", "cat a.py"),
    ("pytest", "ruff check ."),
    ("pytest", "make"),
    ("pytest", "make install"),
    ("pytest", "make build"),
    ("pytest", "npm ci"),
    ("pytest", "npm run format-check"),
    ("pytest", "npm run check-types"),
    ("pytest", "mkdir tests"),
    ("pytest", "touch specs"),
    ("pytest", "git commit -m tests"),
    ("pytest", "pip install pytest"),
    ("pytest && ruff check .", "pytest -x"),
    ("cargo build", "cargo fmt"),
    ("make check", "pytest"),
    ("python manage.py test", "python manage.py migrate"),
    ("fly deploy", "make check"),
]


@pytest.mark.parametrize("mending", [EDIT, SCRIPTED, HEREDOC, DEPENDENCY], ids=["edit", "sed", "heredoc", "install"])
@pytest.mark.parametrize(("failed", "passed"), MENDED_BY)
def test_what_a_check_found_is_mended_when_another_of_its_kind_passes_after_a_change(
    failed: str, passed: str, mending: dict[str, Any]
) -> None:
    steps = [ran(failed, 1, "it failed"), mending, ran(passed, 0, "done")]
    for more in ([], [ran("git commit -am x", 0)], [{"tool": "TodoWrite", "args": {"todos": []}}], [ran("ls", 0)]):
        work = trajectory_of({"query": "Get it done", "steps": [*steps, *more], "output": "Done.", "trusted": False})
        assert judge(work).outcome == "success"
        assert {item.kind for item in distill([(work, judge(work))]).items} == {"strategy"}
        assert not any(
            call.args.get("command") == "ls"
            for item in distill([(work, judge(work))]).items
            for call in item.pattern.calls
        )


@pytest.mark.parametrize(("failed", "passed"), NOT_MENDED_BY)
def test_and_by_no_other(failed: str, passed: str) -> None:
    work = trajectory_of({"query": "Get it done", "steps": [ran(failed, 1, "it failed"), EDIT, ran(passed, 0, "done")]})
    assert not judge(work).success
    assert not any(item.kind == "strategy" for item in distill([(work, judge(work))]).items)


@pytest.mark.parametrize(
    "steps",
    [
        [ran("pytest", 1, FAILS), ran("make check", 0)],
        [ran("pytest", 1, FAILS), ran("ls", 0), ran("make check", 0)],
        [ran("pytest", 1, FAILS), EDIT, ran("make check | tail -3", 0, FAILS)],
        [ran("pytest", 1, FAILS), EDIT, ran("make check", 0, PASSES), EDIT],
        [ran("pytest", 1, FAILS), EDIT, ran("make check", 0, PASSES), SCRIPTED],
        [ran("pytest", 1, FAILS), EDIT, ran("make check", 0, PASSES), EDIT, ran("pytest", 1, FAILS)],
        [ran("pytest", 1, FAILS), EDIT, ran("make check", 0, PASSES), ran("fly deploy", 1, "no rights")],
        [ran("make check", 0, PASSES), EDIT, ran("pytest", 1, FAILS)],
    ],
    ids=["nothing done", "only looked", "hidden", "edited since", "sed since", "again", "deployment", "before"],
)
def test_a_check_that_does_not_hold_after_the_last_change_proves_nothing(steps: list[dict[str, Any]]) -> None:
    assert not judge(trajectory_of({"query": "Get it done", "steps": steps, "trusted": False})).success


def test_a_file_that_could_not_be_read_does_not_spoil_work_that_passed_its_checks() -> None:
    missing = {"tool": "Read", "args": {"file_path": "README.rst"}, "error": "File does not exist."}
    work = {"query": "Get it done", "steps": [missing, EDIT, ran("make check", 0)], "trusted": False}
    assert judge(trajectory_of(work)).outcome == "success"


@pytest.mark.parametrize("look", ["git log foo..bar", "gh pr view", "jq . x.json", "docker ps", "cat a b"])
def test_a_look_that_fails_at_the_end_takes_nothing_back(look: str) -> None:
    steps = [EDIT, ran("pytest", 0, PASSES), ran(look, 2, "fatal: it is not there")]
    assert judge(trajectory_of({"query": "Get it done", "steps": steps, "output": "Done."})).outcome == "success"


@pytest.mark.parametrize("steps", FAILED.values(), ids=FAILED)
def test_a_failed_session_is_a_failure_and_never_a_strategy(steps: list[dict[str, Any]]) -> None:
    work = trajectory_of({"query": "Get it done", "steps": steps})
    verdict = judge(work)
    assert verdict.outcome == "failure"
    assert all(item.kind == "guardrail" for item in distill([(work, verdict)]).items)


@pytest.mark.parametrize("steps", UNSURE.values(), ids=UNSURE)
def test_unsure_means_unsure(steps: list[dict[str, Any]]) -> None:
    work = trajectory_of({"query": "Get it done", "steps": steps})
    verdict = judge(work)
    assert (verdict.outcome, verdict.success) == ("unsure", False)
    assert distill([(work, verdict)]).items == []


@pytest.mark.parametrize("steps", WORKED.values(), ids=WORKED)
def test_what_failed_and_then_worked_is_a_success(steps: list[dict[str, Any]]) -> None:
    work = trajectory_of({"query": "Get it done", "steps": steps})
    verdict = judge(work)
    assert verdict.outcome == "success"
    assert not any(
        "ls" in call.args.get("command", "") for one in distill([(work, verdict)]).items for call in one.pattern.calls
    )
