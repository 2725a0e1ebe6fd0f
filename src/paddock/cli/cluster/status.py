"""What `paddock cluster status` says: of the service, its log, its members, and of etcd.

* `--quick` says what etcd knows without reading the state: all but members, nodes and sessions.
* What only a server knows, how long its lease still lasts, is asked for with `mntr`, where a member
  advertises an address; it is None if that does not answer.
* What cannot be read is left out, and `problem` says why: each member of etcd is asked all the
  same, since that is what somebody has to know who finds the service out of order.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any, Final

from paddock.cli.cluster.log_options import SharedLogOptions
from paddock.cli.output import CannotBeDone, counted, duration_text, size_text
from paddock.client.session.hosts import parse_hosts
from paddock.errors import PaddockError
from paddock.log.etcd.calls import UNPACED
from paddock.log.etcd.keys import Keys
from paddock.log.etcd.manifest import Manifest, read_manifest
from paddock.log.etcd.service import find_service, service_path
from paddock.log.etcd.store import Status, Store
from paddock.log.interface import LogError
from paddock.monitor import mntr_of
from paddock.state.machine import StateMachine
from paddock.storage.cluster.shared_state import load_service

# A server that does not answer must not hold up the rest for long.
_MNTR_SECONDS: Final = 2.0


async def cluster_status(log: SharedLogOptions, *, quick: bool) -> dict[str, Any]:
    """Return everything, for JSON. Raises CannotBeDone if there is no such service."""
    found: dict[str, Any] = {"name": log.url.name, "problem": None}
    try:
        async with log.store() as store:
            await _read_service(store, log.keys, found, quick=quick)
    except LogError as error:
        found["problem"] = str(error)
    found["etcd"] = [_etcd(*one) for one in await log.statuses()]
    return found


async def _read_service(store: Store, keys: Keys, found: dict[str, Any], *, quick: bool) -> None:
    """Add what etcd has of the service, as far as it can be read. Raises LogError."""
    service = await find_service(store, keys)
    if service is None:
        raise CannotBeDone(f"{service_path(keys)}: there is no service with this name")
    found["id"] = service.id.hex()
    head = (await UNPACED.repeat(store.read, keys.head)).found[0]
    found["index"] = 0 if head is None else head.version
    found["snapshot"] = _snapshot(await read_manifest(store, keys), found["index"])
    if quick:
        return
    state = await load_service(store, keys)
    found["index"] = state.head.index
    found["snapshot"] = _snapshot(state.head.manifest, state.head.index)
    found["log"] = {"batches": state.batches, "bytes": state.batch_bytes}
    found["skipped"] = sorted(state.head.skipped)
    found.update(_state(state.machine))
    await _ask_members(found["members"])


def status_lines(found: dict[str, Any]) -> list[str]:
    """Return the same for people."""
    lines = [("service", ", id ".join(_given(found["name"], found.get("id"))))]
    if found["problem"] is not None:
        lines.append(("problem", found["problem"]))
    if "snapshot" in found:
        lines += [("index", str(found["index"])), ("snapshot", _snapshot_line(found["snapshot"]))]
    if "log" in found:
        log = found["log"]
        lines += [
            ("log", f"{counted(log['batches'], 'batch', 'batches')}, {size_text(log['bytes'])}"),
            ("rules", str(found["rules"])),
            ("zxid", f"0x{found['zxid']:x}"),
            ("nodes", str(found["nodes"])),
            ("sessions", str(found["sessions"])),
            *(("skipped", str(index)) for index in found["skipped"]),
            *(("member", _member_line(one)) for one in found["members"]),
            *(("address", one) for one in found["addresses"]),
        ]
    lines += [("etcd", _etcd_line(one)) for one in found["etcd"]]
    return [f"{name:10}  {value}" for name, value in lines]


def _snapshot(manifest: Manifest | None, index: int) -> dict[str, Any] | None:
    if manifest is None:
        return None
    return {
        "index": manifest.index,
        "revision": manifest.revision,
        "bytes": manifest.size,
        "behind": index - manifest.index,
        # By our clock and the one of the server that took it.
        "age": max(int(time.time() - manifest.time_ms / 1000), 0) if manifest.time_ms else None,
    }


def _snapshot_line(snapshot: dict[str, Any] | None) -> str:
    if snapshot is None:
        return "none yet"
    return ", ".join(
        _given(
            f"at {snapshot['index']}",
            f"{counted(snapshot['behind'], 'batch', 'batches')} behind",
            size_text(snapshot["bytes"]),
            None if snapshot["age"] is None else f"{duration_text(snapshot['age'])} old",
        )
    )


def _state(machine: StateMachine) -> dict[str, Any]:
    roster = machine.roster
    assert roster is not None
    owned: dict[int, int] = {}
    for session in machine.sessions.by_id.values():
        owned[session.owner] = owned.get(session.owner, 0) + 1
    duty = roster.duty()
    return {
        "rules": roster.rules,
        "zxid": machine.zxid,
        "nodes": len(machine.tree),
        "sessions": len(machine.sessions.by_id),
        "members": [
            {
                "number": member.number,
                "boot": member.boot.hex(),
                "address": member.address or None,
                "version": member.version,
                "is_on_duty": member is duty,
                "rules_max": member.rules_max,
                "lag": member.lag,
                "last_index": member.last_index,
                "sessions": owned.get(member.number, 0),
            }
            for member in roster.members.values()
        ],
        "addresses": list(roster.addresses),
    }


async def _ask_members(members: list[dict[str, Any]]) -> None:
    """Add what they say themselves."""
    for one, rows in zip(members, await asyncio.gather(*map(_mntr, members)), strict=True):
        said = rows.get("zk_cluster_lease_left_ms", "")
        one["lease_left_ms"] = int(said) if said.isdigit() else None


async def _mntr(member: dict[str, Any]) -> dict[str, str]:
    if member["address"] is None:
        return {}
    try:
        (host,), _ = parse_hosts(member["address"])
    except (PaddockError, ValueError):
        return {}
    return await mntr_of(host, None, _MNTR_SECONDS)


def _etcd(endpoint: str, status: Status | None, problem: str) -> dict[str, Any]:
    if status is None:
        return {"endpoint": endpoint, "problem": problem}
    return {
        "endpoint": endpoint,
        "problem": "it is full and refuses writes (NOSPACE)" if status.is_full else None,
        "version": status.version,
        "revision": status.revision,
        "database_bytes": status.database_bytes,
        "used_bytes": status.used_bytes,
        "quota_bytes": status.quota_bytes or None,
    }


def _member_line(member: dict[str, Any]) -> str:
    return ", ".join(
        _given(
            str(member["number"]) + (" on duty" if member["is_on_duty"] else ""),
            member["address"],
            counted(member["sessions"], "session"),
            f"lag {member['lag']}",
            None if member["lease_left_ms"] is None else f"lease {member['lease_left_ms']} ms",
            f"version {member['version']}",
        )
    )


def _etcd_line(member: dict[str, Any]) -> str:
    sizes: list[str] = []
    if "version" in member:
        database, used = size_text(member["database_bytes"]), size_text(member["used_bytes"])
        quota = member["quota_bytes"]
        sizes = [
            f"version {member['version']}",
            f"database {database}, {used} in use",
            f"quota {size_text(quota)}" if quota else "",
        ]
    return ", ".join(_given(member["endpoint"], *sizes, member["problem"]))


def _given(*texts: str | None) -> Iterable[str]:
    return (text for text in texts if text)
