"""Classes with everything that recipes may have."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Generic, Self, TypeAlias, TypeVar

from tests.unit.tools.samples.recipes._ticket import Counting, Ticket, TicketListener

T = TypeVar("T")

# Does what a form asks for.
Handler: TypeAlias = Callable[["Form"], Awaitable[bytes]]


class Colour(enum.Enum):
    """What is shared as it is."""

    RED = 1


@dataclass(frozen=True)
class Form:
    """What is shared as it is, too."""

    text: str
    colour: Colour = Colour.RED


class Office:
    """What everything comes from."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close it."""


class Desk(Counting):
    """A desk in an office."""

    def __init__(self, office: Office, *names: str, listener: TicketListener | None = None) -> None:
        super().__init__()
        self.office: Final = office
        # Whose it is.
        self.names: Final[tuple[str, ...]] = names
        self._listener = listener
        self._forms: list[Form] = []

    async def __aenter__(self) -> Ticket:
        return await self.give()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        pass

    def __len__(self) -> int:
        return self._given

    def __contains__(self, number: int) -> bool:
        return number <= self._given

    def __aiter__(self) -> AsyncIterator[Ticket]:
        return self.tickets()

    async def try_give(self, limit: int) -> Ticket | None:
        """Hand out a ticket, unless `limit` is reached."""
        return None if self._given >= limit else await self.give()

    async def all(self) -> list[Ticket]:
        return [Ticket(number + 1) for number in range(self._given)]

    async def by_name(self) -> dict[str, Ticket | None]:
        return dict.fromkeys(self.names) | {"one": Ticket(1)}

    def some(self) -> tuple[Ticket, ...]:
        return (Ticket(1), Ticket(2))

    async def tickets(self) -> AsyncIterator[Ticket]:
        for number in range(3):
            yield Ticket(number + 1)

    @asynccontextmanager
    async def take(self) -> AsyncIterator[Ticket]:
        """Take one, and tell when it is given back."""
        ticket = await self.give()
        yield ticket
        self.tell(ticket, "back")

    def tell(self, ticket: Ticket, what: str) -> None:
        if self._listener is not None:
            self._listener(ticket, what)

    async def total(self, *tickets: Ticket, others: Sequence[Ticket] = ()) -> int:
        return sum(ticket.number for ticket in [*tickets, *others])

    def after(self, ticket: Ticket | None) -> int:
        return 0 if ticket is None else ticket.number + 1

    async def update(self, function: Callable[[bytes], bytes]) -> bytes:
        """Change something. The function must be quick and make no calls."""
        return function(b"old")

    async def work(self, handler: Handler, *texts: str) -> list[bytes]:
        """Have forms handled, all at once."""
        return await asyncio.gather(*(handler(Form(text)) for text in texts))

    async def work_on(self, ticket: Ticket, handler: Callable[[Ticket], Awaitable[int]]) -> int:
        return await handler(ticket)

    def only_asyncio(self) -> asyncio.Event:
        return asyncio.Event()


class Shelf(Generic[T]):
    """What is generic."""

    def __init__(self, office: Office, decode: Callable[[bytes], T]) -> None:
        self._decode = decode

    async def get(self, data: bytes) -> T:
        """Return the decoded data."""
        return self._decode(data)

    async def same(self) -> Shelf[T]:
        return self


Part: TypeAlias = Desk | Ticket


class Lobby:
    """Several desks and tickets together, of which the first knows the way."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts

    async def kinds(self) -> list[str]:
        """Return the type names of its parts."""
        return [type(part).__name__ for part in self._parts]


async def open_desk(office: Office, name: str) -> Desk:
    """Open a desk."""
    return Desk(office, name)


def price_of(form: Form) -> int:
    """Return the price."""
    return len(form.text)
