"""Mutations of the log of a single server: durable before it is answered."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutation import Mutation, mutation

MUTATIONS: Final[tuple[Mutation, ...]] = (
    mutation(
        "answered-before-synced",
        "A write is answered when it is durable.",
        "log/file/segments.py",
        "        self._disk.write_parts(self._file, parts, self._offset)\n"
        "        self._disk.sync(self._file)\n",
        "        self._disk.write_parts(self._file, parts, self._offset)\n",
    ),
    mutation(
        "name-not-synced",
        "A segment counts when its name is durable.",
        "log/file/segments.py",
        "            self._disk.rename(temporary, path)\n"
        "            self._disk.sync_folder(self._path)\n",
        "            self._disk.rename(temporary, path)\n",
    ),
    mutation(
        "unknown-is-refused",
        "A write whose sync failed is neither answered nor refused: it may be there.",
        "log/file/file_log.py",
        "            return _not_written(error), True\n",
        "            return _not_written(error), False\n",
    ),
    mutation(
        "unknown-apart-is-refused",
        "So is one that the disk writer could not sync.",
        "log/file/file_log.py",
        "        self._tell(self._listener, record, failure, is_doubtful=True)\n",
        "        self._tell(self._listener, record, failure, is_doubtful=False)\n",
    ),
    mutation(
        "written-apart-over-the-last",
        "A record comes behind the one that the disk writer wrote before it.",
        "log/file/file_log.py",
        "            active.end_append(record.payload)\n            record.late = late\n",
        "            record.late = late\n",
    ),
    mutation(
        "recovered-not-written",
        "What is found after a failed sync is written again before it counts.",
        "log/file/file_log.py",
        "            active = self._folder.create(index, record)\n",
        "            active = self._folder.create(index)\n",
    ),
    mutation(
        "purged-too-far",
        "The log is purged up to a snapshot that is durable, and no further.",
        "log/file/segments.py",
        "            is_old = len(first_indices) > 1 and first_indices[1] <= below + 1\n",
        "            is_old = len(first_indices) > 1\n",
    ),
    mutation(
        "snapshot-not-synced",
        "A snapshot gets its name when it is durable.",
        "storage/snapshots.py",
        "            self._disk.sync(self._file)\n            self._disk.rename(",
        "            self._disk.rename(",
    ),
)
