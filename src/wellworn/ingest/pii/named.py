"""Passwords and other secrets that have no form of their own: a name, a command or a sentence gives them away.

`password=…` in code, JSON and settings, `mysql -p…` in commands, "the password is …" in sentences, `user:…@host` in
addresses. What only stands for a secret is left: variables, calls, paths, types, stars, `YOUR_KEY`. The words and signs
are data: `named_forms.txt`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from wellworn.ingest.pii.secrets import Finding, key_forms, patterns, randomness

_FORMS = dict(patterns("named_forms.txt"))
_MARKS = re.split(
    r"\s+",
    "pass pwd pw psk secret key token cred auth jwt bearer cookie pin code kennwort clave contrase senha wachtwoord "
    "lösenord salasana hasło heslo şifre parola парол identified adgang login securestring wlan wifi wi-fi wpa 密 口令 パスワード 비밀 암호",
)
"""A text without any of these has no name of a secret."""
REACH = 90
"""How far from its name a value may stand in a sentence."""
Span = tuple[int, int]


def names_secrets(text: str) -> bool:
    """Whether a text may hold the name of a secret; asked first, because it takes a tenth of the time."""
    lower = text.lower()
    return any(mark in lower for mark in _MARKS)


def named_secrets(text: str) -> Iterator[Finding]:
    """Values behind names, in pairs and in commands."""
    spans = [*_behind_names(text)] if names_secrets(text) else []
    for form in (_FORMS["login"], *_command_forms(text)):
        spans += [
            found.span("value") for found in form.finditer(text) if not _FORMS["stand_in"].fullmatch(found["value"])
        ]
    yield from (Finding(*span, "SECRET", text[slice(*span)]) for span in spans)


def _behind_names(text: str) -> Iterator[Span]:
    last = 0
    for name in _FORMS["name"].finditer(text):
        if name.start() < last:  # a word within a value
            continue
        span = _assigned(text, name) or _spoken(text, name) or _spoken_before(text, name)
        if span is not None:
            last = span[1]
            yield span
    for pair in _FORMS["pair"].finditer(text):
        span = _trimmed(text, *pair.span("value"))
        if _is_password(text[slice(*span)]):
            yield span


def _assigned(text: str, name: re.Match[str]) -> Span | None:
    """The value after `name =`, `"name": `, `name("`, `<name>` or `--name `."""
    before = text[max(0, name.start() - 24) : name.start()]
    sign = _FORMS["assign"].match(text, name.end())
    flag = before.rpartition(" ")[2].startswith("-")
    link = sign or _FORMS["call"].match(text, name.end()) or (flag and _FORMS["space"].match(text, name.end()))
    if not link or before.endswith("/"):
        return None
    tagged = link[0].endswith(">")
    read = _read(text, link.end(), "in_tags" if tagged else "bare")
    if read is None:
        return None
    (start, end), quoted = read
    value = text[start:end]
    if len(value) < 3 or _is_plain(value.strip(" .!")):
        return None
    if name["pin"]:
        good = value.isdigit() and 3 < len(value) < 11
    elif name["secret"]:
        random = len(value) >= 16 and randomness(value) > 0.25
        sure = (sign is not None or flag) and not name["key"]
        good = _is_token(value) and (random or sure) and not _FORMS["other_before"].search(before)
    elif quoted or tagged:
        # A word in quotes without a sign before it is another argument, or a word of the sentence.
        said = bool(sign or flag or link[0].rstrip().endswith(("(", ">", "=", ":")) or _FORMS["mine"].search(before))
        good = (said or _is_password(value)) and not (" " in value and _FORMS["sentence"].search(value))
    else:
        good = _is_bare_password(text, value, end, sign)
    return (start, end) if good else None


def _spoken(text: str, name: re.Match[str]) -> Span | None:
    """The value after "the password for … is", in the same sentence; or right after the name."""
    limit = name.end() + (8 if name[0].lower() == "pass" else REACH)  # "pass" is a verb, too
    stop = _FORMS["sentence_end"].search(text, name.end(), limit)
    space = _FORMS["space"].match(text, name.end())
    starts = [] if space is None else [space.end()]
    if not _FORMS["other_after"].match(text, name.end()):
        links = _FORMS["link"].finditer(text, name.end(), stop.start() if stop else limit)
        starts += [link.end() for link in links]
    mine = _FORMS["whose"].search(text[max(0, name.start() - 32) : name.start()]) is not None
    for start in starts:
        read = _read(text, start, "bare")
        if read is None or _is_plain(value := text[slice(*read[0])]):
            continue
        if name["pin"]:
            good = value.rstrip("#*").isdigit() and 3 < len(value) < 11 and start != starts[0]
        elif name["secret"]:
            good = len(value) >= 16 and _is_token(value) and randomness(value) >= 0.25
        else:
            says = name[0] != "pass" and _FORMS["says"].search(text, start - 5, start) is not None
            last = text[read[0][1] : read[0][1] + 1] in ("", ".", "!", ",", ";", "\n")
            word = last and mine and value.isalpha() and not _FORMS["predicate"].fullmatch(value)
            good = _is_password(value) or (says and (read[1] or word))
        if good:
            return read[0]
    return None


def _spoken_before(text: str, name: re.Match[str]) -> Span | None:
    """The value before "… is the password"."""
    if name["pin"] or _FORMS["other_after"].match(text, name.end()):
        return None
    begin = max(0, name.start() - REACH)
    found = _FORMS["before"].search(text[begin : name.start()])
    if found is None or not _is_password(found["value"]):
        return None
    return begin + found.start("value"), begin + found.end("value")


# -- values ------------------------------------------------------------------------------------------------------------


def _read(text: str, place: int, form: str) -> tuple[Span, bool] | None:
    """The value that begins there, and whether it is in quotes."""
    if quoted := _FORMS["quoted"].match(text, place):
        return quoted.span("value"), True
    found = _FORMS[form].match(text, place)
    return None if found is None else (_trimmed(text, *found.span("value")), False)


def _trimmed(text: str, start: int, end: int) -> Span:
    """Without signs that more often belong to the sentence, and without a further field of a query."""
    value = re.split(r"&(?=\w+=)|;|</", text[start:end])[0].rstrip(".,:?")
    if value.startswith("*") and value.endswith("*"):  # emphasis
        start, value = start + 1, value.strip("*")
    while value.endswith(")") and value.count("(") < value.count(")"):
        value = value[:-1].rstrip(".,:")
    return start, start + len(value)


def _is_plain(value: str) -> bool:
    """What stands for a value, or an ordinary word."""
    return any(_FORMS[form].fullmatch(value) for form in ("word", "stand_in"))


def _is_password(value: str) -> bool:
    """Whether a word in a sentence is a password: letters with digits or signs."""
    if len(value) < 4 or any(_FORMS[form].fullmatch(value) for form in ("technical", "stand_in")):
        return False
    return bool(re.search(r"[^\W\d_]", value) and re.search(r"\d|[!@#$%^&*+~?§€].", value))


def _is_token(value: str) -> bool:
    """Whether a value is a key: eight signs and more, with digits and letters or random."""
    mixed = re.search(r"\d", value) and re.search(r"[^\W\d_]", value)
    return " " not in value and len(value) >= 8 and bool(mixed or randomness(value) >= 0.3)


def _is_bare_password(text: str, value: str, end: int, sign: re.Match[str] | None) -> bool:
    """A value without quotes: like a password, or one word to the end of its line or field."""
    if value.isdigit():
        return len(value) >= 4 and sign is not None
    if re.search(r"\d", value) and not _FORMS["technical"].fullmatch(value):
        return True
    if sign is None or _is_password(value):
        return sign is not None or value.isalpha()
    after = text[end : end + 1]
    if after in ("(", "[", ")") or "." in value:
        return False
    if sign["sign"] == "=" and not sign["left"] and not sign["right"]:
        return after != ","
    return after in ("", "\n", ";", "&", "}", "\\") or (after == "," and "_" not in value)


# -- commands and addresses --------------------------------------------------------------------------------------------


def _command_forms(text: str) -> Iterator[re.Pattern[str]]:
    return (_command_form(command, flag) for word, command, flag in key_forms().commands if word in text)


@functools.cache
def _command_form(command: str, flag: str) -> re.Pattern[str]:
    value = r"(?P<quote>[\"'])?(?P<value>(?(quote)[^\"'\n]{3,64}|[^\s\"'|;$<-][^\s\"'|;]{2,64}))"
    return re.compile(rf"(?<![\w-])(?:{command})(?=\s)[^\n|;]{{0,160}}?\s{flag}{value}")


def url_secrets(text: str) -> Iterator[Finding]:
    """What an address or a cookie gives away."""
    spans = [found.span(1) for found in _FORMS["userinfo"].finditer(text)] if "@" in text else []
    for found in _FORMS["parameter"].finditer(text) if "=" in text else ():
        value = found[2].rstrip(".,?")
        perhaps = len(value) >= 10 and _is_token(value) and _FORMS["perhaps"].fullmatch(found[1])
        if perhaps or (len(value) >= 4 and _FORMS["sure"].fullmatch(found[1])):
            spans.append((found.start(2), found.start(2) + len(value)))
    for line in _FORMS["cookie"].finditer(text) if "ookie" in text else ():
        crumbs = _FORMS["crumb"].finditer(text, *line.span(1))
        spans += [found.span(1) for found in crumbs if randomness(found[1]) >= 0.2]
    for span in spans:
        if not _FORMS["stand_in"].fullmatch(text, *span):
            yield Finding(*span, "URL_SECRET", text[slice(*span)])
