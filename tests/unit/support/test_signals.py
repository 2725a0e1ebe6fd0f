"""A test run that is started with signals ignored, as in the background, is like any other."""

import signal
import subprocess
import sys
from pathlib import Path

from tests.support.signals import INHERITED

ROOT = Path(__file__).parents[3]
DEADLINE_S = 120.0
_IGNORED = """\
import signal
names = "SIGHUP", "SIGINT", "SIGQUIT"
print(*(one for one in names if signal.getsignal(getattr(signal, one)) is signal.SIG_IGN))
"""


def test_neither_a_test_nor_its_children_ignore_a_signal() -> None:
    assert all(signal.getsignal(one) is not signal.SIG_IGN for one in INHERITED)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    said = subprocess.run([sys.executable, "-c", _IGNORED], capture_output=True, text=True)
    assert (said.stdout, said.stderr) == ("\n", "")


def test_that_holds_too_where_the_run_was_started_with_signals_ignored() -> None:
    test = f"{__file__}::{test_neither_a_test_nor_its_children_ignore_a_signal.__name__}"
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    for command in ([*run, "-n", "1"], run):
        done = subprocess.run(
            ["sh", "-c", "trap '' HUP INT QUIT; exec \"$@\"", "sh", *command],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        assert done.returncode == 0, done.stdout + done.stderr
