"""The past of a service, for a page: its state at a moment, and what has changed.

* The history is in a data folder of this machine (`--data`), or is asked for at the admin server of
  a running server (`--admin`), which tells of changes and of sessions, but serves no state.
* A state is served by a process of its own (`past_process`), of which at most two run: the one that
  was not asked for longest is ended for a new one, and so is one that nobody asks any more.
* Whoever reads the files could read everything. So a person reads a state with his own credentials,
  and of changes gets those nodes that the ACL of that time lets him read.
* What is lost with this: who is known by another way than a digest, an address or as superuser,
  such as a user of SASL, sees less of a state of the past than of the present.
* An admin server that refuses our credentials is not asked again with them: it counts wrong ones,
  and would hear nobody from this address after a few. Others take another `--admin-auth`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.client import responses
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import unquote, urlencode
from urllib.request import Request, urlopen

from paddock.api import connect
from paddock.client.client import Client
from paddock.dashboard.access import RefusedError
from paddock.dashboard.people import Connection, Credentials
from paddock.history.moment import Moment, parse_moment

Fields = dict[str, Any]

PROCESSES_MAX: Final = 2
_IDLE_SECONDS: Final = 300.0
_RUN_SECONDS: Final = 55.0
_COMMANDS_MAX: Final = 2
_OUTPUT_BYTES_MAX: Final = 32 << 20
_LINE_BYTES_MAX: Final = 8 << 20
_REACH_SECONDS: Final = 300.0
_WRONG_CREDENTIALS: Final = (401, 403)
_SESSION_SECONDS: Final = 60.0

NO_HISTORY: Final = (
    "There is no history here: name the data folder of a Paddock server on this machine with"
    " `--data`, or start the dashboard with `paddock serve --dashboard PORT`."
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the history is kept."""

    data: Path | None = None
    log: Path | None = None
    admin: str | None = None
    # Scheme and credentials of the superuser, for the admin server.
    admin_auth: str = ""
    # Name and password that it asks for otherwise.
    admin_password: str = ""

    @property
    def has_states(self) -> bool:
        return self.data is not None

    @property
    def has_changes(self) -> bool:
        return self.data is not None or (self.admin is not None and bool(self.admin_auth))


@dataclass(slots=True)
class _State:
    """A moment that is served."""

    process: asyncio.subprocess.Process
    fields: Fields
    used_at: float
    # The clients of it, by the credentials of persons, and what closes them.
    clients: dict[tuple[Credentials, bool], asyncio.Task[Client]] = field(default_factory=dict)
    scope: AsyncExitStack = field(default_factory=AsyncExitStack)


class _CredentialsRefusedError(Exception):
    """The admin server does not take `--admin-auth`."""


