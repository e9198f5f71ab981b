"""What a contract says about repairing: where lost messages' bodies are, where replays go, how the output is keyed."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tieout.contracts.scalars import ConnectionName, Model, Text
from tieout.model import Ledger

_NAME = r"[A-Za-z_][A-Za-z0-9_]{0,62}"
Column = Annotated[str, Field(pattern=rf"^{_NAME}$")]
Table = Annotated[str, Field(pattern=rf"^{_NAME}(\.{_NAME})?$")]


class ReplayTable(Model):
    """A PostgreSQL table that takes replayed messages, such as the outbox that a relay publishes from."""

    connection: ConnectionName
    table: Table


class ReplayOutput(Model):
    """The output's table and those of its columns that say which message a row is of, and which row came first."""

    table: Table
    identity: Column
    order: Column


class Replay(Model):
    """How this pipeline's breaks are repaired; judging does not depend on it.

    `value`, `key` and `headers` are Spark SQL over the columns of the source of the ledger `from`: text or bytes, and
    for headers a map of text to text, or a log's own. Without `to`, replays are written to files.
    """

    from_: Literal[Ledger.PRODUCED, Ledger.LOG] = Field(default=Ledger.PRODUCED, alias="from")
    value: Text | None = None
    key: Text | None = None
    headers: Text | None = None
    to: ReplayTable | None = None
    output: ReplayOutput | None = None
