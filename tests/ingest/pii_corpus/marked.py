"""Texts with what must be found in them marked as `<<value>>`, one a line; `# kind` opens a section.

`@w36` stands for 36 random letters and digits, drawn with a seed, so that no file holds a key: `w` letters and digits,
`s` also `-_`, `B` also `+/`, `l` lower case and digits, `h` and `H` hexadecimal, `u` base 32, `U` capitals and digits,
`d` digits. `\\n` is a new line.
"""

from __future__ import annotations

import random
import re
import string
from pathlib import Path
from typing import NamedTuple

_SIGNS = {
    "w": string.ascii_letters + string.digits,
    "s": string.ascii_letters + string.digits + "-_",
    "B": string.ascii_letters + string.digits + "+/",
    "l": string.ascii_lowercase + string.digits,
    "h": "0123456789abcdef",
    "H": "0123456789ABCDEF",
    "u": string.ascii_uppercase + "234567",
    "U": string.ascii_uppercase + string.digits,
    "d": string.digits,
}
_DRAWN = re.compile(r"@([wsBlhHuUd])(\d+)")
_MARKED = re.compile(r"<<(.+?)>>(?!>)")


class Marked(NamedTuple):
    """A text, and the values that must be gone from it."""

    kind: str
    text: str
    values: tuple[str, ...]


def marked(name: str, *, seed: int = 7) -> list[Marked]:
    dice = random.Random(seed)
    texts, kind = [], ""
    for line in (Path(__file__).parent / f"{name}.txt").read_text("utf-8").splitlines():
        if line.startswith("# "):
            kind = line[2:]
            continue
        drawn = _DRAWN.sub(lambda hit: _draw(dice, hit[1], int(hit[2])), line.replace("\\n", "\n"))
        texts.append(Marked(kind, _MARKED.sub(r"\1", drawn), tuple(_MARKED.findall(drawn))))
    return texts


def _draw(dice: random.Random, signs: str, length: int) -> str:
    """Random signs; the first and last are letters or digits, as in real keys."""
    plain = _SIGNS[signs].rstrip("+/").rstrip("-_")
    ends = [dice.choice(plain), dice.choice(plain)]
    return ends[0] + "".join(dice.choices(_SIGNS[signs], k=length - 2)) + ends[1] if length > 1 else ends[0]
