"""The stage on which every recipe is played, undisturbed and in any trouble, in virtual time.

A story has a subject: the code of one player, whose client sits behind a fault proxy. Its rivals
have connections of their own, and nothing happens to those. Trouble (`recipe_troubles`) befalls the
subject alone, and after each play it is judged by an observer, on a connection of its own, by the
tree and by the log of grants:

* Nothing went wrong for the rivals, and they came to their end.
* The subject came to its end as it should in this trouble, and left nothing behind: no node while
  its client was still open, no watch, no task, no error that nobody saw.
* What the log of grants and the writes under grants must fulfil (`grant_log`), and the story's own
  judge.

    async def work(me: Player) -> None:
        async with Lock(me.client, "/recipe") as grant:
            with me.holds(grant.token):
                await me.write(grant)
                await asyncio.sleep(1)  # Virtual: nobody waits.


    play(Story(subject=work, rivals=(work, work)))
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from random import Random
from typing import Any, Final, TypeAlias

from paddock.api import connect
from paddock.client.client import Client
from paddock.errors import ConnectionLostError, NoNodeError, RecipeError, SessionExpiredError
from paddock.testing import (
    EmbeddedServer,
    Fault,
    FaultProxy,
    SeenRequest,
    VirtualClockLoop,
    expire_session,
    run_virtually,
)
from tests.fault.stage.cutting import NeverCameError, in_real_time
from tests.fault.stage.grant_log import GrantLog
from tests.fault.stage.recipe_players import Note, Player
from tests.fault.stage.stepping import Stepped, moments

# In virtual time: who has not come to an end by then hangs.
_DEADLINE_S: Final = 300.0
# In virtual time: what has not gone by then is left behind. Longer than a session lives.
_SETTLED_S: Final = 30.0
_LOOK_S: Final = 0.5
# In real time, for a player that spins instead of waiting.
_REAL_DEADLINE_S: Final = 60
# The time of day at which every play begins.
_BEGAN_MS: Final = 1_700_000_000_000

Part: TypeAlias = Callable[[Player], Awaitable[None]]
Judge: TypeAlias = Callable[["Scene"], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Story:
    """What is played."""

    subject: Part
    # They begin before the subject does; who is to come later sleeps first, in virtual time.
    rivals: tuple[Part, ...] = ()
    # Whether the subject's session is exact; those of the rivals are.
    exact: bool = False
    # Where the recipe has its nodes.
    path: str = "/recipe"
    # How much there is to be held: leases of a semaphore, or 1.
    capacity: int = 1
    # Makes what must be there before anybody begins.
    prepare: Callable[[Client], Awaitable[None]] | None = None
    # Raises AssertionError, when everybody has gone.
    judge: Judge | None = None
    # What may be left below the path when everybody has gone: patterns of whole paths.
    remains: tuple[str, ...] = ()
    # What the subject may raise in trouble that its session survives.
    tolerates: tuple[type[BaseException], ...] = ()
    # What it may raise when its session is over, or may be.
    ends_with: tuple[type[BaseException], ...] = (
        SessionExpiredError,
        ConnectionLostError,
        RecipeError,
    )


@dataclass(frozen=True, slots=True)
class Trouble:
    """What happens to the subject in one play; `begin` is called just before it is played."""

    name: str
    begin: Callable[[Scene], None]


UNDISTURBED: Final = Trouble("nothing happens", lambda scene: None)


@dataclass(frozen=True, slots=True)
class Report:
    """What one play has taken."""

    # Of the subject, up to where it had left everything, without the handshake.
    requests: tuple[SeenRequest, ...]
    # The passes of the event loop, from the subject's beginning to its end, after which it makes a
    # difference that it is cancelled; and those in which faults happened.
    moments: tuple[int, ...]
    fault_passes: tuple[int, ...]


class Scene:
    """One play: where it takes place, what is done to the subject, and what is seen of it."""

    def __init__(
        self, story: Story, trouble: Trouble, server: EmbeddedServer, proxy: FaultProxy
    ) -> None:
        self.story = story
        self.trouble = trouble
        self.proxy = proxy
        # On a connection of its own, for the judge.
        self.observer = connect(server.hosts, random=Random(1))
        self.log = GrantLog(story.capacity)
        self.notes: list[Note] = []
        # What the subject may raise in this play.
        self.forgiven: tuple[type[BaseException], ...] = ()
        # Whether nobody will ever hear of the subject again.
        self.is_subject_gone = False
        # Whether it was cancelled before it came to its end.
        self.is_subject_cancelled = False
        self._server_address = server.address
        self._subject = Player(
            "the subject", proxy.hosts, Random(2), self.log, self.notes, exact=story.exact
        )
        self._rivals = [
            Player(
                f"rival {number}",
                server.hosts,
                Random(2 + number),
                self.log,
                self.notes,
                exact=True,
            )
            for number in range(1, len(story.rivals) + 1)
        ]
        self._faults: list[tuple[Fault, str]] = []
        self._fault_passes: list[int] = []
        self._helpers: list[asyncio.Task[None]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._problems: list[str] = []

    @property
    def is_undisturbed(self) -> bool:
        """Whether nothing was to go wrong."""
        return self.trouble is UNDISTURBED

    # What trouble is made of.

    @property
    def loop(self) -> VirtualClockLoop:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualClockLoop)
        return loop

    def expect(self, fault: Fault, name: str) -> Fault:
        """Insist that a fault really happens in this play."""
        self._faults.append((fault, name))

        async def take_down() -> None:
            await fault.happened()
            self._fault_passes.append(self.loop.passes)

        self.help(take_down())
        return fault

    def help(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something beside the play."""
        self._helpers.append(asyncio.create_task(work))

    async def expire_subject(self) -> None:
        """End the subject's session from outside, without a word to its client."""
        client, record = self._subject.client, self._subject.session
        record.expired_at = self.loop.time()
        await expire_session(self._server_address, client.session_id, client.session_password)

    async def disown_subject(self) -> None:
        """Delete the subject's ephemeral nodes, as an operator might who thinks it has hung.

        Its client can be reached, so it has to learn of that soon.
        """
        client, record = self._subject.client, self._subject.session
        for path in await self._tree():
            stat = await self.observer.exists(path)
            if stat is not None and stat.ephemeral_owner == client.session_id:
                if not record.is_expired:
                    record.expired_at = record.deleted_at = self.loop.time()
                record.deleted.add(stat.czxid)
                await self.observer.delete(path)

    def cancel_subject(self) -> None:
        """Cancel what the subject does, if it has not come to its end."""
        self.is_subject_cancelled = self._tasks[-1].cancel()

    # How it is played.

    async def perform(self) -> Report:
        self.loop.set_exception_handler(
            lambda _, context: self._problems.append(
                f"{context['message']}: {context.get('exception')!r}"
            )
        )
        before = asyncio.all_tasks()
        async with self.observer:
            await self.log.prepare(self.observer)
            if self.story.prepare is not None:
                await self.story.prepare(self.observer)
            for player in (self._subject, *self._rivals):
                await player.connect()
            report = await self._play()
            for player in (self._subject, *self._rivals):
                player.check_watches()
            for player in (self._subject, *self._rivals):
                await player.close()
            await self._judge()
        left = asyncio.all_tasks() - before
        assert not left, f"tasks are left over: {left}"
        assert not self._problems, self._problems
        return report

    async def _play(self) -> Report:
        try:
            for player, part in zip(self._rivals, self.story.rivals, strict=True):
                self._tasks.append(asyncio.create_task(_play(part, player)))
            first_request, first_pass = len(self.proxy.requests), self.loop.passes
            steps: list[int] = []

            async def play_subject() -> None:
                await Stepped(
                    self.story.subject(self._subject),
                    lambda: steps.append(self.loop.passes - first_pass),
                )

            self._tasks.append(asyncio.create_task(play_subject()))
            self._tasks[-1].add_done_callback(lambda _: self._subject.check_watches())
            self.trouble.begin(self)
            await self._wait_for_rivals(self._tasks[:-1])
            await self._wait_for_subject(self._tasks[-1])
            await self._wait_until_settled()
            for fault, name in self._faults:
                if not fault.hits:
                    raise NeverCameError(f"the story never came to this: {name}")
            return Report(
                self.proxy.requests[first_request:],
                tuple(moments(steps)),
                tuple(one - first_pass for one in self._fault_passes),
            )
        finally:
            for task in (*self._tasks, *self._helpers):
                task.cancel()
            await asyncio.wait((*self._tasks, *self._helpers))

    async def _wait_for_rivals(self, rivals: Sequence[asyncio.Task[None]]) -> None:
        if rivals:
            await asyncio.wait(rivals, timeout=_DEADLINE_S, return_when=asyncio.FIRST_EXCEPTION)
        for player, task in zip(self._rivals, rivals, strict=True):
            if not task.done():
                raise AssertionError(f"{player.name} waits for ever: {await self._tree()}")
            task.result()

    async def _wait_for_subject(self, subject: asyncio.Task[None]) -> None:
        if self.is_subject_gone:
            # Of no more interest than a process that was killed.
            subject.cancel()
        await asyncio.wait((subject,), timeout=_DEADLINE_S)
        if not subject.done():
            raise AssertionError(f"the subject does not end: {await self._tree()}")
        if self.is_subject_cancelled:
            assert subject.cancelled(), f"the subject was cancelled, and did not heed it: {subject}"
        elif not subject.cancelled():
            try:
                subject.result()
            except self.forgiven:
                pass
        else:
            assert self.is_subject_gone, "the subject says that it was cancelled, but it was not"

    async def _wait_until_settled(self) -> None:
        """Wait until nothing is left, while the players' clients are still there."""
        limit = self.loop.time() + _SETTLED_S
        while left := await self._left():
            if self.loop.time() > limit:
                raise AssertionError(f"left behind, by players who are still there: {left}")
            await asyncio.sleep(_LOOK_S)

    async def _left(self) -> list[str]:
        tree = await self._tree()
        return [path for path in tree if not self._may_remain(path)]

    def _may_remain(self, path: str) -> bool:
        return any(fnmatchcase(path, pattern) for pattern in self.story.remains)

    async def _tree(self) -> list[str]:
        """Return every path below that of the recipe."""
        found = []
        level = [self.story.path]
        while level:
            path = level.pop()
            try:
                names = await self.observer.children(path)
            except NoNodeError:
                continue
            level += [f"{path}/{name}" for name in names]
            found += [f"{path}/{name}" for name in names]
        return found

    async def _judge(self) -> None:
        self.log.check()
        self.log.check_writes(await self.log.read_writes(self.observer))
        assert await self._left() == []
        if self.story.judge is not None:
            await self.story.judge(self)


async def _play(part: Part, player: Player) -> None:
    await part(player)


def play(story: Story, trouble: Trouble = UNDISTURBED) -> Report:
    """Play a story once, on a server of its own; raises AssertionError and what players raise."""

    async def main() -> Report:
        loop = asyncio.get_running_loop()
        async with (
            # With nothing of the real world in it: the same play twice is the same.
            EmbeddedServer(
                wall_clock_ms=lambda: _BEGAN_MS + int(loop.time() * 1000),
                random_bytes=Random(0).randbytes,
            ) as server,
            FaultProxy(server.address) as proxy,
        ):
            return await Scene(story, trouble, server, proxy).perform()

    with in_real_time(_REAL_DEADLINE_S):
        try:
            return run_virtually(main())
        except BaseException as error:
            error.add_note(f"in this trouble: {trouble.name}")
            raise


async def everybody_held(scene: Scene) -> None:
    """See that everybody had what was contended for, if nobody was kept from it."""
    rivals = {hold.session.owner for hold in scene.log.holds} - {"the subject"}
    assert len(rivals) == len(scene.story.rivals)
    if scene.is_undisturbed:
        assert len(scene.log.of("the subject")) == 1
