"""The documentation becomes a site: every page has its place, every link leads somewhere."""

from __future__ import annotations

import inspect
import logging
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

import paddock.sync.recipes
from paddock.sync.bridge import Twin
from tests.support.documents import ROOT, Page


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


# A type in a signature: not a member, nor a constant, nor a type variable.
TYPE = re.compile(r"(?<![.\w])[A-Z]\w*[a-z]\w*")
LINK = re.compile(r'<a href="([^"]+)"><span class="n[a-z]?">(\w+)</span></a>')
REFERENCE = sorted((ROOT / "docs" / "reference" / "api").glob("*.md"))


@pytest.mark.parametrize("page", REFERENCE, ids=lambda page: page.stem)
def test_the_types_of_signatures_are_links_that_lead_somewhere(site: Path, page: Path) -> None:
    folder = site / "reference" / "api"
    signatures = "".join(block.text for block in Page(str(page.relative_to(ROOT))).blocks("py"))
    types = {*TYPE.findall(re.sub('"[^"]*"', "", signatures))} - {"None", "True", "False"}
    html = (folder / page.name).with_suffix(".html").read_text(encoding="utf-8")
    links = {name: address for address, name in LINK.findall(html)}
    assert types - {*links} == set()
    assert "asyncio" in links["Future"] if page.stem == "client" else True
    for name, address in links.items():
        assert f'<span class="n">{name}</span>' not in LINK.sub("", html), name
        if not address.startswith("https://docs.python.org/3/library/"):
            there, _, anchor = address.partition("#")
            target = (folder / there).read_text(encoding="utf-8")
            assert not anchor or f'id="{anchor}"' in target, address


def test_the_constructors_of_all_recipes_are_in_the_reference() -> None:
    page = (ROOT / "docs" / "reference" / "api" / "recipes.md").read_text(encoding="utf-8")
    exported = {name: getattr(paddock.sync.recipes, name) for name in paddock.sync.recipes.__all__}
    constructed = [
        name
        for name, kind in exported.items()
        if inspect.isclass(kind) and issubclass(kind, Twin) and "__init__" in vars(kind)
    ]
    assert {"Lock", "MultiLock", "ServiceCache", "ServiceProvider"} <= {*constructed}
    assert [name for name in constructed if f"```py\n{name}(" not in page] == []


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
