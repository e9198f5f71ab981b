"""Real tables, written by Spark and read by the engine in a session as a command has it; prints what was found.

Run as a process of its own, because Delta's settings are those of a whole Java machine:
`echo delta | python -m tests.integration.tables.playing FOLDER`.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.engine.sources.builders import NOW, WINDOW, contract_of, evidence_of, rows_of

from tieout import settings
from tieout.contracts import FilesSource
from tieout.engine.evidence import Evidence
from tieout.engine.reading import open_ledgers
from tieout.engine.session import local_session, suited_to
from tieout.engine.sources.tables import first_rows_in
from tieout.errors import SourceError
from tieout.model import Ledger

DELTA = "delta"


def main(folder: Path) -> None:
    """Play every scene in each format that a line of the input names, and answer with a line of JSON."""
    spark = local_session("tables", settings.jars({DELTA, "iceberg"}))
    try:
        with suited_to(spark, is_small=True):
            for line in sys.stdin:
                (folder / line.strip()).mkdir()
                found = Stage(spark, line.strip(), folder / line.strip()).played()
                print(json.dumps(found), flush=True)
    finally:
        spark.stop()


class Stage:
    """A folder of tables of one format."""

    def __init__(self, spark: SparkSession, table_format: str, folder: Path) -> None:
        self.spark, self.format, self.folder = spark, table_format, folder

    def played(self) -> dict[str, Any]:
        """Return what was found in each scene; each begins with what the one before left."""
        self.spark.conf.set("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog")
        self.spark.conf.set("spark.sql.catalog.lake.type", "hadoop")
        self.spark.conf.set("spark.sql.catalog.lake.warehouse", str(self.folder))
        scenes: tuple[Callable[[], Any], ...] = (
            *(self.empty, self.current, self.named, self.looked, self.meanwhile, self.faulty),
            *(self.several, self.lacking, self.refused, self.torn, self.incomplete),
        )
        return {scene.__name__: scene() for scene in scenes}

    def empty(self) -> Any:
        """An Iceberg table that has no snapshot yet; one of Delta always has a version."""
        if self.format == DELTA:
            return None
        self.spark.sql(
            "CREATE TABLE lake.orders (message_id string, `offset` string, processed_at timestamp) USING iceberg "
            "TBLPROPERTIES ('format-version' = '2', 'write.delete.mode' = 'merge-on-read')"
        )
        return self._as_fields(self._evidence("orders"))

    def current(self) -> Any:
        """Rows that were written, one that was deleted since: in place, by a mark beside its file."""
        self._write(self._orders(range(4)), "orders")
        self._write(self._orders(range(4, 6)), "orders")
        table = f"delta.`{self.folder / 'orders'}`" if self.format == DELTA else "lake.orders"
        self.spark.sql(f"DELETE FROM {table} WHERE message_id = 'm-2'")  # noqa: S608 - a name of our own
        return self._as_fields(self._evidence("orders"))

    def named(self) -> Any:
        """The same state, by the name of its own metadata file."""
        if self.format == DELTA:
            return None
        metadata = self.folder / "orders" / "metadata"
        newest = max(metadata.glob("v*.metadata.json"), key=lambda file: int(file.name[1:].partition(".")[0]))
        return self._as_fields(self._evidence(f"orders/metadata/{newest.name}"))

    def looked(self) -> Any:
        """What `tieout init` looks at."""
        known: Any = self.format
        spec = FilesSource(format=known, path=(str(self.folder / "orders"),))
        rows = first_rows_in(self.spark, spec, "--delivered", 2)
        return [[sorted(row), str(row["processed_at"])] for row in rows]

    def meanwhile(self) -> Any:
        """A write between the look at the table and the reading of its rows."""
        source = {"kind": "files", "format": self.format, "path": "orders"}
        contract = contract_of(self.folder, {"delivered": {"source": source}})
        opened = open_ledgers(self.spark, contract, WINDOW, NOW)[Ledger.DELIVERED]
        self._write(self._orders([9]), "orders")
        return [self._as_fields(opened.kept()), opened.reading.size > 0]

    def faulty(self) -> Any:
        """A value that is none of its column."""
        self._write(self._orders([1]).withColumn("offset", F.lit("x")), "faulty", is_new=True)
        return self._as_fields(self._evidence("faulty"))

    def several(self) -> Any:
        """A list of tables, one of which is not there, and one there twice."""
        return self._as_fields(self._evidence("orders", "faulty", "nowhere", "./faulty/../orders/"))

    def lacking(self) -> Any:
        """Two tables of one ledger, of which one has a column of contents."""
        hashed = self._orders(range(20, 21)).withColumn("payload_hash", F.lit(None).cast("string"))
        self._write(hashed, "hashed", is_new=True)
        found = self._evidence("orders", "hashed")
        return sorted((row["message_id"], row["content"]) for row in found.rows.collect())

    def refused(self) -> Any:
        """Paths that are there, and no table of this format."""
        (self.folder / "plain").mkdir()
        (self.folder / "catalogued" / "metadata").mkdir(parents=True)
        return [self._error(path) for path in ("plain", "ord*", "catalogued")]

    def torn(self) -> Any:
        """A log whose newest entry is cut off."""
        torn = self.folder / "torn"
        shutil.copytree(self.folder / "faulty", torn)
        for checksum in torn.rglob("*.crc"):
            checksum.unlink()
        (entry,) = sorted(
            torn.glob("_delta_log/*.json") if self.format == DELTA else torn.glob("metadata/*.json")
        )
        entry.write_text(entry.read_text()[:40])
        return self._as_fields(self._evidence("torn"))

    def incomplete(self) -> Any:
        """A table whose log names a file that is not there any more."""
        part = next(
            (self.folder / "faulty").rglob("part-*.parquet" if self.format == DELTA else "data/*.parquet")
        )
        part.unlink()
        return self._as_fields(self._evidence("faulty"))

    def _orders(self, numbers: Any) -> DataFrame:
        rows = [(f"m-{number}", str(number), NOW) for number in numbers]
        return self.spark.createDataFrame(
            rows, "message_id STRING, `offset` STRING, processed_at TIMESTAMP"
        ).coalesce(1)

    def _write(self, rows: DataFrame, name: str, *, is_new: bool = False) -> None:
        if self.format == DELTA:
            written = rows.write.format("delta").mode("append").option("delta.enableDeletionVectors", "true")
            written.option("delta.checkpointInterval", "2").save(str(self.folder / name))
        elif is_new:
            rows.writeTo(f"lake.{name}").create()
        else:
            rows.writeTo(f"lake.{name}").append()

    def _evidence(self, *paths: str) -> Evidence:
        source = {"kind": "files", "format": self.format, "path": list(paths)}
        coverage = {"complete_until": "now()"}
        return evidence_of(self.spark, self.folder, "delivered", source=source, coverage=coverage)

    def _error(self, path: str) -> str | None:
        try:
            self._evidence(path)
        except SourceError as error:
            return str(error)
        return None

    @staticmethod
    def _as_fields(found: Evidence) -> dict[str, Any]:
        coverage = found.coverage
        return {
            "ids": [row[0] for row in rows_of(found, "message_id")],
            "present": sorted(found.present),
            "is_present": coverage.is_present,
            "is_sound": coverage.is_sound,
            "complete_until": str(coverage.complete_until),
            "unparsed": coverage.unparsed,
            "digests": list(coverage.digests),
            "notes": list(coverage.notes),
        }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
