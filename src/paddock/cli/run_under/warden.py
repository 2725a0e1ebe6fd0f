"""The warden of a command: a process that runs it, and ends it in time, with all that it started.

    python -I -S warden.py CONTROL GROUP GRACE command…

The holder of a grant may be stopped or killed, and could not end its command then. So the warden
runs the command: it knows beforehand how long the command may live, and learns at once if the
holder is gone. It is a script that imports nothing of ours, so that it starts in milliseconds.
CONTROL is a socket, with one message a line:

* `until TIME`: the command may live so long, by `clock`. It starts with the first of these, if that
  is not too late, and GRACE seconds before the last one it is asked to end (SIGTERM); at the time
  itself it is killed.
* `signal NUMBER`: the command gets this signal, and so does its process group if it leads one.
* `end`: it is killed now.
* The end of the file: the holder is gone. The command is asked to end, and killed GRACE seconds
  later, or when its time is over if that is earlier.

It answers `started PID`, and at last `ended STATUS HOW`: the status as a shell gives it, and
whether the command ended by `itself` or was `ended`; or `late` if it was not even begun.

The command joins the process group GROUP, or leads one of its own if that is 0. On Linux nothing
that it starts can get away: whatever loses its parent becomes a child of the warden's, and is ended
with the rest, also if it left the group; and if the warden itself is killed, the kernel kills the
command. Elsewhere there is only the group.
"""

import ctypes
import math
import os
import select
import signal
import socket
import sys
import time
from typing import NoReturn

IS_LINUX = sys.platform == "linux"

_SET_PARENT_DEATH_SIGNAL = 1
_SET_CHILD_SUBREAPER = 36

# While something is being ended, we look so often what is left: of what becomes ours when its
# parent ends, nobody tells us.
_LOOK_S = 0.02
# And otherwise so often what time it is: a machine that slept does not wake us up for it.
_LOOK_AT_CLOCK_S = 1.0

