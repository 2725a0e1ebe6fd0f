"""The past of a service, read from what its servers have written: states, changes, causes.

Nothing here needs a server, or writes anything. A source (`paddock.history.source`) is a data
folder of Paddock, a backup, or a data folder of Apache ZooKeeper. It gives a state of the past
(`paddock.history.past`), which goes on step by step, and `paddock.history.telling` says what each
step has changed.
"""
