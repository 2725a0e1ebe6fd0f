"""A command that runs while something is held, for `paddock lock` and `paddock elect`.

By our own clock a session surely lives for one timeout after the sending of the last request that
was answered. The command is killed a twelfth of the timeout before that, and asked to end (SIGTERM)
earlier by the grace, a sixth of the timeout by default. If the grant is lost without such a
warning, by the word of the service, others may have it already, and the command is killed at once.
Its `warden` does all this also when we are stopped, or killed.

If the whole machine stands still, the command does its next step before it can be ended. That step
is refused if it is guarded, or fenced.
"""

import asyncio
import logging
import math
import os
import shutil
import socket
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final

import click

from paddock.cli.output import CannotBeDone
from paddock.cli.run_under import warden
from paddock.cli.run_under.child_process import ChildProcess, ProcessEnd
from paddock.cli.run_under.signals import Signals, Terminal, run_with_signals
from paddock.cli.service import ServiceOptions, run
from paddock.client.client import Client
from paddock.errors import ConnectionLostError, LockStateError, SessionExpiredError
from paddock.recipes.locks.grant import Grant, GrantEvent

#: Exit statuses: the lock was not obtained, it was lost. 75 is EX_TEMPFAIL of sysexits.h.
NOT_OBTAINED: Final = 75
LOST: Final = 76
# As a shell says it.
_CANNOT_BE_RUN: Final = 126
_NO_SUCH_COMMAND: Final = 127

# Parts of the session timeout. By the first one the command is over before its time is: that is for
# clocks that differ, and for a busy machine. The second is the grace, unless it is given.
_MARGIN: Final = 1 / 12
_GRACE: Final = 1 / 6
# A longer one would end the command in every pause between two pings.
_GRACE_MAX: Final = 1 / 3
# So often the warden hears how long the command may live.
_TELL: Final = 1 / 12
_PAUSE_S: Final = 1.0

# Gives what is held, in a scope that gives it up; None if it cannot be had now.
Contend = Callable[[Client], AbstractAsyncContextManager[Grant | None]]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done: what to contend for, and what to run then."""

    service: ServiceOptions
    contend: Contend
    command: Sequence[str]
    path: str
    variable: str
    # What we call it: "the lock".
    noun: str
    wait: float | None = None
    grace: float | None = None
    # Whether to contend again when it was lost, and when the command has ended by itself.
    again_if_lost: bool = False
    again: bool = False


def check(command: Sequence[str], grace: float | None, service: ServiceOptions) -> None:
    """Check command and grace before contending."""
    if shutil.which(command[0]) is None:
        if os.path.exists(command[0]):
            raise CannotBeDone(f"{command[0]}: cannot be run", _CANNOT_BE_RUN)
        raise CannotBeDone(f"{command[0]}: there is no such command", _NO_SUCH_COMMAND)
    if grace is not None and grace > service.session_timeout * _GRACE_MAX:
        raise click.BadParameter(
            f"{grace:g} s is more than a third of the session timeout"
            f" ({service.session_timeout:g} s): give a longer --timeout",
            param_hint="--grace",
        )


def name_data(given: str | None) -> bytes:
    """Return the data of our contender node: who holds it, or waits."""
    return os.fsencode(f"{socket.gethostname()}:{os.getpid()}" if given is None else given)


def execute(plan: Plan) -> int:
    """Carry out a plan; return the exit status."""

    async def hold(signals: Signals) -> int:
        terminal = Terminal()
        try:
            return await _Contender(plan, signals, terminal).run()
        finally:
            terminal.close()

    # What has to be said is said here, in one line.
    logging.getLogger("paddock").addHandler(logging.NullHandler())
    return run(lambda: run_with_signals(hold))


class Awake:
    """Since when the machine has not slept: the event loop's clock stands still while it does.

    What the client concludes from that clock holds only for what was asked since. The warden has a
    clock that goes on, so all there is to do is not to tell it more than we know.
    """

    def __init__(self, tolerance: float) -> None:
        # A sleep that is shorter does no harm.
        self._tolerance = tolerance
        self._since = -math.inf
        self._apart: float | None = None

    def covers(self, when: float, now: float, clock: float) -> bool:
        """Return whether there was no sleep since then; `clock` is the warden's."""
        apart = clock - now
        if self._apart is None:
            self._apart = apart
        elif apart > self._apart + self._tolerance:
            self._apart = apart
            self._since = now
        return when >= self._since


