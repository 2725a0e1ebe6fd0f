"""Apache's shell `zkCli`, fed with commands on its standard input: one JVM for all of them.

What it prints is taken apart by command: after each one a node is asked for that does not exist,
and the complaint marks the end of that command's output. The shell prints events from a thread of
its own, anywhere between other lines, so they are collected apart, in their order.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.support.apache import NETTY, find_jar, find_java
from tests.support.wire import Address

DEADLINE_S: Final = 60.0

_MARK: Final = "/end-of-output-"
_EVENT: Final = "WatchedEvent state:"
_EVENT_PARTS: Final = re.compile(r" (?:type|path):(\S+)")
#: What the shell says about itself, and the lines around an event.
_NOISE: Final = re.compile(
    r"SLF4J: .*|\d{4}-\d\d-\d\d .*|Connecting to .*|Welcome to ZooKeeper!|JLine support is .*"
    r"|WATCHER::|\s*"
)
#: What differs from run to run and from server to server.
_CHANGING: Final = (
    (re.compile(r"^([cmp]Zxid) = 0x[0-9a-f]+$"), r"\1 = #"),
    (re.compile(r"^([cm]time) = .+$"), r"\1 = #"),
    (re.compile(r"^ephemeralOwner = 0x(?!0$)[0-9a-f]+$"), "ephemeralOwner = #"),
    (re.compile(r"^(ZooKeeper CLI version:) .*$"), r"\1 #"),
)


@dataclass(slots=True)
class Transcript:
    """What the shell printed."""

    #: For each command, the lines it printed.
    outputs: list[list[str]] = field(default_factory=list)
    #: The events, as `kind path`, without those of the connection.
    events: list[str] = field(default_factory=list)


def run(
    address: Address, commands: Sequence[str], properties: Mapping[str, str] | None = None
) -> Transcript:
    """Run the commands in one shell, and let it quit.

    Raises `ServerMissingError` if the shell is not installed.
    """
    java = [find_java(), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    java += [f"-D{key}={value}" for key, value in (properties or {}).items()]
    java += ["-cp", ":".join(map(str, (find_jar(), *NETTY)))]
    java += ["org.apache.zookeeper.ZooKeeperMain", "-server", f"{address[0]}:{address[1]}"]
    return run_shell(java, commands)


def run_shell(shell: Sequence[str], commands: Sequence[str]) -> Transcript:
    """Run the commands in any shell of this kind, such as ours."""
    lines: list[str] = []
    for number, command in enumerate(commands):
        lines += [command, f"get {_MARK}{number}"]
    finished = subprocess.run(
        shell,
        input="".join(f"{line}\n" for line in [*lines, "quit"]),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEADLINE_S,
    )
    transcript = _parse(finished.stdout)
    assert len(transcript.outputs) == len(commands), finished.stdout[-2000:]
    return transcript


def _parse(text: str) -> Transcript:
    transcript = Transcript()
    output: list[str] = []
    for line in text.splitlines():
        if line == f"Node does not exist: {_MARK}{len(transcript.outputs)}":
            transcript.outputs.append(output)
            output = []
        elif line.startswith(_EVENT):
            kind, path = _EVENT_PARTS.findall(line)
            if kind != "None":
                transcript.events.append(f"{kind} {path}")
        elif not _NOISE.fullmatch(line):
            output.append(_normal(line))
    return transcript


def _normal(line: str) -> str:
    for pattern, replacement in _CHANGING:
        line = pattern.sub(replacement, line)
    return line.rstrip()
