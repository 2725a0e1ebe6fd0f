"""`paddock restore`: bring a backup back, also into the data folder of a running server."""

import contextlib
import json
import os
import secrets
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click

from paddock.cli.arguments import PATH_OR_DASH
from paddock.cli.cluster.log_options import DATA_OR_LOG, SharedLogOptions, check_is_no_cache
from paddock.cli.output import CannotBeDone, counted, one_line
from paddock.cli.service import run
from paddock.log.file.disk import Disk
from paddock.log.file.segments import segment_files
from paddock.log.interface import LogError
from paddock.server.admin.control_socket import RefusedError, ask
from paddock.storage.data_directory import is_harmless
from paddock.storage.epoch import begin_epoch
from paddock.storage.layout import Claim, DataDirectoryError, make_folder
from paddock.storage.load import Loaded
from paddock.storage.maintenance.backup import BackupError, Manifest, read_backup
from paddock.storage.maintenance.check import check
from paddock.storage.scan import user_of
from paddock.storage.snapshots import snapshot_files
from paddock.storage.state_swap import (
    discard_staged,
    finish_swap,
    holds_data,
    is_interrupted,
    stage,
    swap_state,
)

_STATUS_TIMEOUT = 30.0
# A server answers everybody, writes a snapshot and reads the new one.
_RESTORE_TIMEOUT = 3600.0


@click.command()
@click.argument("file", type=PATH_OR_DASH)
@click.argument("data", type=DATA_OR_LOG)
@click.option("--replace", is_flag=True, help="Move what DATA holds aside. Nothing is deleted.")
@click.option("--json", "as_json", is_flag=True, help="Say it in JSON, for programs.")
def restore(file: Path, data: Path | SharedLogOptions, replace: bool, as_json: bool) -> None:
    """Restore the backup in FILE, or on stdin if that is "-", into the folder DATA.

    The backup is checked whole before anything is touched. If a server runs on DATA, it is told: it
    is away for a moment, and its clients connect again by themselves. For servers that share a log,
    DATA is a log with a new name: etcd://host:port/name. What etcd asks for is in the same
    variables as for paddock serve, such as PADDOCK_ETCD_USER.
    """
    try:
        if isinstance(data, Path):
            _restore(file, data, replace, as_json)
        else:
            _restore_service(file, data, replace, as_json)
    except click.ClickException as error:
        if as_json:
            is_none = isinstance(error, _NoBackupError)
            reason = error.reason if isinstance(error, _NoBackupError) else error.format_message()
            click.echo(json.dumps({"error": reason, "is_backup": not is_none}))
        raise


