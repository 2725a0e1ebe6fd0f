"""What attributes say of numbers and errors."""

from __future__ import annotations

import asyncio

import pytest

from paddock.errors import (
    NO_NODE,
    ConnectionLostError,
    NoNodeError,
    NotAppliedError,
    TransactionFailedError,
    error_from_code,
)
from paddock.otel.names import hexadecimal, status_code, type_of


def test_numbers_are_as_logs_have_them() -> None:
    assert hexadecimal(0x100000005) == "0x100000005"
    # The first server of an ensemble with a large id has such sessions.
    assert hexadecimal(-1) == "0xffffffffffffffff"


@pytest.mark.parametrize(
    ("error", "name", "code"),
    [
        (NoNodeError(), "NoNodeError", "-101"),
        (
            TransactionFailedError([None, error_from_code(NO_NODE)]),
            "TransactionFailedError",
            "-101",
        ),
        # Nobody has answered these.
        (ConnectionLostError(), "ConnectionLostError", None),
        (NotAppliedError(), "NotAppliedError", None),
        (TimeoutError(), "TimeoutError", None),
        (asyncio.CancelledError(), "cancelled", None),
    ],
)
def test_an_error_has_a_type_and_a_code_if_the_service_has_said_so(
    error: BaseException, name: str, code: str | None
) -> None:
    assert (type_of(error), status_code(error)) == (name, code)
