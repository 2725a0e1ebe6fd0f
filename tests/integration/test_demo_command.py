"""`paddock demo` as its viewers meet it: real processes, and a text or a screen that tells of them.

The acts are played once for all tests of what they show. What is checked is the text: who leads,
who holds, who is killed, in the order in which it stands there.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import select
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.support.command import COMMAND, DEADLINE_S, refusal, success
from tests.support.holding import wait_until
from tests.support.terminal import CONTROL_C, terminal

ACTS: Final = ["election", "lock", "discovery", "queue", "barrier"]
# Longer than usual: these tests run beside others, and a worker that is starved is taken for dead.
TIMEOUT: Final = ("--timeout", "3")
# Tells the processes of one demo from all others; they inherit it.
MARK: Final = "MARK_OF_THIS_DEMO"

_LINE: Final = re.compile(r"(\S+) +(\d+\.\d\d)  (\S+) +(.*)")


@dataclass(frozen=True)
class Told:
    """One line of the text."""

    act: str
    who: str
    what: str

    def number(self, name: str) -> int:
        match = re.search(rf"\b{name} (\d+)", self.what)
        assert match is not None, self
        return int(match[1])


def told(text: str) -> list[Told]:
    lines = []
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        assert match is not None, line
        lines.append(Told(match[1], match[3], match[4]))
    return lines


@dataclass
class Demo:
    """A demo that runs in a pipe, with a folder of its own for whatever is temporary."""

    process: subprocess.Popen[str]
    mark: str
    temporary: Path

    def read_until(self, piece: str) -> str:
        """Read up to a line that has something in it; give that line."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if piece in line:
                return line
        raise AssertionError(f"it ended before {piece!r}")

    def end(self) -> tuple[int, str, str]:
        """Wait for its end; give the status, and the rest of what it wrote."""
        output, errors = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, output, errors

    def left(self) -> list[str]:
        """Return what is left of it: processes and files."""
        return [*map(str, pids(self.mark)), *map(str, self.temporary.iterdir())]


