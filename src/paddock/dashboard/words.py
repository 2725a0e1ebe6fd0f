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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

from paddock.client.session.hosts import Host
from paddock.monitor import Figures, lines_of, look, word_of
from paddock.server.admin.control_socket import ControlError, ask

_LIMIT_S: Final = 5.0
_ANSWER_BYTES_MAX: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class Words:
    """The servers of a service, and how they are asked."""

    hosts: tuple[Host, ...]
    tls: ssl.SSLContext | None = None
    admin: str | None = None
    data: Path | None = None

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
        url = f"{self.admin.rstrip('/')}/commands/{name}"
        return await asyncio.get_running_loop().run_in_executor(None, _fetched, url)

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


def _fetched(url: str) -> dict[str, Any] | None:
    try:
        # The address was checked when the command was given: it is http or https.
        with urlopen(url, timeout=_LIMIT_S) as answer:
            found = json.loads(answer.read(_ANSWER_BYTES_MAX))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and not found.get("error") else None
