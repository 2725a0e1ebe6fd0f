"""Ten browsers on a dashboard, in a process of their own.

    paddock dashboard … | python -m bench.browsers

Each logs in with the next link that the dashboard prints, and then does what the page does: it
reads its files, has a live stream, and reads what its view shows again whenever the page would
(`static/live.js` and `static/views`). Four look at the overview, three at the tree, three at
coordination. It says `open` when all of them look, and at SIGTERM one line of JSON: how many
requests, events and errors there were.
"""

import http.client
import json
import re
import signal
import sys
import threading
import time
from collections import Counter
from importlib import resources
from typing import Final
from urllib.parse import quote, urlencode

VIEWS: Final = ("overview", "tree", "coordination") * 3 + ("overview",)
# What the tree shows: the nodes that the load changes, and one of them selected.
OPEN: Final = ("/", "/bench")
SELECTED: Final = "/bench/node-00"
ROWS: Final = 250
# As the scripts have them.
GATHER_S: Final = 0.2
STALE_AT_ONCE: Final = 20
PAUSE_S: Final = 1.0
POLL_S: Final = 10.0
PATHS_MAX: Final = 100
_LINK: Final = re.compile(r"http://([\d.]+):(\d+)(/login\?token=\S+)")
_TIMEOUT_S: Final = 60.0


class Browser:
    """One page."""

    def __init__(self, host: str, port: int, login: str, view: str, counts: Counter[str]) -> None:
        self._address = host, port
        self._view = view
        self._counts = counts
        self._connection = http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)
        self._connection.request("GET", login)
        answer = self._connection.getresponse()
        answer.read()
        if answer.status != 303:
            raise SystemExit(f"the login was answered with {answer.status}")
        self._cookie = (answer.getheader("set-cookie") or "").partition(";")[0]
        self._paths: list[str] = [*OPEN] if view == "tree" else []
        self._stale: set[str] = set()
        # When the view is to be read again, and the nodes that have changed.
        self._read_due = self._stale_due = float("inf")

    def open(self) -> None:
        """Read the page and its view; then do it again as the live stream says."""
        self._get("/")
        for name in _files():
            self._get(f"/static/{name}")
        self._get("/api/about")
        self._read()
        threading.Thread(target=self._follow, daemon=True).start()
        threading.Thread(target=self._go_on, daemon=True).start()

    def _get(self, path: str) -> bytes:
        self._counts["requests"] += 1
        self._connection.request("GET", path, headers={"Cookie": self._cookie})
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            self._counts[f"status {answer.status}"] += 1
        return content

    def _ask(self, name: str, **parameters: str | int) -> bytes:
        return self._get(f"/api/{name}?{urlencode(parameters)}")

    def _read(self) -> None:
        """Read all that the view shows."""
        self._read_due = float("inf")
        if self._view == "tree":
            for path in OPEN:
                self._ask("children", path=path, limit=ROWS, offset=0)
            self._ask("node", path="/", bytes=0)
            self._ask("node", path=SELECTED)
            return
        answer = self._ask(self._view)
        if self._view == "coordination":
            found = json.loads(answer)
            recipes = [one["path"] for one in found["recipes"]]
            above = [path[: path.rindex("/")] or "/" for path in recipes]
            self._paths = [*dict.fromkeys(("/", *above, *recipes))][:PATHS_MAX]
            self._read_due = time.monotonic() + (POLL_S if found["is_complete"] else PAUSE_S)

    def _go_on(self) -> None:
        while True:
            time.sleep(GATHER_S)
            now = time.monotonic()
            if now >= self._read_due:
                self._read()
            if now >= self._stale_due:
                stale, self._stale, self._stale_due = self._stale, set(), float("inf")
                for path in sorted(stale)[:STALE_AT_ONCE]:
                    self._ask("node", path=path, bytes=0)
                if SELECTED in stale:
                    self._ask("node", path=SELECTED)

    def _follow(self) -> None:
        shown = [f"path={quote(path)}" for path in self._paths]
        stream = http.client.HTTPConnection(*self._address, timeout=_TIMEOUT_S)
        stream.request("GET", "/api/live?" + "&".join(shown), headers={"Cookie": self._cookie})
        answer = stream.getresponse()
        if answer.status != 200:
            raise SystemExit(f"the live stream was answered with {answer.status}")
        self._counts["looking"] += 1
        kind = ""
        while line := answer.readline():
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name == "event":
                kind = value
            elif name == "data":
                self._counts[f"event {kind}"] += 1
                self._take(kind, json.loads(value))
        self._counts["ended streams"] += 1

    def _take(self, kind: str, fields: dict[str, str]) -> None:
        now = time.monotonic()
        if kind == "resync":
            self._read_due = now
        elif kind == "changed" and self._view == "tree":
            self._stale.add(fields["path"])
            self._stale_due = min(self._stale_due, now)
        elif kind == "changed" and self._view == "coordination":
            self._read_due = min(self._read_due, now + PAUSE_S)


def _files() -> list[str]:
    folder = resources.files("paddock.dashboard") / "static"
    views = folder / "views"
    return [
        *(one.name for one in folder.iterdir() if one.is_file() and one.name != "index.html"),
        *(f"views/{one.name}" for one in views.iterdir()),
    ]


def main() -> None:
    """Open all of them, and look until SIGTERM."""
    counts: Counter[str] = Counter()

    def end(number: int, frame: object) -> None:
        print(json.dumps(counts), flush=True)
        sys.exit(0)

    signal.signal(signal.SIGTERM, end)
    views = iter(VIEWS)
    wanted = len(VIEWS)
    for line in sys.stdin:
        if (match := _LINK.search(line)) is not None:
            Browser(match[1], int(match[2]), match[3], next(views), counts).open()
            wanted -= 1
        if not wanted:
            break
    while counts["looking"] < len(VIEWS):
        time.sleep(GATHER_S)
    print("open", flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
