"""An observer that makes spans and metrics, for any number of clients.

* A call becomes a span of kind CLIENT, and a child of the span in whose context it was made. It
  ends with the reply. Calls in flight at the same time do not mix: none of them is made current.
* What a session does by itself is a trace of its own: `zookeeper reconnect`.
* A span that is not sampled gets no attributes.
"""

from __future__ import annotations

import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from opentelemetry import metrics, trace
from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation
from opentelemetry.trace import TracerProvider

from paddock import __version__
from paddock.client.metrics import ClientMetrics
from paddock.client.observer import ObservedSession
from paddock.otel import names
from paddock.otel.names import Attributes
from paddock.otel.session import Instruments, SessionTelemetry

# In seconds. The first is what the conventions advise for calls.
_CALL_BOUNDS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10)
_LOCK_BOUNDS: Final = (0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300, 3600)


class OpenTelemetry:
    """Spans and metrics of the clients that are given it, by OpenTelemetry.

        telemetry = OpenTelemetry()
        async with paddock.connect("127.0.0.1:2181", observer=telemetry) as client:
            print(await client.exists("/nothing"))  # None

    Without providers it uses the program's own, which may be set later. One object is enough for
    all clients of a process, asyncio and blocking ones.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        self._tracer = trace.get_tracer(
            "paddock", __version__, tracer_provider, schema_url=names.SCHEMA_URL
        )
        meter = metrics.get_meter(
            "paddock", __version__, meter_provider, schema_url=names.SCHEMA_URL
        )
        self._instruments = Instruments(
            calls=meter.create_histogram(
                "db.client.operation.duration",
                "s",
                "Duration of calls, each a request.",
                explicit_bucket_boundaries_advisory=_CALL_BOUNDS,
            ),
            reconnects=meter.create_histogram(
                "zookeeper.client.reconnect.duration",
                "s",
                "Time without a connection, until there was another one or the session ended.",
                explicit_bucket_boundaries_advisory=_LOCK_BOUNDS,
            ),
            states=meter.create_counter(
                "zookeeper.client.state_changes", "{change}", "Sessions that came into a state."
            ),
            events=meter.create_counter(
                "zookeeper.client.watch_events", "{event}", "Events of watches."
            ),
            waits=meter.create_histogram(
                "paddock.lock.wait.duration",
                "s",
                "Time until a lock, a lease or a leadership was granted, or was given up.",
                explicit_bucket_boundaries_advisory=_LOCK_BOUNDS,
            ),
            holds=meter.create_histogram(
                "paddock.lock.hold.duration",
                "s",
                "Time for which a lock, a lease or a leadership was held.",
                explicit_bucket_boundaries_advisory=_LOCK_BOUNDS,
            ),
        )
        # Exporters have threads of their own.
        self._lock = threading.Lock()
        self._sessions: weakref.WeakSet[SessionTelemetry] = weakref.WeakSet()
        for name, unit, text, count in (
            ("sessions", "{session}", "Sessions that are not over, by their state.", _sessions),
            ("requests", "{request}", "Requests in flight, and those to be sent.", _requests),
            ("watches", "{watch}", "Paths with a watch, by its kind.", _watches),
        ):
            meter.create_observable_up_down_counter(
                f"zookeeper.client.{name}", [self._counted(count)], unit, text
            )

    def observe(self, session: ObservedSession) -> SessionTelemetry:
        """Return the observer of a new client's session."""
        made = SessionTelemetry(session, self._tracer, self._instruments)
        with self._lock:
            self._sessions.add(made)
        return made

    def _counted(
        self, count: Callable[[ClientMetrics], Iterator[tuple[str, str, int]]]
    ) -> Callable[[CallbackOptions], Iterable[Observation]]:
        """Return what sums up a count over all sessions."""

        def observe(_: CallbackOptions) -> Iterable[Observation]:
            with self._lock:
                sessions = [one.session for one in self._sessions]
            totals: Counter[tuple[str, str, str]] = Counter()
            for session in sessions:
                for attribute, value, number in count(session.metrics()):
                    totals[session.chroot, attribute, value] += number
            for (chroot, attribute, value), number in totals.items():
                attributes: Attributes = {names.DB_SYSTEM: names.SYSTEM, attribute: value}
                if chroot:
                    attributes[names.DB_NAMESPACE] = chroot
                yield Observation(number, attributes)

        return observe


def _sessions(metrics: ClientMetrics) -> Iterator[tuple[str, str, int]]:
    if not metrics.state.is_final:
        yield names.STATE, metrics.state.name.lower(), 1


def _requests(metrics: ClientMetrics) -> Iterator[tuple[str, str, int]]:
    yield names.REQUEST_STATE, "in_flight", metrics.in_flight
    yield names.REQUEST_STATE, "queued", metrics.queued


def _watches(metrics: ClientMetrics) -> Iterator[tuple[str, str, int]]:
    for kind, number in metrics.watches.items():
        yield names.WATCH_KIND, kind, number
