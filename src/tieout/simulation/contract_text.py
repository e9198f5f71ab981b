"""The contract of a simulated pipeline, ready for `tieout reconcile`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from tieout.contracts.durations import format_duration
from tieout.contracts.times import format_time
from tieout.model import Ledger
from tieout.simulation.description import Description
from tieout.simulation.simulating import Simulated


def contract_of(description: Description, simulated: Simulated, ledgers: Iterable[Ledger]) -> str:
    """Return the contract, as YAML, over the ledgers that hold rows."""
    until = format_time(simulated.horizon)
    declared: dict[str, Any] = {
        ledger.value: {
            "source": {"kind": "files", "format": "jsonl", "path": f"{ledger.value}.jsonl"},
            "coverage": {"complete_until": until},
        }
        for ledger in ledgers
    }
    declared[Ledger.PRODUCED.value]["coverage"] |= {
        "producers": list(simulated.producers),
        "sequences": "gapless",
    }
    contract: dict[str, Any] = {
        "version": 1,
        "pipeline": description.pipeline,
        "description": "Simulated; truth.jsonl holds what was done to it.",
        "guarantee": description.guarantee.value,
        "group": description.group,
        "ordering": description.ordering,
        "max_latency": format_duration(description.max_latency),
        "grace": format_duration(simulated.grace),
        "ledgers": declared,
    }
    if simulated.annotations:
        contract["annotations"] = [
            {"at": format_time(at), "kind": "offset_reset", "group": description.group, "note": "simulated"}
            for at in sorted(simulated.annotations)
        ]
    return yaml.safe_dump(contract, sort_keys=False, allow_unicode=True)
