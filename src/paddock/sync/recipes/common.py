"""The blocking twin of `paddock.recipes.common`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from paddock.recipes.common.background import Background as AsyncBackground
from paddock.sync.bridge import ScopedTwin


class Background(ScopedTwin[AsyncBackground]):
    """A recipe with a scope: entering it starts a task, leaving it closes the recipe."""

    def close(self) -> None:
        """Stop; what is known stays. Closing twice is fine."""
        self._bridge.call(self._inner.close)
