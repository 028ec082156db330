"""The course of learning as a drawing: on the terminal in plain text, or as a PNG where matplotlib is installed."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wellworn.cli import chart
from wellworn.core.errors import MissingExtra
from wellworn.core.values import CurvePoint

LEVELS = {"base": ".", "prior": "-", "person": "="}
STRIP_WIDTH = 64


def drawing(curve: Sequence[CurvePoint]) -> list[str]:
    """Citation rate, gain with its bound, what served, and each weight; one line of text each row."""
    rate = {"share of the shown that were cited": [(point.number, 100 * point.cited_rate) for point in curve]}
    return [
        "Citation rate, percent",
        *chart.text(rate, x="outcomes", height=8, form="{:.0f}"),
        "",
        "Gain over the untrained ranking (it serves once the bound is above 0)",
        *chart.text(_gains(curve), x="outcomes", form="{:+.2f}"),
        "",
        f"Served by   {_strip(curve)}",
        f"            {', '.join(f'{mark} {level}' for level, mark in LEVELS.items())}",
        "",
        "Weights, first to last outcome",
        *_weight_lines(curve),
    ]


def save_png(curve: Sequence[CurvePoint], path: Path) -> None:
    """The same as three panels in a file."""
    figures = _matplotlib()
    figure = figures.Figure(figsize=(9, 10), layout="constrained")
    rate, gain, weights = figure.subplots(3, 1, sharex=True)
    numbers = [point.number for point in curve]
    rate.plot(numbers, [100 * point.cited_rate for point in curve])
    rate.set_ylabel("citation rate, %")
    for name, points in _gains(curve).items():
        gain.plot(*zip(*points, strict=True), label=name)
    gain.axhline(0.0, color="black", linewidth=0.8)
    gain.set_ylabel("gain over untrained")
    for name in _names(curve):
        weights.plot(numbers, [point.weights.get(name, 0.0) for point in curve], label=name)
    weights.set_ylabel("weights")
    weights.set_xlabel("outcomes")
    for panel in (gain, weights):
        if panel.lines:
            panel.legend(fontsize=7, ncols=2)
    figure.savefig(path, format="png")


def _matplotlib() -> Any:  # an optional package, which mypy need not know
    try:
        return importlib.import_module("matplotlib.figure")
    except ImportError:
        raise MissingExtra("drawing a PNG file", "plot") from None


def _gains(curve: Sequence[CurvePoint]) -> dict[str, list[tuple[float, float]]]:
    return {
        "gain": [(point.number, point.gain) for point in curve],
        "its lower bound": [(point.number, point.bound) for point in curve],
    }


def _names(curve: Sequence[CurvePoint]) -> list[str]:
    return list(dict.fromkeys(name for point in curve for name in point.weights))


def _strip(curve: Sequence[CurvePoint]) -> str:
    width = min(STRIP_WIDTH, len(curve))
    return "".join(LEVELS.get(curve[column * len(curve) // width].level, "?") for column in range(width))


def _weight_lines(curve: Sequence[CurvePoint]) -> list[str]:
    names = _names(curve)
    room = max((len(name) for name in names), default=0)
    courses = {name: [point.weights.get(name, 0.0) for point in curve] for name in names}
    return [
        f"{name:<{room}}  {values[0]:+.2f} {chart.spark(values)} {values[-1]:+.2f}" for name, values in courses.items()
    ]
