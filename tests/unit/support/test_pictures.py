"""Which pictures are kept: those that show something else, not those with other numbers."""

from __future__ import annotations

import io
from pathlib import Path

from PIL import Image, ImageDraw

from tests.support.pictures import differ, keep

TEXT = (40, 60)


def picture(
    text: str = "2 sessions, 1.42 ms", *, panel: tuple[int, int] = (20, 40), width: int = 400
) -> bytes:
    image = Image.new("RGB", (width, 300), "white")
    draw = ImageDraw.Draw(image)
    draw.rectangle((*panel, panel[0] + 200, panel[1] + 100), fill="#d9eeea")
    draw.text(TEXT, text, fill="black")
    found = io.BytesIO()
    image.save(found, "WEBP", lossless=True)
    return found.getvalue()


def test_other_numbers_are_the_same_picture() -> None:
    assert not differ(picture(), picture("3 sessions, 2.06 ms"))


def test_another_place_and_another_size_are_another_picture() -> None:
    assert differ(picture(), picture(panel=(60, 120)))
    assert differ(picture(), picture(width=390))


def test_a_picture_is_written_if_it_is_another_one(tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    first, same, other = picture(), picture("3 sessions"), picture(panel=(60, 120))
    assert keep(folder, "one.webp", first)
    assert not keep(folder, "one.webp", same)
    assert (folder / "one.webp").read_bytes() == first
    assert keep(folder, "one.webp", other)
    assert (folder / "one.webp").read_bytes() == other
