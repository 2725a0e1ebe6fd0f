"""What tests of watches name: the modes, the kinds, and events."""

from __future__ import annotations

from paddock.protocol.acl import Identity
from paddock.protocol.events import (
    NODE_CHILDREN_CHANGED,
    NODE_CREATED,
    NODE_DATA_CHANGED,
    NODE_DELETED,
)

BOB = Identity("digest", "bob:hash")

# The modes of addWatch, and what removeWatches and checkWatches call each of them.
PERSISTENT, RECURSIVE = 0, 1
CHILD_KIND, DATA_KIND, ANY_KIND, PERSISTENT_KIND, RECURSIVE_KIND = 1, 2, 3, 4, 5
EACH_KIND = (CHILD_KIND, DATA_KIND, PERSISTENT_KIND, RECURSIVE_KIND)

# Events of changes to `/a` and below it.
CREATED_C = (NODE_CREATED, b"/a/c")
CHILDREN_A = (NODE_CHILDREN_CHANGED, b"/a")
CHILDREN_B = (NODE_CHILDREN_CHANGED, b"/a/b")
DELETED_B = (NODE_DELETED, b"/a/b")
DATA_A = (NODE_DATA_CHANGED, b"/a")
DATA_B = (NODE_DATA_CHANGED, b"/a/b")
DEEP = (NODE_CREATED, b"/a/b/x")