class Past:
    """The history of one service."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._states: OrderedDict[str, asyncio.Task[_State]] = OrderedDict()
        self._sweeper: asyncio.Task[None] | None = None
        self._reach: Fields | None = None
        self._reach_until = 0.0
        self._reading_reach = asyncio.Lock()
        self._commands = asyncio.Semaphore(_COMMANDS_MAX)
        # Why the admin server is not asked any more.
        self._refused = ""

    @property
    def place(self) -> Place:
        return self._place

    def start(self) -> None:
        self._sweeper = asyncio.create_task(self._sweep())

    async def close(self) -> None:
        """End all processes."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.wait((self._sweeper,))
        while self._states:
            await self._end(next(iter(self._states)))

    async def reach(self) -> Fields | None:
        """Return from when on there is a history; None if there is none."""
        if not self._place.has_states:
            return None
        async with self._reading_reach:
            if time.monotonic() >= self._reach_until:
                self._reach_until = time.monotonic() + _REACH_SECONDS
                try:
                    async with asyncio.timeout(_RUN_SECONDS):
                        process = await self._started("range")
                        line, _ = await process.communicate()
                    found = json.loads(line)
                except (TimeoutError, OSError, ValueError):
                    found = {"error": "it could not be read"}
                self._reach = None if "error" in found else found
        return self._reach

    # States.

    async def client(self, at: str, connection: Connection) -> Client:
        """Return a client of the service as it was. Raises RefusedError."""
        state = await self._state(moment_of(at))
        state.used_at = time.monotonic()
        key = connection.credentials, connection.known_names.is_super
        if key not in state.clients:
            state.clients[key] = asyncio.ensure_future(_opened(state, *key))
        opening = state.clients[key]
        try:
            return await asyncio.shield(opening)
        except BaseException:
            # The next one tries again.
            if opening.done():
                state.clients.pop(key, None)
            raise

    async def moment(self, at: str) -> Fields:
        """Return zxid and time of the state at a moment. Raises RefusedError."""
        fields = (await self._state(moment_of(at))).fields
        return {"zxid": fields["zxid"], "time_ms": fields["time_ms"]}

    async def _state(self, moment: Moment) -> _State:
        if not self._place.has_states:
            raise RefusedError(409, NO_HISTORY)
        key = moment.written()
        while key not in self._states:
            if len(self._states) < PROCESSES_MAX:
                self._states[key] = asyncio.ensure_future(self._serve(key))
            else:
                # Others may ask for the same moment meanwhile.
                await self._end(next(iter(self._states)))
        self._states.move_to_end(key)
        starting = self._states[key]
        try:
            # Others may wait for it as well.
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            if starting.cancelled():
                raise RefusedError(503, "Too many moments are asked for at once.") from None
            raise
        except Exception:
            self._states.pop(key, None)
            raise

    async def _serve(self, moment: str) -> _State:
        process = await self._started("serve", moment)
        try:
            assert process.stdout is not None
            async with asyncio.timeout(_RUN_SECONDS):
                line = await process.stdout.readline()
            fields = json.loads(line) if line else {"error": "the process that reads it has ended"}
        except BaseException as error:
            await _killed(process)
            if isinstance(error, TimeoutError):
                raise RefusedError(503, "It takes too long to rebuild this moment.") from None
            raise
        if "error" in fields:
            await _killed(process)
            raise RefusedError(409, f"{fields['error']}.")
        return _State(process, fields, time.monotonic())

    async def _end(self, key: str) -> None:
        """End the process of a moment."""
        starting = self._states.pop(key)
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            state = await starting
            for opening in state.clients.values():
                opening.cancel()
            # Sessions of the past need not be closed.
            await _killed(state.process)
            await state.scope.aclose()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_IDLE_SECONDS / 10)
            for key, starting in [*self._states.items()]:
                is_served = starting.done() and not starting.cancelled()
                if not is_served or starting.exception() is not None:
                    continue
                if starting.result().used_at + _IDLE_SECONDS < time.monotonic():
                    await self._end(key)

    async def _started(self, what: str, *rest: str) -> asyncio.subprocess.Process:
        place = self._place
        log = () if place.log is None else ("--log", str(place.log))
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "paddock.dashboard.past_process", what),
            *(str(place.data), *rest, *log),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
            env=_environment(None),
        )

    # Changes.

    async def lines(self, *arguments: str, limit: int) -> tuple[list[Fields], bool]:
        """Run a command on the history that prints JSON lines.

        Return the first of them, and whether these were all. Raises RefusedError.
        """
        text, is_complete = await self.text(*arguments, lines_max=limit)
        found = []
        for line in text.splitlines():
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
        return found, is_complete

    async def text(self, *arguments: str, lines_max: int) -> tuple[str, bool]:
        """Run a command on the history; return its first lines, and whether these were all."""
        place = self._place
        if not place.has_changes:
            raise RefusedError(409, NO_HISTORY)
        if self._refused:
            raise RefusedError(409, self._refused)
        if self._commands.locked():
            raise RefusedError(429, "Others ask for the past already; try again.")
        async with self._commands:
            try:
                async with asyncio.timeout(_RUN_SECONDS):
                    if place.data is not None:
                        return await _run(place, arguments, lines_max)
                    loop = asyncio.get_running_loop()
                    return await loop.run_in_executor(
                        None, _asked, place, list(arguments), lines_max
                    )
            except TimeoutError:
                raise RefusedError(503, "It takes too long: ask for less.") from None
            except _CredentialsRefusedError as refusal:
                self._refused = f"{refusal} Start the dashboard with another --admin-auth."
                raise RefusedError(409, self._refused) from None


