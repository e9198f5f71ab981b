"""Where the keys of a fan-out come from."""

from __future__ import annotations

from tests.engine.histories import contract_for

from tieout.engine.reading import spec_of
from tieout.model import Ledger

FAN_OUT = {"multiplicity": {"kind": "one_to_many", "effect_key": "line_no"}}


def test_the_output_is_read_with_the_key_that_the_multiplicity_names() -> None:
    """`effect_key: line_no` is the output's column; what was sent has its own, which the contract maps itself."""
    contract = contract_for([Ledger.PRODUCED, Ledger.DELIVERED], FAN_OUT)

    assert spec_of(contract, Ledger.DELIVERED).columns == {"effect_key": "line_no"}
    assert spec_of(contract, Ledger.PRODUCED).columns == {}


def test_a_mapped_key_stays_as_it_is() -> None:
    """What `columns` says of the ledger wins."""
    contract = contract_for([Ledger.PRODUCED, Ledger.DELIVERED], FAN_OUT)
    spec = contract.ledgers[Ledger.DELIVERED].model_copy(update={"columns": {"effect_key": "upper(line_no)"}})
    mapped = contract.model_copy(update={"ledgers": {**contract.ledgers, Ledger.DELIVERED: spec}})

    assert spec_of(mapped, Ledger.DELIVERED).columns == {"effect_key": "upper(line_no)"}
