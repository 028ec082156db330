"""Finding and masking: properties that hold for any text."""

from __future__ import annotations

import ipaddress
import subprocess
import sys
import threading
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.pii_corpus.marked import marked
from wellworn import Memory, Scope
from wellworn.core.clock import system_clock
from wellworn.core.errors import InvalidInput, PersonalData
from wellworn.ingest.pii import RuleScrubbing, scrub_text
from wellworn.ingest.pii.find import find, iban_checks, luhn
from wellworn.store.sql.reader import SqlReader
from wellworn.store.sqlite import SqliteStore

POSITIVES = [*marked("people_tune"), *marked("secrets_tune")]
PIECES = st.one_of(
    st.sampled_from([case.text for case in POSITIVES]),
    st.text(max_size=12),
    st.text("0123456789 .-+()/:@[]_%ABEFabef", max_size=24),
    st.sampled_from(["tel ", "SSN ", "order ", "v", "[EMAIL_1]", "\u200b", "４", "://", "?token=", "sk-", "eyJ"]),
    st.sampled_from(["password is ", "api_key="]),
)
TEXTS = st.lists(PIECES, max_size=5).map("".join)


def test_check_digits() -> None:
    assert [luhn(card) for card in ("4111111111111111", "4111111111111112")] == [True, False]
    ibans = ("DE89370400440532013000", "DE89370400440532013001", "DE89É")
    assert [iban_checks(iban) for iban in ibans] == [True, False, False]


@given(TEXTS)
def test_masking_leaves_nothing_to_find_and_masks_nothing_twice(text: str) -> None:
    once = scrub_text(text).text
    assert find(once) == []
    assert scrub_text(once).text == once


@given(TEXTS)
def test_what_is_outside_of_findings_stays(text: str) -> None:
    found = find(text)
    assert all(0 <= one.start < one.end <= len(text) for one in found)
    assert all(a.end <= b.start for a, b in pairwise(found))
    if not found:
        assert scrub_text(text).text == text


def test_the_same_thing_in_another_form_is_the_same() -> None:
    text = "ADA@Example.com ada@example.com bo@example.com +1 415 555 2671 +1 (415) 555-2671"
    masked = scrub_text(text)
    assert masked.text == "[EMAIL_1] [EMAIL_1] [EMAIL_2] [PHONE_1] [PHONE_1]"
    assert masked.counts == {"EMAIL": 3, "PHONE": 2}
    cards = "4111 1111 1111 1111, 4111-1111-1111-1111, ４１１１１１１１１１１１１１１１, 2001:db8::1 2001:0DB8:0::1"
    assert scrub_text(cards).text == "[CARD_1], [CARD_1], [CARD_1], [IP_1] [IP_1]"


def test_modes() -> None:
    assert scrub_text("a@x.io", mode="off").text == "a@x.io"
    assert scrub_text("nothing here", mode="reject").text == "nothing here"
    with pytest.raises(PersonalData, match="1 CARD, 1 EMAIL") as caught:
        scrub_text("a@x.io 4111111111111111", mode="reject")
    assert "a@x.io" not in str(caught.value)
    with pytest.raises(InvalidInput, match="'hide' is not a mode"):
        scrub_text("x", mode="hide")
    with pytest.raises(InvalidInput, match="must be text"):
        scrub_text(5)  # type: ignore[arg-type]


