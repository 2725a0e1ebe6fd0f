"""The changes of the past, in pages."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from paddock.history.own import OwnSource
from paddock.history.pages import PageReader, answer, serve
from paddock.history.past import MissingPastError, PurgedError
from paddock.history.source import own_source
from paddock.protocol import opcodes
from paddock.protocol.acl import ACL, ALL, Identity
from paddock.protocol.requests import CreateRequest, SetDataRequest
from paddock.state.access import NOBODY, Identities, NodeACL
from paddock.state.feeds import encode_change
from tests.unit.history.folder import PastFolder, live
from tests.unit.state.driver import OPEN, World

EVERYTHING = 1 << 30


@pytest.fixture
def folder(tmp_path: Path) -> PastFolder:
    return PastFolder(tmp_path / "data")


def anybody(acl: NodeACL) -> bool:
    return True


def recorded(world: World) -> list[tuple[int, bytes, bytes]]:
    """Return the changes that come of a world's entries, applied anew: zxid, path, encoded."""
    fresh = World()
    return [
        (change.zxid, change.path, encode_change(change))
        for entry in world.entries
        for change in fresh.machine.apply(entry).changes
    ]


def reader_of(folder: PastFolder) -> PageReader:
    folder.commit()
    return PageReader(own_source(folder.path))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("limit", [1, 300, EVERYTHING])
