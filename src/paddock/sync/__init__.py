"""The blocking twin of the client: the same names, types and errors, for code without asyncio.

    from paddock.sync import connect, timeout

    with connect("127.0.0.1:2181/app", session_timeout=10) as client:
        client.create("/color", b"blue", make_parents=True)
        with timeout(5):
            data, stat = client.get("/color")
        for change in client.watch("/color"):
            print(change.data)  # b'blue'
            break

A client may be used by many threads. All clients of a process share one background thread with an
event loop. A thread that runs an event loop of its own, and a forked child with its parent's
client, get a UsageError.

`paddock.sync.recipes` has the recipes, with the same names as `paddock.recipes`. A scope that is
lost, such as that of a lock, cannot stop its body: it raises its error when it is left.

There are three kinds of functions that a client or a recipe calls:

* Callbacks, such as watchers and listeners, return nothing. They run one after the other on a
  thread of their own, and may make calls.
* Handlers return a result. Each call has a thread of its own, where it may block and make calls.
* Other functions run on the background thread. They must be quick; calls in them raise UsageError.
"""

from paddock.sync.api import connect
from paddock.sync.client import Client, MultiRead, Transaction
from paddock.sync.deadline import timeout
from paddock.sync.scopes import Scope
from paddock.sync.sessions import run_in_sessions
from paddock.sync.streams import Stream

__all__ = [
    "Client",
    "MultiRead",
    "Scope",
    "Stream",
    "Transaction",
    "connect",
    "run_in_sessions",
    "timeout",
]
