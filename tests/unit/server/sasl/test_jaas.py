"""JAAS files: sections, modules, options, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddock.server.config.config import ConfigError
from paddock.server.sasl.jaas import BYTES_MAX, LoginModule, read_section

SAMPLE = r"""
/* Of all
   servers. */
Client { com.example.Other optional a=b; };
Server {
    // Two modules.
    org.apache.zookeeper.server.auth.DigestLoginModule required
    user_super="admin\"secret\\"  user_bob=plain-word
    user_ann="tab\there, octal \101\0";
    com.sun.security.auth.module.Krb5LoginModule REQUIRED useKeyTab=true
    keyTab="/etc/zk.keytab" principal="zookeeper/host@EXAMPLE.COM";
};
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "jaas.conf"


def read(file: Path, text: str, section: str = "Server") -> list[LoginModule]:
    file.write_text(text, encoding="utf-8")
    return read_section(file, section)


def error_of(file: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read(file, text)
    return str(caught.value).removeprefix(str(file))


def test_the_modules_of_a_section_are_read(file: Path) -> None:
    digest, kerberos = read(file, SAMPLE)
    assert digest.name == "DigestLoginModule"
    assert digest.options == {
        "user_super": 'admin"secret\\',
        "user_bob": "plain-word",
        "user_ann": "tab\there, octal A\0",
    }
    assert kerberos.name == "Krb5LoginModule"
    assert kerberos.options == {
        "useKeyTab": "true",
        "keyTab": "/etc/zk.keytab",
        "principal": "zookeeper/host@EXAMPLE.COM",
    }
    (other,) = read(file, SAMPLE, "Client")
    assert (other.name, other.options) == ("Other", {"a": "b"})


def test_passwords_are_not_shown(file: Path) -> None:
    assert "plain-word" not in repr(read(file, SAMPLE))


NOT_UNDERSTOOD = "this JAAS file is not understood: expected"
NOT_WHOLE = f":1: {NOT_UNDERSTOOD} a name, a whole quoted text or a comment"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ": there is no section 'Server' in this JAAS file"),
        ("Other { A required; };", ": there is no section 'Server' in this JAAS file"),
        ("Server", ":1: this JAAS file is not understood: expected '{'"),
        ("Server {\nA required", ":2: this JAAS file is not understood: expected a name"),
        ("Server { A; };", ":1: this JAAS file is not understood: expected a name"),
        (
            "Server { A hush; };",
            f":1: {NOT_UNDERSTOOD} required, requisite, sufficient or optional",
        ),
        ("Server { A required x; };", ":1: this JAAS file is not understood: expected '='"),
        (
            "Server { A required x=; };",
            ":1: this JAAS file is not understood: expected a name or a quoted text",
        ),
        ("Server { A required; }", ":1: this JAAS file is not understood: expected ';'"),
        (
            'Server { A required x="hush\n"; };',
            NOT_WHOLE,
        ),
        (
            "Server { /* hush",
            NOT_WHOLE,
        ),
        (
            '\nServer { A required x="${hush}"; };',
            ":2: the value of x has ${…}, which is not expanded here",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_line_and_without_values(
    file: Path, text: str, said: str
) -> None:
    assert error_of(file, text) == said
    assert "hush" not in said or "${" in text


def test_a_file_that_cannot_be_read_is_named(file: Path) -> None:
    with pytest.raises(ConfigError, match=r"jaas.conf: the JAAS file cannot be read: No such file"):
        read_section(file, "Server")
    file.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match=r"jaas.conf: the JAAS file is not text in UTF-8"):
        read_section(file, "Server")
    file.write_bytes(b" " * (BYTES_MAX + 1))
    with pytest.raises(ConfigError, match=r"jaas.conf: the JAAS file is larger than"):
        read_section(file, "Server")


@pytest.mark.parametrize("piece", ["\\\\", "\\a", "a", " ", "/*", '\\"', "x=", "{"])
def test_a_text_without_an_end_is_refused_however_long_it_is(file: Path, piece: str) -> None:
    long = f'Server {{ A required x="{piece * 100_000}'
    assert error_of(file, long) == NOT_WHOLE
    assert read(file, f'{long}"; }};')[0].options["x"]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *[(r"\\", "\\"), (r"\"", '"'), (r"a\"b\\", 'a"b\\'), (r"\\\"a", '\\"a'), ("", "")],
        *[("a" * 1000, "a" * 1000), (r"\"" * 1000, '"' * 1000)],
    ],
)
def test_a_quoted_text_ends_where_no_backslash_is_before_the_quote(
    file: Path, written: str, value: str
) -> None:
    (module,) = read(file, f'Server {{ A required x="{written}" y="z"; }};')
    assert module.options == {"x": value, "y": "z"}
