"""DIGEST-MD5 on the client's side: what it answers, and which servers it does not believe."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from paddock import AuthenticationError, SaslCredentials
from paddock.client.session.digest_md5 import DigestConversation
from paddock.protocol.digest_md5 import read_directives
from paddock.server.sasl.digest_md5 import DigestMd5
from paddock.server.sasl.jaas import LoginModule
from paddock.server.sasl.users import Users

CHALLENGE = b'realm="zk-sasl-md5",nonce="n",charset=utf-8,algorithm=md5-sess'
BOB = SaslCredentials("bob", "bobs-secret")


def respond(conversation: DigestConversation, *challenges: bytes) -> bytes | None:
    """Return the answer to the last of these."""

    async def main() -> bytes | None:
        answer: bytes | None = await conversation.start()
        assert answer == b""
        for challenge in challenges:
            answer = await conversation.respond(challenge)
        return answer

    return asyncio.run(main())


@pytest.mark.parametrize("user", ["bob", 'a "quoted" \\ name', "jos\u00e9", "\u3042", "a,b=c"])
@pytest.mark.parametrize("password", ["secret", "\u00e9", "\u3042\u3044"])
def test_a_server_that_knows_the_user_and_a_client_prove_it_to_each_other(
    user: str, password: str
) -> None:
    users = Users()
    users.read_modules(Path("f"), [LoginModule("DigestLoginModule", {f"user_{user}": password})])
    exchange = DigestMd5(users, bytes).start()
    conversation = DigestConversation(SaslCredentials(user, password), b"mine")

    async def main() -> None:
        challenge = exchange.step(await conversation.start()).reply
        assert challenge is not None
        token = await conversation.respond(challenge)
        assert token is not None
        last = exchange.step(token)
        assert last.identity == user
        assert last.reply is not None
        assert await conversation.respond(last.reply) is None

    asyncio.run(main())


def test_an_answer_has_what_java_says() -> None:
    answer = respond(DigestConversation(BOB, b"mine"), CHALLENGE)
    assert answer is not None
    assert b"bobs-secret" not in answer
    said = read_directives(answer)
    assert len(said.pop("response")) == 32
    assert said == {
        "charset": b"utf-8",
        "username": b"bob",
        "realm": b"zk-sasl-md5",
        "nonce": b"n",
        "nc": b"00000001",
        "cnonce": b"mine",
        "digest-uri": b"zookeeper/zk-sasl-md5",
        "qop": b"auth",
    }


def test_the_name_of_a_server_may_be_another_one() -> None:
    named = SaslCredentials("bob", "bobs-secret", "kafka", "host")
    answer = respond(DigestConversation(named, b"mine"), b'nonce="n",algorithm=md5-sess')
    assert answer is not None
    said = read_directives(answer)
    assert (said["realm"], said["digest-uri"]) == (b"host", b"kafka/host")
    assert "charset" not in said


@pytest.mark.parametrize(
    ("challenge", "reason"),
    [
        (b"", "its challenge is not one of DIGEST-MD5"),
        (b'realm="r",algorithm=md5-sess', "its challenge is not one of DIGEST-MD5"),
        (b'nonce="n"', "its challenge is not one of DIGEST-MD5"),
        (b'nonce="n",algorithm=md5', "its challenge is not one of DIGEST-MD5"),
        (b'nonce="n",algorithm=md5-sess,qop="auth-conf"', "it wants requests to be signed"),
        (b'realm="\xff",' + CHALLENGE[20:], "it cannot read this user"),
        (b"\x00", "the message is not a list of directives"),
    ],
)
def test_a_challenge_that_is_not_understood_is_refused(challenge: bytes, reason: str) -> None:
    expected = f"SASL as 'bob': the server's side of it is not right: {reason}"
    with pytest.raises(AuthenticationError, match=expected):
        respond(DigestConversation(BOB, b"mine"), challenge)


def test_a_user_that_the_server_cannot_read_is_refused() -> None:
    with pytest.raises(AuthenticationError, match="it cannot read this user"):
        respond(
            DigestConversation(SaslCredentials("\u3042", "x"), b"mine"),
            b'nonce="n",algorithm=md5-sess',
        )


@pytest.mark.parametrize("last", [b"", b"rspauth=" + b"0" * 32, CHALLENGE])
def test_a_server_that_does_not_know_the_password_is_refused(last: bytes) -> None:
    with pytest.raises(AuthenticationError, match="it does not know the password"):
        respond(DigestConversation(BOB, b"mine"), CHALLENGE, last)
