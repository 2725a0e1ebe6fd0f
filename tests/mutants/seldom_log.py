"""Seldom seen mutations of logs and storage: a second failure, a size or a time that just fits."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutation import Mutation, mutation

MUTATIONS: Final[tuple[Mutation, ...]] = (
    # Shows when the first record of a segment cannot be synced: a later purge removes the segment.
    mutation(
        "segment-listed-twice",
        "A purge leaves the segment that the log goes on in, however often it was made.",
        "log/file/segments.py",
        "            if first_index not in self._first_indices[-1:]:\n"
        "                self._first_indices.append(first_index)\n",
        "            self._first_indices.append(first_index)\n",
    ),
    # Shows when a server has joined again after an outage, and then its machine is cloned.
    mutation(
        "clone-of-the-second-boot",
        "A batch under our name that this boot has not proposed is by a clone of us.",
        "log/etcd/proposals.py",
        '        self.server = b""\n        self._highest = -1\n        self._pending.clear()\n',
        '        self.server = b""\n        self._pending.clear()\n',
    ),
    # Shows when the snapshot in a backup has a multiple of 512 bytes: one backup in 512.
    mutation(
        "one-block-too-many",
        "What fills its last block in a backup is followed by the next file.",
        "storage/maintenance/backup.py",
        "    return -(-size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE\n",
        "    return (size // tarfile.BLOCKSIZE + 1) * tarfile.BLOCKSIZE\n",
    ),
    # Shows when the log of a backup begins behind the very snapshot that the backup stands at.
    mutation(
        "backup-without-its-snapshot",
        "The history in a backup has the snapshot of the state that the backup stands at.",
        "storage/maintenance/history_backup.py",
        "        if at <= index:\n",
        "        if at < index:\n",
    ),
    # Shows when two files of events share a millisecond, and somebody asks for events from it on.
    mutation(
        "events-of-one-millisecond",
        "All events of the time that is asked for are told, in whichever file they are.",
        "storage/events.py",
        "files[i + 1][0] < since_ms\n",
        "files[i + 1][0] <= since_ms\n",
    ),
    # Shows when etcd is restored a second time: no server that was there before writes history.
    mutation(
        "second-history-not-set-aside",
        "A history that was set aside makes room for the next one.",
        "storage/cluster/history.py",
        "            if aside.exists():\n                shutil.rmtree(aside)\n",
        "",
    ),
    # Shows when a batch is to be skipped, and a trimmed one of its server came once more behind it.
    mutation(
        "late-repetition-hides-a-batch",
        "A batch that a server has applied is not skipped, whatever came late behind it.",
        "storage/cluster/operations.py",
        "                    cuts.get(one.server, 0) <= one.number < found.number\n",
        "                    one.number < found.number\n",
    ),
    # Shows when an Apache log has zeros where a transaction was, and a good one behind it.
    mutation(
        "good-transaction-passed-over",
        "A log of Apache's with a good transaction behind a damaged one is not taken over.",
        "upgrade/transaction_log.py",
        "        at = rest.find(bytes(4), at + 1)\n",
        "        at = rest.find(bytes(4), at + 4)\n",
    ),
)
