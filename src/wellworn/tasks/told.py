"""What the output of a tool says about how it went, where the tool gives no exit code: test runs, builds, crashes.

Reads only lines that runners and compilers print themselves, at the end of an output. Knows no agent: what an agent
says of its own work is no output of a tool.
"""

from __future__ import annotations

import re

TAIL_CHARS = 2_000
"""Summaries stand at the end; a log that was merely read has such lines anywhere."""

_NONE = r"(?:0|no)"
_SOME = r"[1-9]\d*"
_BROKE = re.compile(
    rf"""
      ^=*\ ?{_SOME}\ (?:failed|errors?)\b.*\bin\ [\d.]+\ ?m?s          # pytest
    | ^FAILED\ \((?:failures|errors)={_SOME}                           # unittest
    | ^Tests?:\ .*\b{_SOME}\ failed                                    # jest, vitest
    | ^\s*{_SOME}\ failing\b                                           # mocha
    | ^test\ result:\ FAILED                                           # cargo
    | ^(?:---\ FAIL:|FAIL\t)                                           # go
    | ^Tests\ run:.*(?:Failures|Errors):\ {_SOME}                      # junit
    | ^\d+\ examples?,\ {_SOME}\ failures?                             # rspec
    | ^not\ ok\ \d+                                                    # TAP
    | ^Found\ {_SOME}\ errors?\b                                       # mypy, ruff, tsc
    | ^error(?:\[E\d+\]|\ TS\d+|:\ could\ not\ compile)                # rustc, tsc
    | ^(?:BUILD\ FAILED|npm\ ERR!|make(?:\[\d+\])?:\ \*\*\*)
    | ^(?:\w+\.)*\w+(?:Error|Exception):\ .*\Z                         # the end of a traceback
    | ^(?:bash|sh|zsh):\ .*:\ (?:command\ not\ found|No\ such\ file\ or\ directory|Permission\ denied)
    | \b[Ee]xit(?:ed\ with)?(?:\ (?:code|status))?:?\ {_SOME}\s*\Z
    """,
    re.MULTILINE | re.VERBOSE,
)
_HELD = re.compile(
    rf"""
      ^=*\ ?{_SOME}\ passed\b.*\bin\ [\d.]+\ ?m?s
    | ^Ran\ {_SOME}\ tests?\ in\ [\d.]+s\s+^OK\b
    | ^Tests?:\ .*\b{_SOME}\ passed
    | ^\s*{_SOME}\ passing\b
    | ^test\ result:\ ok\.
    | ^ok\ \ ?\t
    | ^Tests\ run:\ {_SOME},\ Failures:\ 0,\ Errors:\ 0
    | ^{_SOME}\ examples?,\ {_NONE}\ failures?
    | ^Success:\ no\ issues\ found
    | ^BUILD\ SUCCESS
    """,
    re.MULTILINE | re.VERBOSE,
)


def told_by(output: str) -> bool | None:
    """False when the end of an output says that something failed, True when a check says it held, else None."""
    tail = output[-TAIL_CHARS:].rstrip()
    if _BROKE.search(tail):
        return False
    return True if _HELD.search(tail) else None
