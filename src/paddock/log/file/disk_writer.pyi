"""A thread that writes and syncs, and never needs the interpreter lock: see `disk_writer.c`."""

from typing import final

@final
class DiskWriter:
    """Writes and syncs, one after the other, in a thread of its own.

    Raises ValueError once it is closed, and in another process than the one that made it.
    """

    def fileno(self) -> int:
        """Return the descriptor that is readable when a write has ended and was not taken."""

    def write(self, file: int, offset: int, pieces: list[bytes], /) -> None:
        """Begin to write pieces, the first at `offset`, and to sync the file.

        Raises RuntimeError if the write before is under way, or was not taken.
        """

    def wait(self) -> None:
        """Block until no write is under way."""

    def take(self) -> float | None:
        """Return how many seconds ago the write ended; None if there is none that did.

        Raises OSError if it failed; how much was written is not known then.
        """

    def close(self) -> None:
        """Wait for the write under way, then end the thread."""
