"""The table of the shell's commands: names, usage and flags, for parsing, completion and help."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from paddock.cli.shell import administration as admin
from paddock.cli.shell import quotas, reading, session, writing
from paddock.cli.shell.parsing import Flag, Flags, Given
from paddock.cli.shell.shell import Argument, Command, Shell

_valued: Final = partial(Flag, takes_value=True)
_PATH: Final = Argument("path", is_path=True)
_ACL: Final = Argument("acl")
_STAT: Final = Flag("s", "stats")
_STAT_TOO: Final = Flag("s", "Print znode stats additionally")
_WATCH: Final = Flag("w", "watch")
_VERSION: Final = _valued("v", "version")
_NONE: Final = Flags()


def _flags(*known: Flag) -> Flags:
    return Flags(known)


def _on_path(
    name: str,
    usage: str,
    says: str,
    run: Callable[[Shell, Given], Awaitable[None]],
    flags: Flags = _NONE,
    **others: Any,
) -> Command:
    """Return a command whose only argument, which it needs, is a path."""
    return Command(name, usage, says, run, flags, (_PATH,), fewest=1, **others)


_COMMANDS: Final = (
    _on_path(
        "addWatch",
        "[-m mode] path # optional mode is one of [PERSISTENT, PERSISTENT_RECURSIVE] - default is"
        " PERSISTENT_RECURSIVE",
        "Be told of every change of a node, or of everything below it, from now on.",
        session.add_watch,
        _flags(_valued("m", "mode", choices=("PERSISTENT", "PERSISTENT_RECURSIVE"))),
        most=1,
    ),
    Command(
        "addauth",
        "scheme auth",
        "Say who you are, such as: addauth digest user:password",
        admin.addauth,
        _NONE,
        (Argument("scheme", choices=("digest",)), Argument("auth")),
        fewest=1,
    ),
    Command("close", "", "End the session.", session.close),
    Command(
        "config",
        "[-c] [-w] [-s]",
        "Print the configuration of the ensemble.",
        admin.config,
        _flags(_STAT, _WATCH, Flag("c", "client connection string")),
    ),
    Command(
        "connect",
        "host:port",
        "End the session, and begin one with another service.",
        session.connect,
        arguments=(Argument("host:port"),),
        is_own=True,
    ),
    Command(
        "create",
        "[-s] [-e] [-c] [-t ttl] path [data] [acl]",
        "Create a node.",
        writing.create,
        _flags(
            Flag("e", "ephemeral"),
            Flag("s", "sequential"),
            Flag("c", "container"),
            _valued("t", "ttl"),
        ),
        (_PATH, Argument("data"), _ACL),
        fewest=1,
    ),
    _on_path(
        "delete",
        "[-v version] path",
        "Delete a node that has no children.",
        writing.delete,
        _flags(_VERSION),
        old_form="delete path [version]",
        new_form="delete [-v version] path",
    ),
    _on_path(
        "deleteall",
        "path [-b batch size]",
        "Delete a node and everything below it.",
        writing.deleteall,
        _flags(_valued("b", "batch size")),
    ),
    _on_path(
        "delquota",
        "[-n|-b|-N|-B] path",
        "Remove a quota, or one of its limits.",
        quotas.delquota,
        Flags(quotas.limit_flags(take_value=False), exclusive=True),
    ),
    _on_path(
        "get",
        "[-s] [-w] [-b] [-x] path",
        "Print the data of a node.",
        reading.get,
        _flags(
            _STAT_TOO,
            Flag("w", "Watch for changes on the znode"),
            Flag("b", "Output data in base64 format"),
            Flag("x", "Output data in hexdump format"),
        ),
        explains_flags=True,
        old_form="get path [watch]",
        new_form="get [-s] [-w] path",
    ),
    _on_path(
        "getAcl", "[-s] path", "Print who may do what with a node.", admin.get_acl, _flags(_STAT)
    ),
    _on_path(
        "getAllChildrenNumber",
        "path",
        "Count the nodes below a node.",
        reading.get_all_children_number,
    ),
    Command(
        "getEphemerals",
        "path",
        "List the ephemeral nodes of this session.",
        reading.get_ephemerals,
        _NONE,
        (_PATH,),
    ),
    Command("history", "", "Print the last commands.", session.history, is_own=True),
    _on_path(
        "listquota",
        "path",
        "Print the quota of a node, and what counts against it.",
        quotas.listquota,
    ),
    Command(
        "ls",
        "[-s] [-w] [-R] path",
        "List the children of a node, or everything below it.",
        reading.ls,
        _flags(Flag("?", "help"), Flag("s", "stat"), _WATCH, Flag("R", "recurse")),
        (_PATH,),
        old_form="ls path [watch]",
        new_form="ls [-w] path",
    ),
    Command(
        "printwatches",
        "on|off",
        "Print events, or do not.",
        session.printwatches,
        arguments=(Argument("on|off", choices=("on", "off")),),
        is_own=True,
    ),
    Command("quit", "", "End the session and the shell.", session.leave, is_own=True),
    Command(
        "reconfig",
        "[-s] [-v version] [[-file path] | [-members serverID=host:port1:port2;port3[,...]*]] |"
        " [-add serverId=host:port1:port2;port3[,...]]* [-remove serverId[,...]*]",
        "Change which servers the ensemble has.",
        admin.reconfig,
        _flags(
            _STAT,
            _valued("v", "required current config version"),
            _valued("file", "path of config file to parse for membership"),
            _valued(
                "members", "comma-separated list of config strings for non-incremental reconfig"
            ),
            _valued("add", "comma-separated list of config strings for new servers"),
            _valued("remove", "comma-separated list of server IDs to remove"),
        ),
    ),
    Command(
        "redo",
        "cmdno",
        "Do a command of the history again.",
        session.redo,
        arguments=(Argument("cmdno"),),
        is_own=True,
    ),
    _on_path(
        "removewatches",
        "path [-c|-d|-a] [-l]",
        "Remove the watches of this session on a node.",
        session.remove_watches,
        _flags(
            Flag("c", "child watcher type"),
            Flag("d", "data watcher type"),
            Flag("p", "persistent watcher type"),
            Flag("r", "persistent recursive watcher type"),
            Flag("a", "any watcher type"),
            Flag("l", "remove locally when there is no server connection"),
        ),
    ),
    Command(
        "set",
        "path data [-s] [-v version] [-b]",
        "Replace the data of a node.",
        writing.set_data,
        _flags(
            _STAT_TOO,
            _valued("v", "Set with an expected version"),
            Flag("b", "Supply data in base64 format"),
        ),
        (_PATH, Argument("data")),
        fewest=2,
        explains_flags=True,
    ),
    Command(
        "setAcl",
        "[-s] [-v version] [-R] path acl",
        "Replace who may do what with a node, or with everything below it.",
        admin.set_acl,
        _flags(_STAT, _VERSION, Flag("R", "recursive")),
        (_PATH, _ACL),
        fewest=2,
    ),
    _on_path(
        "setquota",
        "-n|-b|-N|-B val path",
        "Limit how much there may be below a node.",
        quotas.setquota,
        Flags(quotas.limit_flags(take_value=True), exclusive=True, required=True),
    ),
    _on_path(
        "stat",
        "[-w] path",
        "Print what the service keeps about a node beside its data.",
        reading.stat,
        _flags(_WATCH),
        old_form="stat path [watch]",
        new_form="stat [-w] path",
    ),
    _on_path(
        "sync",
        "path",
        "Wait until this server has seen everything that was written before.",
        reading.sync,
    ),
    Command("version", "", "Print the version of the shell.", session.version, _NONE, most=0),
    Command("whoami", "", "Print who the server takes you for.", admin.whoami),
)

# By name: the 28 commands of zkCli, in the order of its usage.
COMMANDS: Final = {command.name: command for command in _COMMANDS}
