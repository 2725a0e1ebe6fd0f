"""A task that tells when it begins and when it is done, and waits in between: for `test_celery.py`.

A worker runs it in the environment of Celery, beside the `tasks.py` of the page. The journal is a
folder: a file for each beginning, with the id of the process, and a file for each end.
"""

from __future__ import annotations

import os
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from tasks import app  # type: ignore[import-not-found]

DEADLINE_S = 240.0


def work(folder: str, name: str) -> None:
    """Note the beginning, wait for the gate to be open, note the end."""
    journal = Path(folder)
    mark = uuid.uuid4().hex
    _note(journal / f"began-{name}-{mark}", str(os.getpid()))
    limit = time.monotonic() + DEADLINE_S
    while not (journal / "gate").exists():
        if time.monotonic() > limit:
            raise TimeoutError(name)
        time.sleep(0.05)
    _note(journal / f"ended-{name}-{mark}", str(os.getpid()))


def _note(path: Path, text: str) -> None:
    """Write a file that is whole as soon as it is there."""
    draft = path.with_name(f"draft-{path.name}")
    draft.write_text(text)
    draft.rename(path)


task: Any = app.task(name="work")(work)

if __name__ == "__main__":
    for one in sys.argv[2:]:
        task.delay(sys.argv[1], one)
