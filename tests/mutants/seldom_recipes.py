"""Seldom mutations of recipes: races, what is stale, what is given up, the second time."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutation import Edit, Mutation, mutation

MUTATIONS: Final[tuple[Mutation, ...]] = (
    # Shows in an ordinary session when a gate is closed twice at once: one receipt does not exist.
    mutation(
        "sweep-gives-up",
        "Nodes that are swept together all go, though one of them has gone already.",
        "recipes/common/departure.py",
        "                for path in paths:\n"
        "                    await retry(self._client, partial(delete_if_exists, self._client,",
        "                for path in paths[:0]:\n"
        "                    await retry(self._client, partial(delete_if_exists, self._client,",
    ),
    # Shows when the data are changed while the node is just being created, as after an expiry.
    mutation(
        "old-data-count-as-new",
        "What is set while a node is being created is written to it then.",
        "recipes/common/recreated_node.py",
        "            return\n        self._written = wanted\n        self._become(created",
        "            return\n        self._written = self._wanted\n        self._become(created",
    ),
    # Shows when the connection is back just before the session would end, and the delete is slow.
    mutation(
        "one-wait-for-the-session",
        "A close waits as long as the session surely lives, also if it lives on meanwhile.",
        "recipes/common/retry.py",
        "    while not task.done() and (remaining :=",
        "    if not task.done() and (remaining :=",
    ),
    # Shows when one of two nodes is deleted below a node that may not be read: the other one goes.
    mutation(
        "sibling-of-the-hidden-lost",
        "A node that may not be read is kept as long as something below it is known.",
        "recipes/cache/tree.py",
        "            if below.node is not None or below.children:\n",
        "            if below.node is not None:\n",
    ),
    # Shows when a cache loses its server and finds only one in read-only mode.
    mutation(
        "cut-off-and-current",
        "A cache is stale as long as its server is in read-only mode.",
        "recipes/cache/cache.py",
        "        self._is_stale = self._client.state is SessionState.CONNECTED_READ_ONLY\n",
        "        self._is_stale = False\n",
    ),
    # Shows when one call more fails that was under way when the instance was marked down.
    mutation(
        "down-again-by-one",
        "An instance is marked down again by as many errors as the first time.",
        "recipes/discovery/provider.py",
        "            record.errors = 0\n            record.until",
        "            record.until",
    ),
    # Shows when the clock of the service is set, or drifts, after a queue has asked for it once.
    mutation(
        "clock-asked-once",
        "The time of the service is asked for again when the last answer is old.",
        "recipes/queue/queue_index.py",
        "        if loop.time() - self._asked_at > _CLOCK_SECONDS_MAX:\n",
        "        if math.isinf(self._asked_at):\n",
    ),
    # Shows when the connection is lost while a reader lists a room, and entries come meanwhile.
    mutation(
        "gap-while-listing",
        "Events that were missed while a room was listed make its reader list it again.",
        "recipes/log_room/room_reader.py",
        "        watcher.has_gap = False\n        created: dict",
        "        created: dict",
        Edit(
            "recipes/log_room/room_reader.py",
            "        # After the lists: these are the changes since they began.\n",
            "        watcher.has_gap = False\n"
            "        # After the lists: these are the changes since they began.\n",
        ),
    ),
    # Shows when a scope has lost its leadership, and the same candidate stands again and stops.
    mutation(
        "failure-of-the-last-time",
        "A candidate that was stopped says so, whatever it has failed with before.",
        "recipes/locks/election.py",
        "        self._failure = None\n        self._become(ElectionEvent.START)\n",
        "        self._become(ElectionEvent.START)\n",
    ),
    # Shows when a contender has waited for a part of its seconds: it has only the rest of them.
    mutation(
        "wait-counts-as-lease",
        "The time of a lease begins anew after a wait for it.",
        "recipes/locks/lease.py",
        "        while self._has_waited or self._loop.time() >= self.until:\n",
        "        while self._loop.time() >= self.until:\n",
    ),
    # Shows at a server that is behind: the name was bound by way of another one just now.
    mutation(
        "unbound-where-unknown",
        "A name that was bound before is unbound, whichever server is asked.",
        "recipes/values/naming.py",
        "        await retry(self._client, lambda: self._client.sync(path))\n        while True:\n",
        "        while True:\n",
    ),
)
