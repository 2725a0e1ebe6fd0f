"""The files of the page, and pages of one sentence.

Files are read once, at the start: an address names one of them, or nothing. A browser asks each
time whether its copy is still right.
"""

from __future__ import annotations

import hashlib
import mimetypes
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

STATIC: Final = Path(__file__).with_name("static")


@dataclass(frozen=True, slots=True)
class File:
    """A file of the page."""

    content: bytes
    kind: str
    etag: str

    def response(self, request: Request) -> Response:
        headers = {"etag": self.etag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == self.etag:
            return Response(status_code=304, headers=headers)
        return Response(self.content, media_type=self.kind, headers=headers)


def read_files(folder: Path) -> dict[str, File]:
    """Return the files of a folder by their names below it."""
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            # The system's table of types may be wrong or missing.
            kind = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}.get(
                path.suffix, mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            )
            etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            files[path.relative_to(folder).as_posix()] = File(content, kind, etag)
    return files


def page_of(sentence: str, status: int) -> Response:
    """Return a page of one sentence, which is ours and no input."""
    return HTMLResponse(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Paddock</title>'
        f"<h1>Paddock</h1><p>{sentence}</p></html>",
        status,
    )
