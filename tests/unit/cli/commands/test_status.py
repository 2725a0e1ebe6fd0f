"""How figures look: as lines, as rows that fit, as bars."""

from paddock.cli.commands.status import Histories, card_lines, plain, table_rows
from paddock.monitor import Figures

ONE = Figures(
    "one:2181",
    mode="leader",
    version="3.8.0",
    latency_min_ms=0,
    latency_avg_ms=1.2345678,
    latency_max_ms=42,
    received=12345,
    clients=3,
    outstanding=0,
    nodes=100_000,
    sessions=4,
    uptime_s=90_061,
    data_bytes=2048,
    zxid="0x7",
    requests_per_s=1234.5,
)
DOWN = Figures("two:2181", problem="Connection refused")


def test_a_card_has_what_is_known() -> None:
    assert dict(card_lines(ONE)) == {
        "server": "one:2181",
        "mode": "leader",
        "version": "3.8.0",
        "uptime": "1d 1h",
        "requests/s": "1,234",
        "latency ms": "0 min, 1.235 avg, 42 max",
        "outstanding": "0",
        "clients": "3",
        "sessions": "4",
        "nodes": "100,000",
        "data": "2.0 kB",
        "received": "12,345",
        "zxid": "0x7",
    }
    assert card_lines(DOWN) == [("server", "two:2181"), ("problem", "Connection refused")]


def test_a_table_has_a_row_for_each_server() -> None:
    titles, one, down = table_rows([ONE, DOWN])
    assert titles[:3] == ["server", "mode", "version"]
    assert one[:3] == ["one:2181", "leader", "3.8.0"]
    assert down == ["two:2181", "Connection refused", *["-"] * (len(titles) - 2)]


def test_a_column_of_which_nothing_is_known_is_left_out() -> None:
    (titles, *_) = table_rows([DOWN, Figures("three:1", mode="follower")])
    assert titles == ["server", "mode"]


def test_what_matters_least_is_left_out_first() -> None:
    whole = table_rows([ONE, ONE])[0]
    for width in range(200, 0, -1):
        rows = table_rows([ONE, ONE], width)
        used = sum(max(map(len, column)) + 2 for column in zip(*rows, strict=True)) - 2
        assert used <= width or rows[0] == ["server", "mode"]
        # In the order of the whole table.
        assert rows[0] == [title for title in whole if title in rows[0]]
    assert table_rows([ONE, ONE], 30)[0] == ["server", "mode", "req/s"]


def test_plain_text_is_lines_for_one_and_a_table_for_several() -> None:
    assert plain([DOWN]) == "server        two:2181\nproblem       Connection refused"
    lines = plain([ONE, DOWN]).splitlines()
    assert [line.split()[0] for line in lines] == ["server", "one:2181", "two:2181"]
    assert lines[1].index("leader") == lines[2].index("Connection")


def test_bars_are_as_high_as_the_highest_of_them() -> None:
    histories = Histories()
    for rate in (None, 0.0, 50.0, 100.0):
        histories.add(Figures("a:1", requests_per_s=rate))
    assert histories.bars("a:1", 10) == "▁▅█"
    assert histories.bars("a:1", 2) == "▅█"
    assert histories.bars("a:1", 0) == ""
    assert histories.bars("a:1", -5) == ""
    assert histories.bars("other:1", 10) == ""


def test_a_server_without_requests_has_low_bars() -> None:
    histories = Histories()
    histories.add(Figures("a:1", requests_per_s=0.0))
    assert histories.bars("a:1", 10) == "▁"
