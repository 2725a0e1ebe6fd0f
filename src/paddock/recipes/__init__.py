"""Coordination, ready to use: locks and their kin, on the client's public API.

    from paddock.recipes import Lock

    async with Lock(client, "/locks/report") as grant:
        print(grant.token)

Each recipe is a module of its own, whose docstring says what is guaranteed, and what happens on
suspension, on expiry and on cancellation. `paddock.sync.recipes` has the same for blocking code.
"""

from paddock.recipes._desk import Assign, least_loaded
from paddock.recipes._instance import ServiceInstance
from paddock.recipes._line import Contender
from paddock.recipes._room import ChannelDeleted, ChannelOpened, LogEntry, RoomEvent
from paddock.recipes._roster import Member, MembershipChange, MembershipEvent
from paddock.recipes._tasks import TaskState, TaskStatus, WorkerLoad
from paddock.recipes._tree import CachedNode, Snapshot
from paddock.recipes.barrier import Barrier, DoubleBarrier
from paddock.recipes.cache import Cache, CacheChange, ChangeKind
from paddock.recipes.configuration import Configuration
from paddock.recipes.counter import Counter
from paddock.recipes.discovery import InstancesListener, ServiceRegistry
from paddock.recipes.election import Election, ElectionEvent, ElectionListener
from paddock.recipes.grant import Grant, GrantEvent, GrantListener
from paddock.recipes.lease import Lease, LeaseGrant
from paddock.recipes.lock import Lock, SimpleMutex
from paddock.recipes.log_room import LogChannel, LogRoom
from paddock.recipes.master_worker import Handler, Master, Task, TaskClient, Worker
from paddock.recipes.membership import MemberListener, Membership
from paddock.recipes.multi_lock import MultiGrant, MultiLock
from paddock.recipes.naming import Naming
from paddock.recipes.partitioner import Partitioner, Share
from paddock.recipes.persistent_node import PersistentNode
from paddock.recipes.provider import Choice, ServiceCache, ServiceProvider
from paddock.recipes.queue import DeadLetter, Queue, QueueEntry, QueueItem
from paddock.recipes.rw_lock import ReadLock, ReadWriteLock, WriteLock
from paddock.recipes.semaphore import Semaphore
from paddock.recipes.value import SharedValue

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