def moment_of(text: str) -> Moment:
    """Return the moment that a request asks for. Raises RefusedError."""
    try:
        return parse_moment(text, datetime.now(UTC))
    except ValueError as error:
        raise RefusedError(400, f"at: {error}.") from None


async def _opened(state: _State, credentials: Credentials, is_super: bool) -> Client:
    client = connect(state.fields["hosts"], session_timeout=_SESSION_SECONDS, read_only=True)
    await state.scope.enter_async_context(client)
    for scheme, secret in credentials:
        # Others than digests are known by the connection, or by servers of the present alone.
        if scheme == "digest":
            await client.add_auth(scheme, secret)
    if is_super:
        await client.add_auth("digest", state.fields["credentials"].encode())
    return client


async def _run(place: Place, arguments: tuple[str, ...], lines_max: int) -> tuple[str, bool]:
    """Run a command of ours on a data folder."""
    log = () if place.log is None else ("--log-dir", str(place.log))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "paddock", *arguments, *log),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        limit=_LINE_BYTES_MAX,
        env=_environment(place.data),
    )
    assert process.stdout is not None
    assert process.stderr is not None
    # Read meanwhile, or it would wait for us.
    complaining = asyncio.ensure_future(process.stderr.read())
    try:
        lines: list[bytes] = []
        size = 0
        is_complete = True
        while line := await process.stdout.readline():
            size += len(line)
            if len(lines) >= lines_max or size > _OUTPUT_BYTES_MAX:
                is_complete = False
                break
            lines.append(line)
        if is_complete:
            await process.wait()
    except ValueError:
        raise RefusedError(409, "A node in it is too large to be shown.") from None
    finally:
        await _killed(process)
        told = await complaining
    if not lines and process.returncode not in (0, 3) and told.strip():
        last = told.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise RefusedError(409, f"{last.removeprefix('paddock: ')}.")
    return b"".join(lines).decode("utf-8", "replace"), is_complete


def _asked(place: Place, arguments: list[str], lines_max: int) -> tuple[str, bool]:
    """Have the admin server run a command. Raises RefusedError or _CredentialsRefusedError."""
    query = urlencode({"arguments": json.dumps(arguments)})
    # The address was checked when the command was given: it is http or https.
    request = Request(f"{str(place.admin).rstrip('/')}/commands/past?{query}")
    scheme, _, rest = place.admin_auth.partition(":")
    # Not for where it may be redirected to.
    request.add_unredirected_header("Authorization", f"{scheme} {rest}")
    try:
        with urlopen(request, timeout=_RUN_SECONDS) as answer:
            lines = answer.read(_OUTPUT_BYTES_MAX).decode("utf-8", "replace").splitlines(True)
            error = unquote(answer.headers["error"] or "")
    except HTTPError as refusal:
        sentence = f"The admin server refuses: {_reason(refusal)}."
        if refusal.code in _WRONG_CREDENTIALS:
            raise _CredentialsRefusedError(sentence) from None
        raise RefusedError(409, sentence) from None
    except (OSError, ValueError) as failure:
        raise RefusedError(503, f"The admin server does not answer: {failure}.") from None
    if not lines and error:
        raise RefusedError(409, f"{error.removeprefix('paddock: ')}.")
    return "".join(lines[:lines_max]), len(lines) <= lines_max


def _reason(refusal: HTTPError) -> str:
    """Return why the admin server refuses: its words, or what the status means."""
    try:
        return str(json.loads(refusal.read(_LINE_BYTES_MAX))["error"])
    except (OSError, ValueError, KeyError, TypeError):
        return f"{refusal.code} {refusal.reason or responses.get(refusal.code, '')}".rstrip()


async def _killed(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await process.wait()
    if process.stdin is not None:
        process.stdin.close()


def _environment(data: Path | None) -> Mapping[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("PADDOCK_")}
    return own if data is None else {**own, "PADDOCK_DATA": str(data.absolute())}
