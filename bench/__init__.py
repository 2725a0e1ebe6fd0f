"""The benchmark: Paddock and Apache ZooKeeper side by side, `make bench`."""
