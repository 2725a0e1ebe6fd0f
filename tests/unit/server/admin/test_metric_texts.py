"""The table of metrics in the documentation is the one of the code."""

from __future__ import annotations

from pathlib import Path

from paddock.server.admin.metric_texts import TEXTS, metrics_table

DOCUMENTATION = Path(__file__).parents[4] / "docs" / "reference" / "metrics.md"


def test_the_tables_in_the_documentation_are_those_of_the_code() -> None:
    # `python tools/metrics.py` writes them.
    assert DOCUMENTATION.read_text(encoding="utf-8").endswith(metrics_table())


def test_every_metric_has_a_sentence() -> None:
    assert all(text.endswith(".") for _, text in TEXTS.values())
