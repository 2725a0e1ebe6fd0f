"""How measurements look in lines."""

from __future__ import annotations

from paddock.cli.bench.plan import Cell, Plan
from paddock.cli.bench.report import closing, joined, opening, row
from paddock.cli.bench.tally import Measurement
from paddock.cli.version import build
from paddock.monitor import Figures

FAST = Measurement(Cell("get", 4, 100), 0.5, 125_000, 0, None, 1.2345, 99.5, 123.456, 60_000, 0.987)
SLOW = Measurement(Cell("lock", 1), 0.5, 1, 0, None, 400.0, 400.0, 1400.0, 9.9996, 0.01)
NONE = Measurement(Cell("create", 1), 0.5, 0, 1, "/a: quota exceeded", None, None, None, None, 0.0)


def test_a_row_has_what_was_measured() -> None:
    fast = ["get", "4", "100", "250,000", "1.234", "99.50", "123.4", "60000", "99%", "0"]
    assert row(FAST) == fast
    assert row(SLOW) == ["lock", "1", "1", "2.0", "400.0", "400.0", "1400", "10.00", "1%", "0"]
    assert row(NONE) == ["create", "1", "1", "0.0", "-", "-", "-", "-", "0%", "1"]


def test_rows_are_of_one_width_and_fit_into_a_terminal() -> None:
    widths = {len(joined(row(one))) for one in (FAST, SLOW, NONE)}
    assert len(widths) == 1
    assert max(widths) <= 80


def test_where_the_client_was_busy_it_says_that_this_is_the_limit() -> None:
    (line,) = closing([FAST, SLOW])
    assert line.startswith("In 1 of 2 cells the client was busy")
    (line,) = closing([SLOW])
    assert "it was not the limit, unless" in line


def test_what_was_refused_is_named() -> None:
    assert closing([NONE])[0] == "create: 1 request refused: /a: quota exceeded"


def test_it_says_beforehand_what_will_be_done() -> None:
    plan = Plan(("get",), seconds=2.0, clients=1, window=10, size=2048, watchers=1)
    servers = [
        Figures("one:2181", mode="leader", version="3.8.0", build="compiled"),
        Figures("two:2181", problem="Connection refused"),
    ]
    first, second, client, load, where, time = opening(plan, "/mine", servers)
    assert first == "server     one:2181, leader, 3.8.0, compiled"
    assert second.endswith("two:2181, which says nothing of itself: Connection refused")
    assert f", {build()}, on Python " in client
    assert load == "load       up to 1 client, 10 requests under way each, 2.0 kB of data"
    assert where == "path       /mine, removed at the end"
    assert time == "time       2 cells of 2 s, about 4 s in all"
