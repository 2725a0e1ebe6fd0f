"""Distinguished names: what may stand in an ACL of the scheme x509."""

import sys

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