class _NoBackupError(CannotBeDone):
    """What was read is no backup that can be restored."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        # Without what was read.
        self.reason = text.removeprefix(f"{name}: ")


def _restore_service(file: Path, log: SharedLogOptions, replace: bool, as_json: bool) -> None:
    from paddock.storage.cluster.shared_state import create_service

    if replace:
        raise click.UsageError("--replace is for data folders; a log gets a new name instead")
    with one_line():
        loaded, manifest = _read(file)
        begin_epoch(loaded.machine)

    async def work() -> None:
        async with log.store() as store:
            await create_service(store, log.keys, loaded.machine, secrets.token_bytes)

    run(work)
    _tell(str(log.url), loaded, manifest, None, as_json)


def _restore(file: Path, data: Path, replace: bool, as_json: bool) -> None:
    with one_line():
        check_is_no_cache(data)
        if data.exists() and not data.is_dir():
            raise click.UsageError(f"{data}: is not a folder")
        if not replace and _holds_anything(data):
            raise CannotBeDone(f"{data}: is not empty; --replace moves what it holds aside")
        if replace and not _is_replaceable(data):
            raise CannotBeDone(
                f"{data}: holds something else than data of Paddock; it is left alone"
            )
        loaded, manifest = _read(file)
        make_folder(data)
        with _as_owner_of(data):
            is_running = user_of(data) is not None
            aside = (_restore_running if is_running else _restore_offline)(data, loaded)
    _tell(str(data), loaded, manifest, aside, as_json)


def _tell(place: str, loaded: Loaded, manifest: Manifest, aside: str | None, as_json: bool) -> None:
    zxid = loaded.machine.zxid
    if as_json:
        told = {"zxid": zxid, "nodes": manifest.nodes, "sessions": manifest.sessions}
        told |= {"time_ms": manifest.time_ms, "has_history": manifest.has_history}
        click.echo(json.dumps({**told, "aside": aside}))
        return
    when = datetime.fromtimestamp(manifest.time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    click.echo(
        f"{place}: restored the backup of {when}: {counted(manifest.nodes, 'node')},"
        f" {counted(manifest.sessions, 'session')}; it goes on at zxid 0x{zxid:x}"
    )
    if manifest.has_history:
        click.echo("the history in the backup is not restored: it can be read there")
    if aside is not None:
        click.echo(f"what was there before is in {aside}")


@contextlib.contextmanager
def _as_owner_of(folder: Path) -> Iterator[None]:
    """Switch to the owner of a folder in this scope, if we are root and the owner is not.

    The owner controls its links, which may lead anywhere: root must not follow them. And the server
    could not read files that root writes.
    """
    owner = folder.stat()
    if os.geteuid() != 0 or owner.st_uid == 0:
        yield
        return
    groups, group = os.getgroups(), os.getegid()
    os.setgroups([])
    os.setegid(owner.st_gid)
    os.seteuid(owner.st_uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)


def _holds_anything(data: Path) -> bool:
    names = (path.name for path in data.iterdir()) if data.is_dir() else ()
    return any(name != "lock" and not is_harmless(name) for name in names)


def _is_replaceable(data: Path) -> bool:
    """Return whether a folder is Paddock's, or empty."""
    if not _holds_anything(data) or (data / "format").is_file() or is_interrupted(data):
        return True
    # Damaged: the file that says so is missing.
    log, snapshots = data / "log", data / "snapshots"
    return bool(
        (log.is_dir() and segment_files(log)) or (snapshots.is_dir() and snapshot_files(snapshots))
    )


def _read(file: Path) -> tuple[Loaded, Manifest]:
    name = "stdin" if str(file) == "-" else str(file)
    try:
        if name == "stdin":
            return read_backup(sys.stdin.buffer, name)
        with file.open("rb") as stream:
            return read_backup(stream, name)
    except BackupError as error:
        raise _NoBackupError(name, str(error)) from None


def _restore_running(data: Path, loaded: Loaded) -> str | None:
    status = ask(data, {"command": "status"}, _STATUS_TIMEOUT)
    begin_epoch(loaded.machine, status["zxid"], status["last_session"])
    staged = stage(data, loaded.machine, loaded.index, Disk())
    try:
        reply = ask(data, {"command": "restore", "staged": staged}, _RESTORE_TIMEOUT)
    except RefusedError:
        # In any other case the server may be about to use it.
        discard_staged(data, staged)
        raise
    aside = reply["aside"]
    return None if aside is None else str(aside)


def _restore_offline(data: Path, loaded: Loaded) -> str | None:
    try:
        with Claim(data):
            finish_swap(data, Disk())
            begin_epoch(loaded.machine, *_seen(data))
            staged = stage(data, loaded.machine, loaded.index, Disk())
            now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
            aside = swap_state(data, staged, now, Disk()).aside
    except DataDirectoryError as error:
        raise CannotBeDone(f"{error}, which has just been started; try again") from None
    return None if aside is None else str(data.absolute() / aside)


def _seen(data: Path) -> tuple[int, int]:
    """Return the last zxid and session id of the old data, as far as they can be read."""
    try:
        state = check(data).state if holds_data(data) else None
    except LogError:
        # It is damaged beyond reading; the new epoch is above the backup's at least.
        state = None
    return (0, 0) if state is None else (state.zxid, state.last_session)
