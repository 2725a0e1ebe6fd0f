"""A Prometheus on this machine, and the tool that checks its rules.

with Prometheus({"paddock": ["127.0.0.1:7000"]}, rules=[…]) as prometheus:
    prometheus.query("up")
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.support.server import Server, ServerMissingError

# A scrape may take as long: shorter, and a busy machine would miss some.
_INTERVAL = "1s"


def find(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise ServerMissingError(f"{program} is not installed (Debian: prometheus)")
    return found


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run promtool, whatever comes of it."""
    command = [find("promtool"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


class Prometheus(Server):
    """Scrapes targets, by job, once a second, and evaluates rules as often."""

    name = "prometheus"

    def __init__(
        self, targets: Mapping[str, Sequence[str]], rules: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__()
        self._targets = targets
        self._rules = rules

    def prepare(self) -> tuple[list[str], dict[str, str]]:
        # JSON is YAML.
        rules = self.folder / "rules.yml"
        rules.write_text(json.dumps(self._rules or {"groups": []}))
        jobs = [
            {"job_name": job, "static_configs": [{"targets": list(targets)}]}
            for job, targets in self._targets.items()
        ]
        config = self.folder / "prometheus.yml"
        every = {"scrape_interval": _INTERVAL, "evaluation_interval": _INTERVAL}
        config.write_text(
            json.dumps({"global": every, "rule_files": [str(rules)], "scrape_configs": jobs})
        )
        command = [
            find("prometheus"),
            f"--config.file={config}",
            f"--storage.tsdb.path={self.data}",
        ]
        return [*command, f"--web.listen-address={self.hosts}", "--log.level=warn"], {}

    def is_serving(self) -> bool:
        try:
            return self._get("/-/ready")[0] == 200
        except OSError:
            return False

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return what an expression gives now: labels and value of each."""
        status, body = self._get(f"/api/v1/query?{urlencode({'query': expression})}")
        assert status == 200, body
        result = json.loads(body)["data"]["result"]
        assert isinstance(result, list)
        return result

    def firing(self) -> set[str]:
        """Return the names of the alerts that fire."""
        _, body = self._get("/api/v1/alerts")
        alerts = json.loads(body)["data"]["alerts"]
        return {one["labels"]["alertname"] for one in alerts if one["state"] == "firing"}

    def _get(self, path: str) -> tuple[int, bytes]:
        connection = HTTPConnection(self.host, self.port, timeout=20)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()
