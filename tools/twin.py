"""Write the blocking twin, `paddock.sync`, from the public signatures of the asyncio classes.

    python tools/twin.py            write the modules
    python tools/twin.py --check    list the modules that are not current

Only signatures and docstrings are generated; the logic exists once, in the asyncio classes. The
rules:

* A coroutine, or a method that returns a future, waits for the result.
* A plain method is called on the loop's thread. A plain method of a builder, which only collects
  steps, is called on the caller's thread.
* A property, or a public attribute that `__init__` sets, is read on the caller's thread: it must be
  a single read of an attribute.
* An async iterator becomes a `Stream`, an async context manager a `Scope`.
* An object that has a twin is wrapped when it is returned, also in a list, by a stream or by a
  scope, and unwrapped when it is an argument. A class whose constructor takes one has a public
  constructor, unless only our own code constructs it.
* Records, enums and errors are shared by both.
* A callback that returns nothing is a listener, and is called on the client's thread for callbacks.
  A callback that returns an awaitable is a handler: in blocking code it is a plain function, called
  on a thread of its own, where it may block. Any other callback returns a value at once, so it is
  called on the loop's thread: it must be quick, and make no calls.
* If a method of an owner returns another owner, that one gets its own bridge.
* Inherited members are written as the class's own, unless the base has a twin: a base that is
  exported, or that gives several classes more than one method.
* Docstrings are kept, without `await`. A docstring that still mentions asyncio is refused.

A signature that fits no rule is refused, so no argument is ever passed wrongly. Every recipe that
`paddock.recipes` exports has a twin in `paddock.sync.recipes`, in one module for each folder.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[1]
_IS_OURS: Final = 'lint.isort.known-first-party = ["paddock"]'
# When this runs as a file, only its own folder is in the path, not that of its parts.
if str(_ROOT) not in sys.path:
    sys.path.insert(0, str(_ROOT))

from tools.blocking.packages import Package, with_pairs  # noqa: E402
from tools.blocking.rules import Pair, RefusedError, Rules  # noqa: E402
from tools.blocking.writer import Writer  # noqa: E402

__all__ = ["Package", "Pair", "RefusedError", "Rules", "everything", "main", "path_of", "text_of"]

RECIPES: Final = Package("paddock.recipes", "paddock.sync.recipes")

# Without the recipes.
_CLIENT: Final = Rules(
    pairs=(
        Pair("paddock.client.transaction", "paddock.sync.client", ("Transaction",)),
        Pair("paddock.client.multiread", "paddock.sync.client", ("MultiRead",)),
        Pair("paddock.client.client", "paddock.sync.client", ("Client",)),
        Pair("paddock.api", "paddock.sync.api", ("connect",)),
    ),
    owners=frozenset({"Client"}),
    builders=frozenset({"Transaction", "MultiRead"}),
    made_inside=frozenset(
        {
            "BaseGrant",
            "BaseHolder",
            "Holder",
            "LeaseGrant",
            "LogChannel",
            "MultiGrant",
            "QueueItem",
            "ReadLock",
            "Task",
            "WriteLock",
        }
    ),
    asyncio_only=frozenset(
        {
            "Client.observer",
            "Client.start_task",
            "Client.together",
            "Grant.deepen",
            "BaseGrant.lost",
            "PersistentNode.leave_soon",
            "ServiceRegistry.follow_cached",
            "ServiceRegistry.new_number",
            "ServiceRegistry.start_task",
        }
    ),
)


def rules() -> Rules:
    """Return the rules for all of our modules."""
    return with_pairs(_CLIENT, RECIPES.pairs(_CLIENT)) if RECIPES.exists else _CLIENT


def everything() -> tuple[Pair | Package, ...]:
    """Return all generated modules."""
    # One pair stands for each module: all pairs with its target are written there.
    pairs = {pair.target: pair for pair in rules().pairs}
    return (*pairs.values(), RECIPES) if RECIPES.exists else (*pairs.values(),)


def text_of(written: Pair | Package, by: Rules | None = None) -> str:
    """Return the source of a twin, formatted."""
    if isinstance(written, Package):
        text = written.write(by or _CLIENT)
    else:
        text = Writer(written, by or rules()).write()
    ruff = shutil.which("ruff", path=str(Path(sys.executable).parent)) or "ruff"
    # A new module is ours, too.
    sort = ["check", "--quiet", "--fix", "--select", "I", "--config", _IS_OURS]
    for command in (sort, ["format", "--quiet"]):
        done = subprocess.run(
            [ruff, *command, "--stdin-filename", str(path_of(written).relative_to(_ROOT)), "-"],
            input=text,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            cwd=_ROOT,
        )
        text = done.stdout
    return text


def path_of(written: Pair | Package) -> Path:
    path = _ROOT / "src" / written.target.replace(".", "/")
    return path / "__init__.py" if isinstance(written, Package) else path.with_suffix(".py")


def orphans() -> list[Path]:
    """Return the twins of recipes that do not exist any more."""
    present = {*path_of(RECIPES).parent.glob("*.py")}
    return sorted(present - {path_of(one) for one in everything()})


def main() -> int:
    is_check = "--check" in sys.argv[1:]
    try:
        texts = {path_of(one): text_of(one) for one in everything()}
    except RefusedError as refused:
        print(refused, file=sys.stderr)
        return 1
    stale = {path: text for path, text in texts.items() if _present(path) != text}
    for path, text in stale.items():
        if is_check:
            print(f"{path}: not as tools/twin.py would write it")
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    for path in orphans():
        if is_check:
            print(f"{path}: of a recipe that is no more")
        else:
            path.unlink()
    return 1 if is_check and (stale or orphans()) else 0


def _present(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
