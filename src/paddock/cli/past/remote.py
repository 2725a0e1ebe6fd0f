"""Asks a running server about its past, by its admin server: `--admin http://host:8080`.

The command runs there, on the data of that server, and what it prints is printed here. It takes the
superuser's credentials.
"""

import json
import sys
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlencode, urlsplit
from urllib.request import Request, urlopen

import click

from paddock.cli.arguments import check_output_file, output_file
from paddock.cli.output import CannotBeDone
from paddock.cli.sasl import SASL_PARAMETERS
from paddock.history.moment import Moment

_SECONDS: Final = 660.0
_PIECE_BYTES: Final = 64 << 10
# Options of the connection, which the server does not need.
_OWN: Final = {
    *("admin", "admin_auth", "data", "log_dir", "server", "timeout", "auth"),
    *("tls", "tls_ca", "tls_cert", "tls_key", "overwrite", "file"),
    *SASL_PARAMETERS,
}


def ask(url: str, credentials: str) -> int:
    """Have the present command run by a server; print what it prints, and return its status."""
    context = click.get_current_context()
    file = context.params.get("file")
    target = None if file is None else output_file(file)
    if target is not None:
        check_output_file(target, bool(context.params.get("overwrite")))
    query = urlencode({"arguments": json.dumps(_arguments(context))})
    scheme, _, rest = credentials.partition(":")
    request = Request(f"{url.rstrip('/')}/commands/past?{query}")
    request.add_header("Authorization", f"{scheme} {rest}")
    try:
        with urlopen(request, timeout=_SECONDS) as answer:
            status, error = int(answer.headers["exit_status"]), unquote(answer.headers["error"])
            if target is None:
                _copy(answer, sys.stdout.buffer)
            elif status == 0:
                with target.open("wb") as written:
                    _copy(answer, written)
    except HTTPError as refusal:
        raise CannotBeDone(f"{url}: {_reason(refusal)}") from None
    except (URLError, HTTPException, OSError, ValueError, TypeError) as failure:
        reason = getattr(failure, "reason", None) or failure
        raise CannotBeDone(f"{url}: no answer: {reason}") from None
    if error:
        click.echo(error, err=True)
    return status


def check_url(url: str) -> None:
    """Raise BadParameter for what is no address of an admin server."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise click.BadParameter(
            f"{url!r} is no address of an admin server, such as http://127.0.0.1:8080",
            param_hint="--admin",
        )


def _arguments(context: click.Context) -> list[str]:
    """Return the words of the present command, as they would be written again."""
    words: list[str] = []
    above: click.Context | None = context
    while above is not None and above.parent is not None:
        words.insert(0, str(above.info_name))
        above = above.parent
    positional: list[str] = []
    for parameter in context.command.params:
        name = str(parameter.name)
        value = context.params.get(name)
        if isinstance(parameter, click.Argument):
            positional.append("-" if name == "file" else _word(name, value))
        elif name not in _OWN and value is not None and value is not False:
            words += (
                [parameter.opts[0]] if value is True else [parameter.opts[0], _word(name, value)]
            )
    # Behind dashes: a path may begin with anything.
    return [*words, "--", *positional]


def _word(name: str, value: Any) -> str:
    if isinstance(value, Moment):
        return value.written()
    if name == "session":
        return f"0x{value & (1 << 64) - 1:x}"
    return str(value)


def _copy(answer: Any, to: Any) -> None:
    while piece := answer.read(_PIECE_BYTES):
        to.write(piece)
    to.flush()


def _reason(refusal: HTTPError) -> str:
    try:
        told = json.loads(refusal.read())["error"]
    except (ValueError, KeyError, TypeError):
        told = refusal.reason
    return str(told)
