"""The tables that a bucket is given, with the types of their columns in DuckDB: evidence, and facts of clean messages.

Evidence has the canonical columns that readers conform to. Rules do not run on the rows of clean messages; the facts
of clean messages that they need are tables of few rows. Docs: docs/explanation/prematch.md.
"""

from __future__ import annotations

from typing import Final

from tieout.engine.ledger import SCHEMAS
from tieout.model import Ledger

_TYPES: Final = {
    "string": "VARCHAR",
    "bigint": "BIGINT",
    "int": "INTEGER",
    "boolean": "BOOLEAN",
    "timestamp": "TIMESTAMP",
    "array<struct<topic:string,partition:int>>": 'STRUCT(topic VARCHAR, "partition" INTEGER)[]',
}

COLUMNS: Final[dict[Ledger, dict[str, str]]] = {
    ledger: {field.name: _TYPES[field.dataType.simpleString()] for field in schema}
    for ledger, schema in SCHEMAS.items()
}
"""Per ledger its columns and their types, in the order of taxonomy section 1."""

_PLACE: Final = {"topic": "VARCHAR", "partition": "INTEGER"}
_POSITION: Final = {**_PLACE, "offset": "BIGINT"}
_ORDERED: Final = {**_POSITION, "message_id": "VARCHAR", "key_hash": "VARCHAR"}
_HANDED: Final = {"processed_at": "TIMESTAMP", "delivery_sequence": "BIGINT", "consumer_id": "VARCHAR"}

CLEAN_COLUMNS: Final[dict[str, dict[str, str]]] = {
    "clean_counts": {**_PLACE, "sent": "BIGINT", "seen": "BIGINT"},
    "clean_latencies": {"micros": "DECIMAL(38,0)", "took": "BIGINT", "longest": "BIGINT"},
    "clean_positions": {
        **_PLACE,
        "is_below_start": "BOOLEAN",
        "is_judged": "BOOLEAN",
        "positions": "BIGINT",
    },
    "clean_progress": {**_POSITION, "at": "TIMESTAMP", "by": "VARCHAR"},
    "clean_steps": {**_POSITION, "at": "TIMESTAMP"},
    "clean_contents": {"topic": "VARCHAR", "payload_hash": "VARCHAR"},
    "clean_clocks": {"micros": "BIGINT"},
    "clean_sends": {
        **_ORDERED,
        "attempted_at": "TIMESTAMP",
        "completed_at": "TIMESTAMP",
        "sequence": "BIGINT",
        "producer_id": "VARCHAR",
        "producer_session": "VARCHAR",
        "broker_producer_id": "BIGINT",
    },
    "clean_handed": {**_ORDERED, **_HANDED, "generation": "BIGINT"},
    "clean_effects": {**_ORDERED, **_HANDED},
}
"""Per table of clean messages its columns and their types.

`clean_counts`: how many messages the window owns per topic partition, and how many effects lie in it;
`clean_latencies`: the sum of the latencies of some messages in microseconds, that of one of them, and the longest if
that is known; `clean_positions`: how many of their records lie in the judged ranges of a log, and next to them;
`clean_steps`: how far they prove the group to have come, for each time the furthest since then; `clean_progress`: those
in long pauses between commits; `clean_contents`: sent payloads that rows without identity show as well;
`clean_clocks`: by how much an effect lies before the broker's timestamp of its record; the others: messages that are
neighbours of remaining messages in an order, or out of order, as sends, as rows handed out, and as effects.
"""

TABLES: Final[dict[str, dict[str, str]]] = {
    **{f"evidence_{ledger.value}": columns for ledger, columns in COLUMNS.items()},
    **CLEAN_COLUMNS,
}
"""All tables that a bucket is given, by name."""
