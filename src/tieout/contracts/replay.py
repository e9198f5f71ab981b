"""A contract's section `replay`: approvers, the source of payloads, the replay target and the output's key."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from tieout.contracts.scalars import ConnectionName, Model, Text
from tieout.model import Ledger

_NAME = r"[A-Za-z_][A-Za-z0-9_]{0,62}"
Column = Annotated[str, Field(pattern=rf"^{_NAME}$")]
Table = Annotated[str, Field(pattern=rf"^{_NAME}(\.{_NAME})?$")]
ORIGINAL_TOPIC: Final = "*"
IDEMPOTENCE_HEADER: Final = "tieout-idempotence-key"
"""The header of every replayed message."""
ID_PREFIX: Final = "id:"
"""Prefix of an approver given by Airflow id instead of by name."""
Approver = Annotated[str, Field(pattern=r"^\S(.{0,198}\S)?$")]
Topic = Annotated[str, Field(pattern=r"^(\*|[A-Za-z0-9._-]{1,249})$")]


class ReplayTarget(Model):
    """What takes replayed messages: a PostgreSQL table, such as the outbox that a relay publishes from, or a topic.

    The topic `*` stands for the one that each message was produced to before.
    """

    connection: ConnectionName
    table: Table | None = None
    topic: Topic | None = None

    @model_validator(mode="after")
    def _is_one(self) -> ReplayTarget:
        if (self.table is None) == (self.topic is None):
            raise ValueError("expected either table, in PostgreSQL, or topic, in Kafka")
        return self


class ReplayOutput(Model):
    """The output's table and those of its columns that say which message a row is of, and which row came first."""

    table: Table
    identity: Column
    order: Column


class Replay(Model):
    """How this pipeline's breaks are repaired; judging does not depend on it.

    `value`, `key` and `headers` are Spark SQL over the columns of the source of the ledger `from`: text or bytes, and
    for headers a map of text to text, or a log's own. Without `to`, replays are written to files.

    `approvers` are the names of users in Airflow, or their ids behind `id:`. A body is verified where the payload hash
    of the evidence is computed from it; any other is the word of whoever writes the source.
    """

    from_: Literal[Ledger.PRODUCED, Ledger.LOG] = Field(default=Ledger.PRODUCED, alias="from")
    value: Text | None = None
    key: Text | None = None
    headers: Text | None = None
    to: ReplayTarget | None = None
    output: ReplayOutput | None = None
    approvers: tuple[Approver, ...] = ()
    unverified_bodies: Literal["refuse", "accept"] = "refuse"
