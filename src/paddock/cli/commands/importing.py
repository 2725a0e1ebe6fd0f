"""`paddock import`: make a service hold what a file says, or what another service holds."""

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

import click

from paddock.cli.arguments import PATH, WholeNumber
from paddock.cli.output import CannotBeDone, counted, one_line, progress
from paddock.cli.sasl import SaslOptions, sasl_options
from paddock.cli.service import (
    NODE_PATH,
    ServiceOptions,
    check_hosts,
    identity_of,
    run,
    service_options,
    tls_of,
)
from paddock.cli.transfer.importing import Import
from paddock.cli.transfer.node import Difference, Existing, ImportOptions, Node, Tally, is_below
from paddock.cli.transfer.reading import opened
from paddock.cli.transfer.rights import Rights, rights_of
from paddock.cli.transfer.tree_reader import ReadOptions, TreeReader, watched
from paddock.client.client import Client

# What `--diff` ends with if there are differences: neither success nor failure.
DIFFERENT: Final = 3

# By what differs: the sign that it is shown with, and its colour.
_SIGNS: Final = {
    "create": ("+", "green"),
    "change": ("~", "yellow"),
    "finish": ("~", "yellow"),
    "delete": ("-", "red"),
}


@click.command("import")
@click.argument("source")
@click.argument("path", type=NODE_PATH)
@click.option("--overwrite", is_flag=True, help="Replace data and ACLs of nodes that exist.")
@click.option("--keep", is_flag=True, help="Leave nodes that exist as they are, add the rest.")
@click.option("--delete", is_flag=True, help="Delete what SOURCE does not have.")
@click.option("--dry-run", is_flag=True, help="Change nothing, only say what would be done.")
@click.option("--diff", is_flag=True, help="Change nothing, show every node that differs.")
@click.option("--json", "as_json", is_flag=True, help="Say it as JSON.")
@click.option(
    "--max-request-bytes",
    metavar="BYTES",
    type=WholeNumber(min=1),
    help="What the servers take at once, if that is not 1048575: jute.maxbuffer there.",
)
@click.option("--from", "from_", metavar="HOSTS", help="SOURCE is a path of this other service.")
@click.option(
    "--from-auth", metavar="SCHEME:CREDENTIALS", multiple=True, help="Who asks the other service."
)
@sasl_options("from-")
@click.option("--from-tls", is_flag=True, help="Secure the connection to it.")
@click.option("--from-tls-ca", metavar="FILE", type=PATH, help="Secure it, with these CAs.")
@click.option("--from-tls-cert", metavar="FILE", type=PATH, help="Our certificate there.")
@click.option("--from-tls-key", metavar="FILE", type=PATH, help="Its key.")
@service_options
def import_(
    service: ServiceOptions,
    source: str,
    path: str,
    overwrite: bool,
    keep: bool,
    delete: bool,
    dry_run: bool,
    diff: bool,
    as_json: bool,
    max_request_bytes: int | None,
    from_: str | None,
    from_auth: tuple[str, ...],
    from_sasl: SaslOptions,
    from_tls: bool,
    from_tls_ca: Path | None,
    from_tls_cert: Path | None,
    from_tls_key: Path | None,
) -> int:
    """Make the tree at PATH hold what SOURCE does: a file that `paddock export` wrote, or "-".

    With --from, SOURCE is a path of another service. Nodes that are missing are created. If others
    exist and differ, nothing is done at all unless --overwrite or --keep is given; nothing is
    deleted without --delete. An import that was interrupted goes on when it is run again.

    --diff shows every node that SOURCE has more (+), otherwise (~), or not (-), and ends with
    status 3 if there are any.
    """
    if overwrite and keep:
        raise click.UsageError("--overwrite and --keep cannot both be meant")
    service, root = service.resolved(path)
    service = dataclasses.replace(service, max_request_bytes=max_request_bytes)
    existing = Existing.OVERWRITE if overwrite else Existing.KEEP if keep else Existing.REFUSE
    job = _Job(service, root, existing, delete, dry_run, diff, as_json)
    if from_ is None:
        has_sasl = from_sasl != SaslOptions()
        if from_auth or has_sasl or from_tls or from_tls_ca or from_tls_cert or from_tls_key:
            raise click.UsageError("--from-... needs --from, which says which service is meant")
        return job.import_file(Path(source))
    check_hosts(from_, "--from")
    other = ServiceOptions(
        from_,
        service.session_timeout,
        tuple(identity_of(one, "--from-auth") for one in from_auth),
        tls_of(from_tls, from_tls_ca, from_tls_cert, from_tls_key, "--from-tls"),
        from_sasl.credentials(from_),
    )
    return job.import_tree(other, NODE_PATH.convert(source, None, None))


