"""The refusal of an operation."""

from __future__ import annotations


class Refused(Exception):  # noqa: N818
    """The operation is refused with a result code, and has changed nothing that counts.

    It never leaves the state machine: `apply` undoes what was begun and answers with the code.
    """

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code
