"""docs/how-to/secure.md keeps its word: certificates, settings and client work together."""

import sys
from pathlib import Path

import pytest

from paddock.server.config.config import ConfigError, ServerConfig
from paddock.server.tls.context import Credentials
from tests.support.command import serving
from tests.support.documents import Page, run
from tests.support.server import free_port

PAGE = Page("docs/how-to/secure.md")


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    assert PAGE.languages() == {"sh", "ini", "python"}


def test_the_clients_of_the_page_talk_to_the_server_of_the_page(tmp_path: Path) -> None:
    # In any shell, not in bash alone.
    (tmp_path / "make.sh").write_text(PAGE.blocks("sh")[0].text)
    run("sh -e make.sh", tmp_path)
    # As Python verifies from 3.13 on.
    run("openssl verify -x509_strict -CAfile ca.pem server.crt alice.crt", tmp_path)
    port = str(free_port())
    (settings,) = PAGE.blocks("ini")
    (tmp_path / "zoo.cfg").write_text(settings.text.replace("2281", port))
    with serving("--config", "zoo.cfg", cwd=tmp_path) as server:
        assert server.address == ("127.0.0.1", int(port))
        for client in PAGE.blocks("python"):
            (tmp_path / "client.py").write_text(client.text.replace("2281", port))
            assert run(f"{sys.executable} client.py", tmp_path) == "b'secret'\n"
        assert server.stop()[0] == 0


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
    assert told.split(" && ") == PAGE.blocks("sh")[1].text.splitlines()
