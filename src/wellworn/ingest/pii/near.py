"""Words before a number that say what it is: half of the rules' judgement is in them.

They are read backwards from the number, so that most texts say no with their first character.
"""

from __future__ import annotations

import re

REACH = 28
"""How many characters before a number are read."""

_THINGS = (
    "order",
    "orders",
    "invoice",
    "ticket",
    "case",
    "part",
    "sku",
    "serial",
    "ref",
    "reference",
    "rma",
    "tracking",
    "lot",
    "item",
    "isbn",
    "issn",
    "ean",
    "upc",
    "gtin",
    "barcode",
    "imei",
    "doi",
    "zip",
    "plz",
    "vin",
    "catalogue",
    "catalog",
    "po",
    "purchase order",
    "commande",
    "pedido",
    "factura",
    "patent",
    "rfc",
)
_THINGS_COMPOUND = ("bestell", "rechnung", "auftrag")
"""What German goes on with: Bestellnummer, Rechnungsnr."""
_NUMBER = ("no", "nr", "number", "num", "id", "code")
_VERSIONS = (
    "v",
    "ver",
    "version",
    "release",
    "revision",
    "rev",
    "build",
    "firmware",
    "chapter",
    "section",
    "sec",
    "table",
    "figure",
    "fig",
    "step",
    "clause",
    "oid",
    "kapitel",
    "abschnitt",
    "whatsapp",
)


def _backwards(words: tuple[str, ...]) -> str:
    return "|".join(word[::-1] for word in words)


_NUMBERED = re.compile(
    rf"\n?[ .:#=-]*+(?=[\d_]*+[^\W\d_])(?:(?:{_backwards(_NUMBER)})?[ .:#=-]*+"
    rf"(?:{_backwards(_THINGS)})\b|(?:{_backwards(_NUMBER)})?[ .:#=-]*+\w*(?:{_backwards(_THINGS_COMPOUND)})\b)"
)
_VERSIONED = re.compile(rf"\n?[ .:]*+(?:(?:{_backwards(_VERSIONS)})\b|§|/[a-z]|=[=<>~^])")


def is_numbered(text: str, place: int) -> bool:
    """An order, a ticket, an ISBN: a number that somebody gave to a thing."""
    return _NUMBERED.match(text[max(0, place - REACH) : place].lower()[::-1]) is not None


def is_versioned(text: str, place: int) -> bool:
    """A version, or a place in a document."""
    return _VERSIONED.match(text[max(0, place - REACH) : place].lower()[::-1]) is not None
