"""What an assistant's turn puts before the person, in a line: the question it ends with, or the points it lists.

Only ever a part of a memory that the person's own words carry. Linear, by lines; knows nothing about who accepts it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST_POINTS = 6
_LONGEST_POINT = 90
_MARKER = re.compile(r"\s{0,12}(?:[-*•–+]|\d{1,3}[.)])\s+")
_HEADING = re.compile(r"#{1,6}\s+|\*\*[^*\n]{3,90}\*\*:?\s*$")
_BOLD = re.compile(r"\*\*([^*\n]{2,90})\*\*")
_SIGNS = str.maketrans({"*": None, "`": None, "#": None, "“": "'", "”": "'", '"': "'", "’": "'"})


@dataclass(frozen=True, kw_only=True)
class Gist:
    """What a turn offers: its points, how many lines it lists in all, and the question it ends with."""

    points: tuple[str, ...] = ()
    listed: int = 0
    question: str = ""

    def __bool__(self) -> bool:
        return bool(self.points or self.question)


def gist(text: str) -> Gist:
    """The gist of an assistant's turn; empty where it only talks."""
    points: list[str] = []
    listed = 0
    lines = _without_code(text).splitlines()
    for line in lines:
        marker = _MARKER.match(line)
        if marker or _HEADING.match(line.strip()):
            listed += 1
            point = _point(line[marker.end() :] if marker else line)
            if point and len(points) < MOST_POINTS and point not in points:
                points.append(point)
    return Gist(points=tuple(points), listed=listed, question=_question(lines))


def _without_code(text: str) -> str:
    return "\n".join(text.split("```")[::2]) if "```" in text else text


def _point(line: str) -> str:
    """The name of a point: what is bold in it with the words behind, as far as they fit."""
    bold = _BOLD.search(line)
    plain = " ".join(line[bold.start() if bold else 0 :].translate(_SIGNS).split()).strip(" :–-")
    if len(plain) <= _LONGEST_POINT:
        return plain.rstrip(".")
    cut = plain[:_LONGEST_POINT].rsplit(" ", 1)[0]
    return cut.rstrip(" ,;:–-(") + "…"


def _question(lines: list[str]) -> str:
    """The last question of the last lines."""
    for line in reversed([line for line in lines if line.strip()][-3:]):
        end = line.rfind("?")
        if end >= 0:
            start = max(line.rfind(sign, 0, end) for sign in (". ", "! ", "? ", ": "))
            asked = " ".join(line[start + 1 : end + 1].translate(_SIGNS).split())
            return asked if 8 <= len(asked) <= 300 else ""
    return ""
