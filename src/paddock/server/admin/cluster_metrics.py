"""What a server reports of the service that it belongs to, with others.

Tools know ensembles: one server leads, the others follow. Here the server on duty is called the
leader. Names are upstream's where upstream has one; the others begin with `cluster_`. What has no
meaning here, such as the sizes of a leader's proposals, is left out.
"""

from __future__ import annotations

from paddock.server.replication.cluster_view import ClusterView

LEADER = "leader"
FOLLOWER = "follower"
PARTICIPANT = "participant"


def role(view: ClusterView) -> str:
    """Return what this server is called."""
    return LEADER if view.is_on_duty() else FOLLOWER


def monitor_rows(view: ClusterView) -> dict[str, str | int | float]:
    """Return what `mntr` says besides what a single server says."""
    members = view.members()
    others = [one for one in members if not one.is_ours]
    rows: dict[str, str | int | float] = {"quorum_size": len(members)}
    if view.is_on_duty():
        rows |= {
            "learners": len(others),
            # The name before 3.6, which tools still ask for.
            "followers": len(others),
            "synced_followers": sum(one.is_synced for one in others),
            "synced_non_voting_followers": 0,
            "synced_observers": 0,
            "pending_syncs": 0,
            "leader_uptime": int(view.duty_seconds() * 1000),
        }
    log = view.log()
    return rows | {
        "cluster_member": view.number(),
        "cluster_rules": view.rules(),
        "cluster_lease_left_ms": int(view.lease_seconds_left() * 1000),
        "cluster_member_lag_max": max((one.lag for one in members), default=0),
        "cluster_log_index": log.last_index,
        "cluster_log_lag": log.lag,
        "cluster_log_records": log.records,
        "cluster_log_bytes": log.bytes,
        "cluster_log_commit_ms": round(log.commit_seconds * 1000, 2),
        "cluster_log_reopenings": log.reopenings,
        "cluster_log_page_reads": log.page_reads,
        "cluster_log_errors": log.errors,
        "cluster_snapshot_index": log.snapshot_index,
        "cluster_snapshot_bytes": log.snapshot_bytes,
        "cluster_snapshot_age": int(log.snapshot_age_seconds),
        "cluster_etcd_database_bytes": log.database_bytes,
        "cluster_etcd_used_bytes": log.used_bytes,
        "cluster_etcd_quota_bytes": log.quota_bytes,
        "cluster_writes_refused": int(log.is_tight or log.is_full or view.is_disputed()),
        "cluster_states_differ": int(view.is_disputed()),
    }


def voting_view(view: ClusterView) -> dict[str, object]:
    """Return the members as the admin command of this name lists them, by their numbers."""
    return {
        str(one.number): {
            "server_addresses": [],
            "election_addresses": [],
            "client_address": one.address,
            "learner_type": PARTICIPANT,
        }
        for one in view.members()
    }


def leader_of(view: ClusterView) -> dict[str, object]:
    """Return who is on duty, as the admin command `leader` says it."""
    duty = next((one for one in view.members() if one.is_on_duty), None)
    return {
        "is_leader": view.is_on_duty(),
        "leader_id": -1 if duty is None else duty.number,
        "leader_ip": "" if duty is None else duty.address,
    }
