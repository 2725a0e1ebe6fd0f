"""Apache's `zkCli` and `paddock shell`, run as processes, and what they say made comparable.

Only what follows is made equal or left out, and each of it says why:

* Ids and times: zxids, session ids, the times of a stat. They differ from run to run.
* The version of the shell, which has a time of its build.
* Lines of Java's logging, and the two lines of Apache's greeting.
* Where events stand among the rest. A thread of its own prints them in Apache's shell, between two
  lines or in the middle of one; so they are taken out and compared apart, in their order. Those of
  one removal come in the order of a hash table, so a run of them is sorted.
* A last event that tells that the session is closed: Apache's shell may be gone before it.
* The order of those whom `whoami` names, which is that of a hash table in an Apache server.
* An exit status that is not 0 is 1. Apache's shell has 127 for a command that there is not.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from tests.support.apache import NETTY, find_jar, find_java
from tests.support.command import COMMAND

DEADLINE_S: Final = 120.0

_EVENT: Final = re.compile(r"\nWATCHER::\n|\n(WatchedEvent [^\n]*)\n")
_CLOSED: Final = "WatchedEvent state:Closed type:None path:null"
_CHANGING: Final = (
    (re.compile(r"^([cmp]Zxid) = 0x[0-9a-f]+$"), r"\1 = #"),
    (re.compile(r"^([cm]time) = \w{3} \w{3} \d\d \d\d:\d\d:\d\d \w+ \d{4}$"), r"\1 = #"),
    (re.compile(r"^ephemeralOwner = 0x(?!0$)[0-9a-f]+$"), "ephemeralOwner = #"),
    (re.compile(r"^(ZooKeeper CLI version: 3\.8\.0-).*$"), r"\1#"),
)
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
    events: list[str]


def zkcli(*arguments: str) -> list[str]:
    """Give the command that starts Apache's; raises `ServerMissingError` if it is not there."""
    java = [find_java(), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8"]
    java += ["-cp", ":".join(map(str, (find_jar(), *NETTY)))]
    return [*java, "org.apache.zookeeper.ZooKeeperMain", *arguments]


def paddock_shell(*arguments: str) -> list[str]:
    """Give the command that starts ours."""
    return [*COMMAND, "shell", *arguments]


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


def _comparable(text: str) -> list[str]:
    lines = [_normal(line) for line in text.split("\n") if not _NOISE.fullmatch(line)]
    return _with_sorted_runs(lines, _WHO)


def _normal(line: str) -> str:
    for pattern, replacement in _CHANGING:
        line = pattern.sub(replacement, line)
    return line


def _events(text: str) -> list[str]:
    # The line that announces it stays in: there is one for each.
    told = [match[1] or "WATCHER::" for match in _EVENT.finditer(text)]
    if told[-2:] == ["WATCHER::", _CLOSED]:
        del told[-2:]
    found = _with_sorted_runs(told[1::2], re.compile(r".*WatchRemoved.*"))
    assert told[::2] == ["WATCHER::"] * len(found), told
    return found


def _with_sorted_runs(lines: list[str], pattern: re.Pattern[str]) -> list[str]:
    """Sort what stands together and fits the pattern; the rest stays in its place."""
    found: list[str] = []
    for is_of_run, some in groupby(lines, key=lambda line: pattern.fullmatch(line) is not None):
        run = list(some)
        found += sorted(run) if is_of_run else run
    return found
