"""The blocking twin of `paddock.recipes`, with the same names.

Written by tools/twin.py from the names there; not to be edited.
"""

from paddock.recipes.cache.cache import CacheChange, ChangeKind
from paddock.recipes.cache.tree import CachedNode, Snapshot
from paddock.recipes.discovery.discovery import InstancesListener
from paddock.recipes.discovery.instance import ServiceInstance
from paddock.recipes.discovery.provider import Choice
from paddock.recipes.groups.membership import MemberListener
from paddock.recipes.groups.partitioner import Share
from paddock.recipes.groups.roster import Member, MembershipChange, MembershipEvent
from paddock.recipes.locks.election import ElectionEvent, ElectionListener
from paddock.recipes.locks.grant import GrantEvent, GrantListener
from paddock.recipes.locks.line import Contender
from paddock.recipes.log_room.room import ChannelDeleted, ChannelOpened, LogEntry, RoomEvent
from paddock.recipes.queue.queue import DeadLetter, QueueEntry
from paddock.recipes.tasks.assigner import Assign, least_loaded
from paddock.recipes.tasks.master_worker import Handler
from paddock.recipes.tasks.task_paths import TaskState, TaskStatus, WorkerLoad
from paddock.sync.recipes.barrier import Barrier, DoubleBarrier
from paddock.sync.recipes.cache import Cache
from paddock.sync.recipes.configuration import Configuration
from paddock.sync.recipes.counter import Counter
from paddock.sync.recipes.discovery import ServiceRegistry
from paddock.sync.recipes.election import Election
from paddock.sync.recipes.grant import Grant
from paddock.sync.recipes.lease import Lease, LeaseGrant
from paddock.sync.recipes.lock import Lock, SimpleMutex
from paddock.sync.recipes.log_room import LogChannel, LogRoom
from paddock.sync.recipes.master_worker import Master, Task, TaskClient, Worker
from paddock.sync.recipes.membership import Membership
from paddock.sync.recipes.multi_lock import MultiGrant, MultiLock
from paddock.sync.recipes.naming import Naming
from paddock.sync.recipes.partitioner import Partitioner
from paddock.sync.recipes.persistent_node import PersistentNode
from paddock.sync.recipes.provider import ServiceCache, ServiceProvider
from paddock.sync.recipes.queue import Queue, QueueItem
from paddock.sync.recipes.rw_lock import ReadLock, ReadWriteLock, WriteLock
from paddock.sync.recipes.semaphore import Semaphore
from paddock.sync.recipes.value import SharedValue

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
