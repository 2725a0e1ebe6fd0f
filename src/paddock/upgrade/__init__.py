"""Taking over the data folder of an Apache ZooKeeper server, of 3.4 to 3.9.

Its newest whole snapshot is read, the transactions of its log behind that are replayed as upstream
replays them, and the state becomes a data folder of ours. Apache's files are only ever read.
"""
