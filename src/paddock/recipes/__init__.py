"""Recipes: locks, elections, queues and other coordination, on the client's public API.

    from paddock.recipes import Lock

    async with Lock(client, "/locks/report") as grant:
        print(grant.token)

The docstring of each module says what is guaranteed, and what happens on suspension, expiry and
cancellation. `paddock.sync.recipes` has the same for blocking code.
"""

from paddock.recipes.cache.cache import Cache, CacheChange, ChangeKind
from paddock.recipes.cache.tree import CachedNode, Snapshot
from paddock.recipes.discovery.discovery import InstancesListener, ServiceRegistry
from paddock.recipes.discovery.instance import ServiceInstance
from paddock.recipes.discovery.provider import Choice, ServiceCache, ServiceProvider
from paddock.recipes.groups.barrier import Barrier, DoubleBarrier
from paddock.recipes.groups.membership import MemberListener, Membership
from paddock.recipes.groups.partitioner import Partitioner, Share
from paddock.recipes.groups.roster import Member, MembershipChange, MembershipEvent
from paddock.recipes.locks.election import Election, ElectionEvent, ElectionListener
from paddock.recipes.locks.grant import Grant, GrantEvent, GrantListener, ReleaseRequest
from paddock.recipes.locks.lease import Lease, LeaseGrant
from paddock.recipes.locks.line import Contender, LayoutName
from paddock.recipes.locks.lock import Lock, SimpleMutex
from paddock.recipes.locks.multi_lock import MultiGrant, MultiLock
from paddock.recipes.locks.rw_lock import ReadLock, ReadWriteLock, WriteLock
from paddock.recipes.locks.semaphore import Semaphore
from paddock.recipes.log_room.log_room import LogChannel, LogRoom
from paddock.recipes.log_room.room_reader import ChannelDeleted, ChannelOpened, LogEntry, RoomEvent
from paddock.recipes.queue.queue import DeadLetter, Queue, QueueEntry, QueueItem
from paddock.recipes.tasks.assigner import Assign, least_loaded
from paddock.recipes.tasks.master_worker import Handler, Master, Task, TaskClient, Worker
from paddock.recipes.tasks.task_paths import TaskState, TaskStatus, WorkerLoad
from paddock.recipes.values.configuration import Configuration
from paddock.recipes.values.counter import Counter
from paddock.recipes.values.naming import Naming
from paddock.recipes.values.persistent_node import PersistentNode
from paddock.recipes.values.value import SharedValue

__all__ = [
    "Assign",
    "Barrier",
    "Cache",
    "CacheChange",
    "CachedNode",
    "ChangeKind",
    "ChannelDeleted",
    "ChannelOpened",
    "Choice",
    "Configuration",
    "Contender",
    "Counter",
    "DeadLetter",
    "DoubleBarrier",
    "Election",
    "ElectionEvent",
    "ElectionListener",
    "Grant",
    "GrantEvent",
    "GrantListener",
    "Handler",
    "InstancesListener",
    "LayoutName",
    "Lease",
    "LeaseGrant",
    "Lock",
    "LogChannel",
    "LogEntry",
    "LogRoom",
    "Master",
    "Member",
    "MemberListener",
    "Membership",
    "MembershipChange",
    "MembershipEvent",
    "MultiGrant",
    "MultiLock",
    "Naming",
    "Partitioner",
    "PersistentNode",
    "Queue",
    "QueueEntry",
    "QueueItem",
    "ReadLock",
    "ReadWriteLock",
    "ReleaseRequest",
    "RoomEvent",
    "Semaphore",
    "ServiceCache",
    "ServiceInstance",
    "ServiceProvider",
    "ServiceRegistry",
    "Share",
    "SharedValue",
    "SimpleMutex",
    "Snapshot",
    "Task",
    "TaskClient",
    "TaskState",
    "TaskStatus",
    "Worker",
    "WorkerLoad",
    "WriteLock",
    "least_loaded",
]
