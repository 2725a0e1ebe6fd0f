"""The admin commands: the metrics of the four-letter words, as JSON.

Names and keys are upstream's. An answer always has `command`, the name of the command, and `error`,
null on success; an unknown command is an error, too, with status 200. Long answers are encoded
while they are sent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from paddock.server.admin.cluster_metrics import leader_of, voting_view
from paddock.server.admin.metrics import (
    NOT_SERVING,
    VERSION,
    Metrics,
    operation_name,
    path_text,
    session_of,
)
from paddock.server.config.settings import as_file
from paddock.server.connections.paced_writer import in_pieces
from paddock.server.statistics import ConnectionReport

Arguments = Mapping[str, str]

Values = dict[str, object]
Run = Callable[[Arguments], Values | None]

# The commands that change something, by their first names.
_CHANGING: Final = frozenset(
    {"connection_stat_reset", "observer_connection_stat_reset", "set_trace_mask", "stat_reset"}
)


class _Object:
    """A JSON object that is encoded while it is sent; an iterator is an array of that kind."""

    def __init__(self, items: Iterable[tuple[str, object]]) -> None:
        self.items = items


class AdminCommands:
    """The commands of one server."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._service = metrics.service
        # The names of each command, the first of which goes into the answer.
        table: tuple[tuple[str, Run], ...] = (
            ("configuration conf config", self._configuration),
            ("connection_stat_reset crst", lambda _: metrics.reset_connections()),
            ("connections cons", lambda _: self._reports(_full_report)),
            ("dirs", lambda _: _named("datadir_size logdir_size", metrics.sizes())),
            ("dump", self._dump),
            ("environment env envi", lambda _: dict(metrics.environment())),
            ("get_trace_mask gtmk", lambda _: {"tracemask": metrics.trace_mask}),
            ("hash", lambda _: {"digests": [_named("zxid digest", metrics.digest())]}),
            (
                "initial_configuration icfg",
                lambda _: {"initial_configuration": as_file(metrics.service.config)},
            ),
            ("is_read_only isro", lambda _: {"read_only": not self._service.is_open}),
            ("last_snapshot lsnp", self._last_snapshot),
            ("leader lead", self._leader),
            ("monitor mntr", lambda _: dict(metrics.monitor())),
            ("observer_connection_stat_reset orst", lambda _: {}),
            ("observers obsr", lambda _: {"synced_observers": 0, "observers": []}),
            ("ruok", lambda _: {}),
            ("server_stats srvr", self._server_stats),
            ("set_trace_mask stmk", self._set_trace_mask),
            ("stat_reset srst", lambda _: metrics.reset()),
            ("stats stat", lambda _: {**self._server_stats(_), **self._reports(_brief_report)}),
            ("voting_view", self._voting_view),
            ("watch_summary wchs", self._watch_summary),
            ("watches wchc", self._watches),
            ("watches_by_path wchp", self._watches_by_path),
            ("zabstate", self._zab_state),
        )
        self._commands: dict[str, tuple[str, Run]] = {
            name: (names.split()[0], run) for names, run in table for name in names.split()
        }
        self.names: Final = sorted({first for first, _ in self._commands.values()})

    @property
    def is_open(self) -> bool:
        return self._service.is_open

    def changes(self, name: str) -> bool:
        """Return whether the command of this name changes something."""
        found = self._commands.get(name)
        return found is not None and found[0] in _CHANGING

    def run(self, name: str, arguments: Arguments) -> Iterator[bytes]:
        """Run a command by one of its names; return the pieces of its answer."""
        found = self._commands.get(name)
        if found is None:
            values: Values = {"command": name, "error": f"Unknown command: {name}"}
        elif not self._service.is_serving():
            values = {"command": name, "error": NOT_SERVING}
        else:
            first, run = found
            values = run(arguments) or {}
            values = {**values, "command": first, "error": values.get("error")}
        return encode_json(values)

    def _server_stats(self, _: Arguments) -> Values:
        counted, machine = self._service.statistics, self._service.machine
        data_bytes, log_bytes = self._metrics.sizes()
        return {
            "version": VERSION,
            "read_only": not self._service.is_open,
            "server_stats": {
                "packets_sent": counted.packets_sent,
                "packets_received": counted.packets_received,
                "data_dir_size": data_bytes,
                "log_dir_size": log_bytes,
                "provider_null": False,
                "server_state": self._metrics.mode(),
                "last_processed_zxid": machine.zxid,
                "outstanding_requests": self._service.proposer.outstanding(),
                "avg_latency": round(counted.latency_ms.average(), 4),
                "max_latency": int(counted.latency_ms.max),
                "min_latency": int(counted.latency_ms.min),
                "num_alive_client_connections": len(self._service.connections),
                "uptime": self._metrics.uptime_ms(),
            },
            "node_count": len(machine.tree.nodes),
        }

    def _leader(self, _: Arguments) -> Values:
        cluster = self._service.cluster
        return {"error": "server is not initialized"} if cluster is None else leader_of(cluster)

    def _voting_view(self, _: Arguments) -> Values:
        cluster = self._service.cluster
        return {"current_config": {} if cluster is None else voting_view(cluster)}

    def _zab_state(self, _: Arguments) -> Values:
        is_member = self._service.cluster is not None and self._service.is_open
        return {"voting": is_member, "zabstate": "broadcast" if is_member else ""}

    def _reports(self, describe: Callable[[ConnectionReport], Values]) -> Values:
        connections = list(self._service.connections)

        def each(is_secure: bool) -> Iterator[Values]:
            reports = (one.report() for one in connections)
            return (describe(one) for one in reports if one.is_secure == is_secure)

        return {"connections": each(False), "secure_connections": each(True)}

    def _configuration(self, _: Arguments) -> Values:
        values = self._metrics.configuration()
        return {
            "client_port": values["clientPort"],
            "data_dir": values["dataDir"],
            "data_log_dir": values["dataLogDir"],
            "tick_time": values["tickTime"],
            "max_client_cnxns": values["maxClientCnxns"],
            "min_session_timeout": values["minSessionTimeout"],
            "max_session_timeout": values["maxSessionTimeout"],
            "server_id": values["serverId"],
            "client_port_listen_backlog": values["clientPortListenBacklog"],
        }

    def _last_snapshot(self, _: Arguments) -> Values:
        zxid, taken_ms = self._metrics.last_snapshot()
        # Upstream writes a number below zero as Java does.
        return {"zxid": f"{zxid & (1 << 64) - 1:x}", "timestamp": taken_ms // 1000}

    def _set_trace_mask(self, arguments: Arguments) -> Values:
        text = arguments.get("traceMask")
        if text is None:
            return {"error": "setTraceMask requires long traceMask argument"}
        try:
            mask = int(text)
        except ValueError:
            mask = 1 << 63
        if not -(1 << 63) <= mask < 1 << 63:
            return {"error": f"setTraceMask requires long traceMask argument, got {text}"}
        self._metrics.trace_mask = mask
        return {"tracemask": mask}

    def _watch_summary(self, _: Arguments) -> Values:
        data = self._service.watches.data
        return {
            "num_connections": data.watcher_count(),
            "num_paths": data.path_count(),
            "num_total_watches": data.size,
        }

    def _watches(self, _: Arguments) -> Values:
        data = self._service.watches.data
        each = (
            (str(session_of(one)), map(path_text, data.paths_of(one))) for one in data.watchers()
        )
        return {"session_id_to_watched_paths": _Object(each)}

    def _watches_by_path(self, _: Arguments) -> Values:
        data = self._service.watches.data
        each = ((path_text(path), map(session_of, data.watchers_of(path))) for path in data.paths())
        return {"path_to_session_ids": _Object(each)}

    def _dump(self, _: Arguments) -> Values:
        ephemerals = self._service.machine.tree.ephemerals
        each = (
            (str(session), map(path_text, list(ephemerals.get(session, {}))))
            for session in list(ephemerals)
        )
        return {
            "expiry_time_to_session_ids": _Object(self._sessions_by_deadline()),
            "session_id_to_ephemeral_paths": _Object(each),
        }

    def _sessions_by_deadline(self) -> Iterator[tuple[str, object]]:
        tracker, tick_ms = self._service.tracker, self._service.config.tick_time_ms
        sets: dict[int, list[int]] = {}
        for one in tracker.all():
            number = int(tracker.deadline(one) * 1000 / tick_ms) + 1
            sets.setdefault(number, []).append(one.session)
        for number in sorted(sets):
            yield str(number * tick_ms), sets[number]


def encode_json(values: Values) -> Iterator[bytes]:
    """Return an answer as JSON, in pieces."""
    return in_pieces(_encoded(values))


def _named(names: str, values: tuple[object, ...]) -> Values:
    return dict(zip(names.split(), values, strict=True))


def _brief_report(report: ConnectionReport) -> Values:
    return {
        "remote_socket_address": report.where(),
        "interest_ops": report.interest,
        "outstanding_requests": report.queued,
        "packets_received": report.tally.received,
        "packets_sent": report.sent,
    }


def _full_report(report: ConnectionReport) -> Values:
    tally = report.tally
    return {
        **_brief_report(report),
        "session_id": report.session,
        "last_operation": operation_name(tally.operation),
        "established": tally.established_ms,
        "session_timeout": report.timeout_ms,
        "last_cxid": tally.xid,
        "last_zxid": report.last_zxid,
        "last_response_time": int(report.responded_at * 1000),
        "last_latency": int(tally.last_latency_ms),
        "min_latency": int(tally.latency_ms.min),
        "avg_latency": int(tally.latency_ms.average()),
        "max_latency": int(tally.latency_ms.max),
    }


def _encoded(value: object, indent: str = "") -> Iterator[str]:
    """Yield JSON in upstream's layout."""
    match value:
        case Iterator() | list():
            yield "["
            separator = " "
            for item in value:
                yield separator
                yield from _encoded(item, indent)
                separator = ", "
            yield " ]"
        case _Object() | dict():
            yield "{"
            separator = "\n"
            for key, item in value.items() if isinstance(value, dict) else value.items:
                yield f"{separator}{indent}  {json.dumps(key)} : "
                yield from _encoded(item, indent + "  ")
                separator = ",\n"
            yield f"\n{indent}}}"
        case _:
            yield json.dumps(value)
