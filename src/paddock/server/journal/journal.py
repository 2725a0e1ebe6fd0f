"""Where a server tells what happens to it. The parts of a server know this class alone."""

from __future__ import annotations

from paddock.state.access import Identities


class Journal:
    """Takes events. This one, of a server that keeps no history, forgets them."""

    # The number of this server in its cluster; 0 while it is no member.
    server = 0

    def add(
        self,
        kind: str,
        *,
        session: int = 0,
        address: str = "",
        identities: Identities | None = None,
        reason: str = "",
        **details: object,
    ) -> None:
        """Take an event of a kind of `paddock.storage.events`. Called on the event loop."""

    def stop(self) -> None:
        """Take the last event. Called on the event loop, before `close`."""

    def close(self) -> None:
        """Write what is left. Blocks."""
