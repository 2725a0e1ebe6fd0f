"""Runs a cluster on one machine until a signal stops it.

etcd starts first and stops last. A process that ends by itself is reported, and the others go on:
that is what a cluster is for.
"""

from __future__ import annotations

import asyncio
import shlex
import sys
from pathlib import Path

import click

from paddock.cli.cluster.folder import ClusterFolder
from paddock.cli.cluster.processes import (
    ClusterProcess,
    etcd_processes,
    find_etcd,
    server_processes,
)
from paddock.cli.output import CannotBeDone


class LocalCluster:
    """The processes in a folder."""

    def __init__(self, folder: ClusterFolder, config: Path | None) -> None:
        self.folder = folder
        self.etcd = etcd_processes(folder, find_etcd())
        self.servers = server_processes(folder, config)

    async def start(self) -> None:
        """Start everything, and return when all of it serves. Raises CannotBeDone."""
        for group in (self.etcd, self.servers):
            for one in group:
                await one.start()
            await asyncio.gather(*(one.wait_until_it_serves() for one in group))

    async def watch(self) -> None:
        """Report each process that ends; return when all have."""
        await asyncio.gather(*(_report(one) for one in (*self.etcd, *self.servers)))

    async def stop(self) -> None:
        """Stop what runs: the servers, then what they need to stop in good order."""
        for group in (self.servers, self.etcd):
            await asyncio.gather(*(one.stop() for one in group if one.process is not None))


async def run_cluster(folder: ClusterFolder, config: Path | None, paddock: str) -> None:
    """Run everything until this is cancelled. `paddock` is how our own command is called."""
    cluster = LocalCluster(folder, config)
    try:
        await cluster.start()
        click.echo(_greeting(cluster, paddock))
        # A reader of lines is to have it now.
        sys.stdout.flush()
        await cluster.watch()
        raise CannotBeDone("all processes have ended")
    finally:
        await cluster.stop()


async def _report(one: ClusterProcess) -> None:
    await one.wait()
    click.echo(
        f"paddock: {one.end()}; its log is {one.log}; start it again: {shlex.join(one.command)}",
        err=True,
    )


def _greeting(cluster: LocalCluster, paddock: str) -> str:
    processes = (*cluster.etcd, *cluster.servers)
    table = [f"{one.name:10}  127.0.0.1:{one.port}  process {one.pid}" for one in processes]
    hosts, url = cluster.folder.hosts, shlex.quote(cluster.folder.url)
    return "\n".join(
        [
            *table,
            f"Their data and logs are in {cluster.folder.path.absolute()}",
            f"Try it:     {paddock} shell -server {hosts}",
            f"            {paddock} status --server {hosts}",
            f"            {paddock} cluster status --log {url}",
            "Kill a process, and start it again. Ctrl-C stops all.",
        ]
    )
