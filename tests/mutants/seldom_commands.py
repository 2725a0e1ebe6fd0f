"""Seldom mutations of commands and the dashboard: restarts, limits, counters, what has failed."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutation import Mutation, mutation

MUTATIONS: Final[tuple[Mutation, ...]] = (
    # Shows when an ACL may not be replaced that is set last, since it would keep us from creating.
    mutation(
        "acl-silently-kept",
        "An import fails if it may not set an ACL that it has to set.",
        "cli/transfer/importing.py",
        "                if error is None or (isinstance(error, NoAuthError) and attempts):\n",
        "                if error is None or isinstance(error, NoAuthError):\n",
    ),
    # Shows when it is stopped for the second time within one transaction: the third run skips more.
    mutation(
        "lines-counted-twice",
        "A checkpoint counts the lines of a transaction once, however often it was gone on with.",
        "cli/commands/changes.py",
        "        here.lines = 0\n",
        "",
    ),
    # Shows when the lock is had in time, and the command then runs for longer than --wait.
    mutation(
        "wait-ends-the-command",
        "The time to wait for a lock is over when the lock is had.",
        "cli/run_under/run_while_held.py",
        "                            deadline.reschedule(None)\n",
        "",
    ),
    # Shows for a long text with a character of several bytes where it is cut: it is shown as bytes.
    mutation(
        "cut-character-is-no-text",
        "The beginning of a text is shown as text, wherever it is cut.",
        "cli/output.py",
        "final=len(data) < 4 * width)",
        "final=True)",
    ),
    # Shows for `paddock tree --depth 0` of the past by --admin: the whole tree is drawn.
    mutation(
        "nought-not-passed-on",
        "A server is asked about its past with every option that was given, also with 0.",
        "cli/past/remote.py",
        "name not in _OWN and value is not None and value is not False:",
        "name not in _OWN and value:",
    ),
    # Shows for sessions of an ensemble whose servers have numbers from 128 on.
    mutation(
        "session-without-its-sign",
        "A session whose first bit is set is found by its number in hexadecimal.",
        "cli/commands/find.py",
        "    return number - (1 << 64) if number >> 63 else number\n",
        "    return number\n",
    ),
    # Shows when a benchmark goes on for minutes after its first cell that creates nodes.
    mutation(
        "folder-not-kept",
        "The folder of a benchmark stays, also after what a cell has created was removed.",
        "cli/bench/site.py",
        '        await self._make_folder(client, self.created, b"")\n'
        '        await client.create(f"{self.created}/kept", ephemeral=True)\n',
        '        await self._make_folder(client, self.created, b"")\n',
    ),
    # Shows when the log of a data folder is a link to another disk, and the backup is to lie there.
    mutation(
        "backup-among-the-log",
        "No backup is written into the log of a data folder, wherever that is.",
        "cli/commands/backup.py",
        '    for ours in (data, data / "log"):\n',
        "    for ours in (data,):\n",
    ),
    # Shows when a running server is restored from one backup for the second time.
    mutation(
        "epoch-of-the-last-restore",
        "A running server goes on above every zxid that it has given, whatever it restores.",
        "cli/commands/restore.py",
        '    begin_epoch(loaded.machine, status["zxid"], status["last_session"])\n',
        "    begin_epoch(loaded.machine)\n",
    ),
    # Shows when a command goes on over several short outages that are long in all.
    mutation(
        "outages-add-up",
        "A command of the shell is given up when no server answers for a while without a break.",
        "cli/shell/terminal.py",
        'missing_s = missing_s + _REFRESH_S if self._shell.state == "CONNECTING" else 0.0\n',
        'missing_s += _REFRESH_S if self._shell.state == "CONNECTING" else 0.0\n',
    ),
    # Shows when a problem goes and comes again: it is there since the first time.
    mutation(
        "problem-since-the-first-time",
        "A problem is told with the time since when it is there without a break.",
        "dashboard/figures.py",
        "        self._since_ms = {key: self._since_ms.get(key, now_ms) for key in found}\n",
        "        self._since_ms |= {key: self._since_ms.get(key, now_ms) for key in found}\n",
    ),
    # Shows when a watch has brought 500 events in hours: pages read anew instead of being told.
    mutation(
        "events-of-all-time",
        "A watch is too busy by what it brings in one second.",
        "dashboard/watched.py",
        "            self.second, self.events = now, 0\n",
        "            self.second = now\n",
    ),
    # Shows when a zxid is asked for that the log has not reached yet, and again when it has.
    mutation(
        "past-refused-for-ever",
        "A moment that could not be read is read the next time that it is asked for.",
        "dashboard/past.py",
        "            self._states.pop(key, None)\n            raise\n",
        "            raise\n",
    ),
    # Shows when a tree with nodes that may not be read is walked for the second time.
    mutation(
        "hidden-counted-again",
        "Nodes that may not be read are counted anew by each walk.",
        "dashboard/coordination/coordination.py",
        "            self.looked = self.hidden = 0\n",
        "            self.looked = 0\n",
    ),
)