# What ends or stops others, by way of a terminal or of a service manager, is not for the warden: it
# ends when the command has.
_NOT_FOR_US = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP),
    *(signal.SIGTTIN, signal.SIGTTOU, signal.SIGUSR1, signal.SIGUSR2),
)
# Python ignores these from its start, whatever they were before.
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def clock() -> float:
    """Return the time in seconds, by a clock that all processes share and that runs in suspend."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if IS_LINUX else time.monotonic()


def adopt_orphans() -> None:
    """Become the parent of orphaned descendants, where the system supports it."""
    if IS_LINUX:
        _prctl(_SET_CHILD_SUBREAPER, 1)


def children() -> list[int]:
    """Return our child processes, on Linux."""
    if not IS_LINUX:
        return []
    ours, found = os.getpid(), []
    try:
        names = os.listdir("/proc")
    except OSError:
        names = []
    for name in names:
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    # Behind the name, which may have anything in it: the state, then the parent.
                    parent = file.read().rpartition(b")")[2].split()[1]
            except (OSError, IndexError):
                # It has ended meanwhile.
                continue
            if int(parent) == ours:
                found.append(int(name))
    return found


def end_children() -> None:
    """Kill our children, and whatever becomes our child by that, until there is none left."""
    while found := children():
        for pid in found:
            _signal(pid, signal.SIGKILL)
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                # SIGCHLD is ignored, so that children need no wait.
                pass
        time.sleep(_LOOK_S)


def status_of(waited: int) -> int:
    """Return the status as a shell does: 128 and the number of the signal that ended it."""
    code = os.waitstatus_to_exitcode(waited)
    return code if code >= 0 else 128 - code


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


class Warden:
    """One command, from before its start until nothing of it is left."""

    def __init__(
        self, control: socket.socket, group: int, grace_s: float, command: list[str]
    ) -> None:
        self._control = control
        self._group = group
        self._grace_s = grace_s
        self._command = command
        self._unread = b""
        self._is_alone = False
        self._kill_at = -math.inf
        # The command, once it runs, and its status, once it has ended.
        self._pid = 0
        self._status: int | None = None
        # Whether we have begun to end what there is, and whether the command still ran then.
        self._is_ending = False
        self._has_ended_it = False
        # Who was asked to end already, of those that are not in the command's group.
        self._asked: set[int] = set()
        # Signals for a command that does not run yet.
        self._waiting: list[int] = []
        # What a signal writes to, so that we wake up when a child has ended.
        self._woken, self._wakes = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._wakes, False)

    def run(self) -> None:
        """Run the command and say how it ended."""
        ignored = [number for number in _NOT_FOR_US if signal.getsignal(number) is signal.SIG_IGN]
        for number in _NOT_FOR_US:
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(self._wakes)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        adopt_orphans()
        while self._kill_at == -math.inf and not self._is_alone:
            self._wait(None)
        if self._is_alone or clock() >= self._kill_at - self._grace_s:
            self._say("late")
            return
        self._start(ignored)
        while self._is_anything_left():
            now = clock()
            if now >= self._kill_at:
                self._kill()
            elif self._is_ending or now >= self._kill_at - self._grace_s:
                self._terminate(now)
            if self._is_ending:
                self._wait(_LOOK_S)
            elif self._kill_at < math.inf:
                self._wait(min(_LOOK_AT_CLOCK_S, max(0.0, self._kill_at - self._grace_s - now)))
            else:
                self._wait(None)
        self._say(f"ended {self._status} {'ended' if self._has_ended_it else 'itself'}")

    def _start(self, ignored: list[signal.Signals]) -> None:
        warden = os.getpid()
        # What comes before the command does not ignore it any more has to wait, not to get lost.
        mask = {int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, _NOT_FOR_US)}
        self._pid = os.fork()
        if self._pid == 0:
            self._become_command(warden, ignored, mask)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        try:
            # It does the same; with both nobody signals a group that is not there yet.
            os.setpgid(self._pid, self._group)
        except OSError:
            pass
        self._say(f"started {self._pid}")
        for number in self._waiting:
            self._send(number)

    def _become_command(
        self, warden: int, ignored: list[signal.Signals], mask: set[int]
    ) -> NoReturn:
        status = 126
        try:
            if IS_LINUX:
                _prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
                if os.getppid() != warden:
                    # It was killed before the kernel knew what to do then.
                    os._exit(128 + signal.SIGKILL)
            os.setpgid(0, self._group)
            signal.set_wakeup_fd(-1)
            for number in (*_NOT_FOR_US, *_IGNORED_BY_PYTHON, signal.SIGCHLD):
                if number not in ignored:
                    signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            os.execvp(self._command[0], self._command)
        except OSError as error:
            status = 127 if isinstance(error, FileNotFoundError) else 126
            os.write(2, f"paddock: {self._command[0]}: {error.strerror}\n".encode(errors="replace"))
        finally:
            os._exit(status)

    def _wait(self, timeout_s: float | None) -> None:
        """Wait for something to happen, and do what we are told."""
        # Not `select`, which knows no files beyond the thousandth: we may have inherited many.
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        if not self._is_alone:
            poll.register(self._control, select.POLLIN)
        # Rounded up, or we would look again and again in the last millisecond.
        ready = [file for file, _ in poll.poll(None if timeout_s is None else timeout_s * 1000 + 1)]
        if self._woken in ready:
            os.read(self._woken, 4096)
        if self._control.fileno() in ready:
            self._listen()

    def _listen(self) -> None:
        try:
            said = self._control.recv(65536)
        except ConnectionError:
            said = b""
        *lines, self._unread = (self._unread + said).split(b"\n")
        for line in lines:
            self._obey(line.decode())
        if not said:
            self._is_alone = True
            if self._pid:
                self._terminate(clock())

    def _obey(self, line: str) -> None:
        word, _, value = line.partition(" ")
        if word == "until":
            # What was asked to end is going to, whatever comes.
            if not self._is_ending:
                self._kill_at = float(value)
        elif word == "signal":
            self._send(int(value))
        elif word == "end":
            self._kill_at = clock()

    def _send(self, number: int) -> None:
        """Pass a signal on to the command."""
        if self._pid == 0:
            self._waiting.append(number)
        elif self._status is None:
            if self._group == 0:
                _signal_group(self._pid, number)
            else:
                _signal(self._pid, number)

    def _is_anything_left(self) -> bool:
        """Take note of whatever has ended; tell whether the command or anything of it has not."""
        while True:
            try:
                pid, waited = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return not IS_LINUX and self._is_group_left()
            if pid == 0:
                break
            self._asked.discard(pid)
            if pid == self._pid:
                self._status = status_of(waited)
        if self._status is not None and not self._is_ending:
            # What it has left behind was started under the grant, and that ends with it.
            self._terminate(clock())
        return True

    def _is_group_left(self) -> bool:
        if self._group != 0 or not _signal_group(self._pid, 0):
            return False
        if not self._is_ending:
            self._terminate(clock())
        return True

    def _terminate(self, now: float) -> None:
        """Ask everything to end that was not asked yet; each is asked once."""
        ours = self._ours()
        if not self._is_ending:
            self._begin_to_end()
            self._kill_at = min(self._kill_at, now + self._grace_s)
            self._signal_own_group(ours, signal.SIGTERM)
            # What is stopped would not hear of it.
            self._signal_own_group(ours, signal.SIGCONT)
        for pid in ours:
            if pid not in self._asked and not self._is_in_own_group(pid):
                self._asked.add(pid)
                _signal(pid, signal.SIGTERM)
                _signal(pid, signal.SIGCONT)

    def _kill(self) -> None:
        """Kill what we can reach; what that leaves without a parent is ours when we look again."""
        self._begin_to_end()
        ours = self._ours()
        self._signal_own_group(ours, signal.SIGKILL)
        for pid in ours:
            _signal(pid, signal.SIGKILL)

    def _begin_to_end(self) -> None:
        if not self._is_ending:
            self._is_ending = True
            self._has_ended_it = self._status is None

    def _ours(self) -> list[int]:
        """Return our children; their ids cannot be reused before we wait for them."""
        found = children()
        if self._status is None and self._pid not in found:
            found.append(self._pid)
        return found

    def _signal_own_group(self, ours: list[int], number: int) -> None:
        # A group is surely the command's as long as we have a child in it: then nobody else can
        # have got its number. Elsewhere than on Linux we do not know better.
        if self._group == 0 and (not IS_LINUX or any(map(self._is_in_own_group, ours))):
            _signal_group(self._pid, number)

    def _is_in_own_group(self, pid: int) -> bool:
        try:
            return self._group == 0 and os.getpgid(pid) == self._pid
        except ProcessLookupError:
            return False

    def _say(self, line: str) -> None:
        try:
            self._control.sendall(f"{line}\n".encode())
        except OSError:
            pass


def _signal(pid: int, number: int) -> None:
    """Send a signal to a child; ignore one that has ended or that we may not signal."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def _signal_group(group: int, number: int) -> bool:
    """Send a signal to a group, if there is one."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        # A process in it may not be signalled.
        pass
    return True


def main(arguments: list[str]) -> None:
    """Do what the command line says."""
    control = socket.socket(fileno=int(arguments[0]))
    # Not for the command.
    control.set_inheritable(False)
    Warden(control, int(arguments[1]), float(arguments[2]), arguments[3:]).run()


if __name__ == "__main__":
    main(sys.argv[1:])
