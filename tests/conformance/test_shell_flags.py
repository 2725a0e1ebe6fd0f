"""Whatever words follow a command, `paddock shell` says of them what Apache's `zkCli` says.

Lines of random words, with flags that exist and flags that do not, written in all ways, run through
both shells against one Apache server; a failure names the seed.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Final

import pytest

from tests.support.apache import ApacheServer
from tests.support.server import Options, Server, ServerMissingError
from tests.support.shells import has_flags_of_data, paddock_shell, transcript, zkcli

pytestmark = pytest.mark.judge

LINES: Final = 600
SEEDS: Final = [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 12))]

COMMANDS: Final = (
    *("ls", "get", "stat", "getAcl", "create", "delete", "set", "deleteall", "setquota"),
    *("delquota", "listquota", "sync", "getAllChildrenNumber", "getEphemerals", "removewatches"),
    *("addauth digest a:b", "config", "reconfig", "version", "whoami", "setAcl", "history"),
)
WORDS: Final = (
    *("/f", "/f", "/f/a", "/f/b", "/f/a/b", "x", "5", "-5", "=", "//", "/f/", "/f/./a"),
    *("world:anyone:cdrwa", "persistent", '""', "'a b'", "'", '"'),
    *("-s", "-w", "-R", "-e", "-c", "-n", "-b", "-N", "-B", "-d", "-a", "-l", "-t", "-x", "-?"),
    *("-sw", "-ws", "-sR", "-es", "-nb", "-w-s", "-s-", "-sv5", "-sadd", "-addx"),
    *("-v5", "-v=5", "-v-1", "-n5", "-n=5", "-b5", "-B7", "-t50000", "-t=7", "-s=1"),
    *("-add", "-add=1", "-remove", "-members", "-file", "-", "--", "-=", "--s", "--foo"),
)


@pytest.fixture(scope="module")
def apache() -> Iterator[Server]:
    with contextlib.ExitStack() as stack:
        try:
            yield stack.enter_context(ApacheServer(Options(reap_interval_ms=3_600_000)))
        except ServerMissingError as missing:
            pytest.skip(str(missing))


@pytest.mark.parametrize("seed", SEEDS)
def test_both_shells_say_the_same_of_any_words(apache: Server, seed: int) -> None:
    script = "".join(f"{line}\n" for line in random_lines(random.Random(seed)))
    arguments = ("-server", apache.hosts)
    said = transcript(paddock_shell(*arguments), script)
    assert said == transcript(zkcli(*arguments), script), f"seed {seed}"


def random_lines(dice: random.Random) -> Iterator[str]:
    yield from ("create /f", "create /f/a 1", "create /f/b 2")
    for _ in range(LINES):
        command = dice.choice(COMMANDS)
        words = [dice.choice(WORDS) for _ in range(dice.choice((0, 1, 1, 2, 2, 3, 3, 4)))]
        # And `set -b` of what is no base64 ends Apache's shell.
        may_not_have_them = command == "set" or (command == "get" and not has_flags_of_data())
        if may_not_have_them and any(is_flag_of_data(word) for word in words):
            continue
        yield dice.choice(("", " ")) + " ".join((command, *words))
    # Whatever has become of their ACLs, /f is there no more at the end.
    for path in ("/f/a/b", "/f/a", "/f/b", "/f"):
        yield f"setAcl {path} world:anyone:cdrwa"
    yield from ("deleteall /f", "ls /", *["sync /"] * 10, "quit")


def is_flag_of_data(word: str) -> bool:
    """Tell whether it is a flag that get and set of an older shell do not have: -b or -x."""
    return word.startswith("-") and ("b" in word or "x" in word)
