"""The data folder that a service in etcd is made of: of Paddock, or of Apache ZooKeeper."""

from __future__ import annotations

from pathlib import Path

import click

from paddock.cli.output import CannotBeDone
from paddock.state.machine import StateMachine
from paddock.storage.data_directory import CACHE
from paddock.storage.layout import kept_free
from paddock.storage.load import load
from paddock.upgrade.source import read_service


def read_source(data: Path, log_dir: Path | None) -> tuple[StateMachine, list[str]]:
    """Return the state of a folder, and what to warn of. Raises CannotBeDone, PaddockError."""
    if not (data / "format").is_file():
        machine, reading = read_service(data, log_dir)
        return machine, reading.warnings
    if log_dir is not None:
        raise click.UsageError("--log-dir is for the data of Apache ZooKeeper")
    with kept_free(data) as user:
        if user is not None:
            raise CannotBeDone(f"{data}: a server runs on it{_process(user)}; stop it first")
        if (data / CACHE).exists():
            raise CannotBeDone(f"{data}: is the cache of a server that shares a log already")
        return load(data).machine, []


def _process(pid: int) -> str:
    return f" (process {pid})" if pid else ""
