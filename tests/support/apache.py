"""Apache ZooKeeper, the judge: a standalone server from Debian's package `zookeeper`.

Which release that is depends on Debian; `tests/support/release.py` asks the jar.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path
from typing import Final

from tests.support.release import Release, release_of
from tests.support.server import POLL_S, SUPER_CREDENTIALS, Server, ServerMissingError, digest

JARS: Final = (Path("/usr/share/java/zookeeper.jar"),)

# What the server writes its logs with; the package only suggests them.
_LOGGING_JARS: Final = (
    Path("/usr/share/java/slf4j-log4j12.jar"),
    Path("/usr/share/java/log4j-1.2.jar"),
)
# What the admin server and TLS need and the server's jar does not name.
_SERVLETS: Final = Path("/usr/share/java/servlet-api.jar")
NETTY: Final = (
    Path("/usr/share/java/netty-codec.jar"),
    Path("/usr/share/java/netty-resolver.jar"),
)

_DUMP_DEADLINE_S: Final = 10.0

_LOGGING = """\
log4j.rootLogger={level}, console
log4j.logger.org.apache.zookeeper.audit=INFO
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d %p %c %m%n
"""


def find_jar() -> Path:
    """Return the server's jar, or say what to install."""
    named = os.environ.get("ZOOKEEPER_JAR")
    for jar in (Path(named),) if named else JARS:
        if jar.exists():
            return jar
    raise ServerMissingError("Apache ZooKeeper is missing (Debian: apt-get install zookeeper)")


def find_java() -> str:
    """Return the Java program, or say what to install."""
    java = shutil.which("java")
    if java is None:
        raise ServerMissingError("Java is missing (Debian: apt-get install default-jre)")
    return java


class ApacheServer(Server):
    """A standalone Apache ZooKeeper."""

    name = "apache"
    heap_mb = 512
    #: Nothing is logged but what was done, and that only where a test asks for the audit log.
    log_level = "OFF"

    @property
    def release(self) -> Release:
        return release_of(self.jar())

    def jar(self) -> Path:
        """Return the server's own jar."""
        return find_jar()

    def keys(self) -> dict[str, str]:
        """What goes into zoo.cfg."""
        return {"admin.enableServer": "false", **self.options.zoo_cfg(self.data, self.port)}

    def properties(self) -> dict[str, str]:
        """Settings that are Java system properties and nothing else."""
        return {
            "zookeeper.admin.enableServer": self.keys()["admin.enableServer"],
            "znode.container.checkIntervalMs": str(self.options.reap_interval_ms),
            "zookeeper.DigestAuthenticationProvider.superDigest": digest(SUPER_CREDENTIALS),
            "zookeeper.forceSync": "yes" if self.options.durable else "no",
        }

    def jars(self) -> list[str]:
        """What goes into the class path behind the folder of the configuration."""
        return [str(jar) for jar in (self.jar(), _SERVLETS, *NETTY, *_LOGGING_JARS)]

    def configure_logging(self, configuration: Path) -> None:
        """Write what the logging library reads into the folder of the configuration."""
        (configuration / "log4j.properties").write_text(_LOGGING.format(level=self.log_level))

    def thread_dump(self) -> str:
        """What each of its threads does at the moment, for a failure that has to be explained."""
        before = self.log.stat().st_size
        os.kill(self.pid, signal.SIGQUIT)
        limit = time.monotonic() + _DUMP_DEADLINE_S
        while True:
            dump = self.log.read_bytes()[before:].decode(errors="replace")
            # The last of its lines.
            if "JNI global refs" in dump or time.monotonic() > limit:
                return dump
            self.wait_ended(POLL_S)

    def prepare(self) -> tuple[list[str], dict[str, str]]:
        java, jars = find_java(), self.jars()
        configuration = self.folder / "conf"
        configuration.mkdir(exist_ok=True)
        self.configure_logging(configuration)
        file = configuration / "zoo.cfg"
        file.write_text("".join(f"{key}={value}\n" for key, value in self.keys().items()))
        command = [java, f"-Xmx{self.heap_mb}m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command += [f"-D{key}={value}" for key, value in self.properties().items()]
        command += ["-cp", ":".join((str(configuration), *jars))]
        command += ["org.apache.zookeeper.server.quorum.QuorumPeerMain", str(file)]
        return command, {}
