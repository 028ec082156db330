"""A bundle as it may be loaded: every text in it through the scrub hook, and what follows from the texts made anew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from wellworn.core.tokens import count_tokens
from wellworn.core.values import Entry, Partition, Turn
from wellworn.ingest.hashing import content_hash
from wellworn.ingest.scrub import Scrubber, Scrubbing, scrubbed_json, texts_in
from wellworn.ops.bundle import Bundle
from wellworn.ops.log_lines import OutcomeLine, RecallLine


def cleaned(bundle: Bundle, scrubbing: Scrubbing) -> Bundle:
    """The bundle without what the scrubbing takes out; vectors of texts that changed are left out, to be made anew."""
    if not scrubbing.on:
        return bundle
    for partition in dict.fromkeys(entry.partition for entry in bundle.entries):
        scrubbing.expect(partition, _texts(bundle, partition))
    entries = [_entry(entry, scrubbing.stored(entry.partition)) for entry in bundle.entries]
    changed = {new.id for old, new in zip(bundle.entries, entries, strict=True) if new != old}
    asked = scrubbing.asked(None)
    return replace(
        bundle,
        entries=entries,
        vectors={entry_id: vector for entry_id, vector in bundle.vectors.items() if entry_id not in changed},
        turns=[(partition, _turn(turn, scrubbing.stored(partition))) for partition, turn in bundle.turns],
        replaced=[
            replace(old, entry=_entry(old.entry, scrubbing.stored(old.entry.partition))) for old in bundle.replaced
        ],
        recalls=[_recall(line, scrubbing.asked(line.recall.partition)) for line in bundle.recalls],
        outcomes=[_outcome(line, asked) for line in bundle.outcomes],
    )


def _texts(bundle: Bundle, partition: Partition) -> Iterator[str]:
    for entry in bundle.entries:
        if entry.partition == partition:
            yield from texts_in([entry.text, entry.title, entry.evidence, entry.metadata])
    for home, turn in bundle.turns:
        if home == partition:
            yield turn.text


def _entry(entry: Entry, scrub: Scrubber) -> Entry:
    clean = replace(
        entry,
        text=scrub(entry.text),
        title=scrub(entry.title),
        evidence=scrub(entry.evidence),
        tags=list(dict.fromkeys(scrub(tag) for tag in entry.tags)),
        source=scrub(entry.source),
        speaker=None if entry.speaker is None else scrub(entry.speaker),
        metadata=scrubbed_json(entry.metadata, scrub),
    )
    if clean == entry:
        return entry
    return replace(clean, content_hash=content_hash(clean), token_count=count_tokens(clean.text))


def _turn(turn: Turn, scrub: Scrubber) -> Turn:
    speaker = None if turn.speaker is None else scrub(turn.speaker)
    return replace(turn, text=scrub(turn.text), role=scrub(turn.role), speaker=speaker)


def _recall(line: RecallLine, scrub: Scrubber) -> RecallLine:
    return replace(line, recall=replace(line.recall, query=scrub(line.recall.query)))


def _outcome(line: OutcomeLine, scrub: Scrubber) -> OutcomeLine:
    return replace(line, value=scrubbed_json(line.value, scrub)) if line.kind == "refined" else line
