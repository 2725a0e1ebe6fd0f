"""How the commands put what they found into words."""


def counted(number: int, noun: str) -> str:
    """Say how many: `1 node`, `2 nodes`."""
    return f"{number} {noun}" + ("" if number == 1 else "s")
