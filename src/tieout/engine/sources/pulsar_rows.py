"""The rows of a topic's entries, written to a temporary Parquet file as they arrive: no topic is held in memory.

The file is on the driver's disk: Spark runs where it can read it, in local mode or with a shared temporary folder.
"""

from __future__ import annotations

import atexit
import hashlib
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from tieout.engine.ledger import UNKNOWN
from tieout.engine.sources.paths import spark_path
from tieout.engine.sources.source import BLOCK, FAULT, ROW
from tieout.engine.systems.pulsar_entries import Entry
from tieout.engine.systems.pulsar_positions import Place, packed, shown_position
from tieout.pulsar import Answer

_TIME: Final = pa.timestamp("us", tz="UTC")
_SCHEMA: Final = pa.schema(
    {
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "position": pa.string(),
        "key": pa.binary(),
        "value": pa.binary(),
        "properties": pa.map_(pa.string(), pa.string()),
        "producer_name": pa.string(),
        "sequence_id": pa.int64(),
        "record_timestamp": _TIME,
        "event_time": _TIME,
        "broker_timestamp": _TIME,
        "transaction_id": pa.string(),
        "is_control": pa.bool_(),
        "content": pa.string(),
        BLOCK: pa.int64(),
        ROW: pa.int64(),
        FAULT: pa.string(),
    }
)
_AT_A_TIME: Final = 2_000
_CHANGING: Final = "x-pulsar-txn-"
"""What the broker says of an entry now, which is no part of the entry."""
_OF_ENTRY: Final = "x-pulsar-"


class Spool:
    """Collects entries, and returns them as rows once it is closed."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._folder = Path(tempfile.mkdtemp(prefix="tieout-pulsar-"))
        atexit.register(shutil.rmtree, self._folder, ignore_errors=True)
        self._file = self._folder / "entries.parquet"
        self._writer = pq.ParquetWriter(self._file, _SCHEMA)
        self._rows: list[dict[str, Any]] = []
        self._count = 0
        self._hash = hashlib.sha256()
        self.size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write the remaining rows."""
        self._write()
        self._writer.close()

    @property
    def digest(self) -> str:
        """The SHA-256 of the entries, their places, heads and bodies."""
        return f"entries-sha256:{self._hash.hexdigest()}"

    def add(self, partition: int, place: Place, entry: Entry, answer: Answer) -> None:
        """Add the messages of an entry, or its marker.

        Raises:
            FormatError: where its position exceeds 64 bits; nothing is added then.
        """
        known = {
            "producer_name": entry.producer,
            "record_timestamp": entry.published_at,
            "broker_timestamp": entry.stored_at,
            "transaction_id": None
            if entry.transaction is None
            else f"({entry.transaction[0]},{entry.transaction[1]})",
        }
        rows: list[dict[str, Any]] = [
            {
                **known,
                "offset": packed(*place, message.batch),
                "key": message.key,
                "value": message.value,
                "properties": list(message.properties.items()),
                "sequence_id": message.sequence,
                "event_time": message.event_time,
                "is_control": False,
                "content": UNKNOWN if message.has_unknown_key else None,
            }
            for message in entry.messages
        ]
        if entry.marker is not None:
            rows = [{**known, "offset": packed(*place), "is_control": True}]
        self._digest(partition, place, answer)
        for row in rows:
            self._add(partition, {**row, "position": shown_position(row["offset"])})

    def add_fault(self, partition: int, fault: str) -> None:
        """Add a faulty row for an entry that cannot be read."""
        self._add(partition, {FAULT: fault})

    def add_bounds(self, partition: int) -> None:
        """Add a row with the bounds of a partition that has no entry."""
        self._add(partition, {})

    def rows(self, spark: SparkSession) -> DataFrame:
        """Return the rows as a frame, once the spool is closed."""
        return spark.read.parquet(spark_path(str(self._file)))

    def _add(self, partition: int, row: dict[str, Any]) -> None:
        place = {"topic": self._topic, "partition": partition, BLOCK: 0, ROW: self._count}
        self._rows.append({**row, **place})
        self._count += 1
        if len(self._rows) >= _AT_A_TIME:
            self._write()

    def _write(self) -> None:
        self._writer.write_table(pa.Table.from_pylist(self._rows, schema=_SCHEMA))
        self._rows = []

    def _digest(self, partition: int, place: Place, answer: Answer) -> None:
        """Digest an entry, each part after its length: ('a', 'bc') differs from ('ab', 'c')."""
        own = sorted(
            f"{name.lower()}:{value}"
            for name, value in answer.headers
            if name.lower().startswith(_OF_ENTRY) and not name.lower().startswith(_CHANGING)
        )
        for part in (f"{partition}/{place[0]}:{place[1]}", *own):
            self._add_digest(part.encode())
        self._add_digest(answer.body)
        self.size += len(answer.body)

    def _add_digest(self, part: bytes) -> None:
        self._hash.update(len(part).to_bytes(8, "big") + part)
