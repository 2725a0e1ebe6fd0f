"""The blocking twin of `paddock.recipes`, with the same names.

Written by tools/twin.py from the names there; not to be edited.
"""

from paddock.recipes._line import Contender
from paddock.recipes._tree import CachedNode, Snapshot
from paddock.recipes.cache import CacheChange, ChangeKind
from paddock.recipes.grant import GrantEvent, GrantListener
from paddock.sync.recipes.cache import Cache
from paddock.sync.recipes.grant import Grant
from paddock.sync.recipes.lock import Lock, SimpleMutex

__all__ = [
    "Cache",
    "CacheChange",
    "CachedNode",
    "ChangeKind",
    "Contender",
    "Grant",
    "GrantEvent",
    "GrantListener",
    "Lock",
    "SimpleMutex",
    "Snapshot",
]
