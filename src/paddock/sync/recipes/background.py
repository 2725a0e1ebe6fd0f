"""The blocking twin of `paddock.recipes.common.background`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from typing import Self

from paddock.recipes.common.background import Background as AsyncBackground
from paddock.sync.bridge import Twin


class Background(Twin[AsyncBackground]):
    """A recipe with a scope: entering it starts a task, leaving it closes the recipe."""

    def __enter__(self) -> Self:
        self._enter_scope(self._inner)
        return self

    def close(self) -> None:
        """Stop; what is known stays. Closing twice is fine."""
        self._bridge.call(self._inner.close)
