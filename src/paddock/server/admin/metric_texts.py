"""What each metric is: its kind, and one sentence.

A metric of `mntr` that has no row here is published all the same, as a gauge without a sentence; a
test finds those. Names are upstream's; a name of ours begins with `paddock_`, `cluster_` or
`change_feed`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

GAUGE: Final = "gauge"
# Goes up until the counters are reset. Upstream's names do not end with `_total`, so that
# Prometheus' library publishes them as untyped; functions such as `rate` work all the same.
COUNTER: Final = "counter"
SUMMARY: Final = "summary"
HISTOGRAM: Final = "histogram"


class MetricText(NamedTuple):
    """One metric."""

    kind: str
    text: str


def _texts(kind: str, table: str) -> dict[str, MetricText]:
    rows = (line.split(":", 1) for line in table.strip().splitlines())
    return {name.strip(): MetricText(kind, text.strip()) for name, text in rows}


# What a single server reports, and what only servers that share a log do.
OF_EACH: Final = {
    **_texts(
        GAUGE,
        """
        avg_latency: Average milliseconds of a write since the counters were reset.
        min_latency: Least milliseconds of a write since the counters were reset.
        max_latency: Most milliseconds of a write since the counters were reset.
        num_alive_connections: Connections of clients.
        outstanding_requests: Writes that are not answered yet.
        znode_count: Nodes.
        ephemerals_count: Ephemeral nodes.
        watch_count: Watches.
        approximate_data_size: Bytes of the nodes' data and paths.
        global_sessions: Sessions.
        local_sessions: Always 0; there are no local sessions here.
        packets_received: Packets received since the counters were reset.
        packets_sent: Packets sent since the counters were reset.
        open_file_descriptor_count: File descriptors in use.
        max_file_descriptor_count: File descriptors that the process may have.
        uptime: Milliseconds since the start.
        change_feeds: Change feeds of clients.
        change_feeds_waiting: Those of them that wait for a change, or for a page of the past.
        paddock_info: Always 1; the labels say which version and build this is.
        paddock_ready: 1 if this server takes writes, as /readyz says; else 0.
        paddock_server_state: 1 for what this server is, 0 for what it is not.
        """,
    ),
    **_texts(
        COUNTER,
        """
        bytes_received_count: Bytes received.
        response_bytes: Bytes sent.
        connection_request_count: Handshakes.
        connection_revalidate_count: Handshakes that named an existing session.
        connection_rejected: Connections refused because of a limit.
        sessionless_connections_expired: Connections closed because no session was asked for.
        stale_sessions_expired: Sessions that expired.
        change_feed_pulls: Pulls of change feeds that were answered.
        change_feed_changes: Changes in these answers.
        change_feeds_gone: Pulls for what history does not have any more.
        paddock_operations_total: Requests by operation, as they are begun.
        """,
    ),
    **_texts(
        SUMMARY,
        """
        readlatency: Milliseconds of a query, from the read that brought it to its reply; sampled.
        updatelatency: Milliseconds of a write, from the proposal of its batch to its reply.
        fsynctime: Milliseconds until a batch is durable.
        sync_processor_batch_size: Writes in a batch, which share a sync.
        snapshottime: Milliseconds that a snapshot took.
        startup_txns_loaded: Log entries that the last start applied.
        dbinittime: Milliseconds that the last start took to load the state.
        node_created_watch_count: Watchers of the event that a node was created.
        node_deleted_watch_count: Watchers of the event that a node was deleted.
        node_changed_watch_count: Watchers of the event that a node's data changed.
        node_children_watch_count: Watchers of the event that a node's children changed.
        """,
    ),
    **_texts(
        HISTOGRAM,
        """
        paddock_read_latency_seconds: As readlatency, in seconds.
        paddock_write_latency_seconds: As updatelatency, in seconds.
        paddock_sync_seconds: As fsynctime, in seconds.
        paddock_batch_writes: As sync_processor_batch_size.
        paddock_watch_fanout: Watchers of an event, by what happened to the node.
        """,
    ),
}
OF_SEVERAL: Final = {
    **_texts(
        GAUGE,
        """
        quorum_size: Members of the service.
        learners: Other members; on duty only.
        followers: The same under its old name.
        synced_followers: Those of them that are heard of and not far behind; on duty only.
        synced_non_voting_followers: Always 0.
        synced_observers: Always 0.
        pending_syncs: Always 0.
        leader_uptime: Milliseconds for which this server has been on duty.
        cluster_member: The number of this server; 0 while it is no member.
        cluster_rules: The rules that entries are written under.
        cluster_lease_left_ms: Milliseconds for which clients may be served if nothing renews that.
        cluster_member_lag_max: Batches that the slowest member has not applied.
        cluster_log_index: The last batch that is known to be in the log.
        cluster_log_lag: Batches in the log that are not applied here.
        cluster_log_records: Batches that etcd holds.
        cluster_log_bytes: Bytes of them, roughly.
        cluster_log_commit_ms: Milliseconds that etcd took for our last batch.
        cluster_snapshot_index: Where the snapshot in etcd stands; 0 without one.
        cluster_snapshot_bytes: Its bytes.
        cluster_snapshot_age: Its age in seconds; -1 without one.
        cluster_etcd_database_bytes: Bytes of etcd's database.
        cluster_etcd_used_bytes: Those of them that are in use.
        cluster_etcd_quota_bytes: Bytes that etcd may have.
        cluster_writes_refused: 1 if writes are refused, because etcd is full or states differ.
        cluster_states_differ: 1 if servers have different states.
        """,
    ),
    **_texts(
        COUNTER,
        """
        cluster_log_reopenings: How often the watch on the log was opened again.
        cluster_log_page_reads: How often the log was read in pages.
        cluster_log_errors: Calls of etcd that failed.
        """,
    ),
}
TEXTS: Final = OF_EACH | OF_SEVERAL

_LABELS: Final = {
    "paddock_info": ("version", "build"),
    "paddock_server_state": ("state",),
    "paddock_operations_total": ("operation",),
    "paddock_watch_fanout": ("event",),
}


def metrics_table() -> str:
    """Return the tables of all metrics for the documentation."""
    lines: list[str] = []
    for title, texts in (("Of each server", OF_EACH), ("Of servers that share a log", OF_SEVERAL)):
        lines += ["", f"## {title}", "", "| metric | type | labels | |", "|---|---|---|---|"]
        for name, (kind, text) in sorted(texts.items()):
            labels = ", ".join(f"`{label}`" for label in _LABELS.get(name, ()))
            if kind == SUMMARY:
                labels = "`quantile`" if name in WITH_QUANTILES else ""
            lines.append(f"| `{name}` | {kind} | {labels} | {text} |")
    return "\n".join(lines).strip() + "\n"


# The summaries with a histogram behind them.
WITH_QUANTILES: Final = frozenset(
    {
        *("readlatency", "updatelatency", "fsynctime", "sync_processor_batch_size"),
        *("node_created_watch_count", "node_deleted_watch_count"),
        *("node_changed_watch_count", "node_children_watch_count"),
    }
)
