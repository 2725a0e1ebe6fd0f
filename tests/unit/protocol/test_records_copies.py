"""What users hold can be pickled and copied, compiled or not: records, results, events, errors."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import pytest

from paddock import (
    ACL,
    OPEN_ACL,
    Change,
    Children,
    Created,
    Event,
    EventType,
    Identity,
    NodeData,
    SessionState,
    Stat,
    errors,
)

STAT = Stat(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
HELD: list[Any] = [
    STAT,
    Identity("digest", "user:x"),
    ACL(31, Identity("world", "anyone")),
    OPEN_ACL,
    NodeData(b"data", STAT),
    Children(["a"], STAT),
    Created("/a", STAT),
    Change("/a", b"data", STAT),
    Event(SessionState.CONNECTED, EventType.CHANGED, "/a"),
]


@pytest.mark.parametrize("held", HELD, ids=lambda held: type(held).__name__)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_it_can_be_pickled(held: Any, protocol: int) -> None:
    again = pickle.loads(pickle.dumps(held, protocol))
    assert again == held
    assert type(again) is type(held)
    assert repr(again) == repr(held)


@pytest.mark.parametrize("held", HELD, ids=lambda held: type(held).__name__)
def test_it_can_be_copied_and_is_hashable_where_it_cannot_change(held: Any) -> None:
    assert copy.copy(held) == held
    assert copy.deepcopy(held) == held
    if not isinstance(held, Children):
        assert hash(copy.deepcopy(held)) == hash(held)


SERVICE_ERRORS = [
    one
    for one in vars(errors).values()
    if inspect.isclass(one) and issubclass(one, errors.ServiceError)
]


def made(kind: type[errors.ServiceError]) -> errors.ServiceError:
    if kind is errors.UnknownCodeError:
        return errors.UnknownCodeError(-999, "get", "/a")
    if kind is errors.TransactionFailedError:
        return errors.TransactionFailedError([None, errors.NoNodeError("check", "/a")])
    if kind is errors.HistoryGoneError:
        return errors.HistoryGoneError("/a", 5, 7)
    return kind("get", "/a")


@pytest.mark.parametrize("kind", SERVICE_ERRORS)
def test_an_error_is_the_same_in_another_process(kind: type[errors.ServiceError]) -> None:
    error = made(kind)
    error.add_note("seen by a worker")
    for again in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert type(again) is kind
        assert str(again) == str(error)
        assert (again.operation, again.path, again.code) == (error.operation, "/a", error.code)
        assert again.__notes__ == ["seen by a worker"]
    if isinstance(error, errors.UnknownCodeError):
        assert pickle.loads(pickle.dumps(error)).number == -999


def test_a_reason_survives() -> None:
    error = errors.ConnectionLostError("connect", None, "no server answers")
    assert str(pickle.loads(pickle.dumps(error))) == "connect: no server answers"


def test_the_text_of_a_stat_names_its_fields() -> None:
    assert repr(STAT).startswith("Stat(czxid=1, mzxid=2, ctime=3, ")
    assert repr(ACL(1, Identity("ip", "::1"))) == (
        "ACL(permissions=1, identity=Identity(scheme='ip', id='::1'))"
    )
