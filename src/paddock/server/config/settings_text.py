"""Settings written out: those that somebody has changed, and all of them for the documentation."""

from __future__ import annotations

from collections.abc import Iterator

from paddock.server.config import parsers
from paddock.server.config.config import ServerConfig
from paddock.server.config.setting import DEFAULTS, Setting
from paddock.server.config.settings import SETTINGS


def differing(config: ServerConfig) -> dict[str, str]:
    """Give the settings that are not the default ones, by their options' names, no secrets."""
    return {
        setting.called: "(not shown)" if setting.secret else parsers.shown(value) or "none"
        for setting, value in _not_default(config)
    }


def as_file(config: ServerConfig) -> str:
    """Give the settings that are not the default ones as a `zoo.cfg`, without secrets."""
    return "".join(
        f"{setting.key}={parsers.shown(value)}\n"
        for setting, value in _not_default(config)
        if not setting.secret
    )


def settings_table() -> str:
    """Give the table of all settings for the documentation."""
    lines: list[str] = []
    for section in dict.fromkeys(setting.section for setting in SETTINGS):
        lines += ["", f"### {section}", ""]
        lines += ["| option | variable | key in zoo.cfg | default | |", "|---|---|---|---|---|"]
        for one in SETTINGS:
            if one.section == section:
                option = f"{one.option}`, `--no-{one.option[2:]}" if one.is_switch else one.option
                cells = (
                    f"`{option}`",
                    f"`{one.variable}`",
                    f"`{one.key}`",
                    one.default_shown(),
                    one.help,
                )
                lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines).strip() + "\n"


def _not_default(config: ServerConfig) -> Iterator[tuple[Setting, object]]:
    for setting in SETTINGS:
        value = getattr(config, setting.field)
        if value != getattr(DEFAULTS, setting.field):
            yield setting, value
