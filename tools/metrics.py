"""Write the tables of all metrics into the documentation; the tests compare the two."""

from pathlib import Path

from paddock.server.admin.metric_texts import metrics_table

_DOCUMENT = Path(__file__).parents[1] / "docs" / "reference" / "metrics.md"
_HEADING = "## Of each server\n"


def main() -> None:
    before, _, _ = _DOCUMENT.read_text(encoding="utf-8").partition(_HEADING)
    _DOCUMENT.write_text(before + metrics_table(), encoding="utf-8")


if __name__ == "__main__":
    main()
