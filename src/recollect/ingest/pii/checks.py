"""Check digits: arithmetic that tells a card or account number from any other row of digits."""

from __future__ import annotations

import string

_ALNUM = {char: str(value) for value, char in enumerate(string.digits + string.ascii_uppercase)}


def luhn(digits: str) -> bool:
    """Whether the last digit checks the others: every second one from the right doubled, digit sums added, mod 10."""
    doubled = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)
    total = sum(map(int, digits[-1::-2])) + sum(doubled[int(digit)] for digit in digits[-2::-2])
    return total % 10 == 0


def iban_checks(iban: str) -> bool:
    """ISO 7064 mod 97-10: country and check digits moved to the end, letters as 10 … 35, the remainder is 1."""
    try:
        number = "".join(_ALNUM[char] for char in iban[4:] + iban[:4])
    except KeyError:
        return False
    return int(number) % 97 == 1
