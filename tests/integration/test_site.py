"""The documentation becomes a site: every page has its place, every link leads somewhere."""

from __future__ import annotations

import logging
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

from tests.support.documents import ROOT


def built(folder: Path, **settings: Any) -> Path:
    """Build the site as `make docs` does, into a folder of its own."""
    site = folder / "site"
    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(site), strict=True, **settings))
    return site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("built"))


def test_the_site_is_built_without_a_warning(site: Path) -> None:
    pages = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    assert {one for one in pages if not (site / one.with_suffix(".html")).exists()} == set()


def test_a_page_loads_nothing_from_elsewhere(site: Path) -> None:
    """What a browser fetches by itself is on the site: scripts, styles, fonts, pictures."""
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert 'src="http' not in text, page
        assert '<link rel="stylesheet" href="http' not in text, page


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("[nowhere](nowhere.md)", "nowhere.md"),
        ("[no heading](index.md#no-heading)", "no-heading"),
        ("[outside](../README.md)", "README.md"),
    ],
)
def test_a_link_into_nothing_is_a_failure(
    line: str, complaint: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    with (tmp_path / "docs" / "index.md").open("a", encoding="utf-8") as page:
        page.write(f"\n{line}\n")
    with caplog.at_level(logging.WARNING), pytest.raises(Abort):
        built(tmp_path, docs_dir=str(tmp_path / "docs"))
    assert complaint in caplog.text


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda one: one.name)
def test_a_page_is_the_same_to_both_of_its_readers(page: Path) -> None:
    """GitHub and MkDocs do not agree on everything: what is in a list is indented by four."""
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"^ {1,3}```", text, flags=re.MULTILINE) == []
    # And a list begins behind an empty line.
    prose = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    inside = re.compile(r"^(?:[-*]|1\.) ", flags=re.MULTILINE)
    plain = [one for one in prose.split("\n\n") if re.match(r"[A-Za-z`*\[(]", one.lstrip("\n"))]
    assert [one for one in plain if not inside.match(one) and inside.search(one)] == []
