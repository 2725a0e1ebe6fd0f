"""All settings: `SETTINGS`, made from the fields of `ServerConfig`, and their texts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Final

from paddock.server.config.config import ServerConfig
from paddock.server.config.parsers import Setting, shown


def _declared() -> Iterator[Setting]:
    section = ""
    for field in fields(ServerConfig):
        one: Setting = field.metadata["setting"]
        section = one.section or section
        yield replace(
            one,
            section=section,
            default_text=one.default_text or shown(field.default),
            name=one.name or field.name,
            field=field.name,
        )


SETTINGS: Final = tuple(_declared())
_DEFAULTS: Final = ServerConfig()


def differing(config: ServerConfig) -> dict[str, str]:
    """Return the settings that differ from their defaults, by name, without secrets."""
    return {
        setting.name: "(not shown)" if setting.secret else shown(value) or "none"
        for setting, value in _not_default(config)
    }


def as_file(config: ServerConfig) -> str:
    """Return the settings that differ from their defaults as a `zoo.cfg`, without secrets."""
    return "".join(
        f"{setting.key}={shown(value)}\n"
        for setting, value in _not_default(config)
        if not setting.secret
    )


def settings_table() -> str:
    """Return the table of all settings for the documentation."""
    lines: list[str] = []
    section = ""
    for one in SETTINGS:
        if one.section != section:
            section = one.section
            lines += ["", f"### {section}", ""]
            lines += ["| option | variable | key in zoo.cfg | default | |", "|---|---|---|---|---|"]
        option = f"{one.option}`, `--no-{one.option[2:]}" if one.is_switch else one.option
        names = " | ".join(f"`{name}`" if name else "" for name in (option, one.variable, one.key))
        lines.append(f"| {names} | {one.default_text} | {one.help} |")
    return "\n".join(lines).strip() + "\n"


def _not_default(config: ServerConfig) -> Iterator[tuple[Setting, object]]:
    for setting in SETTINGS:
        value = getattr(config, setting.field)
        if value != getattr(_DEFAULTS, setting.field):
            yield setting, value
