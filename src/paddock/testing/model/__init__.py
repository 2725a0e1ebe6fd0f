"""The reference model: what ZooKeeper does, written down as plainly as it can be.

The server has a journal, shared ACLs, kept encodings and a digest; this has dictionaries. There is
no cache here, nothing is counted that can be looked up, and a transaction that fails is undone by
going back to a copy of everything. It is slow and it is meant to be read: where the two disagree,
one of them is wrong, and here it is easy to see what was meant.

It shares the records of the protocol with the server and nothing else.
"""

from paddock.testing.model.model import TTL_MS_MAX, Model
from paddock.testing.model.parts import (
    Answer,
    Caller,
    ModelNode,
    ReadRequest,
    WriteRequest,
    is_valid_path,
)
from paddock.testing.model.quota import QUOTA

__all__ = [
    "QUOTA",
    "TTL_MS_MAX",
    "Answer",
    "Caller",
    "Model",
    "ModelNode",
    "ReadRequest",
    "WriteRequest",
    "is_valid_path",
]
