"""Words before a number that say what it is: half of the rules' judgement is in them."""

from __future__ import annotations

import re

REACH = 28
"""How many characters before a number are read."""

_NUMBERED = re.compile(
    r"\b(?:order|orders|invoice|ticket|case|part|sku|serial|ref|reference|rma|tracking|lot|item|isbn|issn|ean|upc|gtin|"
    r"barcode|imei|doi|zip|plz|vin|catalogue|catalog|po|purchase order|bestell\w*|rechnung\w*|auftrag\w*|commande|"
    r"pedido|factura|patent|rfc)[ .:#=-]*(?:no|nr|number|num|id|code)?[ .:#=-]*$",
    re.IGNORECASE,
)
_VERSIONED = re.compile(
    r"(?:\b(?:v|ver|version|release|revision|rev|build|firmware|chapter|section|sec|table|figure|fig|step|clause|oid|"
    r"kapitel|abschnitt|whatsapp)|§|[a-z]/|[=<>~^]=)[ .:]*$",
    re.IGNORECASE,
)
_WORDY = re.compile(r"[^\W\d_]|[§/=]")


def is_numbered(text: str, place: int) -> bool:
    """An order, a ticket, an ISBN: a number that somebody gave to a thing."""
    return _said(_NUMBERED, text, place)


def is_versioned(text: str, place: int) -> bool:
    """A version, or a place in a document."""
    return _said(_VERSIONED, text, place)


def _said(words: re.Pattern[str], text: str, place: int) -> bool:
    before = text[max(0, place - REACH) : place]
    return _WORDY.search(before) is not None and words.search(before) is not None
