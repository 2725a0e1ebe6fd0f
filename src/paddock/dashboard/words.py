"""How the dashboard asks servers about themselves: what four-letter words say, by three ways.

* The control socket of a data folder on this machine (`--data`) answers every word, to the owner of
  the folder.
* The admin server (`--admin`) has the same in JSON.
* The client port answers the words that its `4lw.commands.whitelist` has.

The first two are of one server, the first that is shown.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from base64 import b64encode
from dataclasses import dataclass
from http.client import responses
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from paddock.client.session.hosts import Host
from paddock.monitor import Figures, lines_of, look, word_of
from paddock.server.admin.control_socket import ControlError, ask

_LIMIT_S: Final = 5.0
_ANSWER_BYTES_MAX: Final = 8 << 20
_REFUSED_S: Final = 30.0


class AdminServer:
    """An admin server, and why it does not answer if it does not.

    One that refuses us is left alone for a while: it counts wrong passwords.
    """

    def __init__(self, url: str, password: str = "") -> None:
        self._url = url.rstrip("/")
        # Name and password; nothing if it asks for none.
        self._password = password
        self.problem = ""
        self._again_at = 0.0

    async def command(self, name: str) -> dict[str, Any] | None:
        """Return what it says to a command; None if it says nothing."""
        if time.monotonic() < self._again_at:
            return None
        # The address was checked when the command was given: it is http or https.
        request = Request(f"{self._url}/commands/{name}")
        if self._password:
            given = b64encode(self._password.encode()).decode()
            # It is not sent on to where the answer may point.
            request.add_unredirected_header("Authorization", f"Basic {given}")
        try:
            found = await asyncio.get_running_loop().run_in_executor(None, _fetched, request)
        except HTTPError as refusal:
            self._again_at = time.monotonic() + _REFUSED_S
            # The phrase may be left out.
            reason = refusal.reason or responses.get(refusal.code, "")
            self.problem = f"The admin server refuses: {refusal.code} {reason}."
            return None
        except (OSError, ValueError):
            self.problem = "The admin server does not answer."
            return None
        self.problem = ""
        return found if isinstance(found, dict) and not found.get("error") else None


@dataclass(frozen=True, slots=True)
class Words:
    """The servers of a service, and how they are asked."""

    hosts: tuple[Host, ...]
    tls: ssl.SSLContext | None = None
    admin: AdminServer | None = None
    data: Path | None = None

    @property
    def admin_problem(self) -> str:
        """Why the admin server says nothing, as a sentence; nothing if it does, or is not named."""
        return "" if self.admin is None else self.admin.problem

    async def look(self) -> list[Figures]:
        """Ask all servers how they are."""
        return await asyncio.gather(*map(self._look, self.hosts))

    async def say(self, host: Host, word: str) -> str | None:
        """Return what a server says to a word; None if it does not."""
        data = self.data
        if data is not None and host == self.hosts[0]:
            said = await asyncio.get_running_loop().run_in_executor(None, _confided, data, word)
            if said is not None:
                return said
        return await word_of(host, word, self.tls, _LIMIT_S)

    async def command(self, host: Host, name: str) -> dict[str, Any] | None:
        """Return what the admin server says to a command; None if it does not."""
        if self.admin is None or host != self.hosts[0]:
            return None
        return await self.admin.command(name)

    async def _look(self, host: Host) -> Figures:
        figures = await look(host, self.tls, _LIMIT_S)
        if figures.problem is not None or figures.has_details:
            return figures
        found: dict[str, str] = {}
        if self.data is not None:
            found = lines_of(await self.say(host, "mntr") or "")
        if not found:
            told = await self.command(host, "monitor") or {}
            found = {f"zk_{name}": str(value) for name, value in told.items()}
        figures.take_details(found)
        return figures


def _confided(data: Path, word: str) -> str | None:
    """Return what the server of a data folder says to its owner; None if there is none."""
    request = {"command": "word", "word": word}
    try:
        said = ask(data, request, _LIMIT_S, limit=_ANSWER_BYTES_MAX)["text"]
    except ControlError:
        return None
    return said if isinstance(said, str) else None


def _fetched(request: Request) -> Any:
    with urlopen(request, timeout=_LIMIT_S) as answer:
        return json.loads(answer.read(_ANSWER_BYTES_MAX))
