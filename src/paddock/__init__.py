"""ZooKeeper for Python: a durable server that speaks ZooKeeper's wire protocol."""

__version__ = "0.1.0"
