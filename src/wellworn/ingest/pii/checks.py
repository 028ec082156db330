"""Check digits: arithmetic that tells a card or account number from any other row of digits."""

from __future__ import annotations

import string

_ALNUM = {char: str(value) for value, char in enumerate(string.digits + string.ascii_uppercase)}
_DOUBLED = bytes.maketrans(b"0123456789", b"0246813579")


def luhn(digits: str) -> bool:
    """Whether the last digit checks the others: every second one from the right doubled, digit sums added, mod 10."""
    signs = digits.encode("ascii")
    total = sum(signs[-1::-2]) + sum(signs[-2::-2].translate(_DOUBLED))
    return (total - ord("0") * len(signs)) % 10 == 0


def iban_checks(iban: str) -> bool:
    """ISO 7064 mod 97-10: country and check digits moved to the end, letters as 10 … 35, the remainder is 1."""
    try:
        number = "".join([_ALNUM[char] for char in iban[4:] + iban[:4]])
    except KeyError:
        return False
    return int(number) % 97 == 1
