"""Whether the harness of the hostile cases would notice what it is there for."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from paddock.protocol import operations
from paddock.protocol.jute import DecodeError
from paddock.state import multi
from tests.fault.stage.hostile import Case, Cost, check
from tests.fault.stage.hostile_operations import ALONE, BEHIND_A_WRITE, ELSEWHERE, IN_A_MULTI, WORKS
from tests.fault.stage.hostile_stage import Stage
from tests.fault.stage.hostile_table import (
    PAGE,
    all_cases,
    check_steps,
    growth,
    main,
    section,
    with_section,
    written,
)
from tests.fault.stage.loop_steps import Steps
from tests.fault.stage.prober import Prober, Waits
from tests.fault.stage.process import FaultServer, eventually
from tests.fault.stage.siege import SLACK_MB, ClockedServer, besieged_server
from tests.support import requests as rq
from tests.support.records import Op, Request

CASE = Case("a case", "create", "nothing", lambda stage: None, memory_mb=10, memory_mb_each=5)
QUIET = Waits(0.001, 0.002, 0.001, 10)
SHORT = Steps(0.002, 0.001, 0.5, 500)


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


def test_a_loop_that_stands_still_is_noticed(tmp_path: Path) -> None:
    with ClockedServer(tmp_path) as server:
        server.clock.mark()
        begun = time.monotonic()
        os.kill(server.pid, signal.SIGSTOP)
        try:
            eventually(lambda: time.monotonic() - begun > 0.5, "half a second")
        finally:
            os.kill(server.pid, signal.SIGCONT)
        steps = server.clock.mark()
        assert steps.longest > 0.4
        # It stood still, and computed nothing.
        assert steps.longest_cpu < steps.longest / 2
        # The next one has the same file.
        server.kill()
        server.start()
        assert server.clock.mark().count > 0


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
    fine = Cost(CASE, 0, 0, 50.0, 0.0, most, QUIET, SHORT, most, 1.0)
    assert check(fine, 2, 0.25) == []
    large = Cost(CASE, 0, 0, 50.0, 0.0, most + 1.0, QUIET, SHORT)
    assert check(large, 2, 0.25) == ["45 MB more at the peak, at most 44 expected"]
    again = Cost(CASE, 0, 0, 50.0, 0.0, 0.0, QUIET, SHORT, most + 1.0, 1.0)
    assert check(again, 2, 0.25) == ["45 MB more at the next start, at most 44 expected"]
    slow = Cost(CASE, 0, 0, 50.0, 0.0, 0.0, Waits(0.001, 0.3, 0.001, 10), SHORT)
    (sentence,) = check(slow, 2, 0.25)
    assert "write 300 ms" in sentence


def test_times_that_the_host_has_disturbed_are_not_judged_but_memory_is() -> None:
    slow = Cost(CASE, 0, 0, 50.0, 0.0, 0.0, Waits(0.001, 0.3, 0.001, 10), SHORT, stolen=0.5)
    assert check(slow, 2, 0.25) == []
    assert len(check(replace(slow, stolen=0.01), 2, 0.25)) == 1
    assert len(check(replace(slow, peak_mb=1_000.0), 2, 0.25)) == 1


def test_the_work_of_many_requests_in_one_step_is_named() -> None:
    heap = Steps(0.5, 0.4, 0.5, 20)
    (sentence,) = check(cost_of(heap), 1, 4.0)
    assert sentence.startswith("80% of the work was one step")
    assert check(replace(cost_of(heap), case=replace(CASE, is_atomic=True)), 1, 4.0) == []
    # Of so little work a step may be all.
    assert check(cost_of(Steps(0.1, 0.1, 0.1, 20)), 1, 4.0) == []


def test_a_step_that_grows_faster_than_the_size_is_named() -> None:
    scales = [1, 5]
    rows = {
        seconds: [cost_of(Steps(0.1, 0.008, 1, 10)), cost_of(Steps(0.1, seconds, 1, 10))]
        for seconds in (0.001, 0.017, 0.019, 0.085, 0.095)
    }
    words = [growth(row, scales) for row in rows.values()]
    assert words == ["constant", "constant", "linear", "linear", "worse"]
    _, sentence = check_steps(rows[0.095], scales)
    assert sentence.startswith("a case: grows faster than the size, from step 100.0 ms (8.0 ms of")
    # So little is not worth a word.
    tiny = [cost_of(Steps(0.1, 0.001, 1, 10)), cost_of(Steps(0.1, 0.05, 1, 10))]
    assert growth(tiny, scales) == "worse"
    assert check_steps(tiny, scales) == []


def test_a_step_of_more_than_it_may_take_is_named_unless_it_is_atomic() -> None:
    row = [cost_of(Steps(0.1, 0.02, 1, 10)), cost_of(Steps(0.1, 0.06, 1, 10))]
    (sentence,) = check_steps(row, [1, 5])
    assert sentence.endswith("at most 50 ms expected")
    for case in (replace(CASE, is_atomic=True), replace(CASE, step_ms_max=70)):
        large = [replace(cost, case=case) for cost in row]
        assert check_steps(large, [1, 5]) == []
        assert "| linear, atomic |" in section([large], [1, 5])
    assert "| linear |" in section([row], [1, 5])


def test_a_table_replaces_the_one_before_it() -> None:
    row = [cost_of(SHORT), Cost(CASE, 1, 9_000, 0, 3, 4, QUIET, Steps(0.02, 0.01, 1, 10))]
    page = with_section(PAGE.read_text(), section([row], [1, 5]))
    assert (
        "| a case | create | nothing | 0 kB | 2 → 9 kB | 1 → 3 MB | 4 of 59 MB | 2 → 20 ms |"
        " 1 → 10 ms | constant | 1 ms | 2 ms |  |" in page
    )
    assert " at scale 1 → 5: " in page
    assert with_section(page, written(PAGE.read_text()).strip() + "\n") == PAGE.read_text()


def test_a_table_of_one_scale_does_not_say_what_grows() -> None:
    assert "| 2 kB | 1 MB | 4 of 39 MB | 2 ms | 1 ms |  | 1 ms |" in section(
        [[cost_of(SHORT)]], [1]
    )


def cost_of(steps: Steps) -> Cost:
    return Cost(CASE, 1, 2_000, 0, 1, 4, QUIET, steps)


def test_every_operation_of_the_server_has_a_case_in_every_form(server: FaultServer) -> None:
    names = {case.name for case in all_cases()}
    with Stage(server, 1, "/forms") as stage:
        asked = {work.op: list(work.round(stage, 0)) for work in WORKS}
    asked[Op.CLOSE_SESSION] = [rq.close_session()]
    for op, name in operations.NAMES.items():
        if op in ELSEWHERE:
            assert ELSEWHERE[op] in names
            continue
        assert f"{name}, {ALONE}" in names
        assert f"{name}, {BEHIND_A_WRITE}" in names
        step = next(one for one in asked[Op(op)] if one.op == op)
        assert (f"{name}, {IN_A_MULTI}" in names) == may_be_a_step(step), name


def may_be_a_step(step: Request) -> bool:
    """Whether the server takes an operation as one of a transaction, or of a multiRead."""
    body = rq.multi(step).body
    for read in (multi.read_steps, multi.read_reads):
        with contextlib.suppress(DecodeError):
            return bool(read(body))
    return False


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
