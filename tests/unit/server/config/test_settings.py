"""The table of all settings: it is whole, it is the documentation's, and it tells no secrets."""

import dataclasses
from pathlib import Path

from paddock.server.config.config import ServerConfig
from paddock.server.config.ignored import why_unused
from paddock.server.config.settings import SETTINGS, as_file, differing, settings_table

DOCUMENTATION = Path(__file__).parents[4] / "docs" / "reference" / "configuration.md"


def test_every_field_has_one_setting() -> None:
    fields = {field.name for field in dataclasses.fields(ServerConfig)}
    assert {setting.field for setting in SETTINGS} == fields
    for names in zip(*((one.field, one.key, one.option) for one in SETTINGS), strict=True):
        assert len(set(names)) == len(SETTINGS)


def test_the_table_in_the_documentation_is_the_one_of_the_code() -> None:
    # `python tools/settings.py` writes it.
    assert DOCUMENTATION.read_text(encoding="utf-8").endswith(settings_table())


def test_the_sections_of_the_table_stand_together() -> None:
    sections = [setting.section for setting in SETTINGS]
    runs = [one for one, before in zip(sections, ["", *sections], strict=False) if one != before]
    assert len(runs) == len(set(runs))


def test_a_key_that_is_used_is_not_one_that_means_nothing() -> None:
    # One of netty's is used, and some of those about metrics; the rest of them mean nothing here.
    both = {setting.key for setting in SETTINGS if why_unused(setting.key) is not None}
    about_metrics = {key for key in both if key.startswith("metricsProvider.")}
    assert both - about_metrics == {"netty.server.outstandingHandshake.limit"}
    assert len(about_metrics) == 4


def test_what_differs_from_the_defaults_can_be_told_without_secrets() -> None:
    config = ServerConfig(tick_time_ms=500, max_connections_per_address=0, super_digest="a:b")
    assert differing(ServerConfig()) == {}
    secure = ServerConfig(secure_port=1, tls_key_store=Path("k"), tls_client_auth="none")
    assert differing(dataclasses.replace(secure, data_directory=Path("d"))) == {
        "port": "none",
        "secure_port": "1",
        "data": "d",  # by the name of its option
        "tls_key_store": "k",
        "tls_client_auth": "none",
    }
    assert differing(config) == {
        "tick_time_ms": "500",
        "min_session_timeout_ms": "1000",
        "max_session_timeout_ms": "10000",
        "max_connections_per_address": "0",
        "super_digest": "(not shown)",
    }
    assert as_file(config) == (
        "tickTime=500\nminSessionTimeout=1000\nmaxSessionTimeout=10000\nmaxClientCnxns=0\n"
    )
