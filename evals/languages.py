"""Messages in six languages beside English: are they found by a question in their own language, and in another one?

One author wrote 25 messages in each language, each with three questions in it, two in English, and itself in English; and one more
message that only looks so. Nothing of it was trained on. Each language is one person's memory; what is *told in English* is another.
A message is found when it is among the first five. Beside it plain cosine with the same embedder.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from evals.report import Report, Table, interval
from wellworn import Memory

MESSAGES = Path(__file__).parent / "lives" / "languages"
LANGUAGES = {"de": "German", "es": "Spanish", "fr": "French", "it": "Italian", "pt": "Portuguese", "nl": "Dutch"}
WAYS = ("in its language", "asked in English", "told in English")
MOST = 5


def messages(language: str) -> list[dict[str, Any]]:
    path = MESSAGES / f"{language}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def told(some: list[dict[str, Any]], *, in_english: bool) -> list[str]:
    """What the person has said: every message, then those that only look so."""
    return [one["msg_en" if in_english else "msg"] for one in some] + [one["near"] for one in some]


def asked(some: list[dict[str, Any]], way: str) -> Iterator[tuple[int, str]]:
    """The place of a message, and a question about it."""
    for place, one in enumerate(some):
        for question in one["en" if way == "asked in English" else "qs"]:
            yield place, question


def run(*, embedder: str) -> Report:
    values: dict[tuple[str, str], list[tuple[str, float]]] = {}
    with Memory(":memory:", learning="off", embedder=embedder) as memory:
        for language in LANGUAGES:
            some = messages(language)
            for way in WAYS:
                texts = told(some, in_english=way == "told in English")
                person, model = memory.for_user(f"{language} {way}"), memory.engine.embedder
                chat = person.session("chat")
                places = {chat.add("user", text): place for place, text in enumerate(texts)}
                vectors = None if model is None else model.embed(texts)
                for place, question in asked(some, way):
                    hits = person.recall(question, k=MOST).hits
                    found = any(places.get(hit.entry.id) == place for hit in hits)
                    values.setdefault((language, way), []).append((f"{language} {place}", 100.0 * found))
                    if model is not None and vectors is not None:
                        near = np.argsort(-(vectors @ model.embed_query(question)))[:MOST]
                        values.setdefault(("cosine", way), []).append((f"{language} {place}", 100.0 * (place in near)))
    rows = [
        [name, *(interval(values[language, way]) for way in WAYS)]
        for language, name in (*LANGUAGES.items(), ("cosine", "all, by cosine"))
        if (language, WAYS[0]) in values
    ]
    every = [[one for language in LANGUAGES for one in values[language, way]] for way in WAYS]
    rows.insert(len(LANGUAGES), ["all", *(interval(one) for one in every)])
    return Report(
        name="languages",
        about={"embedder": embedder},
        tables=[Table(title="in five, percent", columns=["", *WAYS], rows=rows)],
    )
