"""Tieout's own settings about a pipeline's output, for which no program has a setting.

`commits` says which comes first, the output or the commit of the position, or that one transaction holds both; `output`
says what happens if one record is written twice. Every part that reads may have both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tieout.linting.pipeline import Pipeline, Truth
from tieout.linting.rule import Condition

COMMITS: Final = ("before processing", "after processing", "with the output")
OUTPUT: Final = ("keyed by id", "keyed by position", "appended")

OWN_VALUES: Final = {"commits": COMMITS, "output": OUTPUT}
"""Tieout's own settings and their values."""

ACKNOWLEDGEMENTS: Final = (
    "stomp auto", "stomp client", "stomp client-individual", "auto listener", "auto receive", "dups-ok listener",
    "dups-ok receive", "client", "transacted",
)  # fmt: skip
TRIDENT_STATES: Final = ("transactional", "opaque", "non-transactional")
TRIDENT_SPOUTS: Final = ("transactional", "opaque")

OWN_VALUES_OF_PARTS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "activemq": {"acknowledgement": ACKNOWLEDGEMENTS},
    "storm": {"trident.state": TRIDENT_STATES, "trident.spout": TRIDENT_SPOUTS},
}
"""Tieout's own settings that only one part has."""

TOPIC_OF_SETTING: Final = {
    "commits": "the output",
    "output": "the output",
    "acknowledgement": "when a message counts as processed",
    "trident.state": "the state",
    "trident.spout": "the spout",
}
"""What each of these settings is about."""

_KEYED: Final = ("keyed by id", "keyed by position")


def survives_rereading(pipeline: Pipeline, section: str) -> bool:
    """Return whether reading a record again does not change the output, as declared."""
    part = pipeline[section]
    return part.is_any("output", *_KEYED) is True or part.is_any("commits", "with the output") is True


def survives_resending(pipeline: Pipeline) -> bool:
    """Return whether a message that is twice in the log is once in the output, as declared."""
    parts = pipeline.parts.values()
    return any(part.is_any("output", "keyed by id") is True for part in parts)


def redelivers(section: str) -> Condition:
    """Return the condition that a declared part may reprocess records, and the output then has duplicates."""

    def holds(pipeline: Pipeline) -> Truth:
        return pipeline[section].is_declared and not survives_rereading(pipeline, section)

    return holds
