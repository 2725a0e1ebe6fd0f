"""The pictures of the documentation: those that are taken are those that pages show."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from PIL import Image

from tests.support.documents import ROOT
from tests.support.pictures import BYTES_MAX, FOLDER, NAMES

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMED = re.compile(r"[\w./-]*pictures/[\w.-]+")
IMAGE = re.compile(r"<img\s[^>]*>|!\[[^\]]*\]\([^)]*\)")
ALTERNATIVE_MIN = 40


def named() -> Iterator[tuple[str, str]]:
    """Yield each page and the picture that it names, by its path from the root of the project."""
    for page in PAGES:
        for path in NAMED.findall(page.read_text(encoding="utf-8")):
            there = (page.parent / path).resolve()
            yield str(page.relative_to(ROOT)), str(there.relative_to(ROOT))


def attribute(image: str, name: str) -> str:
    match = re.search(rf'\b{name}="([^"]*)"', image)
    assert match is not None, f"{image} has no {name}"
    return match[1]


def images() -> list[str]:
    return [
        image
        for page in PAGES
        for image in IMAGE.findall(page.read_text(encoding="utf-8"))
        if "pictures/" in image
    ]


def test_every_picture_that_a_page_names_is_taken() -> None:
    taken = {f"docs/pictures/{name}" for name in NAMES}
    assert [(page, name) for page, name in named() if name not in taken] == []


def test_every_picture_that_is_taken_is_kept_and_on_a_page() -> None:
    assert {one.name for one in FOLDER.iterdir()} == NAMES
    assert {name for _, name in named()} == {f"docs/pictures/{name}" for name in NAMES}


def test_all_of_them_are_small() -> None:
    assert sum(one.stat().st_size for one in FOLDER.iterdir()) <= BYTES_MAX


@pytest.mark.parametrize("image", images(), ids=lambda image: attribute(image, "src"))
def test_a_picture_has_its_size_and_says_in_words_what_it_shows(image: str) -> None:
    assert len(attribute(image, "alt")) >= ALTERNATIVE_MIN
    with Image.open(FOLDER / attribute(image, "src").rpartition("/")[2]) as picture:
        width, height = int(attribute(image, "width")), int(attribute(image, "height"))
        # It may be shown smaller, but not in another shape.
        assert width <= picture.width
        assert abs(height - width * picture.height / picture.width) < 1


def test_no_two_pictures_say_the_same() -> None:
    said = [attribute(image, "alt") for image in images()]
    assert len(set(said)) == len(said)
