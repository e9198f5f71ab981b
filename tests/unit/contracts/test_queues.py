"""Whose positions are always a queue's, and what a contract over them must say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tieout.contracts import load_contract
from tieout.errors import ContractError

_CONTRACT = """\
version: 1
pipeline: orders
guarantee: at_least_once
group: loader
{consumption}ledgers:
  produced: {{source: {{kind: files, format: jsonl, path: sent.jsonl}}, columns: {{message_id: id}}}}
  delivered: {{source: {{kind: files, format: jsonl, path: out.jsonl}}, columns: {{message_id: id}}}}
  log: {{source: {{kind: kahadb, path: data, destination: orders}}, columns: {{message_id: jms_message_id}}}}
  {ledger}: {{source: {{kind: kahadb, path: data, destination: orders}}, columns: {{}}}}
"""


def _written(folder: Path, ledger: str, consumption: str = "") -> Path:
    file = folder / "orders.yml"
    file.write_text(_CONTRACT.format(ledger=ledger, consumption=consumption))
    return file


def test_acknowledgements_of_a_queue_are_no_positions_of_a_reader_in_order(tmp_path: Path) -> None:
    """The error says what to write, and where the kind is named."""
    with pytest.raises(ContractError) as error:
        load_contract(_written(tmp_path, "committed"))

    assert str(error.value).endswith(
        "orders.yml:9: ledgers.committed.source.kind: kahadb is a queue, whose messages are acknowledged one by one: "
        "write consumption: queue above ledgers, and in redelivery how long a consumer may keep a message"
    )


def test_a_queue_that_is_said_to_be_one_is_valid(tmp_path: Path) -> None:
    """So is a contract that takes other ledgers of the journal and no acknowledgements."""
    assert load_contract(_written(tmp_path, "committed", "consumption: queue\n")).is_queue
    assert not load_contract(_written(tmp_path, "filtered")).is_queue
