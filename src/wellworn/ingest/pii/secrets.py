"""What opens something: keys of services, private keys, web tokens, and passwords that a name or a command gives away.

Three general means: the forms in `key_forms.txt`; text that looks random near a word for keys; a value that follows a
name such as `password`: `password=…` in code, JSON and settings, `mysql -p…` in commands, "the password is …" in
sentences, `user:…@host` in addresses. What only stands for a secret is left: variables, calls, paths, types, stars,
`YOUR_KEY`. The words and signs are data: `secret_forms.txt`. Every search looks at a bounded stretch of the text around
a mark, so the time grows with the text alone.
"""

from __future__ import annotations

import functools
import itertools
import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from wellworn.core.lazy import regex


class Finding(NamedTuple):
    """A span of a text. A tuple, because a log may hold a hundred thousand. `value` is the same for every way to
    write the same thing: placeholders are numbered by it."""

    start: int
    end: int
    type: str
    value: str


def patterns(name: str) -> list[tuple[str, re.Pattern[str]]]:
    """The patterns of a data file, with what each line calls them; names in braces are parts of later ones."""
    parts: dict[str, str] = {}
    found = []
    for line in Path(__file__).with_name(name).read_text("utf-8").splitlines():
        label, _, form = line.partition(" ")
        for part, text in parts.items():
            form = form.replace(part, text)
        if label.startswith("{"):
            parts[label] = form
        elif label != "#":
            found.append((label, regex(form)))
    return found


_FORMS = dict(patterns("secret_forms.txt"))
_MARKS = re.split(
    r"\s+",
    "pass pwd pw psk secret key token cred auth jwt bearer cookie pin code kennwort clave contrase senha wachtwoord "
    "lösenord salasana hasło heslo şifre parola парол identified adgang login securestring wlan wifi wi-fi wpa 密 口令 パスワード 비밀 암호 "
    "paß palavra كلمة códi codic kod код пин 暗証",
)
"""A text without any of these has no name of a secret."""
_ASCII_MARKS = [mark for mark in _MARKS if mark.isascii()]
REACH = 90
"""How far from its name a value may stand in a sentence."""
NEAR = 48
"""How many characters before a stretch are read for words such as "key"."""
Span = tuple[int, int]
_BASE64 = string.ascii_letters + string.digits + "+/"


# -- private keys, web tokens and keys of services ---------------------------------------------------------------------


def web_tokens(text: str) -> Iterator[Finding]:
    for found in _FORMS["jwt"].finditer(text) if "eyJ" in text else ():
        yield Finding(*found.span(), "JWT", found[0])


def private_keys(text: str) -> Iterator[Finding]:
    """From BEGIN to END; where END is missing, as far as it looks like a key. Each part is read once: linear."""
    begins = [*_FORMS["begin"].finditer(text)] if "PRIVATE KEY" in text else []
    for number, begin in enumerate(begins):
        limit = begins[number + 1].start() if number + 1 < len(begins) else len(text)
        end = _FORMS["end"].search(text, begin.end(), limit) or _FORMS["body"].match(text, begin.end(), limit)
        key = text[begin.start() : end.end() if end else begin.end()].rstrip()
        yield Finding(begin.start(), begin.start() + len(key), "PRIVATE_KEY", key)


class KeyForms(NamedTuple):
    """What `key_forms.txt` holds: prefixes, the pattern of whole forms, and commands as (word, command, flag)."""

    prefixes: tuple[str, ...]
    whole: re.Pattern[str]
    commands: list[list[str]]


@functools.cache
def key_forms() -> KeyForms:
    parts = Path(__file__).with_name("key_forms.txt").read_text("utf-8").split("\n# ")
    prefixes, whole, commands = (part.splitlines()[1:] for part in parts[1:])
    words = sorted(" ".join(prefixes).split(), key=len, reverse=True)
    return KeyForms(tuple(words), re.compile("|".join(whole)), [line.split("\t") for line in commands])


def api_keys(text: str) -> Iterator[Finding]:
    prefixes, forms, _ = key_forms()
    for found in _FORMS["run"].finditer(text):
        run = found[0]
        if forms.fullmatch(run) or _is_key(run, prefixes):
            yield Finding(found.start(), found.end(), "API_KEY", run)
        elif len(run) >= 20 and _is_near_word(text, found.start(), run):
            before = text[max(0, found.start() - NEAR) : found.start()]
            start = found.start() - len(before) + len(before.rstrip(_BASE64))
            yield Finding(start, found.end(), "API_KEY", text[start : found.end()])
    for found in _FORMS["placed"].finditer(text):
        group = found.lastindex or 0
        if group < 3 or randomness(found[group]) > 0.1:
            yield Finding(found.start(group), found.end(group), "API_KEY", found[group])


