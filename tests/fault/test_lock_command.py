"""`paddock lock` when things go wrong: never do two commands run at once.

Wrappers, wardens, commands and servers are real processes, killed and stopped. That a command has
ended in time is seen in the order of things: the next one begins when the kernel has freed what the
last one held, or says that it has not.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.errors import TransactionFailedError
from paddock.sync import connect
from paddock.testing import ServerProcess
from tests.support.holding import (
    Worker,
    Wrapper,
    Wrappers,
    is_alive,
    resume,
    stopped,
    wait_dead,
    wait_until,
)

PATH = "/lock"
TIMEOUT_S = 3.0
# For what has nothing to do with the end of a session.
LONG_S = 180.0
# Less than the time that a command has at least under such a session.
SOON_S = 60.0


@pytest.fixture
def patient_server(tmp_path: Path) -> Iterator[ServerProcess]:
    """One whose sessions live long."""
    with ServerProcess(tmp_path / "data", ("--tick-time-ms", "10000")) as running:
        yield running


def start(
    wrappers: Wrappers,
    server: ServerProcess,
    act: str = "for ever",
    *,
    timeout_s: float = TIMEOUT_S,
) -> Wrapper:
    options = ("--timeout", str(timeout_s), "--")
    return wrappers.start("lock", server.hosts, PATH, *options, *wrappers.worker(act))


def guarded_write(server: ServerProcess, worker: Worker, data: bytes) -> None:
    """Write as the command could at any time, whatever has become of it."""
    with connect(server.hosts) as client:
        client.transaction().check(worker.guard).set("/written", data).commit()


def test_a_command_dies_with_its_wrapper(patient_server: ServerProcess, wrappers: Wrappers) -> None:
    one = start(wrappers, patient_server, timeout_s=LONG_S)
    worker = one.wait_runs()
    warden = worker.warden
    one.kill()
    # Long before its time is over, and with it the warden.
    wait_dead([worker.pid, warden], SOON_S)
    with connect(patient_server.hosts) as client:
        assert client.exists(worker.guard) is not None


def test_a_command_dies_with_its_warden_also_if_its_wrapper_can_do_nothing(
    patient_server: ServerProcess, wrappers: Wrappers
) -> None:
    one = start(wrappers, patient_server, "stubborn", timeout_s=LONG_S)
    worker = one.wait_runs()
    stopped(one.process.pid)
    os.kill(worker.warden, signal.SIGKILL)
    worker.wait_gone(SOON_S)
    resume(one.process.pid)
    assert one.wait_end() == 128 + signal.SIGKILL


def test_a_command_that_does_not_want_to_end_dies_with_its_wrapper_before_the_next_begins(
    server: ServerProcess, wrappers: Wrappers
) -> None:
    one = start(wrappers, server, "stubborn")
    worker = one.wait_runs()
    next_one = start(wrappers, server)
    one.kill()
    one.wait_line("asked")
    next_one.wait_runs()
    assert not worker.is_alive


def test_everything_that_the_command_has_started_dies_with_its_wrapper(
    server: ServerProcess, wrappers: Wrappers
) -> None:
    script = (
        "sleep 1000 & echo pid $!; setsid sleep 1000 & echo pid $!;"
        " (setsid sleep 1000 & echo pid $!); wait"
    )
    one = wrappers.start("lock", server.hosts, PATH, "--", "bash", "-c", script)
    pids = [int(one.wait_line("pid ", nth)[1]) for nth in (1, 2, 3)]
    one.kill()
    wait_dead(pids)


def test_everything_dies_with_its_warden_and_the_lock_is_released(
    server: ServerProcess, wrappers: Wrappers
) -> None:
    script = "setsid sleep 1000 & echo pid $! $PPID; trap '' TERM; while :; do sleep 0.01; done"
    one = wrappers.start("lock", server.hosts, PATH, "--", "bash", "-c", script)
    _, left, warden = one.wait_line("pid ")
    os.kill(int(warden), signal.SIGKILL)
    # It was not lost: it is the command that was killed.
    assert one.wait_end() == 128 + signal.SIGKILL
    assert not is_alive(int(left))
    start(wrappers, server).wait_runs()


def test_a_command_whose_wrapper_is_stopped_ends_before_the_next_begins(
    server: ServerProcess, wrappers: Wrappers
) -> None:
    one = start(wrappers, server, "stubborn")
    worker = one.wait_runs()
    next_one = start(wrappers, server)
    stopped(one.process.pid)
    # It would say so if the first one still ran.
    next_one.wait_runs()
    assert not worker.is_alive
    one.wait_line("asked")
    resume(one.process.pid)
    assert one.wait_end() == 76
    assert one.errors == [f"paddock: {PATH}: the lock was lost, so the command was ended"]


def test_a_command_that_was_stopped_with_all_ends_when_it_goes_on_and_its_writes_are_refused(
    server: ServerProcess, wrappers: Wrappers
) -> None:
    with connect(server.hosts) as client:
        client.create("/written")
    one = start(wrappers, server, "stubborn")
    worker = one.wait_runs()
    guarded_write(server, worker, b"first")
    # As on a machine that stands still: nobody is there to end the command.
    everybody = (worker.pid, worker.warden, one.process.pid)
    stopped(*everybody)
    # This one needs no evidence of its own, since the first one is not dead.
    script = "echo runs $$ $PADDOCK_TOKEN $PADDOCK_GUARD; sleep 1000"
    next_one = wrappers.start("lock", server.hosts, PATH, "--", "bash", "-c", script)
    second = next_one.wait_runs()
    with pytest.raises(TransactionFailedError):
        guarded_write(server, worker, b"late")
    guarded_write(server, second, b"second")
    resume(*everybody)
    worker.wait_gone()
    assert one.wait_end() == 76
    with connect(server.hosts) as client:
        assert client.get("/written").data == b"second"
    assert second.is_alive


def test_a_lock_that_is_taken_away_ends_the_command_at_once(
    patient_server: ServerProcess, wrappers: Wrappers
) -> None:
    one = start(wrappers, patient_server, "stubborn", timeout_s=LONG_S)
    worker = one.wait_runs()
    with connect(patient_server.hosts) as client:
        client.delete(worker.guard)
    assert one.wait_end() == 76
    assert not worker.is_alive
    # Others may have it already, so there was no time to ask.
    assert "asked" not in one.lines


def test_a_warden_that_is_stopped_does_not_keep_a_lost_command_alive(
    patient_server: ServerProcess, wrappers: Wrappers
) -> None:
    one = start(wrappers, patient_server, "stubborn", timeout_s=LONG_S)
    worker = one.wait_runs()
    stopped(worker.warden)
    with connect(patient_server.hosts) as client:
        client.delete(worker.guard)
    assert one.wait_end() == 76
    assert not worker.is_alive


def test_a_server_that_is_gone_for_too_long_ends_the_command(
    server: ServerProcess, wrappers: Wrappers
) -> None:
    one = start(wrappers, server, "stubborn")
    worker = one.wait_runs()
    server.kill()
    assert one.wait_end() == 76
    assert not worker.is_alive
    assert one.lines.count("asked") == 1


def test_a_server_that_hangs_for_too_long_ends_the_command_before_the_next_begins(
    server: ServerProcess, wrappers: Wrappers
) -> None:
    one = start(wrappers, server)
    worker = one.wait_runs()
    next_one = start(wrappers, server)
    server.pause()
    worker.wait_gone()
    server.resume()
    assert one.wait_end() == 76
    next_one.wait_runs()


def test_a_server_that_is_restarted_in_time_is_not_noticed(
    patient_server: ServerProcess, wrappers: Wrappers
) -> None:
    server = patient_server
    one = start(wrappers, server, timeout_s=LONG_S)
    worker = one.wait_runs()
    for _ in range(2):
        server.kill()
        server.start()
        with connect(server.hosts) as client:
            assert client.exists(worker.guard) is not None
    assert worker.is_alive
    one.send(signal.SIGTERM)
    assert one.wait_end() == 128 + signal.SIGTERM


def test_a_command_lives_longer_than_a_session_that_is_not_kept_alive(
    server: ServerProcess, wrappers: Wrappers
) -> None:
    command = ("--timeout", "4", "--", "sh", "-c", "sleep 6; exit 4")
    assert wrappers.start("lock", server.hosts, PATH, *command).wait_end() == 4


def test_who_waits_goes_on_waiting_after_its_session_has_expired(
    server: ServerProcess, wrappers: Wrappers
) -> None:
    one = start(wrappers, server)
    worker = one.wait_runs()
    waiting = start(wrappers, server)
    with connect(server.hosts) as client:
        wait_until(lambda: len(client.children(PATH)) == 2, "waiter")
        stopped(waiting.process.pid)
        wait_until(lambda: len(client.children(PATH)) == 1, "expiry")
    resume(waiting.process.pid)
    one.send(signal.SIGTERM)
    assert waiting.wait_runs().token > worker.token


def test_many_wrappers_and_a_server_that_is_restarted_among_them_never_two_at_once(
    server: ServerProcess, wrappers: Wrappers
) -> None:
    # Who begins while the server is away looks for it for long, under a session that is short.
    running = [start(wrappers, server, "brief", timeout_s=LONG_S) for _ in range(6)]
    for number in (1, 3):
        wrappers.wait_begun(number)
        server.kill()
        server.start()
    for one in running:
        # On a machine that is too slow for its sessions, some are lost; but not to two at once.
        assert one.wait_end() in (0, 76), one.errors
    wrappers.check_alone()
    assert wrappers.begun() == len(running)
