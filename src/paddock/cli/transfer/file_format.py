"""The lines of an export: a header, a node on each line, an end that vouches for the whole.

    {"paddock-export":1,"acls":true,"crc":"9c35ab1e"}
    {"path":"/","crc":"0a4e3f0c"}
    {"path":"/color","data":"blue","acl":["world:anyone:r"],"crc":"5a0c1d9e"}
    {"nodes":2,"sha256":"…","crc":"e2b8a0c7"}

Each line is a JSON object in one fixed spelling, and ends with the CRC-32 of itself without that
field. Nodes are in the order of their paths, a node before its children. So equal trees are equal
bytes, and a line that differs is a node that differs.

Nothing here reads or writes a file.
"""

import base64
import binascii
import json
import re
import zlib
from typing import Any, Final

from paddock.cli.transfer.node import Node
from paddock.protocol import paths
from paddock.protocol.acl import ACL, OPEN, format_acl, parse_acl

VERSION: Final = 1
# How the first line begins, of an export and of one that is not finished.
BEGINNING: Final = b'{"paddock-'

_OPEN: Final = set(OPEN)
_CRC: Final = re.compile(rb',"crc":"([0-9a-f]{8})"}')
_CRC_BYTES: Final = len(b',"crc":"00000000"}')
# Text with control characters is written as base64.
_CONTROLS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_NODE_FIELDS: Final = {"path", "data", "base64", "acl"}


class BadLineError(ValueError):
    """A line is not what it should be; the message says why."""


def line_of(fields: dict[str, Any]) -> bytes:
    """Encode a line, with its checksum and its end."""
    body = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()
    return b'%s,"crc":"%08x"}\n' % (body[:-1], zlib.crc32(body))


def fields_of(line: bytes) -> dict[str, Any]:
    """Decode a line without its end. Raises BadLineError if it is damaged."""
    found = _CRC.fullmatch(line, max(0, len(line) - _CRC_BYTES))
    if found is None:
        raise BadLineError("it is damaged: it has no checksum at its end")
    body = line[:-_CRC_BYTES] + b"}"
    if zlib.crc32(body) != int(found[1], 16):
        raise BadLineError("it is damaged: its checksum does not fit")
    try:
        fields = json.loads(body)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise BadLineError("it is not a JSON object")
    return fields


def header_line(*, acls: bool) -> bytes:
    """Return the first line; `acls` says whether nodes have ACLs."""
    return line_of({"paddock-export": VERSION, "acls": acls})


def has_acls(header: dict[str, Any]) -> bool:
    """Read the first line. Raises BadLineError if the file is none of ours, or too new."""
    version = header.get("paddock-export")
    if version is None:
        raise BadLineError("this is no export of Paddock")
    if version != VERSION:
        raise BadLineError(f"the export has version {version}, and only {VERSION} is known here")
    acls = header.get("acls")
    if not isinstance(acls, bool):
        raise BadLineError("it does not say whether there are ACLs")
    return acls


def node_line(node: Node) -> bytes:
    """Encode a node."""
    fields: dict[str, Any] = {"path": node.path}
    try:
        text = node.data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if _CONTROLS.search(text):
        fields["base64"] = base64.b64encode(node.data).decode()
    elif text:
        fields["data"] = text
    if node.acl is not None and set(node.acl) != _OPEN:
        fields["acl"] = sorted(map(format_acl, set(node.acl)))
    return line_of(fields)


def node_of(fields: dict[str, Any], *, acls: bool) -> Node:
    """Read a line of a node. Raises BadLineError."""
    path, acl = fields.get("path"), fields.get("acl")
    if not isinstance(path, str) or not paths.is_valid(path.encode("utf-8", "surrogatepass")):
        raise BadLineError(f"{path!r} is no path")
    if unknown := fields.keys() - _NODE_FIELDS:
        raise BadLineError(f"it has an unknown field, {min(unknown)!r}")
    if acl is not None and not acls:
        raise BadLineError("it has an ACL, and the first line says that there are none")
    try:
        return Node(path, _data_of(fields), _acl_of(acl) if acls else None)
    except (ValueError, TypeError, AttributeError) as error:
        raise BadLineError(str(error)) from None


def end_line(nodes: int, sha256: str) -> bytes:
    """Return the last line: the number of nodes, and the SHA-256 of all lines before it."""
    return line_of({"nodes": nodes, "sha256": sha256})


def is_end(fields: dict[str, Any]) -> bool:
    """Return whether a line is the last one."""
    return "sha256" in fields


def _data_of(fields: dict[str, Any]) -> bytes:
    if "base64" not in fields:
        text = fields.get("data", "")
        if not isinstance(text, str):
            raise BadLineError("its data are not text")
        return text.encode()
    if "data" in fields:
        raise BadLineError("it has data twice")
    try:
        return base64.b64decode(fields["base64"], validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise BadLineError("its data are not base64") from None


def _acl_of(acl: Any) -> tuple[ACL, ...]:
    if acl is None:
        return OPEN
    if not isinstance(acl, list) or not acl:
        raise BadLineError("its ACL is not a list with something in it")
    return tuple(map(parse_acl, acl))
