"""Distinguished names: what may stand in an ACL of the scheme x509."""

import re
import sys
from itertools import product

import pytest

from paddock.protocol.distinguished_names import _UPPER, is_distinguished_name


@pytest.mark.parametrize(
    "text",
    [
        "",
        "CN=alice",
        "cn=alice",
        "CN=alice,O=Example",
        "CN=alice; O=Example",
        " CN = alice ,\nO = Example",
        "CN=alice+UID=7,O=Example",
        "CN=",
        "CN=a=b",
        'CN="a, b",O=c',
        r'CN="a \" b"',
        r"CN=a\, b",
        r"CN=a\2Cb",
        r"CN=\E6\97\A5",
        "CN=#13016a",
        "1.2.3=#04020102",
        "OID.2.5.4.3=alice",
        "oid.2.999.3=alice",
        "1.2.840.113549.1.9.1=#1601610a"[:-2],
        "SERIALNUMBER=1,T=x,DNQ=y",
        "CN=日本",
    ],
)
def test_a_name_is_taken(text: str) -> None:
    assert is_distinguished_name(text)


@pytest.mark.parametrize(
    "text",
    [
        "alice",
        "=alice",
        "XYZ=alice",
        "CN=alice,",
        ",CN=alice",
        "CN=alice,O",
        "CN=a+",
        "CN=<a>",
        'CN=a"b"',
        'CN="a',
        'CN="a"b',
        r'CN="\x"',
        "CN=a\\",
        r"CN=\x",
        r"CN=\4",
        r"CN=\4g",
        "CN=#",
        "CN=#1",
        "CN=#13",
        "CN=#1302",
        "CN=#130161ff",
        "CN=#13816a",
        "CN=#13xx",
        "1=a",
        "1.=a",
        "3.1=a",
        "1.40=a",
        "1.2.x=a",
        "OID.=a",
    ],
)
def test_what_is_no_name_is_not(text: str) -> None:
    assert not is_distinguished_name(text)


def test_a_long_number_costs_nothing() -> None:
    assert not is_distinguished_name("1." + "9" * 100_000 + "=a")


def reads(text: str) -> bool:
    """Return whether a text is a name whose keywords are all C: read one character at a time."""
    if not text:
        return True
    while True:
        keyword, equals, text = text.partition("=")
        if not equals or keyword.strip(" \n") != "C":
            return False
        text = text.lstrip(" \n")
        kind = text[:1] if text[:1] in ("#", '"') else ""
        text = text[len(kind) :]
        end = 0
        while end < len(text):
            pair = re.match(r'\\([0-9a-fA-F]{2}|[,=\n+<>#;\\"])', text[end:])
            if kind == "#":
                if text[end] not in "0123456789abcdefABCDEF":
                    break
                end += 1
            elif pair is not None:
                end += pair.end()
            elif text[end : end + 2] == "\\ " and not kind:
                end += 2
            elif text[end] in ('"\\' if kind else '\\,+<>;"'):
                break
            else:
                end += 1
        value, text = text[:end], text[end:]
        # No encoding is as short as the digits of this test.
        if kind == "#" and value:
            return False
        if kind == '"':
            if not text.startswith('"'):
                return False
            text = text[1:]
        text = text.lstrip(" \n") if kind else text
        if not text:
            return kind != "#"
        if text[0] not in ",;+" or kind == "#":
            return False
        text = text[1:]


@pytest.mark.parametrize("start", ["", "C=", 'C="', "C=\\"])
def test_every_short_text_is_a_name_or_not_by_its_characters(start: str) -> None:
    """Not by the expression alone, which not every Python might match as it is written."""
    for length in range(5):
        for characters in product('C=#"\\,4 <\n', repeat=length):
            text = start + "".join(characters)
            assert is_distinguished_name(text) == reads(text), text


@pytest.mark.parametrize("value", ["\\\\", r"\2C", "\\ ", "a", r"a\,", " ", r"\""])
@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 200, 1000])
def test_a_value_has_any_number_of_escapes(value: str, count: int) -> None:
    assert is_distinguished_name(f"CN={value * count},O=b")
    assert is_distinguished_name(f'CN="{value * count}",O=b') == (value != "\\ " or not count)
    # What cannot be there is refused, whatever is before it.
    for wrong in "<", "\\", r"\x", '"':
        assert not is_distinguished_name(f"CN={value * count}{wrong}")
        assert not is_distinguished_name(f'CN="{value * count}\\x"')


@pytest.mark.parametrize(
    "piece", ["\\\\", r"\2C", "\\ ", "a", r"a\,", " ", "00", "C=", '"', "C=a,"]
)
@pytest.mark.parametrize("start", ["", "CN=", 'CN="', "CN=#", 'CN=a,CN="'])
def test_a_long_text_is_looked_at_once(start: str, piece: str) -> None:
    assert not is_distinguished_name(start + piece * 20_000 + "<")


def test_keywords_are_as_java_has_them_without_the_tables_of_this_python() -> None:
    """These, and no other characters, have ASCII letters as their upper case."""
    others = {
        chr(number): chr(number).upper()
        for number in range(0x80, sys.maxunicode + 1)
        if chr(number).upper().isascii()
    }
    assert {chr(number): text for number, text in _UPPER.items() if number >= 0x80} == others
    assert is_distinguished_name("\ufb05=Ohio,\u017ferialnumber=1")
    assert not is_distinguished_name("\uff23\uff2e=alice")
