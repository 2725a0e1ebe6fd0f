"""`paddock changes`: every change below a node as a JSON line, from a checkpoint on.

A checkpoint is a small file with a zxid, up to which all lines were written, and how many lines of
the transaction behind it were as well. It is replaced as a whole, after the lines were flushed: so
after a kill at most the last line comes again, and none is missing.
"""

import json
import os
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

import click

from paddock.cli.arguments import PATH, WholeNumber
from paddock.cli.closed_stdout import until_stdout_closes
from paddock.cli.output import (
    CannotBeDone,
    data_fields,
    line_about,
    one_line,
    print_json,
    stat_fields,
)
from paddock.cli.service import (
    NODE_PATH,
    ServiceOptions,
    service_options,
    tell_states,
)
from paddock.client.client import Client
from paddock.client.operations.feeds import FeedChange
from paddock.client.states import FeedKind
from paddock.errors import UnimplementedError

_WORDS: Final = {
    FeedKind.CREATED: "created",
    FeedKind.DATA: "changed",
    FeedKind.ACL: "acl",
    FeedKind.DELETED: "deleted",
    FeedKind.GAP: "gap",
}
_ZXID_MAX: Final = 2**63 - 1


class Zxid(click.types.StringParamType):
    """A zxid, decimal or hexadecimal, or `now`, which is None."""

    # Its base is that of texts, since `ParamType` has a type parameter in newer versions only.
    name = "zxid"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "now":
            return None
        try:
            number = int(str(value), 0)
        except ValueError:
            number = -1
        if not 0 <= number <= _ZXID_MAX:
            self.fail(f"{str(value)!r} is no zxid, such as 0x100000002, and not `now`", param, ctx)
        return number


class Checkpoint:
    """How far the lines have come, in a file."""

    def __init__(self, file: Path | None, path: str, since: int | None) -> None:
        self._file = file
        self._path = path
        # Behind which zxid the feed begins, and how many lines of it were written before.
        self.zxid = since
        self.lines = 0
        if file is not None:
            with one_line():
                if file.exists():
                    self._read(file)

    def pass_(self, change: FeedChange) -> None:
        """Note that the line of a change was written."""
        if change.is_last:
            self.zxid, self.lines = change.zxid, 0
        else:
            self.lines += 1
        if self._file is not None and self.zxid is not None:
            document = {"path": self._path, "zxid": self.zxid, "lines": self.lines}
            temporary = self._file.with_name(f"{self._file.name}.{os.getpid()}.tmp")
            try:
                temporary.write_text(json.dumps(document) + "\n")
                os.replace(temporary, self._file)
            except OSError as error:
                # The name of the temporary file would say nothing to anybody.
                raise CannotBeDone(f"{self._file}: cannot be written: {error.strerror}") from error

    def _read(self, file: Path) -> None:
        try:
            document = json.loads(file.read_text())
            zxid, lines, path = document["zxid"], document["lines"], document["path"]
            if not isinstance(zxid, int) or not isinstance(lines, int) or min(zxid, lines) < 0:
                raise ValueError("no numbers")
        except (ValueError, KeyError, TypeError):
            raise CannotBeDone(f"{file}: is no checkpoint of `paddock changes`") from None
        if path != self._path:
            raise CannotBeDone(f"{file}: is a checkpoint of {path}, and not of {self._path}")
        self.zxid, self.lines = zxid, lines


def fields_of(change: FeedChange) -> dict[str, Any]:
    """Return the fields of a line."""
    return {
        "zxid": change.zxid,
        "change": _WORDS[change.kind],
        "path": change.path,
        **data_fields(change.data),
        **stat_fields(change.stat),
        "is_last": change.is_last,
        "is_exact": change.is_exact,
    }


@click.command()
@click.argument("path", type=NODE_PATH)
@click.option(
    "--since",
    metavar="ZXID",
    type=Zxid(),
    default="now",
    show_default=True,
    help="Begin behind this zxid, if there is no checkpoint yet.",
)
@click.option(
    "--checkpoint",
    metavar="FILE",
    type=PATH,
    help="Begin where this file says, and keep it up to date.",
)
@click.option(
    "--count", "-n", metavar="N", type=WholeNumber(min=1), help="End after so many lines."
)
@click.option(
    "--best-effort",
    is_flag=True,
    help="Where the service has no change feeds, say what watches can.",
)
@service_options
def command(
    service: ServiceOptions,
    path: str,
    since: int | None,
    checkpoint: Path | None,
    count: int | None,
    best_effort: bool,
) -> None:
    """Write every change of a node and of all below it as a line of JSON.

    Each create, write, delete and change of an ACL is one line, in order: "created", "changed",
    "deleted" or "acl", with the zxid, the path, and the data and the stat after the change. PATH
    need not be there. It goes on, over lost connections as well, until Ctrl-C ends it (status 130).

    With --checkpoint it can be stopped, or killed, and started again: no line is missing then, and
    after a kill at most the last one comes twice. Changes that the service does not have any more
    are an error (status 1) that names the oldest zxid to begin at.
    """

    here = Checkpoint(checkpoint, path, since)

    async def printing(client: Client) -> None:
        tell_states(client)
        known, told = here.lines, 0
        here.lines = 0
        feed = client.changes(path, since=here.zxid, best_effort=best_effort, progress=True)
        async with until_stdout_closes(), aclosing(feed):
            async for change in feed:
                if known and change.kind is not FeedKind.PROGRESS:
                    # Written before we were started.
                    known -= 1
                    here.pass_(change)
                    continue
                if change.kind is not FeedKind.PROGRESS:
                    print_json(fields_of(change))
                    told += 1
                here.pass_(change)
                if told == count:
                    return

    async def printing_or_not(client: Client) -> None:
        try:
            await printing(client)
        except UnimplementedError as error:
            hint = "--best-effort says what watches can"
            raise CannotBeDone(line_about(error, hint)) from None

    service.run(printing_or_not)
