"""`paddock backup`: write what a data folder holds to one file, also while a server runs on it."""

import contextlib
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

import click

from paddock import __version__
from paddock.cli.arguments import (
    PATH,
    PATH_OR_DASH,
    check_is_folder,
    check_output_file,
    output_file,
)
from paddock.cli.cluster.log_options import DATA_OR_LOG, SharedLogOptions, check_is_no_cache
from paddock.cli.output import CannotBeDone, counted, one_line
from paddock.cli.service import run
from paddock.log.file.disk import Disk
from paddock.server.admin.control_socket import ControlError, ask
from paddock.storage.data_directory import CACHE
from paddock.storage.load import Loaded, load
from paddock.storage.maintenance.backup import Manifest, write_backup
from paddock.storage.maintenance.history_backup import history_files
from paddock.storage.scan import user_of

# How long a running server may take for a snapshot. Without one a backup takes longer, no more.
_SNAPSHOT_TIMEOUT = 600.0


@click.command()
@click.argument("data", type=DATA_OR_LOG)
@click.argument("file", type=PATH_OR_DASH)
@click.option(
    "--gzip", is_flag=True, help="Compress it, also if FILE does not end with .gz or .tgz."
)
@click.option("--overwrite", is_flag=True, help="Replace a FILE that exists.")
@click.option("--history", is_flag=True, help="Include the history of the data folder.")
@click.option(
    "--history-from",
    "server_data",
    metavar="DATA",
    type=PATH,
    help="Where DATA is a log: include the history of this data folder, of one of its servers.",
)
def backup(
    data: Path | SharedLogOptions,
    file: Path,
    gzip: bool,
    overwrite: bool,
    history: bool,
    server_data: Path | None,
) -> None:
    """Write a backup of a data folder to FILE, or to stdout if that is "-".

    A server may run on DATA and is not disturbed. The backup holds everything that was acknowledged
    before it was asked for. Of servers that share a log, DATA is the log: etcd://host:port/name.
    What etcd asks for is in the same variables as for paddock serve, such as PADDOCK_ETCD_USER.
    """
    target = output_file(file)
    with one_line():
        past = _history_folder(data, history, server_data)
        if isinstance(data, Path):
            _check_folder(data)
        if target is not None:
            check_output_file(target, overwrite)
            if isinstance(data, Path):
                _check_not_in(target, data)
        loaded = _load_folder(data) if isinstance(data, Path) else _load_service(data, past)
        if target is None:
            manifest = _write(sys.stdout.buffer, loaded, gzip, Path(tempfile.gettempdir()), past)
            sys.stdout.buffer.flush()
        else:
            compress = gzip or target.suffix in (".gz", ".tgz")
            manifest = _write_file(target, loaded, compress, past)
    click.echo(
        f"{target or 'stdout'}: record {manifest.index}, zxid 0x{manifest.zxid:x},"
        f" {counted(manifest.nodes, 'node')}, {counted(manifest.sessions, 'session')}"
        + (", and history" if manifest.has_history else ""),
        err=target is None,
    )


def _history_folder(
    data: Path | SharedLogOptions, history: bool, server_data: Path | None
) -> Path | None:
    """Return the data folder whose history is to be included; None for none."""
    if isinstance(data, Path):
        if server_data is not None:
            raise click.UsageError("--history-from is for a log; of a folder, take --history")
        return data if history else None
    if server_data is None:
        if history:
            raise click.UsageError(
                "the history of servers that share a log is in their data folders: name one of them"
                " with --history-from"
            )
        return None
    check_is_folder(server_data)
    if not (server_data / CACHE).is_dir():
        raise CannotBeDone(f"{server_data}: is not the data folder of a server that shares a log")
    return server_data


def _check_folder(data: Path) -> None:
    check_is_folder(data)
    if not (data / "format").is_file():
        raise CannotBeDone(f"{data}: holds no data of Paddock")
    check_is_no_cache(data)


def _check_not_in(target: Path, data: Path) -> None:
    for ours in (data, data / "log"):
        if target.absolute().parent.resolve().is_relative_to(ours.resolve()):
            raise CannotBeDone(f"{target}: lies in {ours}, which is not to be touched")


def _load_folder(data: Path) -> Loaded:
    if user_of(data) is not None:
        try:
            # A fresh one spares us the log, and most of the race with its purging.
            ask(data, {"command": "snapshot"}, _SNAPSHOT_TIMEOUT)
        except ControlError as error:
            click.echo(f"paddock: warning: no fresh snapshot: {error}", err=True)
    return load(data)


def _load_service(log: SharedLogOptions, past: Path | None) -> Loaded:
    """Return the state of a service as that of a single server: members are no part of it.

    `past` is the data folder of one of its servers, if that is wanted as well.
    """
    from paddock.storage.cluster.history import check_service
    from paddock.storage.cluster.shared_state import load_service

    async def work() -> Loaded:
        async with log.store() as store:
            state = await load_service(store, log.keys)
        if past is not None:
            check_service(past, state.head.service.id)
        state.machine.unshare()
        return Loaded(state.machine, state.head.index)

    return run(work)


def _write_file(file: Path, loaded: Loaded, compress: bool, past: Path | None) -> Manifest:
    """Write a file that appears under its name only when it is whole and synced."""
    folder = file.absolute().parent
    try:
        opened, temporary = tempfile.mkstemp(prefix=f".{file.name}.", dir=folder)
    except OSError as error:
        # The temporary name would say nothing to the user.
        raise CannotBeDone(f"{file}: cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(opened, "wb") as stream:
            manifest = _write(stream, loaded, compress, folder, past)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, file)
        Disk().sync_folder(folder)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    return manifest


def _write(
    stream: IO[bytes], loaded: Loaded, compress: bool, near: Path, past: Path | None
) -> Manifest:
    return write_backup(
        stream,
        loaded,
        compress=compress,
        version=__version__,
        time_ms=time.time_ns() // 1_000_000,
        near=near,
        history=() if past is None else history_files(past, loaded.index),
    )
