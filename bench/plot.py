"""Lines over size on two logarithmic axes, as SVG text. Knows nothing about what is measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

Points = Sequence[tuple[float, float]]

WIDTH, HEIGHT = 860, 480
LEFT, RIGHT, TOP, BOTTOM = 70, 250, 40, 50
COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#17becf", "#7f7f7f")


def svg(lines: Mapping[str, Points], *, title: str, x: str, y: str) -> str:
    """The drawing; lines without a point are left out."""
    lines = {name: points for name, points in lines.items() if points}
    xs = _decades([px for points in lines.values() for px, _ in points])
    ys = _decades([py for points in lines.values() for _, py in points])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(LEFT, 22, title, size=15),
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, x, anchor="middle"),
        _text(14, TOP - 8, y),
        *(_grid_x(decade, xs) for decade in range(xs[0], xs[1] + 1)),
        *(_grid_y(decade, ys) for decade in range(ys[0], ys[1] + 1)),
    ]
    for number, (name, points) in enumerate(lines.items()):
        parts += _line(name, points, xs, ys, COLOURS[number % len(COLOURS)], TOP + 10 + 20 * number)
    return "\n".join([*parts, "</svg>", ""])


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _place_x(value: float, xs: tuple[int, int]) -> float:
    return LEFT + (math.log10(value) - xs[0]) / (xs[1] - xs[0]) * (WIDTH - LEFT - RIGHT)


def _place_y(value: float, ys: tuple[int, int]) -> float:
    return HEIGHT - BOTTOM - (math.log10(value) - ys[0]) / (ys[1] - ys[0]) * (HEIGHT - TOP - BOTTOM)


def _grid_x(decade: int, xs: tuple[int, int]) -> str:
    at = _place_x(10.0**decade, xs)
    rule = f'<path d="M{at:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#ddd"/>'
    return rule + _text(at, HEIGHT - BOTTOM + 16, f"{10**decade:,}", anchor="middle")


def _grid_y(decade: int, ys: tuple[int, int]) -> str:
    at = _place_y(10.0**decade, ys)
    rule = f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>'
    return rule + _text(LEFT - 6, at + 4, f"{10.0**decade:g}", anchor="end")


def _line(name: str, points: Points, xs: tuple[int, int], ys: tuple[int, int], colour: str, key: float) -> list[str]:
    places = [(_place_x(px, xs), _place_y(py, ys)) for px, py in points]
    path = "M" + "L".join(f"{px:.1f} {py:.1f}" for px, py in places)
    start = WIDTH - RIGHT + 16
    return [
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
        *(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{colour}"/>' for px, py in places),
        f'<path d="M{start} {key}h18" stroke="{colour}" stroke-width="2"/>',
        _text(start + 24, key + 4, name),
    ]


def _text(x: float, y: float, words: str, *, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(words)}</text>'
