"""A contract's description of one ledger: its source, its columns and its coverage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import Discriminator, Field, Tag

from tieout.contracts.scalars import Duration, Instant, Model, Ratio, Text
from tieout.contracts.sources import Source
from tieout.model import Ledger

ContentColumn = Literal["payload_hash", "key_hash", "header_hash", "record_timestamp"]
"""A column with a part of a message; `columns.CONTENT_COLUMNS` has the same names."""


class Tolerance(Model):
    """How much of a ledger may be unreadable before its absence proves nothing."""

    unparsed_ratio: Ratio = 0.0


class CoverageSpec(Model):
    """How far a ledger is complete, where its reader cannot know that by itself.

    `complete_until` is a SQL aggregate over the ledger's canonical columns, such as `max(attempted_at)` or
    `now()`, or an ISO 8601 time; `watermark_file` is the path of a text file that holds one. `producers` and
    `sequences` speak of the produced ledger only.
    """

    complete_until: Text | None = None
    complete_from: Instant | None = None
    watermark_file: Text | None = None
    producers: tuple[Text, ...] = ()
    sequences: Literal["gapless"] | None = None


def _coverage_form(value: object) -> str:
    return "declared" if isinstance(value, str) else "bounds"


Coverage = Annotated[
    Annotated[Literal["declared"], Tag("declared")] | Annotated[CoverageSpec, Tag("bounds")],
    Discriminator(_coverage_form),
]
"""`declared` says that the ledger is complete over the window, its margin and its grace."""


class LedgerSpec(Model):
    """One ledger: where its rows are, which of them belong to it, and how they become canonical.

    `columns` maps canonical names to Spark SQL over the source's columns; equal names may be left out. `reach` is how
    far before a window the source is read; without it, it is read whole. `fold_by` are canonical columns of `produced`:
    lines with the same values in them are one attempt. `unknown` names the content columns in which
    null says that the value is not known, not that there is none.
    """

    source: Source
    columns: dict[str, Text] = Field(
        default={}, json_schema_extra={"additionalProperties": {"type": "string"}}
    )
    where: Text | None = None
    reach: Duration | None = None
    fold_by: tuple[Text, ...] = ()
    unknown: tuple[ContentColumn, ...] | None = None
    tolerance: Tolerance = Tolerance()
    coverage: Coverage | None = None

    @property
    def expressions(self) -> tuple[str, ...]:
        """All Spark SQL over the source's own columns."""
        return (*self.columns.values(), *filter(None, [self.where]))

    def expressions_by_path(self, place: str) -> dict[str, str]:
        """Return all Spark SQL over the source's own columns, by its path in the contract below `place`."""
        by_path = {f"{place}.columns.{name}": text for name, text in self.columns.items()}
        return by_path if self.where is None else by_path | {f"{place}.where": self.where}


_CONSUMER_SIDE: Final = (Ledger.DELIVERED, Ledger.READ, Ledger.FILTERED, Ledger.DEAD_LETTERS)


def ledgers_like_produced(ledgers: Mapping[Ledger, LedgerSpec]) -> list[Ledger]:
    """Return the consumer's ledgers that would have a row for each send, if they had the rows of `produced`.

    A ledger with an id, a time or an outcome of its own may say more of the same rows, as an outbox does.
    """
    produced = ledgers.get(Ledger.PRODUCED)
    return [
        ledger
        for ledger in _CONSUMER_SIDE
        if produced is not None and ledger in ledgers and _is_like(ledger, ledgers[ledger], produced)
    ]


def _is_like(ledger: Ledger, spec: LedgerSpec, produced: LedgerSpec) -> bool:
    own, sent = spec.columns, produced.columns
    if spec.where != produced.where or own.get("message_id") != sent.get("message_id"):
        return False
    if ledger not in (Ledger.DELIVERED, Ledger.READ):
        return True
    has_same_time = own.get("processed_at", "processed_at") == sent.get("attempted_at", "attempted_at")
    return has_same_time and own.get("outcome", "'ok'") == "'ok'"
