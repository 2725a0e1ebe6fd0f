"""The users of DIGEST-MD5: from a JAAS file, and from a file of lines."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from paddock.server.config.config import ConfigError
from paddock.server.sasl.jaas import LoginModule
from paddock.server.sasl.users import Users, is_exposed

PATH = Path("jaas.conf")
BOB = hashlib.md5(b"bob:zk-sasl-md5:secret").hexdigest()


def digest_module(**options: str) -> LoginModule:
    return LoginModule("DigestLoginModule", options)


def lines(tmp_path: Path, text: str) -> Users:
    file = tmp_path / "users"
    file.write_text(text, encoding="utf-8")
    users = Users()
    users.read_file(file)
    return users


def test_users_of_a_jaas_file_have_the_prefix(tmp_path: Path) -> None:
    users = Users()
    users.read_modules(
        PATH,
        [
            digest_module(user_bob="secret", username="x", password="y"),
            LoginModule("Krb5LoginModule", {"user_eve": "secret"}),
            digest_module(user_ann="other"),
        ],
    )
    assert len(users) == 2
    secret = users.get("bob")
    assert secret is not None
    assert secret.hex() == BOB
    assert users.get("ann") is not None
    assert users.get("eve") is users.get("") is users.get("x") is None


def test_users_of_a_file_of_lines_have_no_passwords(tmp_path: Path) -> None:
    users = lines(tmp_path, f"# Ours.\n\nbob:zk-sasl-md5:{BOB}\r\nann:zk-sasl-md5:{BOB.upper()}\n")
    assert len(users) == 2
    assert users.get("bob") == users.get("ann") == bytes.fromhex(BOB)


@pytest.mark.parametrize(
    "line",
    ["bob:hush", "bob:zk-sasl-md5:hush", f"bob:other:{BOB}", f"bob:zk-sasl-md5:{BOB}0", "hush"],
)
def test_a_line_that_is_not_understood_is_not_repeated(tmp_path: Path, line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        lines(tmp_path, f"\n{line}\n")
    assert "users:2: expected name:zk-sasl-md5:digest" in str(caught.value)
    assert "hush" not in str(caught.value)


def test_who_is_there_twice_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"users:2: the user 'bob' is there twice"):
        lines(tmp_path, f"bob:zk-sasl-md5:{BOB}\n" * 2)
    users = lines(tmp_path, f"bob:zk-sasl-md5:{BOB}\n")
    with pytest.raises(ConfigError, match=r"jaas.conf: the user 'bob' is there twice"):
        users.read_modules(PATH, [digest_module(user_bob="secret")])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"user_bob": ""}, "jaas.conf: the user 'bob' has an empty password"),
        ({"user_": "x"}, "jaas.conf: the name of a user has 1 to 256 bytes"),
        ({"user_" + "b" * 257: "x"}, "jaas.conf: the name of a user has 1 to 256 bytes"),
    ],
)
def test_names_and_passwords_have_a_length(options: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Users().read_modules(PATH, [digest_module(**options)])
    assert str(caught.value) == said


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="none: the users cannot be read: No such file"):
        Users().read_file(tmp_path / "none")
    (tmp_path / "users").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="users: the file of users is not text in UTF-8"):
        Users().read_file(tmp_path / "users")


@pytest.mark.parametrize(("mode", "exposed"), [(0o644, True), (0o640, False), (0o604, True)])
def test_a_file_that_everybody_can_read_is_noticed(
    tmp_path: Path, mode: int, exposed: bool
) -> None:
    file = tmp_path / "users"
    file.touch()
    file.chmod(mode)
    assert is_exposed(file) == exposed
