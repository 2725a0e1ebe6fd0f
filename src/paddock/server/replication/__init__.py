"""The way of a write: gathered into a batch, ordered by the log, applied, reported.

Sockets do not belong here; connections submit entries and receive outcomes.
"""
