"""Mutations of recipes: of locks and their grants, the queue, the counter."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutation import Edit, Mutation, mutation

MUTATIONS: Final[tuple[Mutation, ...]] = (
    mutation(
        "line-without-order",
        "A contender has its turn when nobody is before it in the line.",
        "recipes/locks/line.py",
        "    return before[-1] if before else None\n",
        "    return None\n",
    ),
    mutation(
        "one-wait-is-enough",
        "Who waited for the contender before it looks again: that may have left before its turn.",
        "recipes/locks/line.py",
        "        while (ahead := await self.look()) is not None:\n",
        "        if (ahead := await self.look()) is not None:\n",
    ),
    mutation(
        "token-does-not-rise",
        "A later grant has a larger token.",
        "recipes/locks/line.py",
        "            self.token, self._seen = stat.czxid, seen\n",
        "            self.token, self._seen = -stat.czxid, seen\n",
    ),
    mutation(
        "guard-without-check",
        "A guarded write fails once the grant is over.",
        "recipes/locks/grant.py",
        "        for path in self._held.guarded:\n            transaction.check(path)\n",
        "        pass\n",
    ),
    mutation(
        "holder-not-told",
        "A holder is told when its session may be over.",
        "recipes/locks/grant.py",
        "        if state.is_final or state is SessionState.OVERDUE:\n",
        "        if state.is_final:\n",
        Edit(
            "recipes/locks/grant.py",
            "self._alarm = self._loop.call_at(self._client.session_valid_until, self._look)",
            "pass",
        ),
    ),
    mutation(
        "reader-beside-writer",
        "A reader waits for the writers before it.",
        "recipes/locks/rw_lock.py",
        "        return self._line.new_place(self._kinds.read, _last_writer, is_revocable=True)\n",
        "        return self._line.new_place(self._kinds.read, lambda before: None)\n",
    ),
    mutation(
        "one-lease-too-many",
        "A semaphore has no more holders than leases.",
        "recipes/locks/semaphore.py",
        "        return len(await self._lease.before()) < self._count\n",
        "        return len(await self._lease.before()) <= self._count\n",
    ),
    mutation(
        "item-of-a-failed-worker-lost",
        "An item that its worker has given up comes back.",
        "recipes/queue/delivery.py",
        "            if self.is_done:\n",
        "            if True:\n",
    ),
    mutation(
        "item-taken-twice",
        "An item that is acknowledged is gone.",
        "recipes/queue/delivery.py",
        "                await transaction.delete(self._entry_path).commit()\n",
        "                await transaction.commit()\n",
    ),
    mutation(
        "lost-addition-repeated",
        "An addition whose reply was lost is not repeated if it took effect.",
        "recipes/common/receipt.py",
        "        return await retry(self._client, self._is_found)\n",
        "        return False\n",
    ),
    mutation(
        "addition-over-another",
        "An addition is written over the number that was read.",
        "recipes/values/versioned_node.py",
        "        return transaction.set(self.path, data, version=seen.version)\n",
        "        return transaction.set(self.path, data)\n",
    ),
)
