"""docs/security.md keeps its word: its certificates, its settings and its client work together."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from paddock.server.config import ConfigError, ServerConfig
from paddock.server.tls import Credentials
from tests.support.server import free_port

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
DEADLINE_S = 60.0


def blocks(language: str) -> list[str]:
    text = PAGE.read_text(encoding="utf-8")
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    assert {one for one, _ in fences} == {"sh", "ini", "python"}
    return [block for one, block in fences if one == language]


def test_the_client_of_the_page_talks_to_the_server_of_the_page(tmp_path: Path) -> None:
    run(["bash", "-e", "-c", blocks("sh")[0]], tmp_path)
    port = str(free_port())
    (settings,) = blocks("ini")
    (tmp_path / "zoo.cfg").write_text(settings.replace("2281", port))
    command = [sys.executable, "-m", "paddock", "serve", "--config", "zoo.cfg"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline().endswith(f" listens on 127.0.0.1:{port}\n")
            (client,) = blocks("python")
            said = run([sys.executable, "-c", client.replace("2281", port)], tmp_path)
            assert said == "b'secret'\n"
        finally:
            server.terminate()
            server.wait(DEADLINE_S)
    assert server.returncode == 0


def test_the_commands_for_a_store_of_java_are_those_that_the_server_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = Path("server.jks")
    store.write_bytes(b"\xfe\xed\xfe\xed")
    config = ServerConfig(secure_port=0, tls_key_store=store, tls_client_auth="none")
    with pytest.raises(ConfigError) as caught:
        Credentials(config, lambda: 0)
    told = str(caught.value).partition("convert it: ")[2]
    assert told.split(" && ") == blocks("sh")[1].splitlines()


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stderr
    return done.stdout
