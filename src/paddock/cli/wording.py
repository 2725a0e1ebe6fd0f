"""How the commands put what they found into words."""


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Say how many: `1 node`, `2 nodes`, `2 children`."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"
