"""The asyncio client of any ZooKeeper service."""
