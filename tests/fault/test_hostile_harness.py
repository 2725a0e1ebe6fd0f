"""Whether the harness of the hostile cases would notice what it is there for."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator

import pytest

from tests.fault.hostile import Case, Cost, check
from tests.fault.hostile_operations import ELSEWHERE, WORKS
from tests.fault.hostile_stage import Stage
from tests.fault.hostile_table import PAGE, all_cases, main, section, with_section, written
from tests.fault.prober import Prober, Waits
from tests.fault.process import FaultServer, eventually
from tests.fault.siege import SLACK_MB, besieged_server
from tests.support import requests as rq
from tests.support.records import Op

CASE = Case("a case", "create", "nothing", lambda stage: None, memory_mb=10, memory_mb_each=5)
QUIET = Waits(0.001, 0.002, 0.001, 10)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultServer]:
    with besieged_server(tmp_path_factory.mktemp("harness")) as server:
        yield server


def test_a_server_that_stands_still_is_noticed(server: FaultServer) -> None:
    with Prober(server.address) as prober:
        prober.mark()
        begun = time.monotonic()
        os.kill(server.pid, signal.SIGSTOP)
        try:
            eventually(lambda: time.monotonic() - begun > 0.5, "half a second")
        finally:
            os.kill(server.pid, signal.SIGCONT)
        waits = prober.mark()
        assert min(waits.read, waits.write, waits.ping) > 0.4
        # Another mark is about what came after it.
        assert prober.mark().rounds >= 2


def test_replies_are_counted_and_events_are_not(server: FaultServer) -> None:
    with Stage(server, 1, "/counted") as stage:
        stage.create(["/counted"])
        watcher, other = stage.join(2)
        assert stage.ask([watcher], [rq.add_watch("/counted", 1)]) == 1
        stage.ask([other], [rq.set_data("/counted", bytes(100_000))] * 50)
        # The events of these come before the reply, and none of them is one.
        assert stage.ask([watcher], [rq.get_data("/counted")] * 20) == 20
        assert not stage.is_broken
        # The second is not answered any more.
        assert stage.ask([other], [rq.close_session(), rq.exists("/")]) == 1
        assert stage.is_broken


def test_as_many_identities_as_there_may_be(server: FaultServer) -> None:
    with Stage(server, 1, "/identified") as stage:
        one = stage.identified()
        assert stage.identities > 1
        stage.create(["/identified"])
        stage.guard("/identified/guarded", stage.last_identity(), 30_000)
        assert stage.ask([one], [rq.get_data("/identified/guarded")]) == 1
        assert not stage.is_broken


def test_what_is_over_a_bound_is_named() -> None:
    most = SLACK_MB + 10 + 5 * 2
    fine = Cost(CASE, 0, 0, 50.0, 0.0, most, QUIET, most, 1.0)
    assert check(fine, 2, 0.25) == []
    large = Cost(CASE, 0, 0, 50.0, 0.0, most + 1.0, QUIET)
    assert check(large, 2, 0.25) == ["45 MB more at the peak, at most 44 expected"]
    again = Cost(CASE, 0, 0, 50.0, 0.0, 0.0, QUIET, most + 1.0, 1.0)
    assert check(again, 2, 0.25) == ["45 MB more at the next start, at most 44 expected"]
    slow = Cost(CASE, 0, 0, 50.0, 0.0, 0.0, Waits(0.001, 0.3, 0.001, 10))
    (sentence,) = check(slow, 2, 0.25)
    assert "write 300 ms" in sentence


def test_a_table_replaces_the_one_before_it() -> None:
    page = with_section(PAGE.read_text(), section([Cost(CASE, 1, 2_000, 0, 3, 4, QUIET)], 1))
    assert (
        "| a case | create | nothing | 0 kB | 2 kB | 3 MB | 4 MB | 39 MB | 1 ms | 2 ms |  |" in page
    )
    assert with_section(page, written(PAGE.read_text()).strip() + "\n") == PAGE.read_text()


def test_every_operation_has_a_case() -> None:
    assert {work.op for work in WORKS} == set(Op) - ELSEWHERE


def test_no_two_cases_have_the_same_name() -> None:
    names = [case.name for case in all_cases()]
    assert sorted(set(names)) == sorted(names)


def test_the_page_has_a_row_for_each_case() -> None:
    rows = re.findall(r"^\| ([^|]+) \|", written(PAGE.read_text()), re.MULTILINE)
    assert rows == ["case", *(case.name for case in all_cases())]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--scale", "0"], "--scale: 1 or more"),
        (["--only", "no such case"], "no case has 'no such case' in its name"),
        (["--only", "create", "--write"], "not together with --only"),
    ],
)
def test_wrong_arguments_are_named(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert said in capsys.readouterr().err
