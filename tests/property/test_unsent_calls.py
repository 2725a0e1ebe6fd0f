"""What a client says had no effect has none: under random faults, judged by the nodes that exist.

Every write creates a node of its own, so effects are counted one by one. A call that raised an
error with `may_be_applied` False must have left nothing, now and when everything in flight has
arrived. A call that returned must have left its node.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddock import Client, ServiceError, connect
from paddock.testing import Direction, EmbeddedServer, FaultProxy, run_virtually

_SECONDS = st.sampled_from([0.0, 0.3, 1.0, 5.0, 9.0])
_FAULTS = st.sampled_from(["cut", "refuse", "silence", "mute", "heal"])
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("call"), st.integers(1, 3)),
        st.tuples(st.just("parents"), st.integers(1, 2)),
        st.tuples(_FAULTS, st.just(0)),
        st.tuples(st.just("sleep"), _SECONDS),
    ),
    min_size=4,
    max_size=16,
)

# What was seen over all examples: a test that never met one of them would show nothing.
_seen: Counter[tuple[str, bool]] = Counter()


def _break(proxy: FaultProxy, fault: str) -> None:
    if fault == "cut":
        proxy.cut()
    elif fault == "refuse":
        proxy.refuse()
    elif fault == "silence":
        proxy.blackhole()
    elif fault == "mute":
        proxy.blackhole(Direction.TO_CLIENT)
    else:
        proxy.heal()


async def _play(steps: list[tuple[str, float]], *, exact: bool, seed: int) -> None:
    async with (
        EmbeddedServer() as server,
        FaultProxy(server.address) as proxy,
        connect(server.hosts) as judge,
    ):
        await judge.create("/made")
        calls: dict[str, asyncio.Future[str]] = {}
        client = connect(proxy.hosts, random=Random(seed), session_timeout=6, exact=exact)
        async with client:
            for kind, how in steps:
                if kind in ("call", "parents"):
                    for _ in range(int(how)):
                        name = f"n{len(calls)}"
                        calls[name] = _write(client, name, with_parents=kind == "parents")
                elif kind == "sleep":
                    await asyncio.sleep(how)
                else:
                    _break(proxy, kind)
            proxy.heal()
        outcomes = await asyncio.gather(*calls.values(), return_exceptions=True)
        # What is still on its way arrives.
        await asyncio.sleep(60)
        made = {*await judge.children("/made")}
        for name, outcome in zip(calls, outcomes, strict=True):
            if isinstance(outcome, ServiceError):
                assert outcome.may_be_applied or name not in made, (name, outcome)
                known = "unknown" if outcome.may_be_applied else "no effect"
                _seen[known, exact] += 1
            else:
                assert not isinstance(outcome, BaseException), outcome
                assert name in made
                _seen["made", exact] += 1


def _write(client: Client, name: str, *, with_parents: bool) -> asyncio.Future[str]:
    if with_parents:
        # Of several requests, the first of which fails.
        return client.create(f"/made/{name}/below", make_parents=True)
    return client.create(f"/made/{name}")


@pytest.mark.parametrize("exact", [False, True])
def test_a_call_that_says_it_had_no_effect_had_none(exact: bool) -> None:
    @settings(max_examples=120, deadline=None, derandomize=True)
    @given(steps=_STEPS, seed=st.integers(0, 3))
    def holds(steps: list[tuple[str, float]], seed: int) -> None:
        run_virtually(_play(steps, exact=exact, seed=seed))

    _seen.clear()
    holds()
    assert min(_seen[known, exact] for known in ("made", "no effect", "unknown")) > 10, _seen
