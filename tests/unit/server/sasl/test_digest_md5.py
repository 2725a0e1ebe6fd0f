"""DIGEST-MD5 on the server's side: who is let in, and every way in which nobody is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paddock.protocol.digest_md5 import MESSAGE_BYTES_MAX
from paddock.server.sasl.digest_md5 import DigestExchange, DigestMd5
from paddock.server.sasl.jaas import LoginModule
from paddock.server.sasl.mechanism import Mechanism, SaslError, Step
from paddock.server.sasl.users import Users
from tests.support.sasl import answer, directives, rspauth

JOSE = "jos\u00e9"


def mechanism() -> DigestMd5:
    users = Users()
    options = {"user_bob": "bobs-secret", f"user_{JOSE}": "\u00e9", "user_\u3042": "x"}
    users.read_modules(Path("f"), [LoginModule("DigestLoginModule", options)])
    count = iter(range(100))
    return DigestMd5(users, lambda size: bytes([next(count)]) * size)


def begun() -> tuple[DigestExchange, bytes]:
    exchange = mechanism().start()
    step = exchange.step(b"")
    assert step.reply is not None
    assert not step.is_done
    return exchange, step.reply


def test_it_is_a_mechanism_that_runs_on_the_loop() -> None:
    made: Mechanism = mechanism()
    assert (made.name, made.blocks, made.accepts(b""), made.accepts(b"x")) == (
        *("DIGEST-MD5", False, True, True),
    )


def test_a_user_is_who_the_password_proves() -> None:
    exchange, challenge = begun()
    assert challenge == (
        b'realm="zk-sasl-md5",nonce="%b",charset=utf-8,algorithm=md5-sess'
        % directives(challenge)["nonce"].encode()
    )
    token = answer(challenge)
    assert exchange.step(token) == Step(rspauth(challenge, token), "bob")


def test_each_conversation_has_a_nonce_of_its_own() -> None:
    made = mechanism()
    first, second = (made.start().step(b"").reply for _ in range(2))
    assert first != second


@pytest.mark.parametrize(
    "how",
    [
        {"authzid": "alice"},
        {"authzid": "bob"},
        {"without": ("qop", "nc", "maxbuf")},
        {"without": ("charset",)},
        {"uri": "ZooKeeper/ZK-SASL-MD5"},
        {"behind": ',unknown="directive",,'},
    ],
    ids=str,
)
def test_what_java_lets_pass_is_let_pass_and_makes_nobody_else(how: dict[str, Any]) -> None:
    exchange, challenge = begun()
    assert exchange.step(answer(challenge, **how)).identity == "bob"


def test_names_and_passwords_have_characters_of_latin_1_and_others() -> None:
    exchange, challenge = begun()
    assert exchange.step(answer(challenge, JOSE, "\u00e9")).identity == JOSE
    exchange, challenge = begun()
    # Without `charset` the name is in Latin-1 itself.
    token = answer(challenge, JOSE, "\u00e9", without=("charset",))
    latin = token.decode().encode("latin-1")
    assert exchange.step(latin).identity == JOSE
    exchange, challenge = begun()
    mangled = "\u3042".encode().decode("latin-1")
    token = answer(challenge, mangled, "x").replace(mangled.encode(), "\u3042".encode())
    assert exchange.step(token).identity == "\u3042"


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"password": "a guess"}, "'bob': unknown user or wrong password"),
        ({"user": "carol"}, "'carol': unknown user or wrong password"),
        ({"user": "c" * 2000}, f"'{'c' * 40}': unknown user or wrong password"),
        ({"response": "0" * 32}, "'bob': unknown user or wrong password"),
        ({"response": ""}, "the message is not a list of directives"),
        ({"realm": "other"}, "the directive realm is not one of this server"),
        ({"without": ("realm",)}, "the directive realm is not one of this server"),
        ({"uri": "http/zk-sasl-md5"}, "the directive digest-uri is not of this service"),
        ({"uri": "zookeeper/other"}, "the directive digest-uri is not of this service"),
        ({"nonce": "x"}, "the directive nonce is not the one of this conversation"),
        ({"nc": "00000002"}, "the directive nc is not 1"),
        ({"qop": "auth-int"}, "the directive qop is not auth"),
        ({"without": ("charset",), "behind": ",charset=x"}, "the directive charset is not utf-8"),
        ({"behind": ',username="alice"'}, "a directive comes twice"),
        ({"behind": ',"'}, "the message is not a list of directives"),
        ({"behind": ",a=" + "b" * MESSAGE_BYTES_MAX}, "the message is too long"),
        *[
            ({"without": (name,)}, f"the directive {name} is missing")
            for name in ("username", "nonce", "cnonce", "digest-uri", "response")
        ],
    ],
    ids=lambda one: str(one)[:60],
)
def test_everything_else_proves_nothing(how: dict[str, Any], reason: str) -> None:
    exchange, challenge = begun()
    with pytest.raises(SaslError) as caught:
        exchange.step(answer(challenge, **how))
    assert str(caught.value) == reason


def test_an_answer_serves_in_its_own_conversation_only() -> None:
    made = mechanism()
    first, second = made.start(), made.start()
    challenge = first.step(b"").reply
    assert challenge is not None
    second.step(b"")
    with pytest.raises(SaslError, match="nonce"):
        second.step(answer(challenge))
    assert first.step(answer(challenge)).identity == "bob"


def test_a_name_that_is_not_in_utf_8_is_refused() -> None:
    exchange, challenge = begun()
    token = answer(challenge).replace(b'"bob"', b'"\xff"')
    with pytest.raises(SaslError, match="username is not in UTF-8"):
        exchange.step(token)
