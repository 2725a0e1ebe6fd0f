"""`paddock shell` says what Apache's `zkCli` says, to the same lines.

`shell_script.txt` has every command that asks a server, rightly and wrongly; `shell_history.txt`
what the shell does by itself. Both run through Apache's shell and ours against one Apache server,
and through ours against Paddock; what the two shells print on stdout, on stderr, and as events, is
equal. `tests/support/shells.py` says what is left out of that. Where a script asks for `sync` again
and again, it gives the thread time that prints events in Apache's shell.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from paddock.sync import connect
from tests.support.apache import ApacheServer, find_jar
from tests.support.ensemble import ApacheEnsemble
from tests.support.paddock_server import PaddockServer
from tests.support.release import release_of
from tests.support.server import SUPER_CREDENTIALS, Options, Server, ServerMissingError
from tests.support.shells import (
    Conversation,
    Transcript,
    by_session,
    paddock_shell,
    transcript,
    zkcli,
)

pytestmark = pytest.mark.judge

SCRIPTS: Final = ("shell_script.txt", "shell_history.txt")
#: Containers and nodes with a TTL stay as long as the scripts run.
OPTIONS: Final = Options(reap_interval_ms=3_600_000)
#: Commands on the command line, one shell for each.
COMMANDS: Final = (
    ("ls", "/"),
    ("get", "/nothing"),
    ("nonsense",),
)


@pytest.fixture(scope="module")
def apache() -> Iterator[Server]:
    with contextlib.ExitStack() as stack:
        try:
            running = stack.enter_context(ApacheServer(OPTIONS))
        except ServerMissingError as missing:
            pytest.skip(str(missing))
        yield running


@pytest.fixture(scope="module")
def ours() -> Iterator[Server]:
    with PaddockServer(OPTIONS) as running:
        yield running


@pytest.fixture(scope="module", params=SCRIPTS)
def script(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    lines = Path(__file__).with_name(name).read_text().splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("#"))


@pytest.fixture(scope="module")
def judgement(apache: Server, script: str) -> Transcript:
    """What Apache's shell says to the script."""
    return transcript(zkcli("-server", apache.hosts), script.replace("ADDRESS", apache.hosts))


def test_every_command_is_in_the_scripts() -> None:
    from paddock.cli.shell.commands import COMMANDS as ALL

    lines = [
        line
        for name in SCRIPTS
        for line in Path(__file__).with_name(name).read_text().splitlines()
        if line and not line.startswith("#")
    ]
    assert {line.split()[0] for line in lines if line.split()} >= set(ALL)
    assert len(ALL) == 28


def test_both_shells_say_the_same_of_an_apache_server(
    apache: Server, script: str, judgement: Transcript
) -> None:
    said = transcript(
        paddock_shell("-server", apache.hosts), script.replace("ADDRESS", apache.hosts)
    )
    assert_equal(said, judgement)


def test_our_shell_says_the_same_of_paddock(
    apache: Server, ours: Server, script: str, judgement: Transcript
) -> None:
    said = transcript(paddock_shell("-server", ours.hosts), script.replace("ADDRESS", ours.hosts))
    assert_equal(said, at(ours, apache, judgement))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_on_the_command_line_says_the_same(
    apache: Server, command: tuple[str, ...]
) -> None:
    arguments = ("-waitforconnection", "-server", apache.hosts, *command)
    assert_equal(transcript(paddock_shell(*arguments)), transcript(zkcli(*arguments)))


def test_both_shells_say_the_same_of_an_ensemble(tmp_path: Path) -> None:
    options = Options(durable=False, extra=(("reconfigEnabled", "true"),))
    with contextlib.ExitStack() as stack:
        try:
            ensemble = stack.enter_context(ApacheEnsemble(options))
        except ServerMissingError as missing:
            pytest.skip(str(missing))
        # A member that leaves drops its clients.
        leader, follower = ensemble.leader(), ensemble.followers()[0]
        with connect(leader.hosts) as client:
            text = client.get_config().data.decode()
        servers = [line for line in text.splitlines() if line.startswith("server.")]
        [joins] = [line for line in servers if line.startswith(f"server.{follower.number}=")]
        file = tmp_path / "members.cfg"
        file.write_text("".join(f"{line}\n" for line in servers))
        script = f"""\
config
config -c
config -s -w
reconfig -remove {follower.number}
addauth digest {SUPER_CREDENTIALS.decode()}
reconfig -v 7 -remove {follower.number}
reconfig -add nonsense
reconfig -members 1=nonsense
reconfig -remove {follower.number}
reconfig -s -add {joins};{follower.port}
config -c
config
reconfig -file {file}
config -c
quit
"""
        arguments = ("-server", leader.hosts)
        expected = transcript(zkcli(*arguments), script)
        assert f"# ,,0.0.0.0:{follower.port}" in expected.output
        assert_equal(transcript(paddock_shell(*arguments), script), expected)


