"""The data folder that a service in etcd is made of: of Paddock, or of Apache ZooKeeper."""

from __future__ import annotations

from pathlib import Path

import click

from paddock.cli.cluster.log_options import check_is_no_cache
from paddock.cli.output import CannotBeDone
from paddock.state.machine import StateMachine
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
        check_is_no_cache(data)
        return load(data).machine, []


def _process(pid: int) -> str:
    return f" (process {pid})" if pid else ""
