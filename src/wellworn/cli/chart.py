"""Lines over a linear axis, as terminal text or as SVG. Knows nothing about what is measured.

Plain Python: a chart of a few hundred points needs no plotting package.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import pairwise

Points = Sequence[tuple[float, float]]
Span = tuple[float, float]

MARKS = "●○×+◆◇"
BARS = "▁▂▃▄▅▆▇█"

SVG_WIDTH, SVG_HEIGHT = 860, 420
LEFT, RIGHT, TOP, BOTTOM = 60, 200, 40, 50
COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#17becf", "#7f7f7f")
GRID_LINES = 5


def text(lines: Mapping[str, Points], *, x: str, width: int = 64, height: int = 10, form: str = "{:.1f}") -> list[str]:
    """The drawing as lines of text, its key below; where marks meet, the line named first is seen.

    Several points in one column become their mean; columns between two points are filled in. Empty when no line has
    a point.
    """
    drawn = _drawn(lines)
    if not drawn:
        return []
    xs, ys = _span(px for points in drawn.values() for px, _ in points), _y_span(drawn)
    grid = [[" "] * width for _ in range(height)]
    for mark, points in reversed(list(zip(_endless(MARKS), drawn.values(), strict=False))):
        for column, value in _filled(_columns(points, xs, width)).items():
            grid[height - 1 - _place(value, ys, height)][column] = mark
    labels = {0: form.format(ys[1]), height - 1: form.format(ys[0])}
    room = max(len(label) for label in labels.values())
    rows = [f"{labels.get(row, ''):>{room}} ┤{''.join(cells)}".rstrip() for row, cells in enumerate(grid)]
    ends = f"{xs[0]:g}".ljust(width - len(f"{xs[1]:g}")) + f"{xs[1]:g}"
    key = "   ".join(f"{mark} {name}" for mark, name in zip(_endless(MARKS), drawn, strict=False))
    return [*rows, f"{'':>{room}} └{'─' * width}", f"{'':>{room}}  {ends}  {x}", f"{'':>{room}}  {key}"]


def spark(values: Sequence[float], *, width: int = 40) -> str:
    """The values as one row of bars, from their smallest to their largest; a flat row when they are all alike."""
    if not values:
        return ""
    ys = _span(values, widen=False)
    columns = _columns(
        [(float(n), value) for n, value in enumerate(values)],
        (0.0, max(len(values) - 1.0, 1.0)),
        min(width, len(values)),
    )
    return "".join(BARS[_place(value, ys, len(BARS)) if ys[1] > ys[0] else 0] for _, value in sorted(columns.items()))


def svg(lines: Mapping[str, Points], *, title: str, x: str, y: str, form: str = "{:.1f}") -> str:
    """The drawing as an SVG document; lines without a point are left out."""
    drawn = _drawn(lines)
    xs, ys = _span(px for points in drawn.values() for px, _ in points), _y_span(drawn)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SVG_WIDTH} {SVG_HEIGHT}" font-family="sans-serif">',
        f'<rect width="{SVG_WIDTH}" height="{SVG_HEIGHT}" fill="white"/>',
        _words(LEFT, 18, title, size=15),
        _words((LEFT + SVG_WIDTH - RIGHT) / 2, SVG_HEIGHT - 12, x, anchor="middle"),
        _words(8, TOP - 6, y),
        *(_rule(value, ys, form) for value in _steps(ys)),
        *(_tick(value, xs) for value in _steps(xs)),
    ]
    for number, (name, points) in enumerate(drawn.items()):
        parts += _path(name, points, xs, ys, COLOURS[number % len(COLOURS)], TOP + 10 + 20 * number)
    return "\n".join([*parts, "</svg>", ""])


def _drawn(lines: Mapping[str, Points]) -> dict[str, Points]:
    return {name: points for name, points in lines.items() if points}


def _endless(marks: str) -> Iterable[str]:
    while True:
        yield from marks


def _span(values: Iterable[float], *, widen: bool = True) -> Span:
    found = list(values) or [0.0]
    low, high = min(found), max(found)
    return (low, high) if high > low or not widen else (low - 0.5, high + 0.5)


def _y_span(lines: Mapping[str, Points]) -> Span:
    return _span(value for points in lines.values() for _, value in points)


def _share(value: float, span: Span) -> float:
    return (value - span[0]) / (span[1] - span[0]) if span[1] > span[0] else 0.0


def _place(value: float, span: Span, places: int) -> int:
    return min(places - 1, max(0, round(_share(value, span) * (places - 1))))


def _columns(points: Points, xs: Span, width: int) -> dict[int, float]:
    """Column → mean of the points that fall into it."""
    fallen: dict[int, list[float]] = {}
    for px, value in points:
        fallen.setdefault(_place(px, xs, width), []).append(value)
    return {column: sum(values) / len(values) for column, values in fallen.items()}


def _filled(columns: Mapping[int, float]) -> dict[int, float]:
    """With straight lines between the columns that have a value."""
    known = sorted(columns)
    found = dict(columns)
    for left, right in pairwise(known):
        rise = (columns[right] - columns[left]) / (right - left)
        found |= {column: columns[left] + rise * (column - left) for column in range(left + 1, right)}
    return found


def _steps(span: Span) -> list[float]:
    return [span[0] + (span[1] - span[0]) * step / (GRID_LINES - 1) for step in range(GRID_LINES)]


def _svg_x(value: float, xs: Span) -> float:
    return LEFT + _share(value, xs) * (SVG_WIDTH - LEFT - RIGHT)


def _svg_y(value: float, ys: Span) -> float:
    return SVG_HEIGHT - BOTTOM - _share(value, ys) * (SVG_HEIGHT - TOP - BOTTOM)


def _rule(value: float, ys: Span, form: str) -> str:
    at = _svg_y(value, ys)
    rule = f'<path d="M{LEFT} {at:.1f}H{SVG_WIDTH - RIGHT}" stroke="#ddd"/>'
    return rule + _words(LEFT - 6, at + 4, form.format(value), anchor="end")


def _tick(value: float, xs: Span) -> str:
    at = _svg_x(value, xs)
    rule = f'<path d="M{at:.1f} {TOP}V{SVG_HEIGHT - BOTTOM}" stroke="#eee"/>'
    return rule + _words(at, SVG_HEIGHT - BOTTOM + 16, f"{value:.4g}", anchor="middle")


def _path(name: str, points: Points, xs: Span, ys: Span, colour: str, key: float) -> list[str]:
    places = [(_svg_x(px, xs), _svg_y(py, ys)) for px, py in points]
    path = "M" + "L".join(f"{px:.1f} {py:.1f}" for px, py in places)
    start = SVG_WIDTH - RIGHT + 16
    return [
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
        f'<path d="M{start} {key}h18" stroke="{colour}" stroke-width="2"/>',
        _words(start + 24, key + 4, name),
    ]


def _words(x: float, y: float, words: str, *, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(words)}</text>'
