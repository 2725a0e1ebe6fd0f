"""The files of the dashboard's page: small, complete, nothing from outside, and text stays text."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import paddock

STATIC = Path(paddock.__file__).parent / "dashboard" / "static"
SIZE_MAX = 300_000
SVG_NAMESPACE = "http://www.w3.org/2000/svg"
# What makes markup or programs of a text.
DANGEROUS = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser"
    r"|\beval\(|new Function|setAttribute\(\"style\"|srcdoc"
)


def files(*suffixes: str) -> list[Path]:
    return [path for path in sorted(STATIC.rglob("*")) if path.suffix in suffixes]


def named(path: Path) -> str:
    return path.relative_to(STATIC).as_posix()


class Elements(HTMLParser):
    """The elements of a page, with their attributes and the texts of scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.inline = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attributes)))

    def handle_data(self, data: str) -> None:
        if self.found and self.found[-1][0] in ("script", "style"):
            self.inline += data.strip()


def test_all_of_the_page_is_smaller_than_its_limit() -> None:
    assert 0 < sum(path.stat().st_size for path in STATIC.rglob("*") if path.is_file()) < SIZE_MAX


@pytest.mark.parametrize("path", files(".js"), ids=named)
def test_a_module_says_first_what_it_is_and_makes_no_markup_of_text(path: Path) -> None:
    source = path.read_text()
    assert source.startswith("/* ")
    assert DANGEROUS.search(re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL)) is None


@pytest.mark.parametrize("path", files(".js", ".css", ".html", ".svg"), ids=named)
def test_a_file_fetches_nothing_from_outside(path: Path) -> None:
    source = path.read_text().replace(SVG_NAMESPACE, "")
    assert re.search(r"https?://|[\"'(]//|@import|url\(", source.replace("url(#", "")) is None


@pytest.mark.parametrize("path", files(".js"), ids=named)
def test_what_a_module_imports_is_there(path: Path) -> None:
    source = path.read_text()
    for names, target in re.findall(
        r"^import \{([^}]*)\} from \"(\.[^\"]+)\";$", source, flags=re.MULTILINE
    ):
        other = (path.parent / target).read_text()
        for name in (one.strip().split(" as ")[0] for one in names.split(",")):
            assert not name or re.search(
                rf"^export (async )?(function|const|class) {name}\b", other, flags=re.MULTILINE
            ), (target, name)
    assert source.count("\nimport ") == len(
        re.findall(r"^import \{[^}]*\} from \"\.[^\"]+\";$", source, flags=re.MULTILINE)
    )


def test_the_page_has_no_program_and_no_style_in_itself() -> None:
    page = Elements()
    page.feed((STATIC / "index.html").read_text())
    assert page.inline == ""
    for tag, attributes in page.found:
        assert not [name for name in attributes if name == "style" or name.startswith("on")], tag
        for name in ("src", "href"):
            target = attributes.get(name) or ""
            if target and not target.startswith("#"):
                assert (STATIC / target.removeprefix("/static/")).is_file(), target


def test_the_page_names_every_style_sheet_and_every_module_is_reached() -> None:
    page = (STATIC / "index.html").read_text()
    assert all(f"/static/{path.name}" in page for path in files(".css"))
    reached, left = set(), [STATIC / "app.js"]
    while left:
        path = left.pop()
        if path not in reached:
            reached.add(path)
            targets = re.findall(r" from \"(\.[^\"]+)\";", path.read_text())
            left += [(path.parent / target).resolve() for target in targets]
    assert reached == set(files(".js"))
