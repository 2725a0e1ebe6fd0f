"""Celery on Paddock, over kombu's transport for ZooKeeper: which tasks are done after a kill.

The application and the worker's command are those of the page. The tasks are of `gated.py`: each
waits for a gate, so what a worker has begun when something is killed is known.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.applications import environment as env
from tests.applications.environment import block, observe, wait_until
from tests.applications.programs import Program
from tests.support.documents import Page, is_shown
from tests.support.judges import skipped_where_missing
from tests.support.paddock_server import PaddockServer

pytestmark = [pytest.mark.long, pytest.mark.judge]

PAGE: Final = Page("docs/how-to/run-applications.md")
_COMMAND: Final = shlex.split(block(PAGE, "Terminal 1"))
_CONCURRENCY: Final = int(_COMMAND[_COMMAND.index("--concurrency") + 1])
_GATED: Final = Path(__file__).with_name("gated.py")


class Stage:
    """The application of the page in a folder, with a journal of what its tasks do."""

    def __init__(self, programs: Path, paddock: PaddockServer, folder: Path) -> None:
        self.programs = programs
        self.folder = folder
        self.journal = folder / "journal"
        self.journal.mkdir()
        (folder / "results").mkdir()
        text = block(PAGE, "tasks.py").replace("127.0.0.1:2181/celery", self._broker(paddock))
        text = text.replace("/var/tmp/celery-results", str(folder / "results"))
        (folder / "tasks.py").write_text(text)
        (folder / "send.py").write_text(block(PAGE, "send.py"))
        shutil.copy(_GATED, folder)

    def _broker(self, paddock: PaddockServer) -> str:
        """Return the address of queues that no other test uses."""
        return f"{paddock.hosts}/{self.folder.name}"

    def worker(self, name: str, application: str = "gated") -> Program:
        """Start a worker by the page's command, and wait until it takes tasks."""
        command = [application if word == "tasks" else word for word in _COMMAND]
        command += ["--hostname", f"{name}@test"]
        program = Program(command, self.programs, self.folder, name)
        try:
            program.wait_said(f"{name}@test ready")
        except BaseException:
            program.kill()
            raise
        return program

    def send(self, *names: str) -> None:
        self.run("gated.py", str(self.journal), *names)

    def run(self, *arguments: str) -> str:
        """Run a program of the folder; return what it says."""
        done = subprocess.run(
            [str(self.programs / "python"), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=env.variables(self.programs),
            timeout=env.DEADLINE_S,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def open_gate(self) -> None:
        (self.journal / "gate").touch()

    def begun(self) -> dict[str, list[int]]:
        """Return the tasks that have begun, each with the processes that ran it."""
        found: dict[str, list[int]] = {}
        for path in self.journal.glob("began-*"):
            found.setdefault(path.name.split("-")[1], []).append(int(path.read_text()))
        return found

    def ended(self) -> set[str]:
        return {path.name.split("-")[1] for path in self.journal.glob("ended-*")}

    def wait_busy(self) -> set[str]:
        """Wait until every process of a worker has a task; return these tasks."""
        wait_until(lambda: len(self.begun()) >= _CONCURRENCY, "a worker is busy", self.logs)
        found = set(self.begun())
        assert len(found) == _CONCURRENCY, found
        return found

    def wait_ended(self, names: set[str]) -> None:
        wait_until(lambda: names <= self.ended(), f"{sorted(names)} are done", self.logs)

    def twice(self) -> int:
        """Return how many tasks began more than once."""
        return sum(len(processes) > 1 for processes in self.begun().values())

    def logs(self) -> str:
        tails = [path.read_text(errors="replace")[-3000:] for path in self.folder.glob("*.log")]
        return "\n---\n".join([f"begun {self.begun()}, ended {self.ended()}", *tails])


@pytest.fixture(scope="module")
def programs() -> Path:
    with skipped_where_missing():
        return env.installed("celery")


@pytest.fixture
def stage(programs: Path, paddock: PaddockServer, tmp_path: Path) -> Iterator[Stage]:
    yield Stage(programs, paddock, tmp_path)
    # Nothing waits for it any more.
    (tmp_path / "journal" / "gate").touch()


def test_the_programs_of_the_page_do_what_it_shows(stage: Stage) -> None:
    _, (command, shown) = _console("Terminal 2")
    python, *arguments = shlex.split(command)
    assert python == "python"
    with stage.worker("one", "tasks") as worker:
        assert is_shown(shown, stage.run(*arguments))
        worker.end(signal.SIGTERM)


def _console(title: str) -> list[tuple[str, str]]:
    (found,) = (one for one in PAGE.every_block() if one.title == title)
    return found.commands()


def test_a_task_whose_process_is_killed_runs_again(stage: Stage) -> None:
    # No more than there are processes: it is queued behind those that wait.
    names = set("abcdefgh"[:_CONCURRENCY])
    with stage.worker("one") as worker:
        stage.send(*sorted(names))
        victim = min(stage.wait_busy())
        (process,) = stage.begun()[victim]
        began = time.monotonic()
        os.kill(process, signal.SIGKILL)
        wait_until(lambda: len(stage.begun()[victim]) > 1, "the task begins again", stage.logs)
        observe(
            "celery", f"run again {time.monotonic() - began:.1f} s after its process was killed"
        )
        stage.open_gate()
        stage.wait_ended(names)
        worker.end(signal.SIGTERM)


def test_a_worker_that_is_told_to_quit_gives_its_tasks_back(stage: Stage) -> None:
    names = set("abcde")
    with stage.worker("one") as worker:
        stage.send(*sorted(names))
        stage.wait_busy()
        worker.end(signal.SIGQUIT)
    assert not stage.ended()
    stage.open_gate()
    with stage.worker("two") as worker:
        stage.wait_ended(names)
        worker.end(signal.SIGTERM)


def test_what_is_in_the_queue_outlives_a_worker_that_is_killed(stage: Stage) -> None:
    """What it had taken is lost: the transport's documentation says so, on any ZooKeeper."""
    names = set("abcdefgh")
    with stage.worker("one") as worker:
        stage.send(*sorted(names))
        held = stage.wait_busy()
        worker.kill()
    stage.open_gate()
    with stage.worker("two") as worker:
        stage.wait_ended(names - held)
        # The queue has an order: had they been in it, they would have been done by now.
        stage.send("last")
        stage.wait_ended({"last"})
        worker.end(signal.SIGTERM)
    lost = sorted(held - stage.ended())
    observe("celery", f"a killed worker had taken {sorted(held)}, of which {lost} are lost")


def test_paddock_is_killed_and_comes_back_while_tasks_run(
    stage: Stage, paddock: PaddockServer
) -> None:
    names = set("abcdefgh")
    with stage.worker("one") as worker:
        stage.send(*sorted(names))
        stage.wait_busy()
        paddock.kill()
        began = time.monotonic()
        paddock.start()
        away_s = time.monotonic() - began
        stage.open_gate()
        stage.wait_ended(names)
        stage.send("later")
        stage.wait_ended({"later"})
        worker.end(signal.SIGTERM)
    observe(
        "celery",
        f"Paddock was away for {away_s:.1f} s; all done {time.monotonic() - began:.1f} s after"
        f" the kill; {stage.twice()} of {len(names)} tasks ran twice",
    )


def test_a_worker_that_has_nothing_to_do_outlives_paddock(
    stage: Stage, paddock: PaddockServer
) -> None:
    stage.open_gate()
    with stage.worker("one") as worker:
        stage.send("before")
        stage.wait_ended({"before"})
        paddock.kill()
        # It has noticed, so it does not go on by luck.
        worker.wait_said("Connection refused")
        paddock.start()
        began = time.monotonic()
        stage.send("after")
        stage.wait_ended({"after"})
        observe("celery", f"an idle worker went on {time.monotonic() - began:.1f} s after Paddock")
        worker.end(signal.SIGTERM)
