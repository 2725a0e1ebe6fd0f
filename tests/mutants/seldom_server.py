"""Seldom seen mutations of the server and the protocol: what is never given back, or too often."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutation import Mutation, mutation

MUTATIONS: Final[tuple[Mutation, ...]] = (
    # Shows when clients go, time after time, while their watches are being set again.
    mutation(
        "room-of-watches-not-given-back",
        "A client that goes gives back the room of the watches that were not set yet.",
        "server/connections/request_handler.py",
        "            self._setting.abandon()\n",
        "",
    ),
    # Shows when a client goes that has more watches than are removed in one turn.
    mutation(
        "rest-of-watches-stays",
        "All watches of a client go with its connection, however many they are.",
        "server/connections/core.py",
        "                self._turns.ask(self)\n                break\n",
        "                break\n",
    ),
    # Shows when two clients open a read-only session in one millisecond, or the clock is behind.
    mutation(
        "read-only-id-twice",
        "Two read-only sessions of a server have different ids.",
        "server/connections/core.py",
        "        self._last_local_id = max(\n"
        "            self.machine.sessions.next_id(self.wall_clock_ms()), self._last_local_id + 1\n"
        "        )\n",
        "        self._last_local_id = self.machine.sessions.next_id(self.wall_clock_ms())\n",
    ),
    # Shows when a peer that does not read has asked twice for the same large node, and goes.
    mutation(
        "body-given-back-twice",
        "A body that waits more than once for a peer is given back once.",
        "server/connections/send_buffer.py",
        "                if size < 0 and self._bodies.pop(id(body), 0):\n",
        "                if size < 0 and id(body) in self._bodies:\n",
    ),
    # Shows when 64 MiB of paths have been asked for by feeds, since the start and in all.
    mutation(
        "paths-of-feeds-add-up",
        "A feed that ends gives the bytes of its path back.",
        "server/connections/feeds.py",
        "        own.path_bytes -= len(feed.topic.path)\n"
        "        self._path_bytes -= len(feed.topic.path)\n",
        "        own.path_bytes -= len(feed.topic.path)\n",
    ),
    # Shows when a round ends at the limit, and clients delete many containers before the next one.
    mutation(
        "reaper-beyond-the-end",
        "The reaper goes on where its last round came to the limit, whatever is gone by then.",
        "server/sessions/reaper.py",
        "            self._left = min(self._left, len(bag))\n",
        "",
    ),
    # Shows when a server has applied 65,536 batches since its start: it follows no more.
    mutation(
        "followed-for-so-many-records",
        "A record that was applied waits no more, with all that it counted for.",
        "server/replication/shared_records.py",
        "        self._waiting_bytes -= len(record.payload) + RECORD_BYTES\n",
        "        self._waiting_bytes -= len(record.payload)\n",
    ),
    # Shows when two servers have different states, and etcd says that it has room.
    mutation(
        "room-ends-a-dispute",
        "While servers have different states no write is accepted, however much room there is.",
        "server/replication/pacing.py",
        "        self.restraint = self.restraint | reason if holds else self.restraint & ~reason\n",
        "        self.restraint = self.restraint | reason if holds else 0\n",
    ),
    # Shows when a backup is asked for in the middle of a batch, right behind another snapshot.
    mutation(
        "backup-before-half-a-batch",
        "A backup has all writes that were answered before it was asked for.",
        "server/durability/snapshotter.py",
        "        wanted = self._replica.applied"
        " + (0 if self._replica.is_between_batches() else 1)\n",
        "        wanted = self._replica.applied\n",
    ),
    # Shows when the past is being read for a feed, a minute after it was read for one before.
    mutation(
        "ended-by-an-old-timer",
        "The process that reads the past stays for a while behind each request.",
        "server/durability/past_changes.py",
        "            self._keep()\n            process = await",
        "            process = await",
    ),
    # Shows when the disk is full in the middle of a line of the audit log, and then has room again.
    mutation(
        "audit-goes-on-in-a-torn-line",
        "Each line of the audit log begins a line, also behind one that is torn.",
        "server/admin/audit.py",
        '            if self._is_torn:\n                data = b"\\n" + data\n',
        "",
    ),
    # Shows when an address guesses on while a thousand others give a wrong password.
    mutation(
        "busiest-guesser-forgotten",
        "Of too many addresses with wrong passwords, the one that was silent longest is forgotten.",
        "server/admin/rate_limits.py",
        "        self._wrong.move_to_end(key)\n",
        "",
    ),
    # Shows when two commands on the past have been given up by their clients: no other is run.
    mutation(
        "place-of-a-failed-command",
        "A command on the past gives its place back, also if it fails.",
        "server/admin/past_command.py",
        "        finally:\n            self._running -= 1\n        return PastAnswer",
        "        else:\n            self._running -= 1\n        return PastAnswer",
    ),
    # Shows when a tool asks for a head, and then for the whole on the same connection.
    mutation(
        "nothing-behind-a-head",
        "A GET has its body, whatever was asked before on its connection.",
        "server/admin/http_connection.py",
        '                self._is_head = request.method == b"HEAD"\n',
        '                self._is_head = self._is_head or request.method == b"HEAD"\n',
    ),
    # Shows when a server has written 65,536 records of history since its start: no more is kept.
    mutation(
        "history-of-so-many-records",
        "A record that is written down waits no more, with all that it counted for.",
        "server/cluster/recorder.py",
        "        self._waiting_bytes -= sum(one.size + _RECORD_BYTES for one in records)\n",
        "        self._waiting_bytes -= sum(one.size for one in records)\n",
    ),
    # Shows when a file of certificates is replaced while the one before it is being read.
    mutation(
        "changed-while-it-was-read",
        "A file that changes while it is read is read again.",
        "server/tls/context.py",
        '        logger.info("the TLS files have changed and are used for new connections")\n',
        "        self._stamps = self._look()\n"
        '        logger.info("the TLS files have changed and are used for new connections")\n',
    ),
    # Shows when an event comes during a write and no other behind it, and the server is killed.
    mutation(
        "event-behind-a-write-waits",
        "An event is written within a second, also one that came during a write.",
        "server/journal/event_writer.py",
        "        self._is_writing = False\n        if self._gathered:\n"
        "            self._write_later()\n",
        "        self._is_writing = False\n",
    ),
    # Shows when the first operation of a transaction fails, and its reply is lost: no way back.
    mutation(
        "first-operation-failed",
        "A client reads which operation of a transaction failed, the first one as well.",
        "protocol/exact.py",
        "        if length <= FIRST_FAILED:\n",
        "        if length < FIRST_FAILED:\n",
    ),
    # Shows when an ACL has 5,000 entries: one less is taken.
    mutation(
        "longest-acl-refused",
        "An ACL may have as many entries as the limit says.",
        "protocol/acl.py",
        "    if count > reader.acl_entries_max:\n",
        "    if count >= reader.acl_entries_max:\n",
    ),
)
