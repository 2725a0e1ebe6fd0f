"""`paddock.sync` in a program that gevent has patched: calls wait, and other greenlets run on."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from paddock.testing import ServerThread

pytest.importorskip("gevent", reason="gevent is not installed; the extra `dev` has it")

DEADLINE_S = 60.0


def said_by(body: str, hosts: str) -> list[str]:
    """Run a program after `patch_all`; return its lines, with those of stderr."""
    source = f"""\
        from gevent import monkey

        monkey.patch_all()

        import sys
        import gevent
        hosts = {hosts!r}
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source) + textwrap.dedent(body)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    return done.stdout.splitlines()


def test_calls_watches_locks_and_streams_work_beside_other_greenlets() -> None:
    body = """\
        from gevent.event import Event as Signal
        from paddock.sync import connect, timeout
        from paddock.sync.recipes import Lock

        with timeout(30), connect(hosts) as client, connect(hosts) as other:
            print(client.state)
            client.create("/color", b"blue")
            getting = [gevent.spawn(client.get, "/color") for _ in range(20)]
            gevent.joinall(getting)
            print({one.value.data for one in getting})
            events = []
            client.get("/color", watch=events.append)
            client.set("/color", b"red")
            while not events:
                gevent.sleep(0.01)
            print(events[0].type)
            waits = Signal()

            def contend():
                waits.set()
                with Lock(other, "/lock"):
                    return "second"

            with Lock(client, "/lock"):
                contending = gevent.spawn(contend)
                # Only a greenlet that runs meanwhile sets it.
                waits.wait()
                print(contending.ready())
            print(contending.get())
            with client.watch("/color") as changes:
                print(next(changes).data)
                try:
                    with timeout(0.01):
                        next(changes)
                except TimeoutError:
                    print("timeout")
        print("closed")
        """
    with ServerThread() as server:
        assert said_by(body, server.hosts) == [
            "CONNECTED",
            "{b'blue'}",
            "CHANGED",
            "False",
            "second",
            "b'red'",
            "timeout",
            "closed",
        ]


def test_without_uvloop_it_says_what_to_install() -> None:
    body = """\
        sys.modules["uvloop"] = None
        from paddock import UsageError
        from paddock.sync import connect

        try:
            connect(hosts)
        except UsageError as error:
            print(error)
        """
    [line] = said_by(body, "127.0.0.1:1")
    assert line.endswith("install uvloop, whose loop does: pip install uvloop")
