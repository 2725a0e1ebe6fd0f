"""Apache's `zkCli` and `paddock shell`, run as processes, and what they say made comparable.

Only what follows is made equal or left out, and each of it says why:

* Ids and times: zxids, session ids, the times of a stat. They differ from run to run.
* The version of the shell, and the time when it was built. Ours says that it is 3.8.0.
* Lines of Java's logging, and the two lines of Apache's greeting.
* Where events stand among the rest. A thread of its own prints them in Apache's shell, between two
  lines or in the middle of one; so they are taken out and compared apart, in their order. Those of
  one removal come in the order of a hash table, so a run of them is sorted.
* How the events of two sessions stand to each other. There is such a thread for each, and that of
  a session that was closed may be late. So what tells of connections is compared apart from what
  tells of nodes, with the end of each session before the beginning of the next one.
* A last event that tells that the session is closed: Apache's shell may be gone before it.
* The order of those whom `whoami` names, which is that of a hash table in an Apache server.
* The order of the servers in `config -c`, which is that of a hash table in Apache's shell.
* An exit status that is not 0 is 1. Apache's shell has 127 for a command that there is not.
* The zxid of an event. Apache's shell shows it since 3.9, ours does not.
* How `get` and `set` are used, if Apache's shell is older than 3.9.3. Ours is that of 3.9.3, where
  they have more flags and explain them. `zkcli_39.txt` has what it says.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import subprocess
import time
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Self

from tests.support.apache import NETTY, find_jar, find_java
from tests.support.command import COMMAND
from tests.support.release import release_of

DEADLINE_S: Final = 120.0

_EVENT: Final = re.compile(r"\nWATCHER::\n|\n(WatchedEvent [^\n]*?)(?: zxid: -?\d+)?\n")
_ANNOUNCED: Final = "WATCHER::"
_CONNECTED: Final = "WatchedEvent state:SyncConnected type:None path:null"
_CLOSED: Final = "WatchedEvent state:Closed type:None path:null"
_CHANGING: Final = (
    (re.compile(r"^([cmp]Zxid) = 0x[0-9a-f]+$"), r"\1 = #"),
    (re.compile(r"^([cm]time) = \w{3} \w{3} \d\d \d\d:\d\d:\d\d \w+ \d{4}$"), r"\1 = #"),
    (re.compile(r"^ephemeralOwner = 0x(?!0$)[0-9a-f]+$"), "ephemeralOwner = #"),
    # The version of a configuration is a zxid.
    (re.compile(r"^version=[0-9a-f]+$"), "version=#"),
    (re.compile(r"^(ZooKeeper CLI version:) \d+\.\d+\.\d+-.*$"), r"\1 #"),
)
_OF_LATER_VERSION: Final = (
    (re.compile(r"\n -b +(?:Output|Supply) data in base64 format\n(?: -\w .+\n)+"), ""),
    (re.compile(r"\bget \[-s\] \[-w\] \[-b\] \[-x\] path"), "get [-s] [-w] path"),
    (
        re.compile(r"\bset path data \[-s\] \[-v version\] \[-b\]"),
        "set [-s] [-v version] path data",
    ),
)
_FOR_CLIENTS: Final = re.compile(r"[0-9a-f]{9,16} ([0-9.:,]*)")
_WHO: Final = re.compile(r"(?:ip|digest): .*")
_NOISE: Final = re.compile(
    r"SLF4J: .*|\d{4}-\d\d-\d\d .*|Welcome to ZooKeeper!|JLine support is disabled"
)


@dataclass(frozen=True, slots=True)
class Transcript:
    """What a shell said, made comparable."""

    status: int
    output: list[str]
    errors: list[str]
    #: The events of connections, then those of nodes.
    events: list[str]


def zkcli(*arguments: str) -> list[str]:
    """Return the command that starts Apache's shell; raise `ServerMissingError` without one."""
    java = [find_java(), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8"]
    java += ["-cp", ":".join(map(str, (find_jar(), *NETTY)))]
    return [*java, "org.apache.zookeeper.ZooKeeperMain", *arguments]


def paddock_shell(*arguments: str) -> list[str]:
    """Return the command that starts our shell."""
    return [*COMMAND, "shell", *arguments]


def has_flags_of_data() -> bool:
    """Return whether Apache's shell knows `get -b`, `get -x` and `set -b`, as ours does."""
    return release_of(find_jar()) >= (3, 9, 3)


def transcript(command: list[str], script: str = "") -> Transcript:
    """Run a shell to its end, with these lines on its stdin."""
    ended = subprocess.run(
        command, input=script.encode(), capture_output=True, timeout=DEADLINE_S, check=False
    )
    text = ended.stdout.decode()
    return Transcript(
        min(ended.returncode, 1),
        _comparable(_EVENT.sub("", text)),
        _comparable(ended.stderr.decode()),
        _events(text),
    )


class Conversation:
    """A shell that is spoken to line by line; `with` ends it.

    Stdout and stderr are one here: what is waited for comes in the order of what was said.
    """

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self._said = b""
        # How much of the output has been waited for.
        self._heard = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            # What was not written will not be.
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        self._process.wait(DEADLINE_S)

    @property
    def pid(self) -> int:
        return self._process.pid

    def say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()

    def hear(self, text: str) -> str:
        """Wait for a text; give everything that was said since the last time, up to it."""
        assert self._process.stdout is not None
        limit = time.monotonic() + DEADLINE_S
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while (found := self._said.find(text.encode(), self._heard)) < 0:
                rest = self._said[self._heard :]
                assert selector.select(limit - time.monotonic()), f"no {text!r}, only {rest!r}"
                chunk = os.read(self._process.stdout.fileno(), 65536)
                assert chunk, f"it ended without {text!r}, with {rest!r}"
                self._said += chunk
        begin, self._heard = self._heard, found + len(text.encode())
        return self._said[begin : self._heard].decode()

    def end(self) -> int:
        """Close its stdin and wait for its end; give the status."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self.wait()

    def wait(self) -> int:
        return self._process.wait(DEADLINE_S)


def _comparable(text: str) -> list[str]:
    if not has_flags_of_data():
        for pattern, earlier in _OF_LATER_VERSION:
            text = pattern.sub(earlier, text)
    lines = [_normal(line) for line in text.split("\n") if not _NOISE.fullmatch(line)]
    return _with_sorted_runs(lines, _WHO)


def _normal(line: str) -> str:
    for pattern, replacement in _CHANGING:
        line = pattern.sub(replacement, line)
    if (match := _FOR_CLIENTS.fullmatch(line)) is not None:
        return f"# {','.join(sorted(match[1].split(',')))}"
    return line


def _events(text: str) -> list[str]:
    told = [match[1] or _ANNOUNCED for match in _EVENT.finditer(text)]
    events = [line for line in told if line != _ANNOUNCED]
    # Two threads may both announce first, and a shell may end between the two lines.
    assert len(told) - 2 * len(events) in (0, 1), told
    of_connections = by_session([event for event in events if _is_of_connection(event)])
    if of_connections[-1:] == [_CLOSED]:
        of_connections.pop()
    of_nodes = [event for event in events if not _is_of_connection(event)]
    return of_connections + _with_sorted_runs(of_nodes, re.compile(r".*WatchRemoved.*"))


def _is_of_connection(event: str) -> bool:
    return " type:None " in event


def by_session(events: list[str]) -> list[str]:
    """Return the events of connections with the end of each before the beginning of the next."""
    ordered: list[str] = []
    ends_put = 0
    for place, event in enumerate(events):
        if event == _CLOSED and ends_put:
            ends_put -= 1
            continue
        begins_within = event == _CONNECTED and ordered[-1:] == [_CONNECTED]
        if begins_within and events[place:].count(_CLOSED) > ends_put:
            ordered.append(_CLOSED)
            ends_put += 1
        ordered.append(event)
    return ordered


def _with_sorted_runs(lines: list[str], pattern: re.Pattern[str]) -> list[str]:
    """Sort what stands together and fits the pattern; the rest stays in its place."""
    found: list[str] = []
    for is_of_run, some in groupby(lines, key=lambda line: pattern.fullmatch(line) is not None):
        run = list(some)
        found += sorted(run) if is_of_run else run
    return found
