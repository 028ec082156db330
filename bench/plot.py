"""A plot of growth as SVG: one line for each column of a table, both axes logarithmic. Needs no library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 720, 400, 70, 20, 120, 50
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#8c564b")
APART = 14
"""Least distance between two labels."""


def growth(sizes: Sequence[int], lines: Mapping[str, Sequence[float]], *, title: str) -> str:
    """Milliseconds over entries."""
    values = [value for line in lines.values() for value in line]
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    first, last = log10(sizes[0]), log10(sizes[-1])

    def x(size: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (log10(size) - first) / ((last - first) or 1)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (log10(value) - low) / ((high - low) or 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f"<title>{title}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
    ]
    for power in range(low, high + 1):
        at = y(10.0**power)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="#dddddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{10.0**power:g} ms</text>')
    parts += [
        f'<text x="{x(size):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{size:,}</text>' for size in sizes
    ]
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">entries</text>')
    labels = dict(zip(lines, _spread([y(line[-1]) for line in lines.values()]), strict=True))
    for (name, line), colour in zip(lines.items(), COLOURS, strict=False):
        points = " ".join(f"{x(size):.1f},{y(value):.1f}" for size, value in zip(sizes, line, strict=True))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 8}" y="{labels[name] + 4:.1f}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _spread(places: Sequence[float]) -> list[float]:
    """The places of labels, moved down where one would cover another."""
    moved, above = [0.0] * len(places), float("-inf")
    for number in sorted(range(len(places)), key=lambda one: places[one]):
        above = moved[number] = max(places[number], above + APART)
    return moved
