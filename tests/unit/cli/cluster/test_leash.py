"""A command on a leash: it is the command itself, and ends with its parent."""

import os
import subprocess
import sys

import pytest

from paddock.cli.cluster import leash

LEASH = [sys.executable, "-I", "-S", leash.__file__]


def test_the_command_runs_with_its_arguments() -> None:
    command = [*LEASH, str(os.getpid()), "printf", "%s,", "a b", "c"]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"a b,c,"


def test_a_command_that_is_not_there_is_one_line() -> None:
    result = subprocess.run([*LEASH, str(os.getpid()), "/no/such"], capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stderr == "paddock: /no/such: No such file or directory\n"


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel does it on Linux")
def test_it_ends_with_its_parent_even_if_that_is_killed() -> None:
    parent = f"""
import os, signal, subprocess
child = subprocess.Popen({LEASH!r} + [str(os.getpid()), "sh", "-c", "echo runs; exec sleep 1000"])
signal.pause()
"""
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == b"runs\n"
        started.kill()
        # The end of the pipe: nobody holds its other end any more.
        assert started.stdout.read() == b""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel does it on Linux")
def test_it_does_not_begin_if_its_parent_has_ended() -> None:
    result = subprocess.run([*LEASH, "1", "echo", "runs"], capture_output=True)
    assert (result.returncode, result.stdout) == (0, b"")