@dataclass(slots=True)
class _Contender:
    """One contender, over any number of sessions."""

    _plan: Plan
    _signals: Signals
    _terminal: Terminal
    # Whether a server has answered yet: then one that does not is worth waiting for.
    _was_connected: bool = False

    async def run(self) -> int:
        plan = self._plan
        while True:
            try:
                async with asyncio.timeout(plan.wait) as deadline:
                    ended = await self._hold(deadline)
            except TimeoutError:
                self._say(f"{plan.noun} was not obtained within {plan.wait:g} s")
                return NOT_OBTAINED
            if ended is None:
                self._say(f"another contender has {plan.noun}")
                return NOT_OBTAINED
            may_go_on = self._signals.asked_to_end is None
            if ended.was_ended:
                again = plan.again_if_lost and may_go_on
                self._say(
                    f"{plan.noun} was lost, so the command was ended"
                    + ("; standing again" if again else "")
                )
                if not again:
                    return LOST
            elif plan.again and may_go_on:
                # A command that fails at once must not run in a busy loop.
                await asyncio.sleep(_PAUSE_S)
            else:
                return ended.status

    async def _hold(self, deadline: asyncio.Timeout) -> ProcessEnd | None:
        """Wait until we have it, whatever becomes of sessions meanwhile, and run the command."""
        ended = None
        while True:
            try:
                async with self._plan.service.connect() as client:
                    self._was_connected = True
                    async with self._plan.contend(client) as grant:
                        if grant is not None:
                            deadline.reschedule(None)
                            ended = await self._run_under(client, grant)
                return ended
            except (ConnectionLostError, SessionExpiredError, LockStateError):
                if ended is not None:
                    # What it was held with need not be given up any more.
                    return ended
                if not self._was_connected:
                    raise
                await asyncio.sleep(_PAUSE_S)

    async def _run_under(self, client: Client, grant: Grant) -> ProcessEnd:
        timeout = client.session_timeout
        grace = timeout * _GRACE if self._plan.grace is None else self._plan.grace
        is_on_terminal = self._terminal.is_there
        command = ChildProcess(
            self._plan.command,
            {
                **os.environ,
                "PADDOCK_SERVER": self._plan.service.hosts,
                self._plan.variable: self._plan.path,
                "PADDOCK_TOKEN": str(grant.token),
                "PADDOCK_GUARD": grant.path,
            },
            grace=min(grace, timeout * _GRACE_MAX),
            group=os.getpgrp() if is_on_terminal else 0,
        )

        def on_event(event: GrantEvent) -> None:
            if grant.is_lost:
                command.end()

        async def tell() -> None:
            loop, awake = asyncio.get_running_loop(), Awake(timeout * _MARGIN)
            while not grant.is_lost:
                answered_from = client.session_valid_until - timeout
                if awake.covers(answered_from, loop.time(), warden.clock()):
                    command.live_until(client.session_valid_until - timeout * _MARGIN)
                await asyncio.sleep(timeout * _TELL)

        grant.add_listener(on_event)
        with self._signals.passed_on_to(command, shares_terminal=is_on_terminal):
            async with asyncio.TaskGroup() as tasks:
                telling = tasks.create_task(tell())
                if grant.is_lost:
                    command.end()
                ended = await command.wait()
                telling.cancel()
        grant.remove_listener(on_event)
        if ended.was_ended:
            self._terminal.mend()
        return ended

    def _say(self, what: str) -> None:
        click.echo(f"paddock: {self._plan.path}: {what}", err=True)
