"""Many sessions: the memory of idle and exact ones."""

from concurrent.futures import ThreadPoolExecutor
from typing import Final

from bench import clients, exact_load, servers, zkload
from bench.results import Figure
from bench.servers import running
from bench.stage import Stage
from bench.zkload import Cell
from paddock.state.kept_replies import WINDOW

SESSIONS: Final = 10_000


def measure(stage: Stage) -> None:
    """Hold idle sessions on both servers.

    Then have exact sessions fill their windows, which only Paddock has.
    """
    _idle(stage)
    _fill_windows(stage)


def _idle(stage: Stage) -> None:
    sessions = min(SESSIONS, servers.connections_allowed())
    seconds = stage.chosen.idle_seconds
    both = stage.new_servers("idle")
    with running(*both.values()):
        for server in both.values():
            # Memory that the first connections and writes take belongs to no session.
            zkload.load(server, Cell("mix", 100, 10), 1.0, 0)
        print(f"{sessions:,} sessions do nothing for {seconds:.0f} s", flush=True)
        # Both at once: it takes long and needs little CPU.
        with ThreadPoolExecutor(len(both)) as threads:
            found = dict(
                zip(
                    both,
                    threads.map(
                        lambda server: zkload.idle(server, sessions, seconds), both.values()
                    ),
                    strict=True,
                )
            )
    title = f"{sessions:,} idle sessions"
    stage.note(
        Figure.IDLE_SESSION,
        f"{title}, KiB each",
        {name: [idle.kib_each] for name, idle in found.items()},
    )
    stage.note(
        Figure.IDLE_GROWTH,
        f"{title}, growth in {seconds:.0f} s, KiB each",
        {name: [idle.growth_kib_each] for name, idle in found.items()},
    )


def _fill_windows(stage: Stage) -> None:
    """Measure what replies take that are kept for exact sessions, beside what ordinary ones do."""
    sessions = SESSIONS // 10 if stage.chosen.quick else SESSIONS
    server = stage.new_servers("windows")["paddock"]
    servers.configure(server.folder, server.port, maxSessionTimeout=exact_load.TIMEOUT_MS)
    rss_mib = []
    with running(server):
        # The first write of a session keeps one reply: what else it takes, it takes without it.
        for writes in (1, WINDOW):
            command = ["bench.exact_load", str(server.port), str(sessions), str(writes)]
            before = server.rss_mib
            clients.output_of(command, f"{sessions:,} exact sessions", 600)
            rss_mib.append(server.rss_mib - before)
    title = f"replies kept for {sessions:,} exact sessions with {WINDOW} writes each, MiB"
    stage.note(Figure.KEPT_REPLIES, title, {"paddock": [rss_mib[1] - rss_mib[0]]})
