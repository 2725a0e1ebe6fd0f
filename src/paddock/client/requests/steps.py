"""Several operations in one request, as a transaction and a multi-read send them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from librt.strings import BytesWriter

from paddock.client.requests.pending_request import name_of, refusal
from paddock.errors import ServiceError
from paddock.protocol.records import MultiHeader

# The operation in the header after the last one.
_DONE: Final = -1


@dataclass(frozen=True, slots=True)
class Step:
    """One of the operations, encoded."""

    operation: int
    body: bytes
    # What errors name; as the caller wrote it.
    path: str

    @property
    def name(self) -> str:
        return name_of(self.operation)

    def error(self, code: int) -> ServiceError:
        """Give the error for a result code of this step alone."""
        return refusal(code, self.operation, self.path, is_single=False)


def encoded_steps(steps: Iterable[Step]) -> bytes:
    """Give the body of a request that has all of them."""
    writer = BytesWriter()
    for step in steps:
        MultiHeader(step.operation, False, -1).write(writer)
        writer.write(step.body)
    MultiHeader(_DONE, True, -1).write(writer)
    return writer.getvalue()
