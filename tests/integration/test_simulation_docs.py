"""docs/how-to/test-in-a-simulated-world.md keeps its word: bugs are found, and stories told.

The stories in the page are those that the tests of the page print. When the code has changed so
that they are told differently, this writes them anew; read the sentences after them then:

    python -m tests.integration.test_simulation_docs
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest

from tests.support.documents import ROOT, Page
from tests.support.pytest_run import PytestRun, run_pytest

PAGE = Page("docs/how-to/test-in-a-simulated-world.md")
BROKEN, TESTS, MENDED, TESTS_OF_MENDED = PAGE.blocks("python")
REWRITE = "python -m tests.integration.test_simulation_docs writes the stories of the page anew"

# The message of the error, to its last line.
_STORY = re.compile(r"WorldFailedError: (seed \d+: .*?To play it again:[^\n]*)", flags=re.DOTALL)


def run(folder: Path, service: str, tests: str) -> PytestRun:
    (folder / "billing.py").write_text(service, encoding="utf-8")
    # Without a summary: on CI pytest tells all of each failure there once more.
    return run_pytest(folder, tests, "--tb=short", "-rN")


def stories(folder: Path) -> list[str]:
    """Return what the tests of the page print."""
    output = run(folder, BROKEN.text, TESTS.text).output.replace("test_users_0.py", TESTS.title)
    told = []
    for story in _STORY.findall(output):
        # pytest indents what comes after the first line.
        first, *others = story.split("\n")
        told.append("\n".join([first, *(re.sub(r"^(E  )? {0,4}", "", one) for one in others)]))
    return told


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    assert PAGE.languages() == {"python", "text"}
    assert [block.title for block in PAGE.blocks("python")] == ["billing.py", "test_billing.py"] * 2


def test_both_bugs_are_found_and_told_as_the_page_tells_them(tmp_path: Path) -> None:
    shown = [block.text.rstrip() for block in PAGE.blocks("text")]
    assert stories(tmp_path) == shown, REWRITE


# Those worlds in which the bugs are found, and some more.
@pytest.mark.parametrize("seeds", ["75:95", "268:288"])
def test_the_mended_service_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: str
) -> None:
    monkeypatch.setenv("PADDOCK_SEEDS", seeds)
    done = run(tmp_path, MENDED.text, TESTS_OF_MENDED.text)
    assert done.passed == ["test_no_number_is_given_twice", "test_prices_never_go_back"], (
        done.output
    )


def rewrite() -> None:
    with tempfile.TemporaryDirectory() as folder:
        told = iter(stories(Path(folder)))
    path = ROOT / PAGE.name
    fence = re.compile(r"^```text\n.*?^```$", flags=re.DOTALL | re.MULTILINE)
    text = fence.sub(lambda _: f"```text\n{next(told)}\n```", path.read_text(encoding="utf-8"))
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    rewrite()
