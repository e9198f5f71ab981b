"""What a contract says of its output, in words of Tieout's own: no program has a setting for it.

`commits` says which comes first, the output or the commit of the position, or that one transaction holds both; `output`
what a second writing of one record does. Both may stand in any part that reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tieout.linting.pipeline import Pipeline, Truth
from tieout.linting.rule import Condition

COMMITS: Final = ("before processing", "after processing", "with the output")
OUTPUT: Final = ("keyed by id", "keyed by position", "appended")

OWN_WORDS: Final = {"commits": COMMITS, "output": OUTPUT}
"""The settings of Tieout's own, and what they may be."""

ACKNOWLEDGEMENTS: Final = (
    "stomp auto", "stomp client", "stomp client-individual", "auto listener", "auto receive", "dups-ok listener",
    "dups-ok receive", "client", "transacted",
)  # fmt: skip
TRIDENT_STATES: Final = ("transactional", "opaque", "non-transactional")
TRIDENT_SPOUTS: Final = ("transactional", "opaque")

WORDS_OF_PARTS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "activemq": {"acknowledgement": ACKNOWLEDGEMENTS},
    "storm": {"trident.state": TRIDENT_STATES, "trident.spout": TRIDENT_SPOUTS},
}
"""Settings of Tieout's own that one part alone has."""

WORDS_OF: Final = {
    "commits": "the output",
    "output": "the output",
    "acknowledgement": "when a message counts as processed",
    "trident.state": "the state",
    "trident.spout": "the spout",
}
"""What a word says something of."""

_HELD: Final = ("keyed by id", "keyed by position")


def survives_rereading(pipeline: Pipeline, section: str) -> bool:
    """Return whether a record that is read again leaves the output as it was, as far as declared."""
    part = pipeline[section]
    return part.is_any("output", *_HELD) is True or part.is_any("commits", "with the output") is True


def survives_resending(pipeline: Pipeline) -> bool:
    """Return whether a message that stands in the log twice is in the output once, as far as declared."""
    parts = pipeline.parts.values()
    return any(part.is_any("output", "keyed by id") is True for part in parts)


def redelivers(section: str) -> Condition:
    """Return the condition that a declared part reads again what it has put out, and the output shows it."""

    def holds(pipeline: Pipeline) -> Truth:
        return pipeline[section].is_declared and not survives_rereading(pipeline, section)

    return holds
