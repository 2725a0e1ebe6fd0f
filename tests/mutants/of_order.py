"""Mutations of the order in which the batches of several servers count."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutation import Edit, Mutation, mutation

MUTATIONS: Final[tuple[Mutation, ...]] = (
    mutation(
        "hole-passed-over",
        "A batch that comes out of the log before its predecessor is held: none is skipped.",
        "state/roster.py",
        "        if ahead > 0:\n",
        "        if ahead > HELD_MAX:\n",
    ),
    mutation(
        "duplicate-counts",
        "A batch that was applied before is void.",
        "state/roster.py",
        "        if ahead < 0 or ahead >= HELD_MAX or number in member.held:\n",
        "        if ahead >= HELD_MAX or number in member.held:\n",
    ),
    mutation(
        "held-for-ever",
        "What is held is applied right behind the batch that it waited for.",
        "state/roster.py",
        "        while number in member.held:\n",
        "        while number in member.held and number < 0:\n",
    ),
    mutation(
        "late-join-counts",
        "A boot that is over does not come back by a late repetition of its JOIN.",
        "state/roster.py",
        "if number == 0 and boot not in self.ended and _is_join(payload):",
        "if number == 0 and _is_join(payload):",
        Edit(
            "state/membership.py",
            "        if boot in roster.members or boot in roster.ended:\n",
            "        if boot in roster.members:\n",
        ),
    ),
    mutation(
        "batch-not-repeated",
        "An append whose outcome is unknown is repeated until its batch comes out of the log.",
        "log/etcd/proposals.py",
        "                await asyncio.sleep(pause_s)\n"
        "                pause_s = min(2 * pause_s, PAUSE_S_MAX)\n",
        "                return\n",
    ),
    mutation(
        "error-means-not-written",
        "No error of an append is taken for proof that it was not written.",
        "log/etcd/proposals.py",
        "                await asyncio.sleep(pause_s)\n"
        "                pause_s = min(2 * pause_s, PAUSE_S_MAX)\n",
        "                self._highest += 1\n"
        "                proposal.number = self._highest\n"
        "                self._pending[proposal.number] = proposal\n",
    ),
    mutation(
        "own-batch-not-compared",
        "A batch under our name must be the one that we proposed.",
        "log/etcd/proposals.py",
        "            is_ours = proposal.payload == record.payload\n",
        "            is_ours = True\n",
        Edit(
            "log/etcd/proposals.py",
            "            is_ours = record.number <= self._highest\n",
            "            is_ours = True\n",
        ),
    ),
    mutation(
        "entries-swapped",
        "Writes of one client are applied in the order in which it sent them.",
        "server/replication/fair_queue.py",
        "            entries, self._entries = self._entries, []\n"
        "            origins, self._origins = self._origins, []\n",
        "            entries, self._entries = self._entries[::-1], []\n"
        "            origins, self._origins = self._origins[::-1], []\n",
    ),
    mutation(
        "pages-unsorted",
        "Records that are read in pages are applied in the order of the log, not of their keys.",
        "log/etcd/pages.py",
        "    plan.sort()\n",
        "",
    ),
    mutation(
        "trimmed-unnoticed",
        "A reader whose records were trimmed under it begins again from the snapshot.",
        "log/etcd/follower.py",
        "        if len(plan) != state.last_index + 1 - index:\n",
        "        if False:\n",
        Edit(
            "log/etcd/history.py",
            "        if snapshot.index >= after.index and snapshot.revision >= after.revision:\n"
            "            raise TrimmedError(",
            "        if snapshot.index >= after.index and snapshot.revision >= after.revision:\n"
            "            return state\n"
            "            raise TrimmedError(",
        ),
    ),
    mutation(
        "silent-watch-trusted",
        "A watch that shows nothing may be broken without a word, and is opened again.",
        "log/etcd/follower.py",
        "                self._scope.reschedule(now)\n",
        "                pass\n",
    ),
    mutation(
        "snapshot-while-held",
        "No snapshot is taken while a batch is held behind another.",
        "server/replication/shared_records.py",
        "        return self._roster.held_count == 0\n",
        "        return True\n",
    ),
    mutation(
        "trim-too-far",
        "Only what lies behind the snapshot before the last is deleted from the log.",
        "log/etcd/trimming.py",
        "        await trimmer.delete_batches(manifest.trimmed)\n",
        "        await trimmer.delete_batches(manifest.cut)\n",
    ),
    mutation(
        "trim-takes-new-batches",
        "A batch that was written after the snapshot stays, whatever its number.",
        "log/etcd/trimming.py",
        "            await self._delete_boot(boot, end, cut.revision)\n",
        "            await self._delete_boot(boot, end, 1 << 62)\n",
    ),
    mutation(
        "restoration-unnoticed",
        "A server whose log was replaced by an older one serves nobody.",
        "log/etcd/history.py",
        '        raise other_history(f"it does not have record {after.index} of revision'
        ' {after.revision}")\n',
        "        return state\n",
        Edit(
            "log/etcd/history.py",
            "        if read.revision < after.revision:\n",
            "        if False:\n",
        ),
        Edit(
            "log/etcd/history.py",
            "        if last_index < after.index:\n",
            "        if False:\n",
        ),
        # A log that has fewer records than it should is noticed once more when it is read in pages.
        Edit(
            "log/etcd/follower.py",
            "            raise other_history(reason)\n",
            "            return\n",
        ),
    ),
    mutation(
        "cache-outlives-restoration",
        "A server does not start with a cache that is newer than its log, unless there is a new"
        " epoch.",
        "server/cluster/startup.py",
        "            if epoch_of(replica.machine.zxid) <= epoch_of(cached.zxid):\n",
        "            if epoch_of(replica.machine.zxid) < epoch_of(cached.zxid):\n",
    ),
)
