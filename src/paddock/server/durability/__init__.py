"""The server and its data folder: the start, snapshots while it serves, a log that fails.

The formats are in `paddock.storage` and `paddock.log`.
"""
