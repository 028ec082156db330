"""Multi-hop questions over a pile of passages: MuSiQue, HotpotQA and 2WikiMultihopQA as HippoRAG stores them.

Reads pairs `NAME.json` (questions) and `NAME_corpus.json` (passages). Every passage is remembered with its title; a
question is answered well when all of its supporting passages are ranked high, hence all@k beside Recall@k.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals.files import hint, json_files, misshapen, read_json
from evals.report import Graded, Report
from evals.run import Settings, Steps, scope_for, score, timed_recall
from wellworn.core.errors import InvalidInput
from wellworn.core.values import Hit, Progress
from wellworn.memory import Memory

# A long passage is remembered in several chunks, and two hits may be of one passage: ask for this many times k.
_CHUNKS_A_PASSAGE = 3


@dataclass(frozen=True, kw_only=True)
class Passage:
    """One text of the corpus; its number is its place there."""

    title: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question and the numbers of the passages that support its answer."""

    text: str
    category: str
    support: frozenset[int]


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """One pair of files; `skipped` questions have no support in the corpus."""

    name: str
    passages: list[Passage]
    questions: list[Question]
    skipped: int

    @property
    def steps(self) -> int:
        return len(self.passages) + len(self.questions)


def load(folder: Path) -> list[Corpus]:
    """Every corpus of the folder that has its questions beside it, by file name."""
    names = {path.stem: path for path in json_files("multihop", folder)}
    pairs = [(names[stem], names[f"{stem}_corpus"]) for stem in names if f"{stem}_corpus" in names]
    if not pairs:
        problem = f"no pair NAME.json and NAME_corpus.json in {str(folder)!r}"
        raise InvalidInput("--data", problem, hint("multihop"))
    return [_corpus(questions, passages) for questions, passages in pairs]


def run(folder: Path, settings: Settings, *, progress: Progress | None = None) -> Report:
    """Remember each corpus in a memory of its own and ask its questions."""
    corpora = load(folder)
    steps = Steps(total=sum(one.steps for one in corpora), progress=progress)
    graded: list[Graded] = []
    entries = 0
    for corpus in corpora:
        with settings.open() as memory:
            _remember(memory, corpus, steps)
            entries += memory.stats(scope=scope_for(corpus.name)).entries
            graded += [_ask(memory, corpus.name, question, settings, steps) for question in corpus.questions]
    return Report(
        dataset="multihop",
        embedder=settings.embedder,
        profile=settings.profile,
        ks=settings.ks,
        entries=entries,
        skipped=sum(one.skipped for one in corpora),
        graded=graded,
    )


def _remember(memory: Memory, corpus: Corpus, steps: Steps) -> None:
    before = steps.done

    def advanced(done: int, total: int) -> None:  # counts entries, of which a long passage has several
        while steps.done < before + len(corpus.passages) * done // total:
            steps.advance()

    items = [
        {"text": passage.text, "title": passage.title, "kind": "fact", "metadata": {"passage": number}}
        for number, passage in enumerate(corpus.passages)
    ]
    memory.remember_many(items, scope=scope_for(corpus.name), source="corpus", progress=advanced)


def _ask(memory: Memory, name: str, question: Question, settings: Settings, steps: Steps) -> Graded:
    k = max(settings.ks) * _CHUNKS_A_PASSAGE
    hits, seconds = timed_recall(memory, question.text, scope=scope_for(name), k=k)
    steps.advance()
    ranked = [_passage_number(hit) for hit in hits]
    return Graded(
        conversation=name,
        category=question.category,
        seconds=seconds,
        scores={"passage": score(ranked, question.support, settings.ks, with_all=True)},
    )


def _passage_number(hit: Hit) -> int:
    """Every chunk carries the metadata of its passage."""
    return int(hit.entry.metadata["passage"])


def _corpus(questions_path: Path, passages_path: Path) -> Corpus:
    try:
        passages = _passages(read_json(passages_path))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise misshapen("multihop", passages_path, f"{type(error).__name__} {error}") from None
    by_text = {(passage.title, passage.text): number for number, passage in enumerate(passages)}
    by_title = {passage.title: number for number, passage in enumerate(passages)}
    try:
        questions = [_question(item, by_text, by_title) for item in read_json(questions_path)]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise misshapen("multihop", questions_path, f"{type(error).__name__} {error}") from None
    answerable = [question for question in questions if question.support]
    return Corpus(
        name=questions_path.stem, passages=passages, questions=answerable, skipped=len(questions) - len(answerable)
    )


def _passages(value: Any) -> list[Passage]:  # JSON from outside, checked by the caller
    """HotpotQA's corpus maps title → sentences, the others list {title, text}. An empty text gives way to its title."""
    if isinstance(value, dict):
        pairs = [(title, "".join(sentences)) for title, sentences in value.items()]
    else:
        pairs = [(item["title"], item["text"]) for item in value]
    return [Passage(title=title, text=text if text.strip() else title) for title, text in pairs]


def _question(item: dict[str, Any], by_text: dict[tuple[str, str], int], by_title: dict[str, int]) -> Question:
    """MuSiQue marks whole paragraphs, the others name titles; a MuSiQue id opens with its hops (`2hop__…`)."""
    if "paragraphs" in item:
        keys = [(p["title"], p["paragraph_text"]) for p in item["paragraphs"] if p["is_supporting"]]
        support = frozenset(by_text[key] for key in keys if key in by_text)
        category = str(item.get("id", "")).partition("__")[0] or "other"
    else:
        titles = [title for title, _ in item["supporting_facts"]]
        support = frozenset(by_title[title] for title in titles if title in by_title)
        category = str(item.get("type") or "other")
    return Question(text=item["question"], category=category, support=support)
