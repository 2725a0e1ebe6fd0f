"""Mutations of leases and membership: who may speak, who is deposed, who inherits."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutation import Edit, Mutation, mutation

MUTATIONS: Final[tuple[Mutation, ...]] = (
    mutation(
        "lease-never-over",
        "A server without a lease says nothing to clients.",
        "server/replication/lease.py",
        "        return self._has_ended or self._clock() >= self._until\n",
        "        return self._has_ended\n",
    ),
    mutation(
        "lease-too-long",
        "A lease is so much shorter than the patience of others that clocks may differ by a tenth.",
        "server/replication/lease.py",
        "_SHARE: Final = 0.8\n",
        "_SHARE: Final = 1.0\n",
    ),
    mutation(
        "lease-from-arrival",
        "A lease counts from before its batch was first sent, not from when it is applied.",
        "server/replication/lease.py",
        "            self._until = max(self._until, sent + _SHARE * self.seconds)\n",
        "            self._until = max(self._until, self._clock() + _SHARE * self.seconds)\n",
    ),
    mutation(
        "lease-from-sending",
        "A lease is renewed by batches that came out of the log, not by those that were sent.",
        "server/replication/lease.py",
        "        self._sent[number] = self._clock()\n",
        "        self._sent[number] = self._clock()\n"
        "        self._until = max(self._until, self._clock() + _SHARE * self.seconds)\n",
    ),
    mutation(
        "sends-without-lease",
        "The lease is looked at before anything is sent.",
        "server/connections/send_buffer.py",
        "        if self.lease is not None and self.lease.is_over():\n",
        "        if self.lease is not None and self.lease._has_ended:\n",
    ),
    mutation(
        "deposed-too-early",
        "A member is deposed after it was silent for the whole of a lease.",
        "server/cluster/silence.py",
        "            patience = lease * (1 + _STAGGER * self._rank(own_number, member))\n",
        "            patience = lease / 2 * (1 + _STAGGER * self._rank(own_number, member))\n",
    ),
    mutation(
        "deposed-though-heard",
        "DEPOSE names the last batch of a member, and is void if there is a later one.",
        "state/membership.py",
        "        if member.last_index != request.last_index:\n",
        "        if member.last_index < request.last_index:\n",
    ),
    mutation(
        "silence-before-join",
        "Silence is counted from when we joined, at most.",
        "server/cluster/silence.py",
        "max(self._heard.get(boot, 0.0), self._joined_at)",
        "self._heard.get(boot, 0.0)",
    ),
    mutation(
        "deposed-goes-on",
        "A server that learns that it was deposed ends its boot at once.",
        "server/cluster/membership.py",
        "        if self.number and change.number == self.number:\n",
        "        if self.number and change.number == -1:\n",
    ),
    mutation(
        "sessions-not-handed-on",
        "The sessions of a deposed member get another owner.",
        "state/membership.py",
        "        self.roster.remove(member.boot)\n"
        "        self.sessions.hand_over(member.number, heir)\n",
        "        self.roster.remove(member.boot)\n",
    ),
    mutation(
        "heir-does-not-track",
        "Who inherits sessions tracks them from then on.",
        "server/cluster/membership.py",
        "        elif self.number and change.heir == self.number:\n",
        "        elif self.number and change.heir == -1:\n",
    ),
    mutation(
        "heir-is-impatient",
        "A session that is inherited has its whole timeout.",
        "server/sessions/lifecycle.py",
        "                self.tracker.add(session.id, session.timeout_ms / 1000)\n",
        "                self.tracker.add(session.id, session.timeout_ms / 10000)\n",
    ),
    mutation(
        "everybody-tracks",
        "Only its owner ends a session for silence.",
        "server/sessions/lifecycle.py",
        "        elif is_ours and self._sessions.by_id[change.session].owner == self._owner:\n",
        "        elif True:\n",
        Edit(
            "state/machine.py",
            "elif session.owner != self._owner and entry.rules > EXPIRED_BY_ANYBODY:\n",
            "elif False:\n",
        ),
    ),
    mutation(
        "no-renewal",
        "An idle server renews its lease.",
        "server/cluster/membership.py",
        # It states its clock meanwhile, which renews the lease as well.
        "                self.clocks.look(pause)\n"
        "                if self._core.proposer.idle_seconds() >= pause:\n"
        "                    self._core.proposer.renew()\n",
        "",
    ),
)
