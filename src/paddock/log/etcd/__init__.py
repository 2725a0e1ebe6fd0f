"""The log that several servers share, on etcd: its keys, its client, its snapshots and trimming.

Nothing outside this package knows etcd; what batches and snapshots mean is not known here.
"""
