"""Text as it streams, without the citation at its end: only what may be the beginning of a marker waits.

Pure text. What a marker is, and what it cites, is said by `citations.read_citation` once the answer is whole; here it
is only known what could still become one.
"""

from __future__ import annotations

import re

from wellworn.core.citations import Citation, read_citation

_LONGEST = 400
"""Characters of a marker beyond which nothing waits any longer; `citations` looks no further either."""
_NUMBERS = r"[0-9]{1,3}(?:\s*,\s*[0-9]{1,3})*\s*,?\s*"
_NO_CITE = r"N(?:O(?:_(?:C(?:I(?:T(?:E\s*)?)?)?)?)?)?"
_MAYBE = re.compile(rf"\[\s*(?:{_NUMBERS}|{_NO_CITE})?(?:\]\.?\s*(?:`{{1,12}}|~{{1,12}})?)?\Z", re.IGNORECASE)
"""From a bracket to the end of the text: a marker, or the beginning of one, with what may stand after it."""


class HeldBack:
    """One answer on its way. `shown` memories were numbered from 0."""

    def __init__(self, shown: int) -> None:
        self._shown = shown
        self._sent: list[str] = []
        self._held = ""

    @property
    def waits(self) -> bool:
        """Whether some text is held back."""
        return bool(self._held)

    def take(self, text: str) -> str:
        """What of the text so far can be shown now."""
        grown = self._held + text
        cut = _safe_until(grown)
        self._held = grown[cut:]
        if cut:
            self._sent.append(grown[:cut])
        return grown[:cut]

    def finish(self) -> tuple[str, Citation]:
        """The rest to be shown, now that the answer is whole, and what it cites."""
        sent = "".join(self._sent)
        citation = read_citation(sent + self._held, self._shown)
        if not citation.text.startswith(sent):  # the marker was not among what waited: leave all as it is
            citation = Citation(text=sent + self._held, places=None)
        rest, self._held = citation.text[len(sent) :], ""
        self._sent.append(rest)
        return rest, citation


def _safe_until(text: str) -> int:
    """The length of the beginning of a text that no marker at its end can reach."""
    body = len(text.rstrip())
    start = text.rfind("[", max(0, body - _LONGEST), body)
    if start >= 0 and _MAYBE.match(text, start, body):
        return len(text[:start].rstrip())
    return body
