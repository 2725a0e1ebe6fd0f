"""The blocking twin of the client: the same names, types and errors, for code without asyncio.

    from paddock.sync import connect, timeout

    with connect("127.0.0.1:2181/app", session_timeout=10) as client:
        client.create("/color", b"blue", make_parents=True)
        with timeout(5):
            data, stat = client.get("/color")
        for change in client.watch("/color"):
            print(change.data)  # b'blue'
            break

A client may be used by many threads. Callbacks, such as watchers, are called on a thread of their
own, one after the other, and may make calls themselves. All clients of a process share one
background thread, which does the work; a thread that runs an event loop of its own, and a forked
child with its parent's client, get a UsageError.

`paddock.sync.recipes` has the recipes, with the same names as `paddock.recipes`. A scope that is
lost, as that of a lock, cannot stop its body here: it raises its error when it is left. What a
recipe calls is one of three. A listener, which gives nothing back, is called as callbacks are. A
handler does some work and gives its result: each call of one has a thread of its own, where it may
block and make calls. Any other function is called by the background thread itself, so it must be
quick; calls that it makes raise UsageError.
"""

from paddock.sync.api import connect
from paddock.sync.client import Client, MultiRead, Transaction
from paddock.sync.deadline import timeout
from paddock.sync.scopes import Scope
from paddock.sync.streams import Stream

__all__ = ["Client", "MultiRead", "Scope", "Stream", "Transaction", "connect", "timeout"]
