"""Mutations of exact sessions: the list of what was applied, the window, what is kept."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutation import Edit, Mutation, mutation

MUTATIONS: Final[tuple[Mutation, ...]] = (
    mutation(
        "applied-sent-again",
        "A client sends no write again that the terms of its connection list as applied.",
        "client/requests/in_flight.py",
        "            elif request.xid in replies:\n",
        "            elif False:\n",
    ),
    mutation(
        "replies-of-first-generation",
        "Replies are kept of the last generation of a session that has written.",
        "state/kept_replies.py",
        "        if generation != self.generation:\n",
        "        if self.generation == 0:\n",
    ),
    mutation(
        "replies-too-few",
        "As many replies are kept as writes may be in flight.",
        "state/kept_replies.py",
        "        while self.count - self._chunks[0].count >= WINDOW:\n",
        "        while self._chunks:\n",
        Edit("state/kept_replies.py", "CHUNK: Final = 256\n", "CHUNK: Final = 2\n"),
    ),
    mutation(
        "snapshot-loses-replies",
        "A snapshot holds the replies that are kept.",
        "state/snapshot.py",
        "            if session.kept is not None:\n"
        "                self._kept[session.id] = session.kept\n",
        "",
    ),
)
