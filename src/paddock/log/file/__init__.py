"""The log on a disk: segments of checksummed records, written by one thread.

Nothing here knows what a record means. Snapshots and the data folder are in `paddock.storage`.
"""
