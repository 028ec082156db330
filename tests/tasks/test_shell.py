"""A judge that reads shells: programs and sub-commands, exit codes, tests, and what only looks.

A life is one line, its steps parted by ` · `: `EDIT` edits a file, `✓` and `✗` stand before what a command printed, with
the exit code behind them where it is not 0 or 1.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from wellworn.tasks import trajectory_of
from wellworn.tasks.distill import Distilled, distill
from wellworn.tasks.judge import Verdict, judge
from wellworn.tasks.shell import looks, programs, read_output

EDIT = {"tool": "Edit", "args": {"path": "a.py"}, "result": "written"}
PASSES, FAILS = "✓ 3 passed in 0.1s", "✗ 1 failed, 2 passed in 0.1s"


def ran(command: str, code: int | None = None, output: str = "") -> dict[str, Any]:
    return {"tool": "Bash", "args": {"command": command}, "result": output, "exit_code": code}


def step(told: str) -> dict[str, Any]:
    command, mark, code, output = re.fullmatch(r"(.*?)(?: ([✓✗])(\d*) ?(.*))?", told, re.DOTALL).groups()  # type: ignore[union-attr]
    return EDIT if command == "EDIT" else ran(command, int(code or mark == "✗") if mark else None, output or "")


def lived(life: str, **fields: Any) -> tuple[Verdict, Distilled]:  # fields of a trajectory
    """How a life is judged, and what it teaches."""
    work = trajectory_of({"query": "Get it done", "steps": [step(told) for told in life.split(" · ")], **fields})
    verdict = judge(work)
    return verdict, distill([(work, verdict)])


def lines(table: str) -> list[str]:
    return [line.strip() for line in table.strip().splitlines()]


@pytest.mark.parametrize(
    "told",
    lines("""
    cd app && make test: make test
    pytest -q tests/a.py | tail -5: pytest
    python3 -m pytest: pytest
    uv run pytest: pytest
    python3 run.py --fast: python3 run.py
    npm run build: npm run build
    docker compose up -d: docker compose up
    git commit -m 'ls && rm': git commit
    bash -c 'npm test': npm test
    timeout 60 cargo build; ls: cargo build
    ls -la: ls
    """),
)
def test_a_command_is_its_programs_and_sub_commands(told: str) -> None:
    command, _, meant = told.partition(": ")
    assert programs(command) == (tuple(meant.split()),)


@pytest.mark.parametrize(
    "life",
    lines("""
    kubectl -n prod apply -f shop.yml ✗ · kubectl -n prod get pods ✓
    kubectl --context prod -n test rollout restart shop ✗ · kubectl --context prod -n test rollout status shop ✓
    git -C app push ✗ · git -C app status ✓
    docker compose -f dev.yml up ✗ · docker compose -f dev.yml ps ✓
    kubectl exec -it web -- touch ready ✗ · kubectl exec -it web -- cat ready ✓
    helm -n shop upgrade --install api ./chart ✗ · helm -n shop history api ✓
    terraform -chdir=infra apply -auto-approve ✗ · terraform -chdir=infra show ✓
    systemctl --user restart shop.service ✗ · systemctl --user status shop.service ✓
    gcloud --project shop compute instances create web ✗ · gcloud --project shop compute instances list ✓
    heroku config:set -a shop X=1 ✗ · heroku config -a shop ✓
    """),
)
def test_the_value_of_an_option_is_no_sub_command(life: str) -> None:
    verdict, taught = lived(life)
    assert not verdict.success
    assert not any(item.kind == "strategy" for item in taught.items)
    did = life.partition(" ✗")[0]
    assert lived(f"{did} ✗ timed out · {did} -v ✓ done")[0].success


@pytest.mark.parametrize(
    "command",
    lines("""
    pnpm --filter api test
    conda run -n env pytest
    uv run --package api pytest
    make -C build test
    cargo --config net.offline=true test --manifest-path app/Cargo.toml
    docker compose -f ci.yml run --rm web pytest -q
    kubectl -n ci exec runner -- go test ./...
    npx --yes vitest run
    bazel --output_base /tmp/b test //...
    """),
)
def test_a_test_is_seen_behind_options(command: str) -> None:
    assert lived(f"npm test ✗ npm ERR! Missing script: test · {command} ✓ 42 passed")[0].success


STAND_INS = """
npm test ✗ Error: Cannot find module 'vite' · pnpm test ✓ Tests: 14 passed, 14 total
mvn test ✗ BUILD FAILURE · ./gradlew test ✓ BUILD SUCCESSFUL in 3s
pytest ✗ ModuleNotFoundError: No module named 'app' · make test ✓ 14 passed in 0.30s
cargo test ✗ could not start · cargo nextest run -p core ✓ Summary [0.2s] 12 tests run: 12 passed, 0 skipped
"""
NO_STAND_INS = """
pytest ✗ 1 failed, 4 passed in 0.12s · make test ✓ 14 passed in 0.30s
npm test ✗ Error: Cannot find module 'vite' · npm run lint ✓ 0 problems
pytest tests/a.py ✗ ModuleNotFoundError: No module named 'app' · pytest tests/b.py ✓ 3 passed in 0.30s
cargo test ✗ src/a.rs:3:1: unclosed brace · cargo nextest run ✓ Summary [0.2s] 12 tests run: 11 passed, 1 failed
"""


@pytest.mark.parametrize("life", lines(STAND_INS))
def test_another_check_that_holds_stands_in_for_one_that_checked_nothing(life: str) -> None:
    verdict, taught = lived(life)
    assert verdict.success
    assert any(life.partition(" · ")[2].partition(" ✓")[0] in item.advice for item in taught.items)


@pytest.mark.parametrize("life", lines(NO_STAND_INS))
def test_what_a_check_found_is_not_answered_by_another_one(life: str) -> None:
    assert not lived(life)[0].success


@pytest.mark.parametrize(
    "command", ["ls", "cat a && head b", "git status", "docker ps", "grep -r x .", "sed -n 1,5p a"]
)
def test_looking_is_not_doing(command: str) -> None:
    assert all(looks(program) for program in programs(command))


@pytest.mark.parametrize("command", ["git push", "docker run x", "sed -i s/a/b/ f", "make", "rm a", "./deploy.sh"])
def test_doing_is_not_looking(command: str) -> None:
    assert not any(looks(program) for program in programs(command))


WRONG = "tests/test_a.py F....\n\n===== 1 failed, 4 passed in 0.12s ====="
OUTPUTS = {
    False: [
        WRONG,
        "Ran 4 tests in 0.01s\n\nFAILED (failures=1)",
        "Tests:       2 failed, 3 passed, 5 total",
        "test result: FAILED. 3 passed; 1 failed; 0 ignored",
        "--- FAIL: TestAdd (0.00s)\nFAIL\texample.com/add\t0.1s",
        "Tests run: 5, Failures: 1, Errors: 0, Skipped: 0",
        "Found 3 errors in 2 files (checked 10 source files)",
        "error[E0382]: borrow of moved value",
        "make: *** [Makefile:3: test] Error 2",
        'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nValueError: no such thing',
        "zsh: command not found: terraform\nzsh: terraform: command not found",
        "cp: cannot create regular file '/etc/a': Permission denied",
        "cat: notes.txt: No such file or directory",
        "error: failed to push some refs",
    ],
    True: [
        "collected 5 items\n\n===== 5 passed in 0.12s =====",
        "Ran 4 tests in 0.01s\n\nOK",
        "Tests:       5 passed, 5 total",
        "  5 passing (20ms)",
        "test result: ok. 4 passed; 0 failed; 0 ignored",
        "ok  \texample.com/add\t0.1s",
        "Tests run: 5, Failures: 0, Errors: 0, Skipped: 0",
        "Success: no issues found in 10 source files",
        "BUILD SUCCESSFUL in 2s",
    ],
    None: [
        "",
        "Everything is complete. Success!",
        "class ValueError: pass\nprint('it works')",
        "0 errors were seen",
        WRONG + "\n" + "a line of the log that was read\n" * 100,
    ],
}


@pytest.mark.parametrize(("says", "output"), [(says, one) for says, outputs in OUTPUTS.items() for one in outputs])
def test_the_end_of_an_output_tells_how_it_went(says: bool | None, output: str) -> None:
    assert read_output(output) is says


@pytest.mark.parametrize(
    ("life", "outcome"),
    [
        ("dotnet test 2>&1 | tail -3 ✓ Failed!  - Failed:     2, Passed:   140, Skipped:     0", "unsure"),
        ("npx vitest run | tail -3 ✓       Tests  2 failed | 186 passed (188)", "failure"),
        ("mvn verify | tail -20 ✓ [INFO] BUILD FAILURE", "unsure"),
        ("go build ./... 2>&1 | head ✓ # app/api\napi/h.go:12:3: undefined: foo", "unsure"),
        ("terraform apply 2>&1 | tail -8 ✓ │ Error: creating S3 Bucket (audit): BucketAlreadyExists", "unsure"),
        ("mysql app < m.sql || true ✓ ERROR 1054 (42S22) at line 1: Unknown column 'x'", "unsure"),
        ("ansible-playbook site.yml | tail -1 ✓ web1 : ok=4 changed=1 unreachable=0 failed=1", "unsure"),
        ('psql -f m.sql ✓ psql:m.sql:3: ERROR:  column "x" does not exist', "unsure"),
        ("npx playwright test | tail ✓   1 failed\n    a.spec.ts:3 › login\n  12 passed (3.4s)", "failure"),
        ("cargo run | tail ✓     Finished dev target(s) in 3s\n     Running `app`\nError: boom", "unsure"),
        ("npx playwright test | tail ✓   ✓ 1 shows an error\n  12 passed (3.4s)", "success"),
        ("node --test | tail ✓ # tests 3\n# pass 3\n# fail 0\n# cancelled 0", "success"),
        ("cargo build 2>&1 | tail ✓    Compiling error-chain v0.12\n    Finished dev target(s) in 3.2s", "success"),
        ("dotnet test | tail -3 ✓ Passed!  - Failed:     0, Passed:   142, Skipped:     0", "success"),
        ("ctest | tail -2 ✓ 100% tests passed, 0 tests failed out of 50", "success"),
        ("npm run build | tail -2 ✓ dist/assets/error-page.js  3 kB\n✓ built in 8.21s", "success"),
        ("npm test ✓ Error: Uncaught [Error: boom]", "success"),
    ],
)
def test_an_exit_code_that_is_not_the_programs_own_needs_an_output_without_failures(life: str, outcome: str) -> None:
    assert lived(f"EDIT · {life}")[0].outcome == outcome


@pytest.mark.parametrize(
    ("life", "success"),
    [
        ("pytest -k nothing ✓ ===== 12 deselected in 0.1s =====", False),
        ("npx jest --passWithNoTests x ✓ No tests found, exiting with code 0", False),
        ("make test ✓ make: Nothing to be done for 'test'.", False),
        ("./gradlew test ✓ > Task :test NO-SOURCE\nBUILD SUCCESSFUL in 1s", False),
        ("mvn test -DskipTests ✓ [INFO] Tests are skipped.\n[INFO] BUILD SUCCESS", False),
        ("npx vitest run ✓       Tests  12 skipped (12)", False),
        ("bundle exec rspec ✓ 0 examples, 0 failures", False),
        ("cargo test ✓ test result: ok. 18 passed; 0 failed\n\nrunning 0 tests\n\ntest result: ok. 0 passed", True),
        ("go test ./... ✓ ?   \tapp\t[no test files]\nok  \tapp/api\t0.1s", True),
        ("./gradlew test ✓ > Task :a:test UP-TO-DATE\n> Task :b:test NO-SOURCE\nBUILD SUCCESSFUL in 1s", True),
        ("make test ✓ lint ok\nno test warnings\n42 checks ok", True),
        ("npx jest ✓ Tests:       2 skipped, 12 passed, 14 total", True),
        ("make ✓ make: Nothing to be done for 'all'.", True),
    ],
)
def test_a_run_of_no_test_proves_nothing(life: str, success: bool) -> None:
    assert lived(f"EDIT · {life}")[0].success == success


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
    verdict, taught = lived(f"{failed} ✗ it failed · EDIT · {worked} ✓ done")
    assert verdict.success == success
    assert success or not any(item.kind == "strategy" for item in taught.items)


LIVES = {
    "failure": f"""
    a build, then a look: make ✗2 · ls ✓ a b
    tests, then a look: pytest {FAILS} · cat a.py ✓ x
    an installation, then an echo: npm install ✗ npm ERR! 404 · echo done ✓ done
    no rights: ./deploy.sh ✗126 bash: ./deploy.sh: Permission denied · cat deploy.sh ✓ x
    a chain: make && ls ✗2 · ls ✓
    a pipe that hides the exit code: pytest | tail -3 ✓ 1 failed, 3 passed in 0.2s
    other work after a failed build: make ✗2 make: *** [all] Error 1 · touch x ✓ · git add x ✓
    """,
    "unsure": f"""
    other tests: pytest tests/a {FAILS} · EDIT · pytest tests/b -q {PASSES}
    the change put away: pytest {FAILS} · git stash ✓ · pytest {PASSES}
    the change put away in the same line: pytest {FAILS} · git stash && pytest {PASSES}
    the change thrown away: pytest {FAILS} · git reset --hard ✓ · pytest {PASSES}
    fewer things: ruff check . ✗ b/a.py:1:1: F401 x · EDIT · ruff check --exclude b . ✓ All checks passed!
    never ready: kubectl apply -f x.yaml ✓ · kubectl rollout status deploy/x ✗ error: timed out · kubectl get pods ✓
    rolled back: kubectl apply -f x ✓ · kubectl rollout status d/x ✗ error: timed out · kubectl rollout undo d/x ✓
    only looking: ls ✓ · cat x ✓
    another sub-command: docker build . ✗ · docker pull x ✓
    another script: python migrate.py ✗ · python hello.py ✓ hi
    another tool for it: pip install x ✗ · uv pip install x ✓
    tests pass, the deployment does not: pytest {PASSES} · fly deploy ✗ · ls ✓
    """,
    "success": f"""
    the same again: git push ✗ · git pull --rebase ✓ · git push ✓
    tests after the change: pytest {FAILS} · EDIT · pytest {PASSES}
    a part of its name: npx jest src/a.test.ts ✗ Tests: 1 failed, 3 total · EDIT · npx jest a.test ✓ Tests: 3 passed
    more tests: go test ./a ✗ FAIL\ta\t0.1s · EDIT · go test ./... ✓ ok  \ta\t0.1s
    fewer tests: pytest tests/ {FAILS} · EDIT · pytest tests/a.py::t {PASSES}
    put away, then mended: pytest {FAILS} · git checkout a.py ✓ · EDIT · pytest {PASSES}
    in a branch of its own: pytest {FAILS} · EDIT · git checkout -b fix ✓ · pytest {PASSES}
    unstaged: pytest {FAILS} · EDIT · git reset HEAD tmp.txt ✓ · pytest {PASSES}
    merged: pytest {FAILS} · EDIT · git commit -am x && git checkout main && git merge fix ✓ · pytest {PASSES}
    ready at last: kubectl apply -f x ✓ · kubectl rollout status d/x ✗ timed out · kubectl rollout status d/x ✓
    a look at what is not there: pytest {PASSES} · cat x ✗ cat: x: No such file or directory · git diff --stat ✓ a.py
    nothing found, then done: grep foo a ✗ · git commit -m x ✓
    a look that fails at the end: EDIT · pytest {PASSES} · gh pr view ✗2 fatal: it is not there
    """,
}


@pytest.mark.parametrize(("outcome", "told"), [(one, told) for one, table in LIVES.items() for told in lines(table)])
def test_a_life_is_judged_and_teaches_only_what_it_shows(outcome: str, told: str) -> None:
    verdict, taught = lived(told.partition(": ")[2], output="Done." if outcome == "success" else "")
    assert (verdict.outcome, verdict.success) == (outcome, outcome == "success")
    if outcome == "unsure":
        assert taught.items == []
    elif outcome == "failure":
        assert all(item.kind == "guardrail" for item in taught.items)
    else:
        assert "ls" not in [call.args.get("command") for item in taught.items for call in item.pattern.calls]


MENDED_BY = """
pytest > make check
pytest > cd app && npm run test:unit | tail -3
npm test > npx vitest run
cargo build > make build
npx tsc --noEmit > npm run typecheck
npm run lint > npx eslint .
ruff check . && pytest > make check
python manage.py test > pytest
go test ./pkg > make ci
pytest > ./run_tests.sh
"""
NOT_MENDED_BY = """
pytest > cat a.py
pytest > ruff check .
pytest > make
pytest > npm ci
pytest > npm run format-check
pytest > git commit -m tests
pytest > pip install pytest
pytest && ruff check . > pytest -x
cargo build > cargo fmt
make check > pytest
python manage.py test > python manage.py migrate
fly deploy > make check
"""
CHANGES = ["EDIT", "sed -i s/a/b/ a.py ✓", "cat > a.py <<'EOF'\nx = 1\nEOF ✓", "pip install -e . ✓"]


@pytest.mark.parametrize("pair", lines(MENDED_BY))
def test_what_a_check_found_is_mended_when_another_of_its_kind_passes_after_a_change(pair: str) -> None:
    failed, passed = pair.split(" > ")
    for mending in CHANGES:
        for more in ("", " · git commit -am x ✓", " · ls ✓"):
            life = f"{failed} ✗ it failed · {mending} · {passed} ✓ done{more}"
            verdict, taught = lived(life, output="Done.", trusted=False)
            assert verdict.outcome == "success"
            assert {item.kind for item in taught.items} == {"strategy"}


@pytest.mark.parametrize("pair", lines(NOT_MENDED_BY))
def test_and_by_no_other(pair: str) -> None:
    failed, passed = pair.split(" > ")
    verdict, taught = lived(f"{failed} ✗ it failed · EDIT · {passed} ✓ done")
    assert not verdict.success
    assert not any(item.kind == "strategy" for item in taught.items)


@pytest.mark.parametrize(
    "told",
    lines(f"""
    nothing done: pytest {FAILS} · make check ✓
    only looked: pytest {FAILS} · ls ✓ · make check ✓
    hidden: pytest {FAILS} · EDIT · make check | tail -3 ✓ 1 failed, 2 passed in 0.1s
    edited since: pytest {FAILS} · EDIT · make check {PASSES} · EDIT
    sed since: pytest {FAILS} · EDIT · make check {PASSES} · sed -i s/a/b/ a.py ✓
    again: pytest {FAILS} · EDIT · make check {PASSES} · EDIT · pytest {FAILS}
    deployment: pytest {FAILS} · EDIT · make check {PASSES} · fly deploy ✗ no rights
    before: make check {PASSES} · EDIT · pytest {FAILS}
    """),
)
def test_a_check_that_does_not_hold_after_the_last_change_proves_nothing(told: str) -> None:
    assert not lived(told.partition(": ")[2], trusted=False)[0].success


def test_a_file_that_could_not_be_read_does_not_spoil_work_that_passed_its_checks() -> None:
    missing = {"tool": "Read", "args": {"file_path": "README.rst"}, "error": "File does not exist."}
    work = {"query": "Get it done", "steps": [missing, EDIT, ran("make check", 0)], "trusted": False}
    assert judge(trajectory_of(work)).outcome == "success"
