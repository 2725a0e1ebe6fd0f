"""Names of a package that are imported when they are first used.

    if not TYPE_CHECKING:
        __getattr__, __dir__ = on_first_use(globals(), ("package.light", "package.heavy"))

The package names them in its `__all__`, and offers nothing else but what Python itself puts there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any


def on_first_use(
    package: dict[str, Any], homes: Sequence[str], *, modules: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package of these globals.

    A name is looked for in one home after the other, so the light ones come first; `modules` are
    the names that stand for modules of the package themselves.
    """

    def find(name: str) -> Any:
        if name in modules:
            return import_module(f"{package['__name__']}.{name}")
        if name in package["__all__"]:
            for home in homes:
                module = import_module(home)
                if hasattr(module, name):
                    # The next time it is found without us.
                    package[name] = found = getattr(module, name)
                    return found
        raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}")

    def offered() -> list[str]:
        return sorted({*package["__all__"], *(name for name in package if name.startswith("__"))})

    return find, offered
