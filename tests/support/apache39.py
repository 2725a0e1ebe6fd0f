"""Apache ZooKeeper 3.9.5, the second judge: its jars are those that PySpark carries.

`tools/judges.sh zookeeper-3.9` fetches them into a cache; see there which they are. Tests that need
it are marked `long`: `make test` asks nobody for 450 MB.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from tests.support.apache import ApacheServer
from tests.support.server import ServerMissingError

VERSION: Final = "3.9.5"

# Jetty for the admin server: PySpark has it under other names only. Debian's Apache ZooKeeper
# depends on these, and 3.9.5 is made for the same 9.4.
_JETTY: Final = tuple(
    Path("/usr/share/java", f"{name}.jar")
    for name in (
        *(f"jetty9-{part}" for part in ("server", "servlet", "security", "http", "io", "util")),
        "jetty9-util-ajax",
        "servlet-api",
    )
)

_LOGGING: Final = """\
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d %p %c %m%n
rootLogger.level={level}
rootLogger.appenderRef.console.ref=console
logger.audit.name=org.apache.zookeeper.audit
logger.audit.level=INFO
"""


def cache() -> Path:
    """Return the folder that the jars are fetched into; it need not exist."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches, "paddock", f"zookeeper-{VERSION}")


def find_jars() -> Path:
    """Return the folder with all jars, or say how they are had."""
    folder = cache()
    if not (folder / f"zookeeper-{VERSION}.jar").exists():
        raise ServerMissingError(
            f"Apache ZooKeeper {VERSION} is not fetched (tools/judges.sh zookeeper-3.9, 450 MB)"
        )
    return folder


class ApacheServer39(ApacheServer):
    """A standalone Apache ZooKeeper 3.9.5.

    With the jars there, all of the server works: four-letter words, the admin server (Jetty and the
    servlet API are Debian's), snapshots in gzip and snappy, TLS by Netty with the JDK's own
    implementation (`ssl.sslProvider=OPENSSL` would need native libraries that are not taken out of
    PySpark), the audit log, which goes to the server's log through Log4j 2. The metrics provider
    of Prometheus is a jar of its own that PySpark does not carry: `/metrics` is not there.
    """

    name = "apache-3.9"

    def jar(self) -> Path:
        return find_jars() / f"zookeeper-{VERSION}.jar"

    def jars(self) -> list[str]:
        return [f"{find_jars()}/*", *map(str, _JETTY)]

    def configure_logging(self, configuration: Path) -> None:
        (configuration / "log4j2.properties").write_text(_LOGGING.format(level=self.log_level))
