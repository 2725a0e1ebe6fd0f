"""Certificates: the subject as Java writes it, the dates; anything else is refused."""

import datetime

import pytest
from cryptography import x509
from cryptography.x509.name import _ASN1Type as Kind
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from paddock.server.tls.x509 import CertificateError, read_certificate
from tests.support.certificates import DAY, Authority, name

AUTHORITY = Authority()
NOW = datetime.datetime.now(datetime.UTC)


def subject(*levels: list[x509.NameAttribute[str]]) -> str:
    whole = x509.Name([x509.RelativeDistinguishedName(level) for level in levels])
    return read_certificate(AUTHORITY.issue(whole).der).subject


def attribute(oid: x509.ObjectIdentifier, value: str, kind: Kind) -> x509.NameAttribute[str]:
    return x509.NameAttribute(oid, value, kind, _validate=False)


def common_name(value: str, kind: Kind = Kind.UTF8String) -> str:
    return subject([attribute(NameOID.COMMON_NAME, value, kind)])


def test_the_last_level_comes_first() -> None:
    der = AUTHORITY.issue(name("C=DE", "O=Example", "OU=Sales", "CN=alice")).der
    assert read_certificate(der).subject == "CN=alice,OU=Sales,O=Example,C=DE"


def test_no_name_at_all_is_empty() -> None:
    assert subject() == ""


def test_attributes_of_one_level_keep_their_order() -> None:
    level = [
        attribute(NameOID.COMMON_NAME, "a", Kind.UTF8String),
        attribute(NameOID.USER_ID, "b", Kind.UTF8String),
    ]
    # A set is sorted by its encoding, in which CN comes before UID.
    assert subject(level) in ("CN=a+UID=b", "UID=b+CN=a")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a,b", r"a\,b"),
        ("a+b=c", r"a\+b\=c"),
        ('<a>;"\\', r"\<a\>\;\"\\"),
        ("#a#", r"\#a\#"),
        (" a b ", r"\ a b\ "),
        ("  ", r"\ \ "),
        ("a\0b", r"a\00b"),
        ("日本", "日本"),
        ("a\nb", "a\nb"),
    ],
)
def test_what_has_a_meaning_is_escaped(value: str, shown: str) -> None:
    assert common_name(value) == f"CN={shown}"


@pytest.mark.parametrize(
    ("kind", "value", "shown"),
    [
        (Kind.PrintableString, "alice", "CN=alice"),
        (Kind.IA5String, "alice", "CN=alice"),
        (Kind.T61String, "é", "CN=Ã©"),
        (Kind.BMPString, "日本", "CN=日本"),
        (Kind.NumericString, "1", "CN=#120131"),
        (Kind.UniversalString, "a", "CN=#1c0400000061"),
    ],
)
def test_each_kind_of_string_is_shown_as_java_does(kind: Kind, value: str, shown: str) -> None:
    assert common_name(value, kind) == shown


def test_what_has_no_keyword_is_shown_as_its_number_and_encoding() -> None:
    der = AUTHORITY.issue(name("CN=alice", "E=alice@example.org")).der
    encoding = b"alice@example.org".hex()
    assert read_certificate(der).subject == f"1.2.840.113549.1.9.1=#1611{encoding},CN=alice"
    unknown = attribute(x509.ObjectIdentifier("2.999.300"), "x", Kind.UTF8String)
    assert subject([unknown]) == "2.999.300=#0c0178"


def test_dates_are_read_in_both_of_their_forms() -> None:
    # Dates up to 2049 have two digits for the year, later ones four.
    for length in (DAY, 365 * 40 * DAY):
        issued = AUTHORITY.issue(name("CN=a"), valid=(-365 * 60 * DAY, length))
        read = read_certificate(issued.der)
        assert read.not_before == issued.certificate.not_valid_before_utc
        assert read.not_after == issued.certificate.not_valid_after_utc


@given(st.binary(max_size=200))
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(CertificateError):
        read_certificate(data)


WHOLE = AUTHORITY.issue(name("O=Example", "CN=alice")).der


@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 255))
def test_a_damaged_certificate_is_read_or_refused(position: int, byte: int) -> None:
    damaged = WHOLE[:position] + bytes([byte]) + WHOLE[position + 1 :]
    try:
        read_certificate(damaged)
    except CertificateError:
        pass


def test_a_certificate_that_is_cut_off_is_refused() -> None:
    for length in range(len(WHOLE)):
        with pytest.raises(CertificateError):
            read_certificate(WHOLE[:length])
