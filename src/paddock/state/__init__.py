"""The state of the service: a pure function of the log.

`StateMachine.apply` takes one entry after another and is the only thing that changes anything.
Nothing here reads a clock, uses randomness, does IO or logs: whatever is not deterministic was
stamped into the entry before it was proposed. So the same log gives the same state, after a restart
or on another machine, and a digest of the state proves it.

Watches are pure as well, and live beside the state: they are no part of the log, of a snapshot or
of the digest.
"""
