"""Write the blocking twin, `paddock.sync`, from the public signatures of the asyncio classes.

    python tools/twin.py            write the modules
    python tools/twin.py --check    tell which are not as they would be written

Only signatures and docstrings are written; what they do is done once, by the asyncio classes. The
rules, by which a class is read:

* What returns a future, or is a coroutine, waits for the result.
* A plain method is called on the loop's thread; but that of a builder, which only gathers what is
  to be done, in the caller's thread.
* A property, or a public attribute that `__init__` sets, is read in the caller's thread: it has to
  be a single read of an attribute.
* An async iterator becomes a `Stream`, an async context manager a `Scope`.
* An object that has a twin is wrapped when it is given, also in a list or by a stream or a scope,
  and unwrapped when it is an argument. A class whose constructor takes one has a constructor of its
  own, unless it is one that is made inside.
* Records, enums and errors are shared by both.
* A callback that gives nothing back is a listener, and is called on the client's thread for
  callbacks. One that promises something is a handler: in blocking code a plain function, each call
  of it on a thread of its own, where it may block. Any other gives something back at once, so it is
  called as it is, on the loop's thread: it must be quick, and make no calls.
* A method of an owner that returns another owner gives that one a bridge of its own.
* What a class inherits is written as its own, unless its base has a twin: it is exported, too, or
  several classes have more than one method from it.
* Docstrings are kept, without `await`. What in them still speaks of asyncio is refused.

What fits no rule is refused, so nothing is ever passed on wrongly. Recipes are found by their names
in `paddock.recipes`: what is exported there has a twin in `paddock.sync.recipes`, in one module for
each folder.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[1]
_IS_OURS: Final = 'lint.isort.known-first-party = ["paddock"]'
# Run as a file, it has its own folder in the path, but not the one that its parts are found by.
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
    """Return the rules for everything of ours."""
    return with_pairs(_CLIENT, RECIPES.pairs(_CLIENT)) if RECIPES.exists else _CLIENT


def everything() -> tuple[Pair | Package, ...]:
    """Return everything that is written."""
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
    # Also what is written for the first time is ours.
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
    """Return the twins of recipes that are no more."""
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
