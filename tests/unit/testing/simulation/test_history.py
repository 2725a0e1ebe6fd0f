"""A history as a file."""

import io

import pytest

from paddock.testing.simulation.history import History
from tests.unit.testing.simulation.written import Written


def test_a_history_is_read_as_it_was_written() -> None:
    written = Written()
    one = written.connect("c1", 1, opened=1)
    written.reply(written.create(one, "/a"), 2)
    written.event(one, 1, "/a", 2)
    written.lose(one)
    file = io.StringIO()
    written.history.dump(file)
    file.seek(0)
    assert History.load(file) == written.history
    assert len(written.history) == 8


@pytest.mark.parametrize("line", ["{}", "no json", '{"at": 1, "kind": "other"}', '{"at": "x"}'])
def test_a_line_that_is_no_moment_is_named(line: str) -> None:
    with pytest.raises(ValueError, match="line 2: no moment of a history"):
        History.load(io.StringIO('{"at": 1, "kind": "fault", "text": "rain"}\n' + line + "\n"))
