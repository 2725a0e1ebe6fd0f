"""The kinds of incidents: each is done to a scene, and returns what `explain` has to find out.

What no server can tell apart is not among them: a client that is killed by chance while its server
is paused or dead, and one that ends itself because of that.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from paddock.history.stories import lock as k
from paddock.history.stories import session as s
from paddock.storage import events as e
from paddock.testing import Direction
from tests.fault.stage.incident_holder import HURRY_SECONDS
from tests.fault.stage.incident_scene import Holder, Scene
from tests.support import requests as rq
from tests.support import wire


@dataclass(frozen=True, slots=True)
class Truth:
    """What was done to the holder: why its session ended, and how it lost the lock."""

    # None: it lives, it holds the lock.
    cause: str | None
    how: str | None
    # The trouble of the server that it came from.
    trouble: str | None = None
    # Who else has deleted its node.
    culprit: int = 0


SILENT: Final = Truth(s.CLIENT_SILENT, k.EXPIRED)
GONE: Final = Truth(s.CLIENT_GONE, k.EXPIRED)
CUT_OFF: Final = Truth(s.CLIENT_CUT_OFF, k.EXPIRED)
CLOSED: Final = Truth(s.CLOSED, k.CLOSED)
RELEASED: Final = Truth(None, k.RELEASED)
NOTHING: Final = Truth(None, None)
PAUSED: Final = Truth(s.SERVER_GONE, k.EXPIRED, e.STALLED)
KILLED: Final = Truth(s.SERVER_GONE, k.EXPIRED, e.SERVER_STARTED)
STOPPED: Final = Truth(s.SERVER_GONE, k.EXPIRED, e.SERVER_STOPPING)
SLOW: Final = Truth(s.SERVER_SLOW, k.EXPIRED, e.SLOW_SYNC)


def client_paused(scene: Scene) -> tuple[Holder, Truth]:
    holder = scene.begin()
    holder.pause()
    scene.happen()
    scene.wait_lost(holder)
    return holder, SILENT


def client_paused_for_a_moment(scene: Scene) -> tuple[Holder, Truth]:
    """It comes back too late."""
    holder, _ = client_paused(scene)
    holder.resume()
    scene.wait_event(e.HANDSHAKE_FAILED, holder.session)
    return holder, SILENT


def client_killed(scene: Scene) -> tuple[Holder, Truth]:
    holder = scene.begin()
    holder.kill()
    scene.happen()
    scene.wait_lost(holder)
    return holder, GONE


def client_closes(scene: Scene) -> tuple[Holder, Truth]:
    holder = scene.begin()
    holder.tell("close")
    scene.wait_lost(holder)
    return holder, CLOSED


def client_releases(scene: Scene) -> tuple[Holder, Truth]:
    holder = scene.begin()
    holder.tell("release", "released")
    return holder, RELEASED


def session_closed_by_another(scene: Scene) -> tuple[Holder, Truth]:
    """Somebody who knows its password takes the session over, and ends it."""
    holder = scene.begin()
    while scene.is_held(holder):
        # The holder may be faster, and take it back.
        with (
            contextlib.suppress(wire.ConnectionClosedError),
            wire.connect(
                scene.server.address,
                timeout_ms=int(scene.plan.timeout * 1000),
                session_id=holder.session,
                password=holder.password,
            ) as taken,
        ):
            taken.close()
    return holder, CLOSED


def lock_deleted_by_another(scene: Scene) -> tuple[Holder, Truth]:
    holder = scene.begin()
    culprit = scene.connect()
    assert culprit.call(rq.delete(holder.node)).err == 0
    return holder, Truth(None, k.DELETED_BY_OTHER, culprit=culprit.session_id)


def network_cut(scene: Scene) -> tuple[Holder, Truth]:
    holder = scene.begin()
    scene.proxy.blackhole()
    scene.happen()
    scene.wait_lost(holder)
    return holder, SILENT


def network_cut_to_server(scene: Scene) -> tuple[Holder, Truth]:
    holder = scene.begin()
    scene.proxy.blackhole(Direction.TO_SERVER)
    scene.wait_lost(holder)
    return holder, SILENT


def network_cut_to_client(scene: Scene) -> tuple[Holder, Truth]:
    """It comes back again and again, until it looks for its server too seldom."""
    holder = scene.begin()
    scene.proxy.blackhole(Direction.TO_CLIENT)
    scene.wait_lost(holder)
    return holder, CUT_OFF


def network_refuses(scene: Scene) -> tuple[Holder, Truth]:
    """Something in between closes its connections; to the server it is as if the client did."""
    holder = scene.begin()
    scene.proxy.refuse()
    scene.wait_lost(holder)
    return holder, GONE


def server_paused(scene: Scene) -> tuple[Holder, Truth]:
    """For longer than the timeout: the holder looks for it until it is back."""
    holder = scene.begin()
    scene.server.pause()
    scene.last(scene.plan.timeout + scene.plan.longer)
    scene.server.resume()
    return holder, after(holder, PAUSED)


def server_paused_and_left(scene: Scene) -> tuple[Holder, Truth]:
    holder = scene.begin_impatient()
    scene.server.pause()
    holder.wait_end()
    # What is over in the blink of an eye, no server notices.
    scene.last(0.5 + scene.plan.longer)
    scene.server.resume()
    scene.wait_lost(holder)
    return holder, PAUSED


def server_paused_and_client_killed_later(scene: Scene) -> tuple[Holder, Truth]:
    holder, truth = server_paused(scene)
    if truth != NOTHING:
        return holder, truth
    scene.last(0.5 + scene.plan.longer)
    holder.kill()
    scene.wait_lost(holder)
    return holder, GONE


def server_killed(scene: Scene) -> tuple[Holder, Truth]:
    """It is back later than the timeout, and the holder looks for it until then."""
    holder = scene.begin()
    scene.server.kill()
    scene.last(scene.plan.timeout + scene.plan.longer)
    scene.server.start()
    return holder, after(holder, KILLED)


def server_killed_and_left(scene: Scene) -> tuple[Holder, Truth]:
    holder = scene.begin_impatient()
    scene.server.kill()
    holder.wait_end()
    scene.last(scene.plan.timeout + scene.plan.longer)
    scene.server.start()
    scene.wait_lost(holder)
    return holder, KILLED


def client_killed_before_server(scene: Scene) -> tuple[Holder, Truth]:
    holder = scene.begin()
    holder.kill()
    scene.wait_event(e.CONNECTION_ENDED, holder.session)
    scene.server.kill()
    scene.last(scene.plan.longer)
    scene.server.start()
    scene.wait_lost(holder)
    return holder, GONE


def server_killed_and_client_paused_later(scene: Scene) -> tuple[Holder, Truth]:
    holder, truth = server_killed(scene)
    if truth != NOTHING:
        return holder, truth
    holder.pause()
    scene.wait_lost(holder)
    return holder, SILENT


def server_stopped_and_left(scene: Scene) -> tuple[Holder, Truth]:
    holder = scene.begin_impatient()
    scene.server.stop()
    holder.wait_end()
    scene.last(scene.plan.longer)
    scene.server.start()
    scene.wait_lost(holder)
    return holder, STOPPED


def disk_slow(scene: Scene) -> tuple[Holder, Truth]:
    """Writes wait for longer than the timeout. Who is connected does not lose its session."""
    holder = scene.begin()
    slow = scene.slow_disk(scene.plan.timeout + scene.plan.longer)
    holder.tell("write", "asked")
    scene.wait_event(e.SLOW_SYNC)
    slow.end()
    return holder, after(holder, SLOW)


def disk_slow_and_left(scene: Scene) -> tuple[Holder, Truth]:
    """The holder ends because it has no answer."""
    holder = scene.begin()
    slow = scene.slow_disk(2 * HURRY_SECONDS + scene.plan.longer)
    holder.tell("hurry")
    holder.wait_end()
    slow.end()
    scene.wait_lost(holder)
    return holder, SLOW


def disk_slow_and_client_paused(scene: Scene) -> tuple[Holder, Truth]:
    holder = scene.begin()
    slow = scene.slow_disk(scene.plan.timeout + scene.plan.longer)
    holder.pause()
    scene.happen()
    slow.end()
    scene.wait_lost(holder)
    return holder, SILENT


def after(holder: Holder, trouble: Truth) -> Truth:
    """Return what became of a holder that looks for its server, and may do so too seldom."""
    return {"answered": NOTHING, "gave_up": RELEASED, "expired": trouble}[holder.ask()]


Kind: TypeAlias = Callable[[Scene], tuple[Holder, Truth]]

KINDS: Final[tuple[Kind, ...]] = (
    client_paused,
    client_paused_for_a_moment,
    client_killed,
    client_closes,
    client_releases,
    session_closed_by_another,
    lock_deleted_by_another,
    network_cut,
    network_cut_to_server,
    network_cut_to_client,
    network_refuses,
    server_paused,
    server_paused_and_left,
    server_paused_and_client_killed_later,
    server_killed,
    server_killed_and_left,
    client_killed_before_server,
    server_killed_and_client_paused_later,
    server_stopped_and_left,
    disk_slow,
    disk_slow_and_left,
    disk_slow_and_client_paused,
)
