"""What one attack costs a server: the harness that runs every case of the hostile family.

A case is data: its name, the operation, what its attacker makes large, how the server is prepared,
what is sent, and what the server may take of memory for it. The harness prepares, attacks while a
prober waits for reads, writes and pings of its own, and measures:

    sent       bytes that the attack sent, and those of its preparation
    kept       resident memory at the end of the attack, above that at its beginning
    peak       the same at the worst moment
    steps      how long the server's event loop did one thing at most: see `loop_steps`
    waits      the longest that the prober waited for a read, a write and a ping
    restart    for some: the memory and the seconds of the next start, after `kill -9`

An attacker is anonymous, has at most 60 connections, and stays within the documented limits. It may
be refused or disconnected: what counts is what becomes of the others.

Sizes are those of `Stage.scale` 1 times the scale. They are chosen so that a server that does the
work of a case in one step, or keeps what it should not, is far beyond the bounds at scale 1.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.fault.stage import siege
from tests.fault.stage.hostile_stage import Stage
from tests.fault.stage.loop_steps import Steps
from tests.fault.stage.prober import Prober, Waits
from tests.fault.stage.siege import SLACK_MB, ClockedServer, Memory
from tests.support.host import STOLEN_MAX, ProcessorTime
from tests.support.server import free_port

#: The most that one step may have of the work of many requests, and what is too little work to say
#: so. Both are processor time in the server: shares of it are the same on any machine.
STEP_SHARE_MAX = 0.6
SMALL_WORK_S = 0.2


@dataclass(frozen=True, slots=True)
class Case:
    """One way to hurt a server."""

    #: What is done, in a few words; also the name of its test.
    name: str
    #: The operation that carries it, or what else does.
    operation: str
    #: What the attacker makes large.
    grows: str
    attack: Callable[[Stage], None]
    prepare: Callable[[Stage], None] | None = None
    #: What it may take of memory at the peak, beyond SLACK_MB: at any scale, and for each of them.
    memory_mb: float = 0.0
    memory_mb_each: float = 0.0
    #: Whether a single request is most of its work. What many do must not be one step.
    is_atomic: bool = False
    #: The longest step by processor time, from scale 5 on, unless it is atomic.
    step_ms_max: float = 50.0
    #: Whether the server is killed afterwards and has to come back within the same memory.
    is_restarted: bool = False
    #: Whether it needs a server that no other case has used.
    is_alone: bool = False
    #: Settings of that server, if some differ from the defaults.
    settings: tuple[tuple[str, int], ...] = ()
    #: The node below which it has its nodes, if it shares them with other cases.
    root: str | None = None

    def memory_mb_max(self, scale: int) -> float:
        return SLACK_MB + self.memory_mb + self.memory_mb_each * scale


@dataclass(frozen=True, slots=True)
class Cost:
    """What a case took."""

    case: Case
    prepared_bytes: int
    sent_bytes: int
    #: The resident memory before the attack; the next two are what came on top.
    begun_mb: float
    kept_mb: float
    peak_mb: float
    waits: Waits
    steps: Steps
    restart_mb: float | None = None
    restart_s: float | None = None
    #: The part of the time in which the host of this machine had the processors.
    stolen: float = 0.0

    def is_disturbed(self) -> bool:
        """Whether its times say nothing about the server."""
        return self.stolen > STOLEN_MAX

    def __str__(self) -> str:
        again = "" if self.restart_s is None else f", next start {self.restart_s:.1f} s"
        return (
            f"{self.sent_bytes / 1000:.0f} kB sent, {self.kept_mb:+.0f} MB kept,"
            f" {self.peak_mb:+.0f} MB peak, {self.steps}, {self.waits}{again}"
        )


class Range:
    """Where cases are run one after the other: most of them on one server.

    A case that needs a server of its own gets one; one that has ended or hurt the server that all
    share leaves a new one to those after it. Without `shares` only those cases share a server that
    share their nodes: memory that one case leaves free is not taken by the next.
    """

    def __init__(self, folder: Path, scale: int, *, shares: bool = True) -> None:
        self._folder = folder
        self._scale = scale
        self._shares = shares
        # How many cases and how many servers there were.
        self._cases = 0
        self._servers = 0
        self._shared = contextlib.ExitStack()
        self._server: ClockedServer | None = None
        self._prober: Prober | None = None
        # What several cases use together, as the first of them has prepared it.
        self._stage: Stage | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._shared.close()

    def run(self, case: Case) -> Cost:
        """Run a case and measure it. Its bounds are for the caller to check."""
        before = ProcessorTime.now()
        cost = self._run(case)
        return replace(cost, stolen=before.stolen_since())

    def _run(self, case: Case) -> Cost:
        self._cases += 1
        if case.is_alone or case.settings or not (self._shares or case.root):
            with contextlib.ExitStack() as stack:
                server, prober = self._start(stack, case.settings)
                with Stage(server, self._scale, f"/case{self._cases}") as stage:
                    cost = self._measure(case, stage, server, prober)
                return self._restart(cost, server) if case.is_restarted else cost
        if self._server is None or self._prober is None:
            self._server, self._prober = self._start(self._shared)
        try:
            if case.root is not None:
                return self._measure_together(case, case.root, self._server, self._prober)
            with Stage(self._server, self._scale, f"/case{self._cases}") as stage:
                return self._measure(case, stage, self._server, self._prober)
        except BaseException:
            self._server = None
            self._stage = None
            self._shared.close()
            raise

    def _measure_together(
        self, case: Case, root: str, server: ClockedServer, prober: Prober
    ) -> Cost:
        if self._stage is None or self._stage.root != root or self._stage.is_broken:
            self._stage = self._shared.enter_context(Stage(server, self._scale, root))
        return self._measure(case, self._stage, server, prober)

    def _start(
        self, stack: contextlib.ExitStack, settings: tuple[tuple[str, int], ...] = ()
    ) -> tuple[ClockedServer, Prober]:
        self._servers += 1
        folder = self._folder / str(self._servers)
        folder.mkdir()
        # Admin commands are to be attacked, too.
        all_settings = {"admin.serverPort": free_port(), **dict(settings)}
        server = stack.enter_context(ClockedServer(folder, all_settings))
        return server, stack.enter_context(Prober(server.address))

    @staticmethod
    def _measure(case: Case, stage: Stage, server: ClockedServer, prober: Prober) -> Cost:
        if not stage.prepared_bytes:
            stage.create([stage.root])
            if case.prepare is not None:
                case.prepare(stage)
            stage.prepared_bytes = stage.sent_bytes
        stage.sent_bytes = 0
        memory = Memory(server.pid)
        prober.mark()
        server.clock.mark()
        case.attack(stage)
        waits = prober.mark()
        steps = server.clock.mark()
        assert server.alive, server.log_tail()
        siege.assert_no_complaint(server)
        return Cost(
            case,
            stage.prepared_bytes,
            stage.sent_bytes,
            memory.begun_mb,
            memory.kept_mb(),
            memory.growth_mb(),
            waits,
            steps,
        )

    @staticmethod
    def _restart(cost: Cost, server: ClockedServer) -> Cost:
        server.kill()
        begun = time.monotonic()
        server.start()
        seconds = time.monotonic() - begun
        more_mb = siege.peak_mb(server.pid) - cost.begun_mb
        return replace(cost, restart_mb=more_mb, restart_s=seconds)


def check(cost: Cost, scale: int, wait_s_max: float) -> list[str]:
    """Return what is wrong with a cost: a sentence for each bound that does not hold.

    Where the host has disturbed it, the bounds of time are not judged.
    """
    case, wrong = cost.case, []
    most = case.memory_mb_max(scale)
    if cost.peak_mb > most:
        wrong.append(f"{cost.peak_mb:.0f} MB more at the peak, at most {most:.0f} expected")
    if cost.restart_mb is not None and cost.restart_mb > most:
        wrong.append(
            f"{cost.restart_mb:.0f} MB more at the next start, at most {most:.0f} expected"
        )
    if cost.is_disturbed():
        return wrong
    steps = cost.steps
    share = steps.longest_cpu / max(steps.cpu, SMALL_WORK_S)
    if share > STEP_SHARE_MAX and not case.is_atomic:
        wrong.append(f"{share:.0%} of the work was one step: {steps}")
    if cost.waits.longest > wait_s_max:
        wrong.append(f"others waited: {cost.waits}; at most {wait_s_max * 1000:.0f} ms expected")
    return wrong