# Gives all nodes from the first one on; a second call, once more.
_Nodes = Callable[[], "AsyncIterator[Node]"]


@dataclasses.dataclass(frozen=True, slots=True)
class _Job:
    """What was asked for."""

    service: ServiceOptions
    root: str
    existing: Existing
    deletes: bool
    is_dry: bool
    is_diff: bool
    as_json: bool

    def import_file(self, path: Path) -> int:
        with one_line(), opened(path) as export:
            # Nothing is done with a file that is not whole.
            total = export.check()

            async def nodes() -> AsyncIterator[Node]:
                for node in export.nodes():
                    yield node

            return self.service.run(lambda client: self._import(client, nodes, total))

    def import_tree(self, other: ServiceOptions, path: str) -> int:
        other, root = other.resolved(path)
        is_within = is_below(root, self.root) or is_below(self.root, root)
        if is_within and set(other.hosts.split(",")) & set(self.service.hosts.split(",")):
            # One would grow, or go, while it is read.
            raise click.UsageError(f"{root} and {self.root}: one of the trees is in the other")

        async def importing() -> int:
            async with other.connect() as source, self.service.connect() as client:
                await source.sync(root)
                async with watched(source, root) as changes:
                    status = await self._import(
                        client, lambda: TreeReader(source, root, ReadOptions()).nodes(), None
                    )
                if warning := changes.say(root):
                    click.echo(f"paddock: warning: {warning}", err=True)
                return status

        return run(importing)

    async def _import(self, client: Client, nodes: _Nodes, total: int | None) -> int:
        service = self.service
        rights = await rights_of(client, service.identities, has_sasl=service.sasl is not None)
        try:
            return await self._carry_out(client, rights, nodes, total)
        except asyncio.CancelledError:
            if not (self.is_dry or self.is_diff):
                click.echo("paddock: interrupted; run it again, and it goes on", err=True)
            raise

    async def _carry_out(
        self, client: Client, rights: Rights, nodes: _Nodes, total: int | None
    ) -> int:
        options = ImportOptions(existing=self.existing, deletes=self.deletes)
        differences = _Differences(self.is_diff, self.as_json)

        async def pass_through(what: str, options: ImportOptions) -> Tally:
            with progress(f"{what} {self.root}", total, is_shown=not self.is_diff) as advance:
                job = Import(
                    client, self.root, rights, options, report=differences.take, advance=advance
                )
                return await job.run(nodes())

        # A server of an ensemble may be behind what others have written.
        await client.sync(self.root)
        dry = dataclasses.replace(options, is_dry=True, looks_for_more=self.is_diff)
        if self.is_diff:
            await pass_through("compare", dry)
            return DIFFERENT if differences.count else 0
        tally = None
        is_there = await client.exists(self.root) is not None
        if self.is_dry or (self.existing is Existing.REFUSE and is_there):
            # Before anything is done it is sure that all of it can be.
            tally = await pass_through("compare", dry)
            if self.existing is Existing.REFUSE and tally.changed:
                raise CannotBeDone(differences.refusal(tally.changed))
            if not self.deletes:
                same = total if tally.first_different is None else tally.first_different
                options = dataclasses.replace(options, same_before=same or 0)
        if not self.is_dry:
            tally = await pass_through("import", options)
        assert tally is not None
        done = dataclasses.asdict(tally)
        del done["first_different"]
        if self.as_json:
            click.echo(json.dumps({"path": self.root, "dry_run": self.is_dry, **done}))
        else:
            words = ", ".join(f"{number} {word}" for word, number in done.items() if number)
            click.echo(f"{self.root}:{' would be' if self.is_dry else ''} {words}")
        return 0


@dataclasses.dataclass(slots=True)
class _Differences:
    """Every difference, shown or counted."""

    _is_shown: bool
    _as_json: bool
    count: int = 0
    _first: str = ""

    def take(self, difference: Difference) -> None:
        self.count += 1
        verdict = difference.verdict.value
        if verdict == "change" and not self._first:
            self._first = (
                f"{difference.path}: exists, and its {' and '.join(difference.what)} differ"
            )
        if not self._is_shown:
            return
        if self._as_json:
            fields = {"change": verdict, "path": difference.path, "what": difference.what}
            click.echo(json.dumps({**fields, "below": difference.below}))
            return
        below = difference.below
        more = f"and {counted(below, 'node')} below it" if below else ", ".join(difference.what)
        sign, colour = _SIGNS[verdict]
        click.secho(f"{sign} {difference.path}{f' ({more})' if more else ''}", fg=colour)

    def refusal(self, count: int) -> str:
        others = f", and {counted(count - 1, 'more node')}" if count > 1 else ""
        return (
            f"{self._first}{others}; nothing was changed: --overwrite replaces, --keep leaves,"
            " --diff shows what differs"
        )