def test_pages_have_every_change_once_and_in_order(
    folder: PastFolder, seed: int, limit: int
) -> None:
    with folder:
        live(folder, Random(200 + seed), 50)
        reader, last = reader_of(folder), folder.world.machine.zxid
        expected = recorded(folder.world)
        for path in (b"/", b"/a"):
            for since in (0, last // 2):
                found, until = b"", since
                while until < last:
                    changes, reached = reader.read(path, until, last, limit, anybody)
                    assert reached > until
                    found, until = found + b"".join(changes), reached
                assert found == b"".join(
                    wire
                    for zxid, at, wire in expected
                    if zxid > since and (path == b"/" or at == path or at.startswith(path + b"/"))
                )


def test_a_transaction_is_not_split(folder: PastFolder) -> None:
    with folder:
        client = folder.world.open()
        client.multi(
            (opcodes.CREATE, CreateRequest(b"/a", b"x" * 100, OPEN, 0)),
            (opcodes.CREATE, CreateRequest(b"/b", b"y" * 100, OPEN, 0)),
            (opcodes.SET_DATA, SetDataRequest(b"/a", b"z", -1)),
        )
        client.create(b"/c")
        changes, until = reader_of(folder).read(b"/", 0, 3, 50, anybody)
    assert until == 2
    assert [wire for zxid, _, wire in recorded(folder.world) if zxid == 2] != []
    assert changes == [wire for zxid, _, wire in recorded(folder.world) if zxid == 2]


def test_what_may_not_be_read_is_left_out_and_looked_through(folder: PastFolder) -> None:
    mine = Identity("digest", "bob:hash")
    with folder:
        client = folder.world.open()
        client.be(mine)
        client.create(b"/secret", b"1", acls=[ACL(ALL, mine)])
        client.create(b"/open", b"2")
        folder.commit()
        lines = {}
        for name, identities in (("bob", Identities((mine,))), ("nobody", NOBODY)):
            request = {
                "path": b"/".hex(),
                "since": 0,
                "up_to": 3,
                "limit": EVERYTHING,
                "identities": identities.wire.hex(),
            }
            answers = io.BytesIO()
            asked = io.BytesIO(json.dumps(request).encode() + b"\n")
            serve(PageReader(own_source(folder.path)), asked, answers)
            header, _, changes = answers.getvalue().partition(b"\n")
            count = 2 if name == "bob" else 1
            assert json.loads(header) == {"until": 3, "count": count, "size": len(changes)}
            lines[name] = changes
        wires = {path: wire for _, path, wire in recorded(folder.world)}
    assert lines == {"bob": wires[b"/secret"] + wires[b"/open"], "nobody": wires[b"/open"]}


def test_what_is_gone_is_told_with_the_oldest_zxid(folder: PastFolder) -> None:
    with folder:
        client = folder.world.open()
        client.create(b"/a")
        folder.commit()
        client.set(b"/a", b"1")
        folder.commit()
        client.set(b"/a", b"2")
        folder.snapshot()
        client.set(b"/a", b"3")
        folder.commit()
        folder.segment(2).unlink()
        reader = reader_of(folder)
        # Up to the gap there is a page, and then it is told.
        assert reader.read(b"/", 0, 5, EVERYTHING, anybody)[1] == 2
        with pytest.raises(MissingPastError) as caught:
            reader.read(b"/", 2, 5, EVERYTHING, anybody)
        assert caught.value.oldest == 4
        assert reader.read(b"/", 4, 5, EVERYTHING, anybody)[1] == 5
        folder.segment(1).unlink()
        with pytest.raises(MissingPastError) as caught:
            PageReader(own_source(folder.path)).read(b"/", 1, 5, EVERYTHING, anybody)
        assert caught.value.oldest == 4


def test_if_nothing_can_be_rebuilt_what_the_server_has_is_all_there_is(folder: PastFolder) -> None:
    with folder:
        client = folder.world.open()
        for number in range(3):
            client.create(b"/n%d" % number)
            folder.commit()
        folder.segment(2).unlink()
        known = {"path": "2f", "limit": 1, "identities": NOBODY.wire.hex()}
        header, _ = answer(reader_of(folder), {**known, "since": 1, "up_to": 9})
        assert header["until"] == 2
        for since in (2, 3):
            header, _ = answer(reader_of(folder), {**known, "since": since, "up_to": 9})
            assert header == {"gone": 9}


def test_what_is_not_written_yet_is_not_there_yet(folder: PastFolder) -> None:
    with folder:
        client = folder.world.open()
        client.create(b"/a")
        reader = reader_of(folder)
        assert reader.read(b"/", 2, 3, EVERYTHING, anybody) == ([], 2)
        # A feed may come from a server that is ahead of these files.
        assert reader.read(b"/", 3, 4, EVERYTHING, anybody) == ([], 3)
        client.set(b"/a", b"1")
        folder.commit()
        changes, until = reader.read(b"/", 2, 3, EVERYTHING, anybody)
        assert (until, changes) == (3, [recorded(folder.world)[-1][2]])


def test_a_page_of_a_quiet_path_ends_as_well(folder: PastFolder) -> None:
    with folder:
        client = folder.world.open()
        for number in range(5):
            client.create(b"/n%d" % number)
        folder.commit()
        reader, found = PageReader(own_source(folder.path), steps_max=2), [0]
        while found[-1] < 6:
            changes, until = reader.read(b"/none", found[-1], 6, EVERYTHING, anybody)
            assert not changes
            found.append(until)
    assert found == [0, 2, 4, 6]


def test_ctrl_c_of_a_terminal_is_for_the_server_alone(folder: PastFolder) -> None:
    with folder:
        folder.world.open().create(b"/a")
        folder.commit()
        line = json.dumps(
            {"path": "2f", "since": 0, "up_to": 2, "limit": 9, "identities": NOBODY.wire.hex()}
        ).encode()
        with subprocess.Popen(
            [sys.executable, "-P", "-m", "paddock.history.pages", folder.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            for _ in range(2):
                process.stdin.write(line + b"\n")
                process.stdin.flush()
                header = json.loads(process.stdout.readline())
                assert header["until"] == 2
                process.stdout.read(header["size"])
                process.send_signal(signal.SIGINT)
            process.stdin.close()
            assert process.wait(60) == 0


def test_the_next_page_goes_on_with_the_state_of_the_last(folder: PastFolder) -> None:
    with folder:
        client = folder.world.open()
        for number in range(10):
            client.create(b"/n%d" % number)
        folder.commit()
        begun: list[int] = []

        class Counted(OwnSource):
            def begin(self, moment):  # type: ignore[no-untyped-def]
                begun.append(moment.zxid)
                return super().begin(moment)

        reader = PageReader(Counted(folder.path / "log", folder.path / "snapshots"))
        until = 0
        while until < 11:
            _, until = reader.read(b"/", until, 11, 1, anybody)
    assert begun == [0]


def test_a_page_that_is_purged_meanwhile_is_read_again(
    folder: PastFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with folder:
        folder.world.open().create(b"/a")
        folder.commit()
        reader = PageReader(own_source(folder.path))
        read, failures = reader.read, [PurgedError("gone")]

        def purged_once(*arguments: Any) -> tuple[list[bytes], int]:
            if failures:
                raise failures.pop()
            return read(*arguments)

        monkeypatch.setattr(reader, "read", purged_once)
        request = {"path": "2f", "since": 0, "up_to": 2, "limit": EVERYTHING}
        header, _ = answer(reader, {**request, "identities": NOBODY.wire.hex()})
    assert header["until"] == 2
