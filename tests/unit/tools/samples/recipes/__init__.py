"""A package as that of the recipes: what it exports has a twin, or is shared."""

from tests.unit.tools.samples.recipes._ticket import Ticket
from tests.unit.tools.samples.recipes.office import (
    Colour,
    Desk,
    Form,
    Handler,
    Lobby,
    Office,
    Shelf,
    open_desk,
    price_of,
)

__all__ = [
    "Colour",
    "Desk",
    "Form",
    "Handler",
    "Lobby",
    "Office",
    "Shelf",
    "Ticket",
    "open_desk",
    "price_of",
]