SEEDS = [
    *("a", "1", "@", "a@", "a@a.", "a.", "1 ", "1-", "1.", "(1", "+1 2", "00", "::", "f:", "2001:db8:", "eyJ", "sk-a"),
    *("-----BEGIN PRIVATE KEY-----", "eyJaaaaaaaaa.eyJaaaaaa.", "://a:b", "://:@", "?token=", "&key=a", "AA11 AA11 "),
    *("tel 1", "tel 030 12", "ssn 1", "%40", "１", "\u200b", "é@é.", "[A", "Bearer a", "secretaccesskey=", "a_", "'a"),
    *("password is ", "password=", 'password "a', "pass ", "a is the password ", "token aB1", "aB1.", "user/pass: a"),
    *(
        "mysql -p",
        "curl -u a:",
        "cookie: a=",
        'auth("a", ',
        "Anna A ",
        "12 A ",
        "Calle de A ",
        "born on ",
        "passport no ",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_text_made_to_be_slow_is_searched_to_its_end(seed: str) -> None:
    """A quadratic search would not come back from this."""
    text = seed * (120_000 // len(seed))
    assert all(0 <= found.start < found.end <= len(text) for found in find(text, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    "form", ["u{0}\u200b@ex.com, ", "?token=abc{0}de ", "u{0}@ex.com 10.1.{1}.4 4111111111111111 "]
)
def test_text_that_is_nothing_but_findings_is_masked_to_its_end(form: str) -> None:
    size = 120_000
    masked = scrub_text("".join(form.format(number, number % 250) for number in range(size // len(form))))
    assert sum(masked.counts.values()) >= size // len(form)


def test_numbers_are_asked_for_and_given_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many findings: two reads when all are known."""
    store, partition = SqliteStore(":memory:"), Scope(tenant="acme", user="u").home()
    scrub, read = RuleScrubbing("mask", store, clock=system_clock).sent(partition), list[str]()
    records, mine = SqlReader.records, threading.get_ident()

    def counted(*args: Any, **kwargs: Any) -> Any:
        read.extend(["records"] if threading.get_ident() == mine else [])
        return records(*args, **kwargs)

    monkeypatch.setattr(SqlReader, "records", counted)
    for count in (1, 10, 1000):
        text = " ".join(f"u{number}@example.com" for number in range(count))
        masked = " ".join(f"[EMAIL_{number}]" for number in range(1, count + 1))
        for most in (6, 2):
            assert scrub(text) == masked
            assert len(read) <= most
            read.clear()


def test_what_looks_like_the_beginning_of_another_hides_nothing() -> None:
    assert [one.type for one in find("ab12 3456 7890 12 DE89370400440532013000")] == ["IBAN"]
    assert [one.type for one in find("[AKIAABCDEFGHIJKLMNOP] [EMAIL_1] [PERSON]")] == ["API_KEY"]
    assert len(find("DE89370400440532013000 DE89370400440532013000 DE89370400440532013000")) == 3


@given(
    st.lists(st.sampled_from(["0", "0", "1", "ab", "00FF", "0db8"]), min_size=8, max_size=8),
    st.booleans(),
    st.integers(0, 7),
    st.integers(1, 8),
)
def test_addresses_of_version_6_come_down_to_one_form(groups: list[str], short: bool, first: int, count: int) -> None:
    groups[0] = "2001"
    written = ":".join(groups)
    if short and first:
        written = ":".join(groups[:first]) + "::" + ":".join(groups[first + count :])
    (found,) = find(f"at {written} now")
    assert found.value == str(ipaddress.IPv6Address(written))


def test_a_field_is_read_with_its_name() -> None:
    with Memory(":memory:", scrubber="mask") as memory:
        ada = memory.for_user("ada")
        call = {"tool": "login", "args": {"user": "bo", "password": "swordfish"}, "steps": ["go", 'a "b" c']}
        [id] = ada.remember("Bo signs in.", metadata=call)
        kept = ada.get(id)
        assert kept is not None
        assert kept.metadata == {**call, "args": {"user": "bo", "password": "[SECRET_1]"}}


def test_the_stricter_level() -> None:
    text = "Dr. Weber, born on 12 May 1987, lives at 10 Downing Street. Write to ada@example.com."
    assert scrub_text(text).text == text.replace("ada@example.com", "[EMAIL_1]")
    masked = "Dr. [NAME_1], born on [BIRTH_DATE_1], lives at [ADDRESS_1]. Write to [EMAIL_1]."
    assert scrub_text(text, mode="strict").text == masked
    with Memory(":memory:", scrubber="strict") as memory:
        memory.for_user("ada").remember(text)
        assert [entry.text for entry in memory.for_user("ada").entries()] == [masked]


def test_loading_the_package_loads_no_rules() -> None:
    code = "import sys, wellworn; wellworn.Memory; sys.exit('wellworn.ingest.pii.find' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
