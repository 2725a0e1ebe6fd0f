"""The defaults that docs/explanation/threat-model.md names are those of the code."""

import re
from pathlib import Path

import pytest

from paddock.server.config.config import ServerConfig
from paddock.server.config.settings import SETTINGS

PAGE = Path(__file__).parents[4] / "docs" / "explanation" / "threat-model.md"
ROWS = re.findall(
    r"^\| `([\w.]+)` \| (none|`[^`]+`) \|", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE
)
FIELDS = {setting.key: setting.field for setting in SETTINGS}


def written(value: object) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return f"`{str(value).lower()}`"
        case frozenset():
            return f"`{','.join(sorted(value))}`"
        case _:
            return f"`{value}`"


@pytest.mark.parametrize(("key", "default"), ROWS, ids=[key for key, _ in ROWS])
def test_the_page_has_the_default_of_the_code(key: str, default: str) -> None:
    assert written(getattr(ServerConfig(), FIELDS[key])) == default


def test_the_page_says_how_open_each_port_is() -> None:
    keys = {key for key, _ in ROWS}
    assert {"clientPortAddress", "secureClientPort", "admin.serverPort"} <= keys
    assert "metricsProvider.httpPort" in keys
    config = ServerConfig(admin_port=0, metrics_port=0)
    assert config.admin_address == ("127.0.0.1", 0)
    assert config.metrics_address == ("127.0.0.1", 0)
    assert ServerConfig().admin_address is ServerConfig().metrics_address is None
