"""Positions as people read them: in the words of the log's system, of one number each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tieout.contracts import Contract, position_form, position_in, shown_position, stored_position_form

_LARGEST = (1 << 63) - 1
_FILES = {"kind": "files", "format": "jsonl", "path": "x.jsonl"}
_PULSAR = {"kind": "pulsar", "connection": "pulsar", "topic": "orders"}
_CURSOR = {"kind": "pulsar_cursor", "connection": "pulsar", "topic": "orders", "subscription": "loader"}
_KAHADB = {"kind": "kahadb", "path": "data", "destination": "orders"}


def _contract(**sources: dict[str, Any]) -> Contract:
    ledgers = {"produced": {"source": _FILES}, "delivered": {"source": _FILES}}
    ledgers |= {ledger: {"source": source} for ledger, source in sources.items()}
    reported = {
        "version": 1,
        "pipeline": "p",
        "guarantee": "at_least_once",
        "group": "g",
        "consumption": "queue",
    }
    columns = {"message_id": "id", "topic": "t", "partition": "p", "offset": "o"}
    for spec in ledgers.values():
        spec["columns"] = columns if spec["source"] == _FILES else {}
    return Contract.model_validate({**reported, "ledgers": ledgers}, context={"base_dir": Path()})


@pytest.mark.parametrize("form", ["ledger:entry:batch", "file:offset"])
@pytest.mark.parametrize("number", [0, 1, (1 << 32) - 1, 1 << 32, (1 << 32) + (1 << 12), _LARGEST])
def test_what_is_shown_is_the_number_again(form: str, number: int) -> None:
    """So what a person copies from a page can be traced."""
    assert position_in(str(shown_position(number, form))) == number


@pytest.mark.parametrize(
    "text", ["", "5", "5:", ":5", "1:2:3:4", "2147483648:0", "0:4294967296", "1:2:4096", "a:b"]
)
def test_another_text_is_no_position(text: str) -> None:
    """Nor is one whose parts are larger than their systems make them."""
    assert position_in(text) is None


@pytest.mark.parametrize(
    ("sources", "form"),
    [
        ({"log": _PULSAR, "committed": _CURSOR}, "ledger:entry:batch"),
        ({"committed": _CURSOR}, "ledger:entry:batch"),
        ({"log": _KAHADB, "committed": _KAHADB}, "file:offset"),
        ({"log": _FILES, "committed": _CURSOR}, None),
        ({"staged": _PULSAR}, None),
        ({}, None),
    ],
)
def test_the_log_says_how_positions_are_written(sources: dict[str, Any], form: str | None) -> None:
    """A log of plain numbers is one, whatever else is declared; an output topic has positions of its own."""
    contract = _contract(**sources)

    assert position_form(contract) == form
    assert stored_position_form(contract.model_dump(mode="json", by_alias=True)) == form
