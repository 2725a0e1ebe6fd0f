"""The list of servers in /zookeeper/config: what clients and tools see of it."""

import asyncio

import paddock
from paddock.testing.virtual import in_virtual_time
from tests.unit.server.cluster.stage import T, connect, staged