def pids(mark: str) -> list[int]:
    """Return the id of every process that has inherited `mark`."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        # Some are not ours to look at, and some end while we look.
        with contextlib.suppress(OSError):
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


@contextlib.contextmanager
def demo(folder: Path, *arguments: str) -> Iterator[Demo]:
    mark = secrets.token_hex(8)
    temporary = folder / f"temporary-{mark}"
    temporary.mkdir()
    process = subprocess.Popen(
        [*COMMAND, "demo", *TIMEOUT, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # What a user has set for another server is not for this one.
        env={**os.environ, MARK: mark, "TMPDIR": str(temporary), "PADDOCK_CONFIG": "/missing"},
    )
    try:
        yield Demo(process, mark, temporary)
    finally:
        # A test that fails leaves nothing either.
        for pid in pids(mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.communicate(timeout=DEADLINE_S)


@dataclass(frozen=True)
class Played:
    status: int
    text: str
    errors: str
    left: list[str]

    def act(self, name: str) -> list[Told]:
        return [line for line in told(self.text) if line.act == name]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    with demo(tmp_path_factory.mktemp("demo"), "--once", "--speed", "20") as running:
        status, text, errors = running.end()
        return Played(status, text, errors, running.left())


def killed(lines: list[Told]) -> tuple[int, str]:
    """Return the index of the line that reports a kill, and the name of the victim."""
    ((place, line),) = [
        (place, line) for place, line in enumerate(lines) if line.what.startswith("kills ")
    ]
    assert line.who == "demo"
    return place, line.what.rpartition(" ")[2]


# In a pipe.


def test_in_a_pipe_all_acts_are_played_once_and_then_it_ends(played: Played) -> None:
    assert (played.status, played.errors) == (0, "")
    acts = [line.act for line in told(played.text)]
    assert list(dict.fromkeys(acts)) == ["demo", *ACTS]
    for name in ACTS:
        assert sum(line.what.startswith("saw that ") for line in played.act(name)) == 1


def test_in_a_pipe_there_are_only_lines_of_text(played: Played) -> None:
    assert "\x1b" not in played.text
    assert "\r" not in played.text
    assert told(played.text)


def test_no_process_and_no_file_is_left_when_it_is_over(played: Played) -> None:
    assert played.left == []


def test_every_worker_is_a_process_of_its_own(played: Played) -> None:
    pids = [line.number("pid") for line in told(played.text) if line.what.startswith("connects")]
    assert len(pids) == len(set(pids)) == 3 + 4 + 5 + 4 + 3


def test_the_leader_is_killed_and_the_next_one_leads_with_a_larger_token(played: Played) -> None:
    lines = played.act("election")
    place, victim = killed(lines)
    first, *others = [line for line in lines if line.what.startswith("leads")]
    assert first.who == victim
    assert lines.index(first) < place
    assert [lines.index(line) > place for line in others] == [True, True]
    assert len({line.who for line in (first, *others)}) == 3
    tokens = [line.number("token") for line in (first, *others)]
    assert tokens == sorted(set(tokens))
    assert any(
        line.who == "service" and line.what.startswith(f"ends the session of {victim}")
        for line in lines[place:]
    )


def test_nobody_holds_the_lock_while_another_one_does(played: Played) -> None:
    lines = played.act("lock")
    holder, tokens = None, []
    for line in lines:
        if line.what.startswith("holds the lock"):
            assert holder is None, line
            holder = line.who
            tokens.append(line.number("token"))
        elif line.what == "lets go":
            assert holder == line.who
            holder = None
        elif line.what == "ends" and holder == line.who:
            holder = None
        elif line.what.startswith("kills "):
            # It is killed with the lock in its hands.
            assert line.what.endswith(f" {holder}")
            holder = None
    assert len(tokens) >= 8
    assert tokens == sorted(set(tokens))
    place, _ = killed(lines)
    assert any(line.what.startswith("holds the lock") for line in lines[place:])


def test_a_user_of_a_service_sees_its_instances_come_and_go(played: Played) -> None:
    lines = played.act("discovery")
    place, victim = killed(lines)
    seen = {
        is_after: [
            line.what.removeprefix("sees: instances ").split()
            for line in part
            if line.what.startswith("sees")
        ]
        for is_after, part in ((False, lines[:place]), (True, lines[place:]))
    }
    assert seen[False][-1] == ["search-1", "search-2", "search-3"]
    assert victim in seen[False][-1]
    # Then the act ends, and it may see the others leave.
    assert seen[True][:3] == [
        ["search-1", "search-3"],
        ["search-1", "search-3", "search-4"],
        ["search-3", "search-4"],
    ]


def test_the_job_of_a_killed_consumer_is_delivered_again_and_every_job_is_done(
    played: Played,
) -> None:
    lines = played.act("queue")
    place, victim = killed(lines)
    put = [line.number("job") for line in lines if line.what.startswith("puts")]
    takes = [line for line in lines if line.what.startswith("takes")]
    (lost,) = [line.number("job") for line in takes if line.who == victim]
    done = Counter(line.number("job") for line in lines if line.what.startswith("is done"))
    assert done == Counter(put)
    (again,) = [line for line in takes if line.number("attempt") == 2]
    assert again.number("job") == lost
    assert again.who != victim
    assert lines.index(again) > place
    assert Counter(line.number("job") for line in takes) == Counter(put) + Counter([lost])


def test_members_of_a_barrier_begin_together_and_end_together(played: Played) -> None:
    whats = [line.what for line in played.act("barrier")]
    for before, after in (("arrives", "begins"), ("is done", "leaves")):
        assert whats.count(before) == whats.count(after) == 3
        last = len(whats) - 1 - whats[::-1].index(before)
        assert last < whats.index(after)


# Its end before its time.


def test_two_at_once_do_not_meet_and_a_signal_leaves_nothing(tmp_path: Path) -> None:
    with demo(tmp_path, "lock") as one, demo(tmp_path, "lock") as other:
        for running, number in ((one, signal.SIGINT), (other, signal.SIGTERM)):
            running.read_until("holds the lock: ")
            running.process.send_signal(number)
        for running, number in ((one, signal.SIGINT), (other, signal.SIGTERM)):
            status, _, errors = running.end()
            assert (status, errors) == (128 + number, "")
            assert running.left() == []


def test_if_it_is_killed_its_processes_end_by_themselves(tmp_path: Path) -> None:
    with demo(tmp_path, "election") as running:
        running.read_until("leads: token")
        # A server, and one worker at least.
        there = [pid for pid in pids(running.mark) if pid != running.process.pid]
        assert len(there) >= 2
        ends = [os.pidfd_open(pid) for pid in there]
        running.process.kill()
        for end in ends:
            assert select.select([end], [], [], DEADLINE_S)[0]
            os.close(end)
        running.end()
        # One that was just being started is none of those.
        wait_until(lambda: running.left() == [], "end of all")


def test_if_a_worker_ends_for_no_reason_it_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    with demo(tmp_path, "election") as running:
        line = running.read_until("connects")
        os.kill(told(line.rstrip("\n"))[0].number("pid"), signal.SIGKILL)
        status, _, errors = running.end()
        assert status == 1
        assert re.fullmatch(r"paddock: (alice|bob|carol) ended with status -9\n", errors), errors
        assert running.left() == []


def test_whoever_reads_may_leave(tmp_path: Path) -> None:
    with demo(tmp_path, "barrier") as running:
        running.read_until("connects")
        assert running.process.stdout is not None
        running.process.stdout.close()
        running.process.stdout = None
        status, _, errors = running.end()
        assert (status, errors) == (128 + signal.SIGPIPE, "")
        assert running.left() == []


# What is asked for.


def test_the_list_has_a_line_for_each_act() -> None:
    lines = success("demo", "--list").splitlines()
    assert [line.split()[0] for line in lines] == ACTS
    assert all(len(line.split()) > 5 and len(line) <= 100 for line in lines)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["juggling"], "juggling"),
        (["election", "juggling"], "election, lock, discovery, queue, barrier"),
        (["--speed", "0"], "--speed"),
        (["--timeout", "x"], "--timeout"),
    ],
)
def test_what_cannot_be_shown_is_one_line_and_status_2(arguments: list[str], named: str) -> None:
    assert named in refusal("demo", *arguments, status=2)


# On a terminal.


def test_a_screen_shows_the_code_the_processes_the_tree_and_the_kill() -> None:
    command = [*COMMAND, "demo", "election", "--once", "--speed", "10", *TIMEOUT]
    with terminal(command, columns=100, rows=30) as screen:
        screen.wait_for('Election(me.client, "/election"')
        screen.wait_for("what the service holds")
        leader = screen.wait_for_match(r"● (\w+) +leads: token \d+")[1]
        screen.wait_for_match(rf"latch-\d+  {leader}")
        screen.wait_for_match(rf"✗ {leader} +killed, silent for")
        screen.wait_for(f"{leader} is dead, but to the service it may be slow.")
        screen.wait_for_match(rf"✗ {leader} +killed, over after")
        assert screen.wait_for_match(r"● (\w+) +leads: token \d+")[1] != leader
        screen.wait_for("Seen: ")
        assert screen.wait_for_end() == 0
        # What has come of it stays, when the screen has gone.
        assert f"after {leader} was killed" in " ".join(screen.text.split())


def test_a_screen_that_is_held_goes_on_with_the_next_act() -> None:
    with terminal([*COMMAND, "demo", "--speed", "4"]) as screen:
        screen.wait_for("Election(")
        screen.type(" ")
        screen.wait_for("held: space goes on · n next act · q quit")
        screen.type("n")
        screen.wait_for("Lock(")
        screen.wait_for("space hold")
        screen.wait_for("what happens, in order")
        screen.type("q")
        assert screen.wait_for_end() == 0


@pytest.mark.parametrize(("key", "status"), [("q", 0), (CONTROL_C, 130)])
def test_a_key_ends_a_screen(key: str, status: int) -> None:
    mark = secrets.token_hex(8)
    command = [*COMMAND, "demo", "--speed", "4", *TIMEOUT]
    with terminal(command, environment={MARK: mark}) as screen:
        # The second act, by a key as well.
        screen.wait_for("Election(")
        screen.type("n")
        screen.wait_for("Lock(")
        screen.type(key)
        assert screen.wait_for_end() == status
        assert pids(mark) == []
        # The cursor is there again, and the screen of before.
        assert screen.written.rindex(b"\x1b[?1049l") > screen.written.rindex(b"\x1b[?1049h")
        assert screen.written.rindex(b"\x1b[?25h") > screen.written.rindex(b"\x1b[?25l")


@pytest.mark.judge
def test_in_a_cluster_the_client_that_counts_outlives_its_server_and_the_leader_of_etcd(
    tmp_path: Path,
) -> None:
    if shutil.which("etcd") is None:
        pytest.skip("etcd is missing (Debian: apt-get install etcd-server)")
    with demo(tmp_path, "cluster") as played:
        status, output, errors = played.end()
        assert (status, errors) == (0, "")
        lines = [one.what for one in told(output)]
        kills = [line for line in lines if line.startswith("kills with SIGKILL: ")]
        assert [line.split(", ")[1] for line in kills] == [
            "the server of the counter",
            "etcd's leader",
        ]
        # Its server is gone for some time.
        assert re.match(r"saw that it had no server for \d+\.\d\d s, ", lines[4])
        assert lines.count("saw that its connection was never lost, and the count only grew") >= 1
        assert sum("still holds the lock" in line for line in lines) == 2
        match = re.fullmatch(
            r"saw that (\d+) writes made the count (\d+): each done once", lines[-1]
        )
        assert match is not None
        assert match[1] == match[2]
        assert played.left() == []


def test_what_is_killed_in_a_cluster_is_said_for_that_act_alone() -> None:
    assert "is for the act cluster" in refusal("demo", "--kill", "etcd", "lock", status=2)
    assert "played alone" in refusal("demo", "cluster", "lock", status=2)
