"""The password of the admin server."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest

from paddock.server.admin.password import Password
from paddock.server.config.config import ConfigError


def basic(text: bytes) -> bytes:
    return b"Basic " + b64encode(text)


def test_only_the_name_with_its_password_is_let_in(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("monitor:gr\u00fcn:1\n", encoding="utf-8")
    file.chmod(0o600)
    password = Password(file)
    right = "monitor:gr\u00fcn:1".encode()
    assert password.is_given(basic(right))
    assert password.is_given(b" basic   " + b64encode(right) + b" ")
    for given in (
        *(None, b"", b"Basic", b"Basic !", b"Bearer " + b64encode(right), right),
        *map(basic, (b"", right[:-1], right + b"1", right + b"\n", b"other:" + right, b"monitor:")),
    ):
        assert not password.is_given(given), given


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"monitor\n", b":word\n", b"monitor:\n", b"a:b\nc:d\n"]
)
def test_a_file_that_holds_anything_else_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "password"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=r"expected one line, name:password"):
        Password(file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"/none: No such file or directory"):
        Password(tmp_path / "none")
