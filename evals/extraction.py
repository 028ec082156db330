"""Extraction on RealMem: which memories are found in a session, against gold memories that name their source turn.

Whatever extracts is a parameter, so that rules and models are measured alike. A session with gold memories tells what
is covered and what is right; a session without any is filler, where every memory is junk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evals.extracting import ModelExtractor
from evals.extraction_report import ExtractionReport, Missed, Read
from evals.files import json_files, misshapen, read_json
from evals.run import Steps
from wellworn.core.values import Progress, Turn
from wellworn.reflection.candidate import Candidate, Extract
from wellworn.reflection.rules.extract import extract as extract_by_rules


@dataclass(frozen=True, kw_only=True)
class Gold:
    """A memory the set's makers extracted; `turn` is None where the file names none that exists."""

    text: str
    turn: int | None


@dataclass(frozen=True, kw_only=True)
class Sitting:
    """One session: its turns, numbered as in the file, and its gold memories."""

    id: str
    turns: list[Turn]
    gold: list[Gold]


@dataclass(frozen=True, kw_only=True)
class Life:
    """The sessions of one persona."""

    name: str
    sittings: list[Sitting]


def by_rules(turns: Sequence[Turn], user: str | None) -> list[Candidate]:
    """The deterministic extractor, no model."""
    return extract_by_rules(turns, user=user)


def load(folder: Path) -> list[Life]:
    """Every persona of the folder, by file name."""
    return [_life(path, read_json(path)) for path in json_files("realmem", folder)]


def run(
    folder: Path,
    extract: Extract = by_rules,
    *,
    name: str = "rules",
    limit: int | None = None,
    progress: Progress | None = None,
) -> ExtractionReport:
    """Extract from every session by itself, or from the first `limit` of each persona, and compare with gold."""
    lives = [Life(name=one.name, sittings=one.sittings[:limit]) for one in load(folder)]
    steps = Steps(total=sum(len(one.sittings) for one in lives), progress=progress)
    read: list[Read] = []
    for life in lives:
        for sitting in life.sittings:
            read.append(_read(life.name, sitting, extract(sitting.turns, life.name)))
            steps.advance()
    took = extract.took() if isinstance(extract, ModelExtractor) else {}
    return ExtractionReport(extractor=name, read=read, took=took)


def _read(persona: str, sitting: Sitting, found: Sequence[Candidate]) -> Read:
    evidence = {number for one in found for number in one.turns}
    sourced = [one for one in sitting.gold if one.turn is not None]
    wanted = {one.turn for one in sourced if one.turn is not None}
    return Read(
        persona=persona,
        session=sitting.id,
        filler=not sitting.gold,
        turns_covered=[number in evidence for number in sorted(wanted)],
        gold_covered=[one.turn in evidence for one in sourced],
        memories_right=[not wanted.isdisjoint(one.turns) for one in found],
        evidence_right=[number in wanted for number in sorted(evidence)],
        evidence_turns=sum(len(one.turns) for one in found),
        missed=[
            Missed(text=one.text, turn=one.turn) for one in sourced if one.turn is not None and one.turn not in evidence
        ],
        found=[one.summary for one in found],
    )


def _life(path: Path, value: Any) -> Life:  # JSON from outside, checked here
    try:
        sittings = [_sitting(item) for item in value["dialogues"]]
        name = value.get("_metadata", {}).get("person_name", path.stem)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise misshapen("realmem", path, f"{type(error).__name__} {error}") from None
    return Life(name=str(name).replace("_", " "), sittings=sittings)


def _sitting(item: dict[str, Any]) -> Sitting:
    at = datetime.strptime(item["current_time"][:10], "%Y-%m-%d").replace(tzinfo=UTC)
    said = item["dialogue_turns"]
    turns = [
        Turn(session_id=item["session_uuid"], number=number, role=turn["speaker"].lower(), text=turn["content"], at=at)
        for number, turn in enumerate(said)
        if turn["content"].strip()
    ]
    # The file counts turns from 1; 0 and -1 stand for memories whose turn its makers did not find.
    gold = [
        Gold(text=one["content"], turn=one["source_turn"] - 1 if 1 <= one["source_turn"] <= len(said) else None)
        for one in item.get("extracted_memory") or []
    ]
    return Sitting(id=item["session_uuid"], turns=turns, gold=gold)
