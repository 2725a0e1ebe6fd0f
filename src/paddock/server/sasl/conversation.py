"""The conversation of SASL on one connection: tokens come in, and an identity comes out.

The rules, which are upstream's where nothing else is said:

* A connection has one conversation. It begins with the first token and ends with a proof or a
  failure; a token that comes later fails, and so does one more than `STEPS_MAX`, or a longer one
  than `TOKEN_BYTES_MAX`, before anybody looks at it.
* A failure closes the connection behind its reply, which says AUTH_FAILED, or, if clients must
  authenticate by SASL, that the session is closed for want of it. It never says why. The session
  outlives the connection, as always.
* If failed clients are allowed (`allowSaslFailedClients`), and need not authenticate, a failure is
  answered with no token, and so is all that comes later; the connection stays.
* The identity is `sasl:NAME`; a superuser has that of `super` as well.
* A step that may block runs in a thread, and the caller is told later. One connection has one step
  at a time (`is_busy`), all of them share a few threads, and what comes of a step after its
  connection is closed is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Final

from paddock.protocol.acl import SUPER, Identity
from paddock.server.sasl.mechanism import Exchange, Mechanism, SaslError, Step

# The longest conversation of a known mechanism has three. Tickets of large organisations have some
# ten thousand bytes, in the first token.
STEPS_MAX: Final = 8
TOKEN_BYTES_MAX: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Offer:
    """What a server offers to all its clients."""

    mechanisms: tuple[Mechanism, ...]
    super_users: frozenset[str] = frozenset()
    # Whether a client that fails may stay. Invariant: not if it must authenticate.
    allows_failed: bool = False
    # Where steps run that may block; None if there are no such mechanisms.
    executor: Executor | None = None

    def close(self) -> None:
        """Release the threads; a step that runs is not waited for."""
        if self.executor is not None:
            self.executor.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a token has led to: a reply, identities if it was the last one, or a failure."""

    reply: bytes | None
    identities: tuple[Identity, ...] = ()
    # Why it failed, for our log; "" if it did not.
    failure: str = ""
    # Whether the connection closes.
    is_final: bool = False


class Conversation:
    """The conversation of one connection."""

    def __init__(self, offer: Offer) -> None:
        self._offer = offer
        self._mechanism: Mechanism | None = None
        # None before the first token, and after the end.
        self._exchange: Exchange | None = None
        self._steps = 0
        self._is_over = False
        # Whether a step runs in a thread, or waits for one. The next token must wait.
        self.is_busy = False
        self._running: Future[Step | SaslError] | None = None

    def receive(self, token: bytes, later: Callable[[Verdict], None]) -> Verdict | None:
        """Take a token, and return what it has led to.

        None if its step may block; then `later` is called, unless the connection is closed before.
        """
        assert not self.is_busy
        try:
            exchange = self._admit(token)
        except SaslError as error:
            return self._fail(error)
        executor = self._offer.executor
        assert self._mechanism is not None
        if not self._mechanism.blocks or executor is None:
            return self._judge(_step(exchange, token))
        self.is_busy = True
        running = self._running = executor.submit(_step, exchange, token)

        def finish(done: asyncio.Future[Step | SaslError]) -> None:
            self.is_busy = False
            self._running = None
            if self._is_over or done.cancelled():
                # The connection was closed meanwhile, or the server is.
                exchange.close()
            else:
                later(self._judge(done.result()))

        asyncio.wrap_future(running).add_done_callback(finish)
        return None

    def close(self) -> None:
        """End the conversation with its connection."""
        self._is_over = True
        if self._running is not None:
            # A step that has not begun never does: threads work for those who are there.
            self._running.cancel()
        exchange, self._exchange = self._exchange, None
        if exchange is not None and not self.is_busy:
            exchange.close()

    def _admit(self, token: bytes) -> Exchange:
        """Return the exchange that takes a token. Raises SaslError."""
        self._steps += 1
        if self._is_over:
            raise SaslError("the conversation is over")
        if len(token) > TOKEN_BYTES_MAX:
            raise SaslError(f"a token of {len(token)} bytes")
        if self._steps > STEPS_MAX:
            raise SaslError(f"more than {STEPS_MAX} steps")
        if self._exchange is None:
            for mechanism in self._offer.mechanisms:
                if mechanism.accepts(token):
                    self._mechanism = mechanism
                    self._exchange = mechanism.start()
                    break
            else:
                raise SaslError("a first token of no known mechanism")
        return self._exchange

    def _judge(self, result: Step | SaslError) -> Verdict:
        if isinstance(result, SaslError):
            return self._fail(result)
        if result.identity is None:
            return Verdict(result.reply)
        self.close()
        identity = Identity("sasl", result.identity)
        is_super = result.identity in self._offer.super_users
        return Verdict(result.reply, (identity, SUPER) if is_super else (identity,))

    def _fail(self, error: SaslError) -> Verdict:
        self.close()
        name = "SASL" if self._mechanism is None else f"SASL {self._mechanism.name}"
        return Verdict(None, (), f"{name}: {error}", not self._offer.allows_failed)


def _step(exchange: Exchange, token: bytes) -> Step | SaslError:
    try:
        return exchange.step(token)
    except SaslError as error:
        return error
    except Exception as error:
        # A library that fails on what a client has sent must not take the server with it.
        return SaslError(f"failed unexpectedly: {type(error).__name__}: {str(error)[:200]}")
