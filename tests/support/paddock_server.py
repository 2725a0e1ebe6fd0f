"""Paddock as a process of its own, started the way a user starts it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from tests.support.command import COMMAND
from tests.support.server import SUPER_CREDENTIALS, Server, ServerMissingError, digest


class PaddockServer(Server):
    """`python -m paddock serve` with a zoo.cfg."""

    name = "paddock"

    @property
    def audit_log(self) -> Path:
        return self.data / "audit.log"

    def prepare(self) -> tuple[list[str], dict[str, str]]:
        if importlib.util.find_spec("paddock") is None:
            raise ServerMissingError("the package paddock cannot be imported (make install)")
        keys = self.options.zoo_cfg(self.data, self.port)
        keys["DigestAuthenticationProvider.superDigest"] = digest(SUPER_CREDENTIALS)
        keys["znode.container.checkIntervalMs"] = str(self.options.reap_interval_ms)
        file = self.folder / "zoo.cfg"
        file.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
        command = [*COMMAND, "serve"]
        command += ["--host", self.host, "--port", str(self.port)]
        command += ["--data", str(self.data), "--config", str(file)]
        return command, {}
