"""Make the names of types in the API reference links; `mkdocs.yml` names this as a hook.

The pages of `docs/reference/api` have signatures as blocks of code, where Markdown has no links. So
they are made when a page has become HTML, in all of its code. A name leads to its heading on the
same page, else to the standard library, else to its heading on another page: the asyncio and the
blocking `Client` have one name. Names without a place, such as those of type variables, stay text.
"""

from __future__ import annotations

import re
from typing import Any, Final

_FOLDER: Final = "reference/api/"
_NAME: Final = re.compile(r'<span class="n[a-z]?">([A-Z]\w*)</span>')
_CODE: Final = re.compile(r'<div class="highlight">.*?</div>', re.DOTALL)
_HEADING: Final = re.compile(r"^### (\w+)$", re.MULTILINE)
_ERROR: Final = re.compile(r'<span id="(\w+)">(\w+)</span>')

_LIBRARY: Final = "https://docs.python.org/3/library/"
_STANDARD: Final = {
    name: f"{_LIBRARY}{page}.html#{module}.{name}"
    for page, module, names in (
        (
            "collections.abc",
            "collections.abc",
            (
                "AsyncGenerator",
                "AsyncIterator",
                "Awaitable",
                "Callable",
                "Coroutine",
                "Iterable",
                "Iterator",
                "Mapping",
                "Sequence",
            ),
        ),
        ("contextlib", "contextlib", ("AbstractAsyncContextManager", "AbstractContextManager")),
        ("asyncio-future", "asyncio", ("Future",)),
        ("asyncio-task", "asyncio", ("Task",)),
        ("asyncio-eventloop", "asyncio", ("AbstractEventLoop",)),
        ("pathlib", "pathlib", ("Path",)),
        ("ssl", "ssl", ("SSLContext",)),
        ("typing", "typing", ("Any", "Literal", "Self")),
    )
    for name in names
} | {"BaseException": f"{_LIBRARY}exceptions.html#BaseException"}
# Types of ours that are explained under another heading.
_ELSEWHERE: Final = {
    "Addressed": "testing.html#at_every_cut",
    "MeterProvider": "otel.html#opentelemetry",
    "ObservedSession": "client.html#observer",
    "SessionObserver": "client.html#observer",
    "TracerProvider": "otel.html#opentelemetry",
    "Disk": "testing.html#embeddedserver",
    "ServerConfig": "../configuration.html",
    "Timeout": "sync.html#timeout",
}

# The page of each heading, or several: filled before the first page is made.
_homes: dict[str, dict[str, str]] = {}


def on_files(files: Any, config: Any) -> Any:
    """Note where every name of the reference has its heading."""
    _homes.clear()
    for file in files.documentation_pages():
        if file.src_uri.startswith(_FOLDER):
            page = file.dest_uri.removeprefix(_FOLDER)
            text = file.content_string
            found = [(name, name.lower()) for name in _HEADING.findall(text)]
            found += [(name, anchor) for anchor, name in _ERROR.findall(text)]
            for name, anchor in found:
                _homes.setdefault(name, {})[page] = f"{page}#{anchor}"
    return files


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Make links in the code of a page of the reference."""
    if not page.file.src_uri.startswith(_FOLDER):
        return html
    own = page.file.dest_uri.removeprefix(_FOLDER)

    def link(found: re.Match[str]) -> str:
        address = _address(found[1], own)
        return found[0] if address is None else f'<a href="{address}">{found[0]}</a>'

    return _CODE.sub(lambda code: _NAME.sub(link, code[0]), html)


def _address(name: str, page: str) -> str | None:
    homes = _homes.get(name, {})
    others = next(iter(homes.values()), None)
    return homes.get(page) or _STANDARD.get(name) or others or _ELSEWHERE.get(name)
