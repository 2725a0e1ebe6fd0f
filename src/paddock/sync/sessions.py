"""Blocking programs that outlive their sessions, as `paddock.run_in_sessions` is for asyncio.

    def work(client: paddock.sync.Client) -> None:
        with Lock(client, "/locks/report"):
            ...


    run_in_sessions(lambda: paddock.sync.connect("127.0.0.1:2181"), work)

The rules are the same, but for one: a thread cannot be stopped. So the body goes on when its
session is over, until one of its calls raises. It begins again if that is an error whose
`session_may_be_over` is True. A body that makes no calls never learns of it.

A deadline of `timeout` around it holds for the pauses as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from paddock.client.sessions import Doubt, Pauses
from paddock.errors import ConnectionLostError, InvalidArgumentError
from paddock.sync import deadline
from paddock.sync.client import Client

T = TypeVar("T")


def run_in_sessions(connect: Callable[[], Client], work: Callable[[Client], T]) -> T:
    """Run a program in one session after the other, until it returns; return its result.

        def work(client: paddock.sync.Client) -> int:
            client.create("/worker", ephemeral=True)
            return client.get("/config").stat.version


        print(run_in_sessions(lambda: paddock.sync.connect("127.0.0.1:2181"), work))  # 0

    `connect` returns a client for each session, and `work` is called with it once it is open. If
    it ends with an error whose `session_may_be_over` is True while the session has expired, or may
    have, it begins again with the next client. All other errors are raised.

    The first session is opened as `connect` says; later ones as soon as a server grants one, after
    a random pause.
    """
    pauses = Pauses()
    client = _checked(connect())
    client.start()
    while True:
        began_at = time.monotonic()
        inner, bridge = client._inner, client._bridge
        doubt = bridge.run(Doubt, inner)
        try:
            return work(client)
        except BaseException as error:
            if not doubt.explains(error):
                raise
        finally:
            client.close()
        pauses.note(time.monotonic() - began_at, client.session_timeout)
        client = _open_next(connect, client, pauses)


def _open_next(connect: Callable[[], Client], last: Client, pauses: Pauses) -> Client:
    while True:
        _sleep(pauses.next(last._inner))
        client = _checked(connect())
        try:
            client.start()
        except ConnectionLostError:
            continue
        return client


def _sleep(seconds: float) -> None:
    left = deadline.remaining()
    if left is None or left > seconds:
        time.sleep(seconds)
        return
    time.sleep(max(left, 0))
    raise TimeoutError("run_in_sessions: the time is up before there is a new session")


def _checked(client: object) -> Client:
    if not isinstance(client, Client):
        raise InvalidArgumentError(
            f"connect: expected that it returns a client of paddock.sync, not {client!r}"
        )
    return client
