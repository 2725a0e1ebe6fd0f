"""Writers on all servers of a cluster, with a thousand writes in flight while something is killed.

    with ClusterLoad(cluster, seed=7) as load:
        load.run(until=500, then=cluster.members[0].kill, more=500)
        cluster.heal()
        load.check()

Who is connected to a server that is killed loses its connection, and goes on with its session on
another one. The others write on all the time, and are told to stop at the end of a run, when all
that they have sent is answered. So the check finds nobody who writes.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from tests.fault.stage.load import Checked, Load, Progress, Writer
from tests.fault.stage.process import Tree, eventually, read_tree
from tests.support import requests as rq
from tests.support import wire
from tests.support.members import Member, move
from tests.support.paddock_cluster import PaddockCluster
from tests.support.records import Code

WRITERS: Final = 36
#: Each keeps nearly so many, and the most that are awaited before more are sent.
IN_FLIGHT: Final = 36
AWAITED_MAX: Final = 6
IN_FLIGHT_MIN: Final = 1_000


class BusyWriter(Writer):
    """A writer that keeps its window nearly full."""

    def _sent_at_once(self) -> int:
        return IN_FLIGHT - len(self.history.unanswered)

    def _awaited_at_once(self) -> int:
        return self._random.randint(1, AWAITED_MAX)


class _Answers(Progress):
    """Counts answers, also when some of the writers have ended."""

    def end(self) -> None:
        pass


class ClusterLoad(Load):
    """The writers of a cluster, and what must hold between them."""

    def __init__(self, cluster: PaddockCluster, seed: int, data_bytes_max: int = 2_000) -> None:
        self._cluster = cluster
        # The server of each writer.
        self._homes = [cluster.members[number % len(cluster.members)] for number in range(WRITERS)]
        self._begin([home.address for home in self._homes], BusyWriter, seed, data_bytes_max)
        #: How many writes were in flight when `then` was called.
        self.in_flight = 0

    def run(self, until: int, then: Callable[[], object], more: int = 0) -> None:
        """Write; after so many answers do `then`, and go on until there are so many more."""
        progress = _Answers()
        with ThreadPoolExecutor(WRITERS) as pool:
            running = [pool.submit(writer.run, progress) for writer in self.writers]
            try:
                progress.wait(until)
                self.in_flight = sum(len(writer.history.unanswered) for writer in self.writers)
                then()
                progress.wait(until + more)
            finally:
                progress.is_stopping = True
        for each in running:
            each.result()

    def check(self, address: wire.Address | None = None, sessions: int = 0) -> Checked:
        """Compare all servers with what the clients know, and take up the sessions again."""
        unanswered = sum(len(writer.history.unanswered) for writer in self.writers)
        known = max(max(writer.history.zxids.values(), default=0) for writer in self.writers)
        # First, so that nothing of the old connections can come out of the log any more.
        for number, writer in enumerate(self.writers):
            if writer.history.unanswered or not self._is_connected(writer):
                self._move(number, known)
        trees = [self._read(member) for member in self._cluster.members]
        tree, zxid = trees[0]
        assert all(one == tree for one, _ in trees), "the servers have different trees"
        survived = sum(writer.history.reconcile(tree) for writer in self.writers)
        assert zxid >= known, "the servers are behind what they have acknowledged"
        self._check_zxids(max(zxid for _, zxid in trees))
        self._check_sequence()
        for writer in self.writers:
            nodes = writer.history.realm.nodes
            ephemerals = {path for path, node in nodes.items() if node.is_ephemeral}
            assert writer.client.call(rq.get_ephemerals("/")).names == ephemerals
        self._check_digests()
        return Checked(len(tree), unanswered, survived)

    def _read(self, member: Member) -> tuple[Tree, int]:
        with wire.connect(member.address) as reader:
            assert reader.call(rq.sync("/")).err == Code.OK
            tree = read_tree(reader)
            zxid = reader.call(rq.exists("/")).zxid
            reader.close()
        return tree, zxid

    def _is_connected(self, writer: Writer) -> bool:
        try:
            return writer.client.call(rq.exists("/")).err == Code.OK
        except (OSError, wire.ConnectionClosedError):
            return False

    def _move(self, number: int, last_zxid: int) -> None:
        """Go on with a session on another server."""
        writer, home = self.writers[number], self._homes[number]
        self._homes[number] = member = self._random.choice(self._cluster.others(home))
        client = writer.client
        client.disconnect()
        again = move(client, member, last_zxid)
        assert again.session_id == client.session_id, f"{writer.history.name} lost its session"
        writer.client = again

    def _check_digests(self) -> None:
        """Wait until the servers are at one zxid; their states have one digest then."""
        found: set[str] = set()

        def are_at_one_zxid() -> bool:
            nonlocal found
            found = {wire.four_letter_word(one.address, "hash") for one in self._cluster.members}
            return len({text.partition(":")[0] for text in found}) == 1

        eventually(are_at_one_zxid, "all servers at one zxid")
        assert len(found) == 1, f"the servers have different states: {found}"
