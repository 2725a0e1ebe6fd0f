"""Anything in place of a token, an answer or a file of users is refused, and nothing more."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.protocol.digest_md5 import DirectiveError, quoted, read_directives
from paddock.server.config.config import ConfigError
from paddock.server.sasl.conversation import STEPS_MAX, Conversation, Offer
from paddock.server.sasl.digest_md5 import DigestMd5
from paddock.server.sasl.jaas import LoginModule, read_section
from paddock.server.sasl.users import Users
from tests.property.bounds import examples
from tests.support.sasl import JAAS, answer

HERE = Path("jaas.conf")


def conversation() -> Conversation:
    users = Users()
    users.read_modules(HERE, [LoginModule("DigestLoginModule", {"user_bob": "bobs-secret"})])
    return Conversation(Offer((DigestMd5(users, bytes),)))


def never(_: object) -> None:
    pytest.fail("it does not block")


@examples(300)
@given(st.lists(st.binary(max_size=200), max_size=STEPS_MAX + 3))
def test_tokens_of_anything_prove_nothing_and_end_soon(tokens: list[bytes]) -> None:
    talk = conversation()
    for number, token in enumerate(tokens):
        verdict = talk.receive(token, never)
        assert verdict is not None
        assert verdict.identities == ()
        # The first is answered whatever it is; then there is an end.
        assert verdict.is_final == (number > 0)


@examples(500)
@given(st.integers(0, 400), st.integers(0, 400), st.binary(max_size=8))
def test_a_spoiled_answer_proves_who_it_was_or_nobody(
    start: int, length: int, instead: bytes
) -> None:
    talk = conversation()
    first = talk.receive(b"", never)
    assert first is not None
    assert first.reply is not None
    whole = answer(first.reply)
    spoiled = whole[:start] + instead + whole[start + length :]
    verdict = talk.receive(spoiled, never)
    assert verdict is not None
    assert [one.id for one in verdict.identities] in ([], ["bob"])
    assert verdict.is_final == (not verdict.identities)


@examples(500)
@given(st.binary(max_size=300))
def test_directives_are_read_or_refused(message: bytes) -> None:
    try:
        found = read_directives(message)
    except DirectiveError:
        return
    again = b",".join(name.encode() + b"=" + quoted(value) for name, value in found.items())
    assert read_directives(again) == found


def test_a_file_of_users_is_read_or_refused(tmp_path: Path) -> None:
    file = tmp_path / "jaas.conf"
    words = [*JAAS.split(" "), "{", "}", ";", '"', "\\", "//", "/*"]

    @examples(100)
    @given(st.one_of(st.text(max_size=100), st.lists(st.sampled_from(words)).map(" ".join)))
    def check(text: str) -> None:
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
        with suppress(ConfigError):
            Users().read_modules(file, read_section(file, "Server"))

    check()
