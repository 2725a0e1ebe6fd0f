"""Callbacks on a thread of their own: in order, whatever fails, to the end."""

from __future__ import annotations

import threading

import pytest

from paddock.sync.callbacks import Callbacks


def test_they_are_called_in_order_on_one_thread_that_is_not_ours() -> None:
    callbacks = Callbacks()
    called: list[tuple[int, threading.Thread]] = []

    def note(number: int) -> None:
        called.append((number, threading.current_thread()))

    relay = callbacks.relay(note)
    for number in range(100):
        relay(number)
    callbacks.end()
    callbacks.wait()
    assert [number for number, _ in called] == list(range(100))
    threads = {thread for _, thread in called}
    assert len(threads) == 1
    assert threading.current_thread() not in threads


@pytest.mark.parametrize("kind", [ValueError, SystemExit])
def test_one_that_fails_is_logged_and_the_next_is_called(
    caplog: pytest.LogCaptureFixture, kind: type[BaseException]
) -> None:
    def failing(what: str) -> None:
        raise kind("of no use")

    callbacks = Callbacks()
    called: list[str] = []
    callbacks.relay(failing)("a secret")
    callbacks.relay(called.append)("next")
    callbacks.end()
    callbacks.wait()
    assert called == ["next"]
    assert "failing" in caplog.text
    assert "of no use" in caplog.text
    assert "a secret" not in caplog.text


def test_two_relays_of_one_callback_are_one() -> None:
    callbacks, heard = Callbacks(), list[int]()
    assert callbacks.relay(heard.append) == callbacks.relay(heard.append)
    assert len({callbacks.relay(heard.append), callbacks.relay(heard.append)}) == 1
    assert callbacks.relay(heard.append) != callbacks.relay(heard.remove)


def test_what_cannot_be_called_is_left_as_it_is() -> None:
    callbacks = Callbacks()
    assert callbacks.relay(None) is None
    assert callbacks.relay(True) is True


def test_no_thread_is_started_for_nobody_and_nobody_is_called_after_the_end() -> None:
    callbacks, called = Callbacks(), list[int]()
    callbacks.end()
    callbacks.wait()
    callbacks.relay(called.append)(1)
    assert callbacks._thread is None
    assert called == []


def test_a_callback_may_end_them_itself() -> None:
    callbacks, ended = Callbacks(), threading.Event()

    def end() -> None:
        callbacks.end()
        callbacks.wait()
        ended.set()

    callbacks.relay(end)()
    assert ended.wait(30)
