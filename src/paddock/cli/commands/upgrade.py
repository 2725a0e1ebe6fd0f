"""`paddock upgrade`: make a data folder of ours from one of Apache ZooKeeper's."""

import gc
import json
from pathlib import Path
from typing import Any

import click

from paddock.cli.arguments import PATH
from paddock.cli.output import one_line
from paddock.server.config.config import ConfigError
from paddock.server.config.properties import read_property_file
from paddock.upgrade.source import read_service
from paddock.upgrade.target import check_target, write_data_folder


@click.command()
@click.option(
    "--log-dir", metavar="DIR", type=PATH, help="Apache's dataLogDir, if its zoo.cfg has one."
)
@click.option(
    "--config",
    metavar="FILE",
    type=PATH,
    help="Apache's zoo.cfg: says where its folders are, instead of APACHE_DATA.",
)
@click.option("--dry-run", is_flag=True, help="Read and check everything, write nothing.")
@click.option("--json", "as_json", is_flag=True, help="Say it in JSON, for programs.")
@click.argument("folders", metavar="[APACHE_DATA] DATA", nargs=-1, type=PATH)
def upgrade(
    log_dir: Path | None,
    config: Path | None,
    dry_run: bool,
    as_json: bool,
    folders: tuple[Path, ...],
) -> None:
    """Take over the data of an Apache ZooKeeper server (3.4 to 3.9), which must be stopped.

    APACHE_DATA is its dataDir, and is only read. DATA becomes a data folder for `paddock serve`;
    there must be nothing in it yet.
    """
    data, log, target = _places(log_dir, config, folders)
    # Nodes are in no cycles, and collections over a million of them take longer than the rest.
    gc.disable()
    try:
        with one_line():
            check_target(target, data, *([] if log is None else [log]))
            machine, reading = read_service(data, log)
            if not dry_run:
                write_data_folder(machine, target)
    finally:
        gc.enable()
    for warning in reading.warnings:
        click.echo(f"paddock: warning: {warning}", err=True)
    tree = machine.tree
    summary = {
        "snapshot": None if reading.snapshot is None else str(reading.snapshot),
        "logs": [{"file": str(one.path), "transactions": one.transactions} for one in reading.logs],
        "transactions": reading.transactions,
        "zxid": machine.zxid,
        "nodes": len(tree),
        "ephemerals": sum(map(len, tree.ephemerals.values())),
        "containers": len(tree.containers),
        "ttls": len(tree.ttls),
        "quotas": int(tree.quotas.size),
        "sessions": len(machine.sessions.by_id),
        "digest_fits": reading.digest_fits,
        "warnings": reading.warnings,
        "data": None if dry_run else str(target),
    }
    click.echo(json.dumps(summary, indent=2) if as_json else "\n".join(_lines(summary)))


def _places(
    log_dir: Path | None, config: Path | None, folders: tuple[Path, ...]
) -> tuple[Path, Path | None, Path]:
    """Return the folders of the snapshots, of the log if given, and of the target."""
    if len(folders) != (2 if config is None else 1):
        expected = (
            "two folders: APACHE_DATA, which is read, and DATA, which is written"
            if config is None
            else "with --config, only DATA: the folder that is written"
        )
        raise click.UsageError(f"expected {expected}")
    if config is None:
        return folders[0], log_dir, folders[1]
    data, log = _read_config(config)
    return data, log_dir or log, folders[0]


def _read_config(file: Path) -> tuple[Path, Path]:
    """Find Apache's folders in its `zoo.cfg`."""
    try:
        found = {entry.key: entry.value for entry in read_property_file(file)}
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    data = found.get("dataDir")
    if not data:
        raise click.UsageError(f"{file}: has no dataDir")
    return Path(data), Path(found.get("dataLogDir") or data)


_DIGEST = {True: "is Apache's", False: "is not Apache's", None: "none to compare with"}


def _lines(summary: dict[str, Any]) -> list[str]:
    nodes = (
        f"{summary['nodes']}, of them {summary['ephemerals']} ephemeral, {summary['containers']}"
        f" containers, {summary['ttls']} with a TTL"
    )
    return [
        f"snapshot      {summary['snapshot'] or 'none, the log is whole'}",
        *(f"log           {log['file']}: {log['transactions']}" for log in summary["logs"]),
        f"transactions  {summary['transactions']} replayed",
        f"zxid          0x{summary['zxid']:x}",
        f"nodes         {nodes}",
        f"quotas        {summary['quotas']}",
        f"sessions      {summary['sessions']}",
        f"digest        {_DIGEST[summary['digest_fits']]}",
        f"data          {summary['data'] or 'nothing was written'}",
    ]
