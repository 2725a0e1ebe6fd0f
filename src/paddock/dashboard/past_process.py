"""A process of the dashboard's that reads a history: it takes memory and time of its own.

    python -m paddock.dashboard.past_process range DATA [--log FOLDER]
    python -m paddock.dashboard.past_process serve DATA MOMENT [--log FOLDER]

The first prints from when on the history reaches. The second serves the state of a moment, and
prints where, until its stdin is closed; so it ends with the process that has started it. Each
prints one line of JSON, which is `{"error": …}` if it cannot be done.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from paddock.errors import PaddockError
from paddock.history.moment import BEGINNING, NOW, parse_moment
from paddock.history.past import Gap, state_at
from paddock.history.source import open_source
from paddock.server.past_server import past_server


def main(arguments: list[str]) -> None:
    """Do what the command line says."""
    what, data, *rest = arguments
    log = Path(rest[rest.index("--log") + 1]) if "--log" in rest else None
    try:
        if what == "range":
            _print(reach(Path(data), log))
        else:
            asyncio.run(_serve(Path(data), log, rest[0]))
    except (PaddockError, OSError, ValueError) as error:
        _print({"error": str(error)})


def reach(data: Path, log: Path | None) -> dict[str, Any]:
    """Return the beginning of a history: its zxid and its time."""
    past = open_source(data, log).begin(BEGINNING)
    zxid, time_ms = past.zxid, past.time_ms
    if not time_ms:
        # A log that is there from its beginning: its first entry has a time.
        for step in past.steps(NOW):
            if not isinstance(step, Gap):
                zxid, time_ms = step.zxid, step.time_ms
                break
    return {"from_zxid": f"0x{zxid:x}", "from_ms": time_ms}


async def _serve(data: Path, log: Path | None, moment: str) -> None:
    machine = state_at(open_source(data, log), parse_moment(moment, datetime.now(UTC))).machine()
    server, credentials = past_server(
        machine, lambda: time.time_ns() // 1_000_000, secrets.token_bytes
    )
    await server.start()
    try:
        host, port = server.address
        _print(
            {
                "hosts": f"{host}:{port}",
                "credentials": credentials,
                "zxid": f"0x{machine.zxid:x}",
                "time_ms": machine.time_ms,
            }
        )
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)
    finally:
        await server.stop()


def _print(fields: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
