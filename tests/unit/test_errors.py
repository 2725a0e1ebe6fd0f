"""Codes and their classes, and what an error says."""

from __future__ import annotations

import pytest

from paddock import errors
from paddock.errors import (
    AuthenticationError,
    ConnectionLostError,
    NoNodeError,
    PaddockError,
    RequestError,
    ServiceError,
    SessionExpiredError,
    UnknownCodeError,
    error_from_code,
)

CODES = {
    name: value
    for name, value in vars(errors).items()
    if name.isupper() and isinstance(value, int) and name != "OK"
}


def leaves(root: type[ServiceError]) -> list[type[ServiceError]]:
    return [root, *(leaf for child in root.__subclasses__() for leaf in leaves(child))]


def test_all_codes_of_the_protocol_are_here_once() -> None:
    assert len(set(CODES.values())) == len(CODES)
    assert sorted(CODES.values(), reverse=True) == [
        *(-1, -2, -3, -4, -5, -6, -7, -8, -12, -13, -14),
        *(-100, -101, -102, -103, -108, -110, -111, -112, -113, -114, -115),
        *(-118, -119, -120, -121, -122, -123, -124, -125, -127),
    ]


@pytest.mark.parametrize("code", CODES.values(), ids=CODES.keys())
def test_each_code_has_one_class_that_says_what_it_means(code: int) -> None:
    error = error_from_code(code, "get", "/a")
    assert error.code == code
    owners = [leaf for leaf in leaves(ServiceError) if vars(leaf).get("code") == code]
    assert owners == ([ServiceError] if code == errors.API_ERROR else [type(error)])
    assert error.meaning
    assert not isinstance(error, UnknownCodeError)


def test_meanings_differ() -> None:
    meanings = [error_from_code(code).meaning for code in CODES.values()]
    assert len(set(meanings)) == len(meanings)


def test_an_error_names_operation_and_path() -> None:
    error = error_from_code(errors.NO_NODE, "get", "/app/config")
    assert isinstance(error, NoNodeError)
    assert (error.operation, error.path) == ("get", "/app/config")
    assert str(error) == "get /app/config: no such node"


def test_an_error_without_a_path_names_the_operation() -> None:
    assert str(error_from_code(errors.SESSION_EXPIRED, "sync")).startswith("sync: ")
    assert str(error_from_code(errors.SESSION_EXPIRED)).startswith("request: ")


@pytest.mark.parametrize("code", [-9999, -128, 1, 7])
def test_a_code_that_nobody_knows_is_a_plain_refusal_that_names_it(code: int) -> None:
    error = error_from_code(code, "set", "/a")
    assert isinstance(error, RequestError)
    assert isinstance(error, UnknownCodeError)
    assert error.number == code
    assert str(error).startswith("set /a: ")
    assert str(code) in str(error)


def test_the_groups_say_what_to_do() -> None:
    assert isinstance(error_from_code(errors.CONNECTION_LOSS), ConnectionLostError)
    assert isinstance(error_from_code(errors.SESSION_EXPIRED), SessionExpiredError)
    assert isinstance(error_from_code(errors.AUTH_FAILED), AuthenticationError)
    assert isinstance(error_from_code(errors.SESSION_CLOSED_REQUIRE_SASL), AuthenticationError)
    for code in CODES.values():
        error = error_from_code(code)
        groups = (RequestError, ConnectionLostError, SessionExpiredError, AuthenticationError)
        assert sum(isinstance(error, group) for group in groups) == 1
        assert isinstance(error, PaddockError)


def test_ok_is_not_an_error() -> None:
    with pytest.raises(AssertionError):
        error_from_code(errors.OK)
