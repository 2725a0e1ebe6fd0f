"""What an operator does to a service in etcd, with or without servers that run.

All but `skip` is proposed by a visitor, so that every server applies it at one place of the log.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from paddock.log.etcd.backup import ServiceHead, read_service
from paddock.log.etcd.calls import UNPACED
from paddock.log.etcd.keys import Keys
from paddock.log.etcd.store import Store
from paddock.log.interface import LogError, Record
from paddock.state.entry import DEPOSE, EPOCH, FORGET, RAISE_RULES, RULES
from paddock.state.roster import Member
from paddock.state.roster_bodies import DeposeRequest, forget_body, rules_body
from paddock.storage.cluster.shared_state import load_service
from paddock.storage.cluster.visitor import Caller, NotAllowedError, Visitor

# What a batch begins with: the index that its proposer had applied.
_INDEX_BYTES: Final = 8


async def forget(store: Store, keys: Keys, caller: Caller, address: str) -> None:
    """Have all servers forget an address, which no member has any more. Raises LogError."""

    async def work(visitor: Visitor) -> None:
        try:
            await visitor.propose(FORGET, forget_body(address))
        except NotAllowedError as error:
            raise NotAllowedError(f"{address}: {error}") from None

    await _visit(store, keys, caller, work)


async def finalize(store: Store, keys: Keys, caller: Caller) -> tuple[int, int]:
    """Raise the rules to the newest ones that all members know; return the former and the new.

    Raises LogError if a member does not know newer ones.
    """
    former = 0

    async def work(visitor: Visitor) -> None:
        nonlocal former
        former = visitor.roster.rules
        if former < RULES:
            await visitor.propose(RAISE_RULES, rules_body(RULES))

    await _visit(store, keys, caller, work)
    return former, RULES


async def begin_epoch(
    store: Store, keys: Keys, caller: Caller, wait_seconds: Callable[[Member], float]
) -> int:
    """Begin a new epoch of zxids while no server runs; return the zxid.

    Members that have not left are waited for, each for `wait_seconds`, at least its lease; then
    they are deposed, and their sessions get the next server that joins. Raises LogError if one of
    them is alive.
    """
    state = await load_service(store, keys)
    async with Visitor(store, keys, state, caller) as visitor:
        seconds = max(map(wait_seconds, visitor.roster.members.values()), default=0.0)
        if seconds and (alive := await visitor.speaker(seconds)) is not None:
            raise LogError(f"{describe(alive)} is alive: stop all servers first")
        async with visitor.membership():
            for member in list(visitor.roster.members.values()):
                if member.boot != caller.boot:
                    request = DeposeRequest(member.boot, member.last_index)
                    await visitor.propose(DEPOSE, request.encode())
            await visitor.propose(EPOCH, b"")
        return visitor.machine.zxid


async def skip(store: Store, keys: Keys, index: int) -> None:
    """Have a batch passed over that no server survives. Raises LogError.

    It is refused if the batch is in a snapshot, or if a server has applied it: others would differ.
    """
    found: Record | None = None
    # The numbers of its server that were applied before all this; where it takes effect, which is
    # later than at its own index if it was held; and the last index that a server says to have
    # applied, with the batch in which it says so.
    cuts: Mapping[bytes, int] = {}
    effective = index
    applied, told_in = 0, 0
    async for one in read_service(store, keys):
        if isinstance(one, ServiceHead):
            _check_can_be_skipped(one, index)
            if one.manifest is not None:
                cuts = one.manifest.cut.cuts
        elif isinstance(one, Record):
            if one.index == index:
                found = one
            elif found is not None:
                assert one.server is not None, "a shared log knows who has proposed"
                if one.server == found.server and (
                    cuts.get(one.server, 0) <= one.number < found.number
                ):
                    effective = one.index
                told = int.from_bytes(one.payload[:_INDEX_BYTES], "big", signed=True)
                # A batch that cannot be read may begin with anything.
                if applied < told < one.index:
                    applied, told_in = told, one.index
    if found is None:
        raise LogError(f"batch {index} was not found")
    if applied >= effective:
        raise LogError(
            f"a server has applied batch {index}: the one that has proposed {told_in}."
            " A server that skipped it would differ"
        )
    if not await UNPACED.swap(store, keys.skip(index), b"skip", 0):
        raise LogError(f"batch {index} is skipped already")


def _check_can_be_skipped(head: ServiceHead, index: int) -> None:
    if index > head.index:
        raise LogError(f"there is no batch {index} yet: the last one is {head.index}")
    if index <= head.after.index:
        raise LogError(
            f"batch {index} is in the snapshot at {head.after.index} already, so a server"
            " has survived it"
        )
    if index in head.skipped:
        raise LogError(f"batch {index} is skipped already")


def describe(member: Member) -> str:
    """Return how messages name a member."""
    return f"member {member.number} ({member.address or member.boot.hex()})"


async def _visit(
    store: Store, keys: Keys, caller: Caller, work: Callable[[Visitor], Awaitable[None]]
) -> None:
    state = await load_service(store, keys)
    async with Visitor(store, keys, state, caller) as visitor, visitor.membership():
        await work(visitor)
