"""Mutations of what clients are sent: order of replies, reads, sync, watches."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutation import Mutation, mutation

MUTATIONS: Final[tuple[Mutation, ...]] = (
    mutation(
        "reads-overtake",
        "A read waits for the writes that its client has sent before.",
        "server/connections/request_handler.py",
        "            if self.queue.length:\n                if is_heavy",
        "            if self.queue.length > 1 << 30:\n                if is_heavy",
    ),
    mutation(
        "read-answered-late",
        "A read that waits is answered before its client's next write is applied.",
        "server/connections/request_handler.py",
        "            self._close(events.CLOSED)\n        else:\n            self._answer_queue()\n",
        "            self._close(events.CLOSED)\n"
        "        elif self.queue._submitted == self.queue._answered:\n"
        "            self._answer_queue()\n",
    ),
    mutation(
        "sync-from-memory",
        "A sync waits until everything that was written before it is here.",
        "server/connections/core.py",
        "            self.reads -= {opcodes.SYNC}\n",
        "            self.reads -= set[int]()\n",
    ),
    mutation(
        "event-after-reply",
        "An event comes before any reply that shows its change.",
        "server/replication/replica.py",
        "                self.watches.publish(outcome.changes)\n"
        "            if outcome.session is not None:\n"
        "                self.sessions.changed(entry, outcome, submitter, is_ours)\n"
        "            if submitter is not None:\n"
        "                submitter.deliver(entry, outcome)\n",
        "            if outcome.session is not None:\n"
        "                self.sessions.changed(entry, outcome, submitter, is_ours)\n"
        "            if submitter is not None:\n"
        "                submitter.deliver(entry, outcome)\n"
        "            if outcome.changes:\n                self.watches.publish(outcome.changes)\n",
    ),
    mutation(
        "foreign-changes-untold",
        "Watchers are told of changes that were made by way of other servers.",
        "server/replication/replica.py",
        "            if outcome.changes:\n",
        "            if outcome.changes and is_ours:\n",
    ),
    mutation(
        "watch-fires-again",
        "A watch of one event is gone with it.",
        "state/watches.py",
        "            if modes & ONE_SHOT:\n                watcher",
        "            if modes & ONE_SHOT and modes != ONE_SHOT:\n                watcher",
    ),
    mutation(
        "deletion-told-twice",
        "A deletion is told once to who watches a node and its children.",
        "state/watches.py",
        "                    child.trigger(events.NODE_DELETED, path, acl, zxid, told, batch)\n",
        "                    child.trigger(events.NODE_DELETED, path, acl, zxid, None, batch)\n",
    ),
    mutation(
        "children-of-deleted-untold",
        "A deletion is told to who watches the children of the node above.",
        "state/watches.py",
        "told, batch)\n                    self._children_changed(change, batch)\n",
        "told, batch)\n",
    ),
    mutation(
        "missed-change-untold",
        "Watches that are set again tell of what has changed meanwhile.",
        "state/watch_setting.py",
        "            if node.mzxid > self._zxid:\n",
        "            if node.mzxid > 1 << 62:\n",
    ),
    mutation(
        "old-change-told",
        "Watches that are set again tell of nothing that the client has seen.",
        "state/watch_setting.py",
        "        elif node.pzxid > self._zxid:\n",
        "        elif node.pzxid > 0:\n",
    ),
)
