"""Which paths a node may have, in the reference model."""

from __future__ import annotations


def is_valid_path(path: bytes) -> bool:
    """Return whether a node may have this path, character by character."""
    try:
        text = path.decode()
    except UnicodeDecodeError:
        return False
    if text == "/":
        return True
    if not text.startswith("/"):
        return False
    if any(name in ("", ".", "..") for name in text[1:].split("/")):
        return False
    for character in text:
        number = ord(character)
        if number <= 0x1F or 0x7F <= number <= 0x9F:
            return False
        if 0xD800 <= number <= 0xF8FF or number >= 0xFFF0:
            return False
    return True
