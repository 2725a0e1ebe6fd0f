"""Upgrades: the data folder of an Apache ZooKeeper server, 3.4 to 3.9, becomes one of Paddock.

Its newest whole snapshot is read, the transactions of its log behind that are replayed as upstream
replays them, and the state is written as a data folder. Apache's files are only read.
"""