@pytest.mark.parametrize("shell", [zkcli, paddock_shell])
def test_a_shell_tells_of_a_server_that_goes_and_comes_back(
    apache: Server, ours: Server, shell: Callable[..., list[str]]
) -> None:
    with Conversation(shell("-server", ours.hosts)) as talk:
        hear_event(talk, shell, "SyncConnected")
        talk.say("create /coming x")
        talk.hear("Created /coming\n")
        talk.say("get -w /coming")
        talk.hear("x\n")
        ours.stop()
        hear_event(talk, shell, "Disconnected", is_next=True)
        ours.start()
        hear_event(talk, shell, "SyncConnected", is_next=True)
        talk.say("delete /coming")
        hear_event(talk, shell, "SyncConnected", "NodeDeleted", "/coming", is_next=True)
        talk.say("quit")
        if shell is paddock_shell:
            # Apache's may end before its last event is shown.
            hear_event(talk, shell, "Closed")
        assert talk.wait() == 0


@pytest.mark.parametrize("shell", [zkcli, paddock_shell])
@pytest.mark.parametrize("line", ["addauth digest", "addauth nonsense x"])
def test_a_shell_is_not_connected_after_credentials_that_were_refused(
    apache: Server, shell: Callable[..., list[str]], line: str
) -> None:
    with Conversation(shell("-server", apache.hosts)) as talk:
        hear_event(talk, shell, "SyncConnected")
        talk.say(line)
        hear_event(talk, shell, "AuthFailed", is_next=True)
        talk.say("ls /")
        assert talk.hear("Not connected\n") == "Not connected\n"
        assert talk.end() == 0


def hear_event(
    talk: Conversation,
    shell: Callable[..., list[str]],
    state: str,
    kind: str = "None",
    path: str = "null",
    *,
    is_next: bool = False,
) -> None:
    """Wait for all that a shell prints for an event; if it is next, nothing is printed before."""
    announced = f"\nWATCHER::\n\n{event(state, kind, path)}"
    heard = talk.hear(announced)
    assert heard == announced or not is_next
    shows_zxid = shell is zkcli and release_of(find_jar()) >= (3, 9)
    assert re.fullmatch(r" zxid: -?\d+\n" if shows_zxid else r"\n", talk.hear("\n"))


def event(state: str, kind: str = "None", path: str = "null") -> str:
    """Return the line that a shell prints for an event."""
    return f"WatchedEvent state:{state} type:{kind} path:{path}"


def at(ours: Server, apache: Server, said: Transcript) -> Transcript:
    """Return a transcript with the address of Apache's server replaced by that of ours."""
    return Transcript(
        said.status,
        [line.replace(apache.hosts, ours.hosts) for line in said.output],
        [line.replace(apache.hosts, ours.hosts) for line in said.errors],
        said.events,
    )


def assert_equal(said: Transcript, expected: Transcript) -> None:
    # One after the other, so that the first difference is shown.
    assert said.output == expected.output
    assert said.errors == expected.errors
    assert said.events == expected.events
    assert said.status == expected.status


def test_the_ends_of_sessions_are_put_before_the_next_begins() -> None:
    connected, closed, lost = (
        event(state) for state in ("SyncConnected", "Closed", "Disconnected")
    )
    in_order = [connected, closed] * 3
    for as_told in (
        [connected, connected, closed, connected, closed, closed],
        [connected, connected, closed, closed, connected, closed],
        [connected, connected, connected, closed, closed, closed],
    ):
        assert by_session(as_told) == in_order
    for as_it_is in (
        in_order,
        in_order[:-1],
        # It came back, and was closed once.
        [connected, lost, connected, closed],
        # An end that was never told.
        [connected, connected],
        [connected, closed, connected, connected],
    ):
        assert by_session(as_it_is) == as_it_is
