"""The state of the service: a pure function of the log.

`StateMachine.apply` takes one entry after another and is the only thing that changes anything.
Nothing here knows the time, has luck, does IO or logs: whatever is not deterministic was stamped
into the entry before it was proposed. So the same log gives the same state, on this machine after
a restart or on another one, and a digest of the state proves it.

Watches live here too, since they are just as pure, but beside the state and not in it: which
connection watches what is no part of the log, of a snapshot or of the digest.
"""
