"""`paddock shell`: its arguments, which are upstream's, and which shell it starts.

Upstream's options have one hyphen, `-server`, and stand before the command; two do as well. Those
of SASL, which zkCli has in a JAAS file, are ours. What follows the first word that is no option is
the command.
"""

import sys
from pathlib import Path

import click

from paddock.cli.arguments import PATH, WholeNumber
from paddock.cli.sasl import SaslOptions, sasl_options
from paddock.cli.service import DEFAULT_HOSTS, check_hosts, given_by, run


class _Upstream(click.Command):
    """Options of whole words behind one hyphen, which Click would take for letters."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            word = next((one for one in given if one.startswith(error.option_name)), None)
            if word is None or word == error.option_name:
                raise
            known = [option for one in self.params for option in one.opts]
            raise click.NoSuchOption(word, possibilities=known, ctx=ctx) from None


@click.command(
    cls=_Upstream,
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
    options_metavar="[-server HOSTS] [-client-configuration FILE]",
)
@click.option(
    "-server",
    "--server",
    "hosts",
    metavar="HOSTS",
    envvar="PADDOCK_SERVER",
    default=DEFAULT_HOSTS,
    show_default=True,
    show_envvar=True,
    help="The service: host:port, or several with commas between, and /chroot behind.",
)
@click.option(
    "-timeout",
    "--timeout",
    "timeout_ms",
    metavar="MILLISECONDS",
    type=WholeNumber(1, 2**31 - 1),
    default=30000,
    show_default=True,
    help="The session timeout, and how long a script looks for a server.",
)
@click.option("-r", "read_only", is_flag=True, help="A server will do that can only be read from.")
@click.option(
    "-client-configuration",
    "--client-configuration",
    "configuration",
    metavar="FILE",
    type=PATH,
    help="How to connect, as Java properties, such as zookeeper.client.secure=true.",
)
@sasl_options()
@click.option("-waitforconnection", "--waitforconnection", is_flag=True, hidden=True)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def shell(
    hosts: str,
    timeout_ms: int,
    read_only: bool,
    configuration: Path | None,
    sasl: SaslOptions,
    waitforconnection: bool,
    command: tuple[str, ...],
) -> int:
    """Run commands of ZooKeeper's shell: COMMAND, or lines from stdin, or what is typed.

    The commands, their flags and what they print are those of Apache's zkCli. The status is that of
    the last command: 0, or 1 if it failed.
    """
    from paddock.cli.shell import pipe
    from paddock.cli.shell.connection import Settings

    check_hosts(hosts, given_by("hosts", "-server", "PADDOCK_SERVER"))
    settings = Settings(
        session_timeout=timeout_ms / 1000, read_only=read_only, sasl=sasl.credentials(hosts)
    )
    if configuration is not None:
        # Imported now: most shells are without one.
        from paddock.cli.shell.configuration import with_configuration
        from paddock.server.config.config import ConfigError

        try:
            settings = with_configuration(settings, configuration)
        except ConfigError as error:
            raise click.BadParameter(str(error), param_hint="-client-configuration") from None
    if command:
        return run(lambda: pipe.run_command(hosts, settings, command))
    if sys.stdin.isatty() and sys.stdout.isatty():
        from paddock.cli.shell.terminal import converse

        return run(lambda: converse(hosts, settings))
    return run(lambda: pipe.run_lines(hosts, settings, sys.stdin.buffer))
