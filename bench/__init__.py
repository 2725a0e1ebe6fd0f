"""The benchmark: Paddock beside Apache ZooKeeper, its client beside kazoo, `make bench`."""
