"""Write the table of all settings into the documentation; the tests compare the two."""

from pathlib import Path

from paddock.server.config.settings import settings_table

_DOCUMENT = Path(__file__).parents[1] / "docs" / "reference" / "configuration.md"
_HEADING = "## All settings\n\n"


def main() -> None:
    before, heading, _ = _DOCUMENT.read_text(encoding="utf-8").partition(_HEADING)
    _DOCUMENT.write_text(before + heading + settings_table(), encoding="utf-8")


if __name__ == "__main__":
    main()
