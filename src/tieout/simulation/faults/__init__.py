"""The catalogue of faults: one short story each, in the steps of `line.Line`, with the truth beside what is done.

A module a place: on the producer's side, in the log, in transactions, in the consumer, in the output. How the classes,
flags and loci follow from what is done is the taxonomy's (docs/reference/taxonomy.md, sections 3 and 4).
"""

from __future__ import annotations

from typing import Final

from tieout.simulation.faults import broker, consuming, producing, transactions, writing
from tieout.simulation.faults.fault import CATALOGUE, Fault

__all__ = ["FAULTS", "Fault", "broker", "consuming", "producing", "transactions", "writing"]

FAULTS: Final[dict[str, Fault]] = CATALOGUE.faults
"""Every fault by its name."""
