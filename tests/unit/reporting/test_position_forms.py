"""Positions in statements and alerts, as the log's system writes them."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from tieout.reporting.alerts import incident_line
from tieout.reporting.markdown import render_markdown
from tieout.reporting.page import render_html
from tieout.reporting.schema import statement_schema
from tieout.reporting.text import render_text

_FIRST, _LAST = (5 << 32) + (7 << 12) + 4, (15 << 32) + (3 << 12)


@pytest.fixture
def of_pulsar(statement: dict[str, Any]) -> dict[str, Any]:
    """A statement about a topic of Pulsar."""
    statement["incidents"][0] |= {"first_position": _FIRST, "last_position": _LAST}
    return {**statement, "position_form": "ledger:entry:batch"}


def test_people_read_ledger_entry_and_batch(of_pulsar: dict[str, Any]) -> None:
    """In text, Markdown, page and alerts; the document holds numbers."""
    broken = {**_BREAK, "offset": _FIRST}
    reported = (
        render_text(of_pulsar),
        render_markdown(of_pulsar),
        render_html(of_pulsar, [broken]),
        incident_line(of_pulsar["incidents"][0], "ledger:entry:batch"),
    )

    jsonschema.validate(of_pulsar, statement_schema())
    for text in reported:
        assert "5:7:4" in text
        assert "15:3:0" in text
        assert str(_FIRST) not in text


def test_numbers_stay_numbers(statement: dict[str, Any]) -> None:
    """Where the log writes them so, however large they are."""
    statement["incidents"][0] |= {"first_position": _FIRST, "last_position": _LAST}

    assert str(_FIRST) in render_text(statement)
    assert str(_FIRST) in incident_line(statement["incidents"][0])


_BREAK = {
    "class": "LOST", "message_id": "m", "topic": "orders", "partition": 0, "locus": "consumer", "cause": "unknown",
    "severity": "critical", "evidence": {},
}  # fmt: skip
