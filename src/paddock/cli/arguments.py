"""Arguments and options that several commands have: numbers, sizes, files, data, ACLs."""

import math
import os
import re
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from paddock.cli.output import CannotBeDone, one_line
from paddock.errors import InvalidACLError, RequestError
from paddock.protocol.acl import ACL, Identity, digest_id, format_acl, parse_acl
from paddock.state.networks import parse_network

_SIZES: Final = {"": 1, "b": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
_AGES: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
# The schemes that every server has.
_SCHEMES: Final = {"world", "ip", "digest", "auth"}
# A user and the base64 text of a SHA-1.
_DIGEST: Final = re.compile(r"[^:]*:[0-9A-Za-z+/]{27}=")

# Checked by the command that needs them: click would test whether they can be read, in words of
# its own.
PATH: Final = click.Path(readable=False, path_type=Path)
PATH_OR_DASH: Final = click.Path(readable=False, path_type=Path, allow_dash=True)


class NumberRange(click.FloatRange):
    """A number within bounds, for the type of an option; `nan` is within none."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            number: float = super().convert(value, param, ctx)
        except click.BadParameter:
            number = math.nan
        if math.isnan(number):
            self.fail(f"{str(value)!r} is not a number{_bounds(self)}", param, ctx)
        return number


class WholeNumber(click.IntRange):
    """A whole number within bounds, for the type of an option."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{str(value)!r} is not a whole number{_bounds(self)}", param, ctx)


def _bounds(within: click.FloatRange | click.IntRange) -> str:
    """Return the bounds of a number, as they follow "a number" in a message."""
    if within.min is None:
        return ""
    if within.max is not None:
        return f" from {within.min} to {within.max}"
    return f" above {within.min}" if within.min_open else f", {within.min} or more"


def parse_size(text: str) -> int:
    """Read a number of bytes: `512`, `10k`, `1.5M`; for the type of an option."""
    return int(_parsed(text, _SIZES, "size, such as 512, 10k or 1M"))


def parse_age(text: str) -> float:
    """Read a number of seconds: `30`, `90m`, `12h`, `7d`; for the type of an option."""
    return _parsed(text, _AGES, "age, such as 30s, 90m, 12h or 7d")


def _parsed(text: str, units: dict[str, int], expected: str) -> float:
    match = re.fullmatch(r"(\d{1,12}(?:\.\d{1,6})?)\s*([a-z]?)", text.strip().lower())
    if match is None or match[2] not in units:
        raise click.BadParameter(f"{text!r} is no {expected}")
    return float(match[1]) * units[match[2]]


def check_is_folder(path: Path) -> None:
    """Raise UsageError for anything that is not a folder."""
    if not path.is_dir():
        raise click.UsageError(
            f"{path}: is not a folder" if path.exists() else f"{path}: there is no such folder"
        )


def output_file(file: Path) -> Path | None:
    """Return the file that is to be written, None for "-"; raises UsageError on a terminal."""
    if str(file) != "-":
        # What a link leads to is written, not the link replaced.
        return file.resolve() if file.is_symlink() else file
    if sys.stdout.isatty():
        raise click.UsageError("stdout is a terminal; send it to a file or a pipe")
    return None


def check_output_file(file: Path, overwrite: bool) -> None:
    """Raise CannotBeDone if a file cannot be written, or may not be replaced."""
    folder = file.absolute().parent
    if not folder.is_dir():
        raise CannotBeDone(f"{file}: there is no folder {folder}")
    if os.path.lexists(file) and not file.is_file():
        # A device would be replaced by a file.
        raise CannotBeDone(f"{file}: is not a file")
    if file.exists() and not overwrite:
        raise CannotBeDone(f"{file}: exists already; --overwrite replaces it")


def given_data(argument: str | None, file: Path | None) -> bytes | None:
    """Return the bytes of an argument, of stdin or of a file; None if none of them is given."""
    # Imported here: commands without data, `serve` above all, need nothing of the client.
    from paddock.client.requests.encoder import REQUEST_BYTES_MAX

    if argument is not None and file is not None:
        raise click.UsageError("DATA and --file were both given")
    with one_line():
        if "-" in (argument, str(file)):
            file = Path("stdin")
            data = sys.stdin.buffer.read(REQUEST_BYTES_MAX + 1)
        elif file is not None:
            with file.open("rb") as opened:
                # As much as shows that no server would take it.
                data = opened.read(REQUEST_BYTES_MAX + 1)
        else:
            return None if argument is None else os.fsencode(argument)
    if len(data) > REQUEST_BYTES_MAX:
        raise click.UsageError(f"{file}: servers take {REQUEST_BYTES_MAX} bytes, and this is more")
    return data


def given_acl(entry: str, has_identity: bool) -> ACL:
    """Parse `scheme:id:permissions`, such as `world:anyone:cdrwa`; raises BadParameter.

    The scheme ends at the first colon, the permissions begin after the last. A digest entry with a
    password instead of its hash would be a node that nobody can use: the password is hashed, and
    stderr says so. An entry that no server takes is refused here, where the reason is known; `auth`
    is one of them without an identity.
    """
    try:
        acl = parse_acl(entry)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="ACL") from None
    scheme, id = acl.identity.scheme, acl.identity.id
    is_wrong, reason = {
        "world": (id != "anyone", "world is for anyone alone: world:anyone"),
        "ip": (parse_network(id) is None, f"{id!r} is no IP address and no network"),
        "digest": (":" not in id, "digest needs user:password, or user:hash"),
        "auth": (not has_identity, "auth stands for who asks, and needs --auth or SASL"),
    }.get(scheme, (False, ""))
    if is_wrong or not acl.permissions:
        reason = reason if is_wrong else "it has no permissions, which are of c, d, r, w, a"
        raise click.BadParameter(f"{entry!r}: {reason}", param_hint="ACL")
    if scheme != "digest" or _DIGEST.fullmatch(id):
        return acl
    hashed = digest_id(id)
    said = f"digest:{id.partition(':')[0]}: the password is stored as its hash, {hashed}"
    click.echo(f"paddock: {said}", err=True)
    return ACL(acl.permissions, Identity(scheme, hashed))


def acl_hint(error: RequestError, acl: Iterable[ACL]) -> str:
    """Name the entry that a server may have refused an ACL for: what it knows is not known here."""
    odd = [format_acl(one) for one in acl if one.identity.scheme not in _SCHEMES]
    is_unknown = odd and isinstance(error, InvalidACLError)
    return f"this server may not have the scheme of {odd[0]}" if is_unknown else ""


DATA_FILE = click.option(
    "--file", "-f", metavar="FILE", type=PATH_OR_DASH, help="Take the data from a file."
)


# -1, the default, stands for any.
version_option = partial(
    click.option, "--version", metavar="N", type=WholeNumber(-1, 2**31 - 1), default=-1
)
VERSION = version_option(help="Only if the node has this version, so that no other write is lost.")

JSON_LINES = click.option(
    "--json", "as_json", is_flag=True, help="One JSON object a line, for programs."
)
# With both letters, as in `rm` and in `ls`.
recursive_option = partial(click.option, "--recursive", "-r", "-R", is_flag=True)


def default_option(
    name: str, metavar: str, type: Any, default: object, says: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add an option whose help shows its default."""
    return click.option(
        name, metavar=metavar, type=type, default=default, show_default=True, help=says
    )
