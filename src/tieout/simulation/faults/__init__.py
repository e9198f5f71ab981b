"""The catalogue of faults: each a short sequence of the steps of `line.Line` that also records the truth.

One module per place: on the producer's side, in the log, in transactions, in the consumer, in the output.
The taxonomy defines how classes, flags and loci follow from the steps (docs/reference/taxonomy.md, sections 3 and 4).
"""

from __future__ import annotations

from typing import Final

from tieout.simulation.faults import broker, consuming, producing, transactions, writing
from tieout.simulation.faults.fault import CATALOGUE, Fault

__all__ = ["FAULTS", "Fault", "broker", "consuming", "producing", "transactions", "writing"]

FAULTS: Final[dict[str, Fault]] = CATALOGUE.faults
"""Every fault by its name."""
