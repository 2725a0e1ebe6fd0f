"""The table of the shell's commands: names, usage and flags, for parsing, completion and help."""

from typing import Final

from paddock.cli.shell import access, ensemble, quotas, reading, session, watching, writing
from paddock.cli.shell.options import Flag, Flags
from paddock.cli.shell.shell import Argument, Command

_PATH: Final = Argument("path", is_path=True)
_ACL: Final = Argument("acl")
_STAT: Final = Flag("s", "stats")
_STAT_TOO: Final = Flag("s", "Print znode stats additionally")
_WATCH: Final = Flag("w", "watch")
_VERSION: Final = Flag("v", "version", takes_value=True)
_NONE: Final = Flags()

_COMMANDS: Final = (
    Command(
        "addWatch",
        "[-m mode] path # optional mode is one of [PERSISTENT, PERSISTENT_RECURSIVE] - default is"
        " PERSISTENT_RECURSIVE",
        "Be told of every change of a node, or of everything below it, from now on.",
        watching.add_watch,
        Flags(
            (Flag("m", "mode", takes_value=True, choices=("PERSISTENT", "PERSISTENT_RECURSIVE")),)
        ),
        (_PATH,),
        fewest=1,
        most=1,
    ),
    Command(
        "addauth",
        "scheme auth",
        "Say who you are, such as: addauth digest user:password",
        access.addauth,
        _NONE,
        (Argument("scheme", choices=("digest",)), Argument("auth")),
        fewest=1,
    ),
    Command("close", "", "End the session.", session.close),
    Command(
        "config",
        "[-c] [-w] [-s]",
        "Print the configuration of the ensemble.",
        ensemble.config,
        Flags((_STAT, _WATCH, Flag("c", "client connection string"))),
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
        Flags(
            (
                Flag("e", "ephemeral"),
                Flag("s", "sequential"),
                Flag("c", "container"),
                Flag("t", "ttl", takes_value=True),
            )
        ),
        (_PATH, Argument("data"), _ACL),
        fewest=1,
    ),
    Command(
        "delete",
        "[-v version] path",
        "Delete a node that has no children.",
        writing.delete,
        Flags((_VERSION,)),
        (_PATH,),
        fewest=1,
        old_form="delete path [version]",
        new_form="delete [-v version] path",
    ),
    Command(
        "deleteall",
        "path [-b batch size]",
        "Delete a node and everything below it.",
        writing.deleteall,
        Flags((Flag("b", "batch size", takes_value=True),)),
        (_PATH,),
        fewest=1,
    ),
    Command(
        "delquota",
        "[-n|-b|-N|-B] path",
        "Remove a quota, or one of its limits.",
        quotas.delquota,
        Flags(quotas.limit_flags(take_value=False), exclusive=True),
        (_PATH,),
        fewest=1,
    ),
    Command(
        "get",
        "[-s] [-w] [-b] [-x] path",
        "Print the data of a node.",
        reading.get,
        Flags(
            (
                _STAT_TOO,
                Flag("w", "Watch for changes on the znode"),
                Flag("b", "Output data in base64 format"),
                Flag("x", "Output data in hexdump format"),
            )
        ),
        (_PATH,),
        fewest=1,
        explains_flags=True,
        old_form="get path [watch]",
        new_form="get [-s] [-w] path",
    ),
    Command(
        "getAcl",
        "[-s] path",
        "Print who may do what with a node.",
        access.get_acl,
        Flags((_STAT,)),
        (_PATH,),
        fewest=1,
    ),
    Command(
        "getAllChildrenNumber",
        "path",
        "Count the nodes below a node.",
        reading.get_all_children_number,
        _NONE,
        (_PATH,),
        fewest=1,
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
    Command(
        "listquota",
        "path",
        "Print the quota of a node, and what counts against it.",
        quotas.listquota,
        _NONE,
        (_PATH,),
        fewest=1,
    ),
    Command(
        "ls",
        "[-s] [-w] [-R] path",
        "List the children of a node, or everything below it.",
        reading.ls,
        Flags((Flag("?", "help"), Flag("s", "stat"), _WATCH, Flag("R", "recurse"))),
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
        ensemble.reconfig,
        Flags(
            (
                _STAT,
                Flag("v", "required current config version", takes_value=True),
                Flag("file", "path of config file to parse for membership", takes_value=True),
                Flag(
                    "members",
                    "comma-separated list of config strings for non-incremental reconfig",
                    takes_value=True,
                ),
                Flag(
                    "add",
                    "comma-separated list of config strings for new servers",
                    takes_value=True,
                ),
                Flag("remove", "comma-separated list of server IDs to remove", takes_value=True),
            )
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
    Command(
        "removewatches",
        "path [-c|-d|-a] [-l]",
        "Remove the watches of this session on a node.",
        watching.remove_watches,
        Flags(
            (
                Flag("c", "child watcher type"),
                Flag("d", "data watcher type"),
                Flag("p", "persistent watcher type"),
                Flag("r", "persistent recursive watcher type"),
                Flag("a", "any watcher type"),
                Flag("l", "remove locally when there is no server connection"),
            )
        ),
        (_PATH,),
        fewest=1,
    ),
    Command(
        "set",
        "path data [-s] [-v version] [-b]",
        "Replace the data of a node.",
        writing.set_data,
        Flags(
            (
                _STAT_TOO,
                Flag("v", "Set with an expected version", takes_value=True),
                Flag("b", "Supply data in base64 format"),
            )
        ),
        (_PATH, Argument("data")),
        fewest=2,
        explains_flags=True,
    ),
    Command(
        "setAcl",
        "[-s] [-v version] [-R] path acl",
        "Replace who may do what with a node, or with everything below it.",
        access.set_acl,
        Flags((_STAT, _VERSION, Flag("R", "recursive"))),
        (_PATH, _ACL),
        fewest=2,
    ),
    Command(
        "setquota",
        "-n|-b|-N|-B val path",
        "Limit how much there may be below a node.",
        quotas.setquota,
        Flags(quotas.limit_flags(take_value=True), exclusive=True, required=True),
        (_PATH,),
        fewest=1,
    ),
    Command(
        "stat",
        "[-w] path",
        "Print what the service keeps about a node beside its data.",
        reading.stat,
        Flags((_WATCH,)),
        (_PATH,),
        fewest=1,
        old_form="stat path [watch]",
        new_form="stat [-w] path",
    ),
    Command(
        "sync",
        "path",
        "Wait until this server has seen everything that was written before.",
        reading.sync,
        _NONE,
        (_PATH,),
        fewest=1,
    ),
    Command("version", "", "Print the version of the shell.", session.version, _NONE, most=0),
    Command("whoami", "", "Print who the server takes you for.", access.whoami),
)

# By name: the 28 commands of zkCli, in the order of its usage.
COMMANDS: Final = {command.name: command for command in _COMMANDS}
