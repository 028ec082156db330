"""Commands and their output, read: which programs a command line runs, and what the end of an output says.

A shell is one tool for everything, so a command is its program and sub-command. Reads text only; judges nothing.
"""

from __future__ import annotations

import re
from itertools import pairwise, takewhile

from wellworn.core.cache import text_cache
from wellworn.core.lazy import regex

TAIL_CHARS = 2_000
"""Summaries stand at the end of an output; a log that was merely read has such lines anywhere."""
MOST_READ = 512
"""Commands whose reading is kept: each is compared with every other of its trajectory."""
_CHAIN = regex(r"&&|\|\||[;\n|]|(?<!>)&(?!>)")
_QUOTED = regex(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|<<-?\s*['\"]?(\w+)['\"]?.*?^\1$", re.DOTALL | re.MULTILINE)
_INNER = regex(r"^(?:bash|sh|zsh) -l?c ['\"](.*)['\"]$", re.DOTALL)
_WRAPPERS = regex(
    r"^(?:!|\w+=\S*|nice(?: -n \S+)?|timeout(?: -\S+)* \S+|\S*/?python[\d.]* -m|(?:sudo|time|env|nohup|exec|xargs|npx|uvx|"
    r"pipx run|(?:uv|poetry|pdm|hatch|pipenv) run|bundle exec)(?: -\S+)*)\s+"
)
_NAMES = regex(r"\w\w+")
_WORD = regex(r"[a-z][a-z0-9:_-]*$")
_REDIRECTS = regex(r"\d?&?[<>]")
_INTERPRETERS = regex(r"(?:python|node|ruby|perl|bash|sh|zsh|php|deno|bun|Rscript)[\d.]*$")
_ASIDE = frozenset("cd echo printf export set source . sleep true exit wait pushd popd".split())  # noqa: SIM905
_LOOKS = frozenset(
    """
    ls cat head tail less more pwd find grep egrep rg which wc stat file tree du df ps env date whoami type diff
    id uname hostname history man jq sort uniq cut awk ag fd free top lsof printenv test [ tee cmp pgrep
    """.split()  # noqa: SIM905  a list of words reads better than a list of strings
)
_MOVES = frozenset("mkdir touch rm rmdir cp mv ln chmod chown tar zip unzip rsync curl wget".split())  # noqa: SIM905
"""What follows these is a file, whatever its name."""
_SHOWS = frozenset("status log logs diff show list ls ps describe inspect view info history".split())  # noqa: SIM905
_LOOKS_AT = {
    "git": frozenset("branch blame remote grep".split()),  # noqa: SIM905
    "docker": frozenset({"images"}),
    **dict.fromkeys(("kubectl", "helm", "aws"), frozenset({"get"})),
    "sed": frozenset({"-n"}),
}
_RUNS = frozenset("run exec compose workspace".split())  # noqa: SIM905
"""What follows these is a command of its own, perhaps after the name of a place."""
_DOES = frozenset(
    """
    add apply cancel checkout clone commit cp create delete deploy destroy disable down edit enable fetch import init
    install login merge migrate mv patch publish pull push rebase reload remove restart rm scale set start stop sync
    uninstall up update upgrade
    """.split()  # noqa: SIM905
)
_VERBS = _DOES.union(_RUNS, _SHOWS, *_LOOKS_AT.values())
MOST_WORDS = 50
"""Words of a command that are looked at for its verb."""
MOST_GROUPS = 2
"""Words before the verb of a sub-command, as in `gcloud compute instances list`."""
_SOME = r"[1-9]\d*"
_SUMMARY = rf"""
      ^=*\ ?(?:\d+\ \w+,\ )*{_SOME}\ (?:failed|errors?)\b.*\bin\ [\d.]+\ ?m?s   # pytest
    | ^FAILED\ \((?:failures|errors)={_SOME}                           # unittest
    | ^\s*Tests?:?\ +(?:\d+\ \w+(?:,|\ \|)\ )*{_SOME}\ failed             # jest, vitest
    | ^\s*{_SOME}\ failing\b                                           # mocha
    | ^test\ result:\ FAILED                                           # cargo
    | ^(?:---\ FAIL:|FAIL\t)                                           # go
    | ^(?:\[\w+\]\ )?Tests\ run:.*(?:Failures|Errors):\ {_SOME}          # junit
    | ^\d+\ examples?,\ {_SOME}\ failures?                             # rspec
    | ^not\ ok\ \d+                                                    # TAP
    | \btests?\ run:.*\b{_SOME}\ failed                                # cargo nextest
    | ^\ +{_SOME}\ failed$                                            # playwright
    | ^Found\ {_SOME}\ errors?\b                                       # mypy, ruff, tsc
    | ^error(?:\[E\d+\]|:\ could\ not\ compile)                       # rustc
"""
_FAILED = regex(
    rf"{_SUMMARY} | ^error\ TS\d+ | ^(?:BUILD\ FAILED|npm\ ERR!|make(?:\[\d+\])?:\ \*\*\*)", re.MULTILINE | re.VERBOSE
)
_REFUSED = regex(
    rf"""
      ^(?:\w+\.)*\w+(?:Error|Exception):\ .*\Z                         # the end of a traceback
    | ^[^\n]*:\ (?:command\ not\ found|No\ such\ file\ or\ directory|not\ found)\s*\Z
    | ^[^\n]*\bpermission\ denied\b[^\n]*\Z
    | ^(?:fatal|error|E):\ [^\n]*\Z
    | \bexit(?:ed\ with)?(?:\ (?:code|status))?:?\ {_SOME}\s*\Z
    """,
    re.MULTILINE | re.VERBOSE | re.IGNORECASE,
)
_TESTED = rf"""
      ^=*\ ?{_SOME}\ passed\b.*\bin\ [\d.]+\ ?m?s
    | ^Ran\ {_SOME}\ tests?\ in\ [\d.]+s\s+^OK\b
    | ^\s*Tests?:?\ +(?:\d+\ \w+(?:,|\ \|)\ )*{_SOME}\ passed
    | ^\s*{_SOME}\ passing\b
    | ^test\ result:\ ok\.\ {_SOME}\ passed
    | ^ok\ \ ?\t(?!.*\[no\ tests)
    | ^(?:\[\w+\]\ )?Tests\ run:\ {_SOME},\ Failures:\ 0,\ Errors:\ 0
    | ^{_SOME}\ examples?,\ (?:0|no)\ failures?
    | ^[ \t]*{_SOME}\ passed\ \(
    | \btests?\ run:\ {_SOME}\ passed(?:,\ \d+\ skipped)?$                   # cargo nextest
    | ^\#\ pass\ {_SOME}$(?!\s+\#\ fail\ {_SOME})
"""
_RAN = regex(rf"{_TESTED} | ^(?:>\ Task\ )?(?::[\w-]+)*:test(?:\ UP-TO-DATE|\ FROM-CACHE)?$", re.MULTILINE | re.VERBOSE)
_PASSED = regex(
    rf"{_TESTED} | ^Success:\ no\ issues\ found | ^BUILD\ SUCCESS | ^[ ]*Finished\ .*\btarget.*\Z",  # the last: cargo build
    re.MULTILINE | re.VERBOSE,
)
_NOTHING = regex(
    r"""
      \bno\ tests?(?:\ (?:were\ )?(?:found|ran|run|executed|files?|to\ run|collected|matched)\b|[\].]|$)
    | \b(?:ran|running|executed)\ 0\ tests\b | ^0\ (?:tests|examples)\b | \bok\.\ 0\ passed\b
    | ^=*\ ?(?:\d+\ (?:skipped|deselected|warnings?)(?:,\ )?)+\ in\  | ^\s*Tests?:?\ +\d+\ (?:skipped|todo)(?:,|\ \()
    | \bTests\ are\ skipped\b | :test\ NO-SOURCE$ | \bNothing\ to\ be\ done\ for\ .(?:test|check)
    """,
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
"""What test runners print when they ran no test."""
_BEFORE_TESTS = regex(
    r"\berrors? during collection\b|\bTest suite failed to run\b|\[(?:build|setup) failed\]", re.IGNORECASE
)
_SOME_RAN = regex(
    rf"^(?!\s*Test\ (?:Suites|Files)\b).*\b{_SOME}\ (?:passed|failed)\b|^---\ (?:PASS|FAIL):|^ok\ ",
    re.MULTILINE | re.VERBOSE,
)
_MAY_DO_NOTHING = regex(r"--if-present\b|--pass-?with-?no-?tests\b", re.IGNORECASE)
_HIDES = regex(r"\||;|\bpsql\b")
"""A pipe, `||` and `;` put another exit code in the place of the program's own, and `psql` goes on after an error."""
_NO_FAILURE = regex(
    r"(?<![=\w])(?:0|no) (?:\w+ )?(?:fail\w*|errors?|issues?|problems?)\b|\b(?:fail\w*|errors?)(?:\s*[:=]\s*|\s+)0\b(?!\.\d)",
    re.IGNORECASE,
)
_OF_FAILURE = regex(
    r"(?<![\w./-])(?:errors?|fail(?:s|ed|ing|ures?)?|fatal|undefined|undeclared|cannot|could not|unable|timed out)"
    r"(?![\w/-]|\.\w)",
    re.IGNORECASE,
)

_FINDINGS = regex(
    rf"{_SUMMARY} | ^[^\s:()]+\.\w+(?::\d+(?::\d+)?|\(\d+,\d+\)):\s | ^\s*-->\ \S+:\d+", re.MULTILINE | re.VERBOSE
)
"""A summary, or a place in a file with what is wrong there."""
_WRONG_CALL = regex(
    r"""
      \b(?:command\ )?not\ found\b | \busage: | \bpermission\ denied\b | \bis\ not\ recognized\b | python\S*:\ No\ module\ named
    | \b(?:unrecogni[sz]ed|unknown|unexpected|invalid|illegal|unsupported)\ (?:\w+\ )?
      (?:argument|option|flag|(?:sub)?command|switch|task|target)
    | \bno\ such\ (?:option|(?:sub)?command|task|target|file) | \bno\ rule\ to\ make\b | \bmissing\ script\b | \bcan't\ open\ file\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_COMPLAINS = regex(r"^(?:\S+: )?(?:error|fatal|cannot|can't|could not|unable|failed)\b", re.IGNORECASE | re.MULTILINE)
_ANSWERS = frozenset({"grep", "egrep", "fgrep", "rg", "ag", "diff", "cmp", "test", "[", "pgrep", "which"})
_CHECKS = regex(
    r"""
      \b(?:
        (?P<tests> \w*tests? | \w*specs? | phpunit | tox | nox | jest | mocha | cypress | bats | behave | cucumber | e2e )
      | (?P<lints> \w*lint | vet | clippy | ruff | mypy | pyright | flake8 | black | isort | prettier | pre-commit )
      | (?P<types> \w*-?tsc | type-?check | (?:cargo|deno)\ check )
      | (?P<builds> \w*build | compile | cmake | ninja | g?cc | g\+\+ | clang | rustc | javac )
      | (?P<all> (?<![\w:-]) (?: checks? | verify | (?<=run\ )ci | (?<=make\ )ci ) (?![:-]) )
      | \w*check | make(?:\ all)?(?!\ ) | validate | gradlew? | mvn
      )(?!\w)
    """,
    re.VERBOSE,
)
"""Names of programs and sub-commands that test, lint or build; those of the last two lines can do any of these, and the
last but one usually does all."""
_KINDS = {"types": ("lints", "builds")}
_WRITES = regex(r"(?<![\d&<>-])>>?(?![>&=(])\s*(?!/dev/)[\w./~$-]|\b(?:sed|perl) (?:-\S+ )*-\w*i|\btee\b")

_LESS = regex(
    r"(?<!\S)(?:--(?:abort|quit|help|version|dry-run|no-verify|deselect|ignore|exclude|skip)|-DskipTests|-k ?['\"]?not)(?![\w-])"
)
"""Options with which a command undoes, tries out or leaves out what it is for."""

_UNDOES = regex(
    r"\bgit (?:-\S+ )*(?:stash(?! (?:pop|apply))|checkout(?! -[bB]\b)|switch(?! -[cC]\b)|reset(?= --hard| --merge)"
    r"|restore(?! --staged))\b|\brollout undo\b|\brollback\b"
)
_WAITS = regex(r"\b(?:rollout status|systemctl (?:-\S+ )*status|wait|is-(?:active|ready|system-running))\b")

Program = tuple[str, ...]
"""A program, with its sub-command or script where it has one."""


def read_checks(output: str) -> bool | None:
    """False when the end of an output says that tests or a build failed, True when it says they passed, else None."""
    tail = output[-TAIL_CHARS:].rstrip()
    if _FAILED.search(tail):
        return False
    return True if _PASSED.search(tail) else None


def read_output(output: str) -> bool | None:
    """The same, and False also for what shells and programs print at the end when they fail.

    Reads only lines that test runners, compilers and shells print themselves.
    """
    return False if _REFUSED.search(output[-TAIL_CHARS:].rstrip()) else read_checks(output)


def belied(command: str, output: str) -> bool:
    """Whether an exit code of 0 says nothing: no test was run, or it can be that of another program and the output has a
    word of failure."""
    if not output.strip() and _MAY_DO_NOTHING.search(command):
        return True
    if (checks(command) or set()) & {"tests", "all"} and _NOTHING.search(output[-TAIL_CHARS:].rstrip()):
        return not _RAN.search(output)
    if not _HIDES.search(_bare(command)) or all(map(looks, programs(command))):
        return False
    tail = _NO_FAILURE.sub("", output[-TAIL_CHARS:])
    return read_checks(output) is not True and _OF_FAILURE.search(tail) is not None


@text_cache(MOST_READ)
def checks(command: str) -> frozenset[str] | None:
    """What a command does of `tests`, `lints` and `builds`, or `all` of them: none where it checks in some other way, None
    if it does not check anything."""
    run = [" ".join(program) for program in programs(command) if program[0] not in _MOVES]
    found = [match for name in run for match in _CHECKS.finditer(name)]
    kinds = {kind for match in found if (name := match.lastgroup) for kind in _KINDS.get(name, (name,))}
    return frozenset(kinds - {"all"} or kinds) if found else None


def stands_in(command: str, refused: str) -> bool:
    """Whether a command does what another was to do that never ran: the same under a like name, or a check of its kind."""
    words, wanted = _NAMES.findall(command), _NAMES.findall(refused)
    if wanted and all(any(one.startswith(word) or word.startswith(one) for one in words) for word in wanted):
        return True
    does, meant = checks(command), checks(refused)
    if does is None or meant is None:
        return False
    return "all" in does | meant or not does or not meant or bool(does & meant)


def _given(part: str) -> list[str]:
    """The words of one program, without options and redirections."""
    words = takewhile(lambda word: not _REDIRECTS.match(word), part.split())
    return [word for word in words if not word.startswith("-")]


def checks_as_much(command: str, other: str) -> bool:
    """Whether a command checks all that another does: all of its kinds, or whatever there is to check."""
    does, meant = checks(command), checks(other)
    if not does or not meant:
        return False
    return "all" in does or meant <= does


def does_less(command: str, other: str) -> bool:
    """Whether a command has an option to do less than its name says that another has not."""
    return not set(_LESS.findall(command)) <= set(_LESS.findall(other))


def checks_elsewhere(command: str, other: str) -> bool:
    """Whether two checks name files or folders, and no name of the one is part of a name of the other."""
    places, others = _places(command), _places(other)
    return bool(places and others) and not any(a in b or b in a for a in places for b in others)


@text_cache(MOST_READ)
def _places(command: str) -> frozenset[str]:
    """What the checks of a command are about, as far as that looks like a path."""
    parts = [part for part in _CHAIN.split(_bare(command)) if checks(part) is not None]
    return frozenset(word.strip("./") for part in parts for word in _given(part)[1:] if "/" in word or "." in word)


def goes_back(command: str) -> bool:
    """Whether a command puts changes away or goes back to an earlier state, among other things."""
    return _UNDOES.search(_bare(command)) is not None


def undoes(command: str) -> bool:
    """Whether that is all it does."""
    return len(programs(command)) == 1 and goes_back(command)


def waits(command: str) -> bool:
    """Whether a command asks for a state that something is to reach, so that its failure tells of that thing."""
    return _WAITS.search(_bare(command)) is not None


def writes(command: str) -> bool:
    """Whether a command changes files by itself: an editor without a screen, or a redirection."""
    return _WRITES.search(_bare(command)) is not None


def reports_findings(command: str, output: str, exit_code: int | None = None) -> bool:
    """Whether a failed call says what a test, a linter or a compiler found, or that there is nothing to see (`grep`) or
    something (`diff`). That is information, not a wrong call."""
    if not command or exit_code in (126, 127):
        return not command and read_checks(output) is False
    found = tells_findings(output)
    if found or refuses_call(output, exit_code):
        return found
    looked, made = exit_code in (None, 1) and not _COMPLAINS.search(output), programs(command)
    return (looked and bool(made) and all(map(looks, made)) and _answers(made[-1])) or checks(command) is not None


def tells_findings(output: str) -> bool:
    """Whether an output sums up what was checked, or names a place in a file with what is wrong there."""
    return _FINDINGS.search(output[-TAIL_CHARS:]) is not None and not ran_nothing(output)


def ran_nothing(output: str) -> bool:
    """Whether a test runner failed before it ran the first test."""
    tail = output[-TAIL_CHARS:]
    return _BEFORE_TESTS.search(tail) is not None and not _SOME_RAN.search(tail)


def _answers(program: Program) -> bool:
    """Whether a program answers no with the exit code 1."""
    return program[0] in _ANSWERS or program[:2] in (("git", "diff"), ("git", "grep"))


def refuses_call(output: str, exit_code: int | None = None) -> bool:
    """Whether a command did not run at all: not found, not permitted, or called with what it does not know."""
    return exit_code in (126, 127) or _WRONG_CALL.search(output[-TAIL_CHARS:]) is not None


@text_cache(4096)
def programs(command: str) -> tuple[Program, ...]:
    """What a command line does: each of its programs, without those that only prepare, report or look.

    Where it does nothing else, the looking is all there is.
    """
    found = [program for part in _CHAIN.split(_bare(command)) if (program := _program(part.strip()))]
    meant = [program for program in found if program[0] not in _ASIDE] or found
    return tuple(dict.fromkeys([one for one in meant if not looks(one)] or meant))


def _bare(command: str) -> str:
    """Without the words in quotes, and without the shell that only runs it."""
    inner = _INNER.match(command.strip())
    return _QUOTED.sub(" _ ", inner[1] if inner else command)


def _program(part: str) -> Program:
    while (shorter := _WRAPPERS.sub("", part)) != part:
        part = shorter
    name, *rest = part.split() or [""]
    name = name.rsplit("/", 1)[-1] if not name.startswith("./") else name
    words = [
        (word, before.startswith("-") and "=" not in before and before != "--")
        for before, word in pairwise(["", *takewhile(lambda word: not _REDIRECTS.match(word), rest)])
        if not word.startswith(("-", "+"))
    ]
    given = [word for word, _ in words]
    if _INTERPRETERS.match(name):
        script = rest.index(given[0]) if given else len(rest)
        return (name, *["test"][: "--test" in rest[:script]], *given[:1], *filter(_WORD.match, rest[script + 1 :][:1]))
    if name == "sed":
        return (name, *(word for word in rest[:1] if word == "-n"))
    return (name, *filter(_WORD.match, given[:1] if name in _MOVES else _sub_command(words))) if name else ()


def _sub_command(words: list[tuple[str, bool]], *, inside: bool = False) -> list[str]:
    """The words of a sub-command up to its verb, from words and whether each stands after an option.

    Such a word is the value of the option where a verb follows. A name such as `test` can be either, and counts as the
    verb if there is no other. Without any verb nothing is left out, so that different commands stay different.
    """
    words, verbs, sure, groups = words[:MOST_WORDS], list[int](), list[int](), 0
    for place, (word, valued) in enumerate(words):
        verb = word.split("-")[0] in _VERBS and (inside or groups <= MOST_GROUPS)
        named = _CHECKS.match(word) or (inside and word in _LOOKS)
        if verb or (named and (inside or not groups)):
            verbs.append(place)
            sure += [place] * (verb or not valued)
        groups += not valued
    if not verbs:
        plain = next((place for place, (_, valued) in enumerate(words) if not valued), 0)
        return [word for word, _ in words[: plain + 1]]
    end = (sure or verbs)[0]
    after = _sub_command(words[end + 1 :], inside=True) if words[end][0] in _RUNS else []
    return [*(word for word, valued in words[:end] if not valued), words[end][0], *after]


def looks(program: Program) -> bool:
    """Whether a program only looks at something, so that its success proves nothing about the task."""
    name, *rest = program
    if not rest or name in _ASIDE or name in _LOOKS or name in _MOVES:
        return name in _ASIDE or name in _LOOKS
    verb = rest[-1].split("-")[0] or rest[-1]
    within = "exec" in rest and verb in _LOOKS and not _CHECKS.match(verb)
    return within or verb in _SHOWS or verb in _LOOKS_AT.get(name, ())
