"""`paddock elect` when things go wrong: one command at a time, and always one in the end."""

import signal
from collections.abc import Sequence

from paddock.sync import connect
from paddock.testing import ServerProcess
from tests.support.holding import (
    Wrapper,
    Wrappers,
    resume,
    stopped,
    wait_dead,
    wait_until,
)

PATH = "/election"
# Who begins while the server is away, on a busy machine, looks for it that long; the server grants
# sessions that are as short as those of the others.
PATIENT = ("--timeout", "180")


def start(
    wrappers: Wrappers, server: ServerProcess, *options: str, act: str = "for ever"
) -> Wrapper:
    options = ("--timeout", "3", *options, "--")
    return wrappers.start("elect", server.hosts, PATH, *options, *wrappers.worker(act))


def pids(candidates: Sequence[Wrapper]) -> list[int]:
    """Return the pids of all commands that have reported that they run."""
    return [int(line.split()[1]) for one in candidates for line in one.lines]


def test_when_the_leader_is_killed_the_next_one_leads(
    server: ServerProcess, wrappers: Wrappers
) -> None:
    one = start(wrappers, server)
    worker = one.wait_runs()
    next_one = start(wrappers, server)
    one.kill()
    assert next_one.wait_runs().token > worker.token
    assert not worker.is_alive


def test_who_loses_the_leadership_stands_again(server: ServerProcess, wrappers: Wrappers) -> None:
    one = start(wrappers, server)
    worker = one.wait_runs()
    next_one = start(wrappers, server)
    with connect(server.hosts) as client:
        wait_until(lambda: len(client.children(PATH)) == 2, "candidate")
        client.delete(worker.guard)
    next_one.wait_runs()
    next_one.send(signal.SIGTERM)
    assert next_one.wait_end() == 128 + signal.SIGTERM
    assert one.wait_runs(2).token > worker.token
    assert one.errors == [
        f"paddock: {PATH}: the leadership was lost, so the command was ended; standing again"
    ]


def test_a_leader_that_was_stopped_stands_again_behind_the_next_one(
    server: ServerProcess, wrappers: Wrappers
) -> None:
    one = start(wrappers, server)
    worker = one.wait_runs()
    next_one = start(wrappers, server)
    stopped(one.process.pid)
    second = next_one.wait_runs()
    assert not worker.is_alive
    resume(one.process.pid)
    with connect(server.hosts) as client:
        wait_until(lambda: len(client.children(PATH)) == 2, "candidate")
    assert second.is_alive
    next_one.kill()
    assert one.wait_runs(2).token > second.token


def test_a_service_that_is_gone_for_long_and_comes_back_has_one_leader_again(
    server: ServerProcess, wrappers: Wrappers
) -> None:
    candidates = [start(wrappers, server, *PATIENT) for _ in range(3)]
    wrappers.wait_begun(1)
    for _ in range(2):
        # A command reports its pid a little after it has begun.
        wait_until(lambda: len(pids(candidates)) == wrappers.begun(), "pid")
        server.kill()
        wait_dead(pids(candidates))
        begun = wrappers.begun()
        server.start()
        wrappers.wait_begun(begun + 1)
    assert all(one.process.poll() is None for one in candidates)


def test_leaders_that_come_and_go_while_the_server_is_restarted_are_never_two(
    server: ServerProcess, wrappers: Wrappers
) -> None:
    for _ in range(3):
        start(wrappers, server, "--restart", *PATIENT, act="brief")
    for number in (1, 3, 5):
        wrappers.wait_begun(number)
        server.kill()
        server.start()
    wrappers.wait_begun(8)