def _is_key(run: str, prefixes: tuple[str, ...]) -> bool:
    if not run.startswith(prefixes):
        return False
    body = run[next(len(prefix) for prefix in prefixes if run.startswith(prefix)) :]
    return len(body) >= 16 and randomness(body) >= 0.2


def _is_near_word(text: str, start: int, run: str) -> bool:
    """Random, and a word for keys stands shortly before it, with no word for something else in between."""
    if randomness(run) < 0.28 or not any(char.isdigit() for char in run):
        return False
    before = text[max(0, start - NEAR) : start].rpartition("\n")[2]
    words = [*_FORMS["near"].finditer(before)]
    if not words or _FORMS["else"].search(before, words[-1].start() - 12 if words[-1].start() > 12 else 0):
        return False
    return not _FORMS["hex"].fullmatch(run) or any(len(word[0]) > 3 for word in words)


def randomness(text: str) -> float:
    """The share of neighbours that words seldom have: a digit beside a letter, a capital after a letter.

    Random letters and digits have 0.3 and more, words joined in camel case 0.2, plain words 0.
    """
    signs = [char for char in text[:96] if char.isalnum()]
    mixed = any(char.islower() for char in signs)
    odd = 0
    for one, two in itertools.pairwise(signs):
        odd += one.isdigit() != two.isdigit() or (mixed and one.isalpha() and two.isupper())
    return odd / max(1, len(signs) - 1)


# -- secrets behind a name or in a command -----------------------------------------------------------------------------


def names_secrets(text: str) -> bool:
    """Whether a text may hold the name of a secret; asked first, because it takes a tenth of the time."""
    lower = text.lower()
    return any(mark in lower for mark in (_ASCII_MARKS if lower.isascii() else _MARKS))


def named_secrets(text: str) -> Iterator[Finding]:
    """Values behind names, in pairs and in commands."""
    spans = [*_behind_names(text)] if names_secrets(text) else []
    commands = [_command_form(command, flag) for word, command, flag in key_forms().commands if word in text]
    for form in (_FORMS["login"], _FORMS["pgpass"], *commands):
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
        sure = (sign is not None or flag or link[0].rstrip().endswith(("=", ":"))) and not name["key"]
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
            straight = start == starts[0] and name[0].isascii()  # "pin 4821" of a chip
            good = value.rstrip("#*AB").isdigit() and 3 < len(value) < 11 and not straight
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


@functools.cache
def _command_form(command: str, flag: str) -> re.Pattern[str]:
    value = r"(?P<quote>[\"'])?(?P<value>(?(quote)[^\"'\n]{3,64}|[^\s\"'|;$<-][^\s\"'|;]{2,64}))"
    return re.compile(rf"(?<![\w-])(?:{command})(?=\s)[^\n|;]{{0,160}}?\s{flag}{value}")


def url_secrets(text: str) -> Iterator[Finding]:
    """What an address or a cookie gives away."""
    forms = ("userinfo", "user_token") if "@" in text else ()
    spans = [found.span(1) for form in forms for found in _FORMS[form].finditer(text)]
    for found in _FORMS["parameter"].finditer(text) if "=" in text else ():
        value = found[2].rstrip(".,?")
        if _names_token(found[1], value):
            spans.append((found.start(2), found.start(2) + len(value)))
    for line in _FORMS["cookie"].finditer(text) if "ookie" in text or "curl" in text else ():
        spans += [
            found.span(2)
            for found in _FORMS["crumb"].finditer(text, *line.span(1))
            if (len(found[2]) >= 16 and randomness(found[2]) >= 0.2) or _names_token(*found.groups())
        ]
    for span in spans:
        if not _FORMS["stand_in"].fullmatch(text, *span):
            yield Finding(*span, "URL_SECRET", text[slice(*span)])


def _names_token(name: str, value: str) -> bool:
    """Whether a parameter or cookie is a secret by its name; a name such as `code` needs a value like a key."""
    perhaps = len(value) >= 10 and _is_token(value) and _FORMS["perhaps"].fullmatch(name)
    return bool(perhaps or (len(value) >= 4 and _FORMS["sure"].fullmatch(name)))
