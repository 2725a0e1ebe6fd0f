"""The documentation becomes a site: every page has its place, every link leads somewhere."""

from __future__ import annotations

import logging
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


def test_a_link_into_nothing_is_a_failure(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    wrong = {
        "[nowhere](nowhere.md)": "nowhere.md",
        "[no heading](index.md#no-heading)": "no-heading",
        "[outside](../README.md)": "README.md",
    }
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    with (tmp_path / "docs" / "index.md").open("a", encoding="utf-8") as page:
        page.writelines(f"\n{line}\n" for line in wrong)
    with caplog.at_level(logging.WARNING), pytest.raises(Abort):
        built(tmp_path, docs_dir=str(tmp_path / "docs"))
    # Any of them is enough: each is a warning, and nothing else is.
    said = [one.message for one in caplog.records]
    assert len(said) == len(wrong), said
    for complaint in wrong.values():
        assert sum(complaint in one for one in said) == 1, said
