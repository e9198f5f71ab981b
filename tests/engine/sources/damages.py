"""Small evidence of each kind of source that another system wrote, and what may happen to its bytes on the way here."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

from pyspark.sql import SparkSession
from tests.engine.sources.builders import EVERYTHING, WINDOW
from tests.engine.sources.maps import serialised_map

from tieout.contracts import Contract
from tieout.contracts.times import parse_time
from tieout.engine.evidence import LedgerCoverage
from tieout.engine.reading import open_ledgers
from tieout.engine.session import suited_to
from tieout.model import Ledger

_ROOT: Final = Path(__file__).resolve().parents[3]
_SYSTEMS: Final = _ROOT / "examples" / "systems"
_TEXTS: Final = _ROOT / "tests" / "kafka_files" / "text"
_TAKEN: Final = "2026-11-28T00:00:00Z"
_QUEUE: Final = {"consumption": "queue", "redelivery": "1s"}
_BEFOREHAND: Final = 256
_START: Final = 1763632800000
Rows = Counter[tuple[str, ...]]


@dataclass(frozen=True)
class Sample:
    """Evidence of one ledger: where it comes from, how it is read, and what of its rows tells one from another.

    `damaged` is the folder whose files are damaged, all of them by default. `has_sums` says that each byte of a row is
    under a checksum. What the format does not show need not be missed: `unseen` are files that are gone, or a cut
    between two lines where `has_unseen_end`.
    """

    name: str
    ledger: str
    source: dict[str, Any]
    write: Callable[[Path], object]
    key: tuple[str, ...]
    columns: dict[str, str] = field(default_factory=dict)
    contract: dict[str, Any] = field(default_factory=dict)
    damaged: str = "."
    has_sums: bool = False
    unseen: tuple[str, ...] = ()
    has_unseen_end: bool = False

    def __str__(self) -> str:
        return self.name

    def read(self, spark: SparkSession, folder: Path) -> tuple[Rows, LedgerCoverage]:
        """Return the rows, by their key, and what is known of the ledger."""
        spec = {"source": {"taken_at": _TAKEN, **self.source}, "columns": self.columns}
        if self.source["kind"].startswith("verifiable"):
            del spec["source"]["taken_at"]
        both = {"produced": {"source": EVERYTHING}, "delivered": {"source": EVERYTHING}}
        contract_head = {"version": 1, "pipeline": "orders", "guarantee": "at_least_once", "group": "loader"}
        contract = Contract.model_validate_json(
            json.dumps({**contract_head, **self.contract, "ledgers": {**both, self.ledger: spec}})
        ).located_in(folder)
        ledger = Ledger(self.ledger)
        alone = contract.model_copy(update={"ledgers": {ledger: contract.ledgers[ledger]}})
        with suited_to(spark, is_small=True):
            found = open_ledgers(spark, alone, WINDOW, parse_time(_TAKEN))[ledger].kept()
            rows = Counter(tuple(map(str, row)) for row in found.rows.select(*self.key).collect())
        return rows, found.coverage

    def is_unseen(self, damage: Damage) -> bool:
        """Return whether nothing in the format shows this damage: it is as the evidence of an earlier moment."""
        if damage.kind in ("deleted", "emptied", "zeros"):
            return any(str(damage.file).endswith(name) for name in self.unseen)
        return self.has_unseen_end and damage.is_between_lines

    def files(self, folder: Path) -> list[Path]:
        """Return the files that are damaged, in their order."""
        return sorted(path for path in (folder / self.damaged).rglob("*") if path.is_file())


@dataclass(frozen=True)
class Damage:
    """What happened to one file: its content afterwards, None where it is gone."""

    file: Path
    kind: str
    content: bytes | None
    is_between_lines: bool = False

    def __str__(self) -> str:
        return f"{self.file.name}: {self.kind}"


def damages_of(file: Path, content: bytes, chance: Random) -> Iterator[Damage]:
    """Yield damages of a file without end, each kind in its turn, at places of chance."""
    # What a file has beforehand for later entries is left alone.
    size = len(content.partition(bytes(_BEFOREHAND))[0])
    yield Damage(file, "deleted", None)
    yield Damage(file, "emptied", b"")
    yield Damage(file, "zeros", bytes(len(content)))
    while size:
        at, count = chance.randrange(size), chance.choice((1, 4, 5, 8, 64))
        is_between = b"\n" in content[max(at - 1, 0) : at + 1]
        yield Damage(file, f"cut at {at} of {size}", content[:at], is_between)
        byte = content[at] ^ chance.randrange(1, 256)
        yield Damage(file, f"byte {at} is {byte:#04x}", content[:at] + bytes([byte]) + content[at + 1 :])
        zeros = bytes(min(count, len(content) - at))
        yield Damage(file, f"{count} zeros at {at}", content[:at] + zeros + content[at + count :])
        yield Damage(file, f"{count} bytes gone at {at}", content[:at] + content[at + count :])
        again = content[at : at + count]
        yield Damage(file, f"{count} bytes twice at {at}", content[:at] + again + content[at:])
        number = chance.choice((-1, 0, (1 << 31) - 1, -(1 << 31), (1 << 63) - 1)) & ((1 << 8 * count) - 1)
        number_there = number.to_bytes(count, "big")
        yield Damage(file, f"a number at {at}", content[:at] + number_there + content[at + count :])


def done(damage: Damage) -> None:
    """Do the damage; the file keeps its time."""
    times = damage.file.stat() if damage.file.exists() else None
    if damage.content is None:
        damage.file.unlink()
        return
    damage.file.write_bytes(damage.content)
    if times is not None:
        os.utime(damage.file, ns=(times.st_atime_ns, times.st_mtime_ns))


def _copied(source: Path, *names: str) -> Callable[[Path], None]:
    def copy(folder: Path) -> None:
        for name in names:
            if (source / name).is_dir():
                shutil.copytree(source / name, folder / name)
            else:
                shutil.copy2(source / name, folder / name)

    return copy


def _lines(folder: Path, events: list[dict[str, Any]]) -> None:
    (folder / "client.log").write_text("".join(json.dumps(event) + "\n" for event in events))


def _consumer(folder: Path, *, has_summaries: bool = True) -> None:
    place = {"topic": "t", "partition": 1}
    events: list[dict[str, Any]] = [{"timestamp": _START, "name": "startup_complete"}]
    for offset in range(17, 23):
        read = {"key": None, "value": f"v{offset}", **place, "offset": offset}
        events.append({"timestamp": _START + offset, "name": "record_data", **read})
        if has_summaries and offset % 2 == 0:
            many = {**place, "count": 2, "minOffset": offset - 1, "maxOffset": offset}
            events.append({"timestamp": _START, "name": "records_consumed", "count": 2, "partitions": [many]})
            to = [{**place, "offset": offset + 1}]
            events.append({"timestamp": _START, "name": "offsets_committed", "offsets": to, "success": True})
    _lines(folder, [*events, {"timestamp": _START + 60, "name": "shutdown_complete"}])


def _producer(folder: Path) -> None:
    sent = [
        {"key": None, "value": str(number), "topic": "t", "partition": 1, "offset": number}
        for number in range(7)
    ]
    events = [{"timestamp": _START, "name": "producer_send_success", **one} for one in sent]
    total = {"timestamp": _START + 61, "name": "tool_data", "sent": 7, "acked": 7}
    start, end = ({"timestamp": _START, "name": f"{word}_complete"} for word in ("startup", "shutdown"))
    _lines(folder, [start, *events, end, total])


def _worker(folder: Path) -> None:
    entries = [
        (json.dumps(["src", {"filename": place}]).encode(), json.dumps({"position": at}).encode())
        for place, at in (("/a", 30), ("/b", 31))
    ]
    (folder / "connect.offsets").write_bytes(serialised_map(*entries))


_ID: Final = {"message_id": "get_json_object(cast(value as string), '$.order_id')"}
_POSITION: Final = ("topic", "partition", "first_offset", "committed_offset")
_JOURNAL: Final = {"kind": "kahadb", "path": "kahadb", "destination": "activemq-auto"} | {
    "concurrent_store_and_dispatch": False
}
_PULSAR: Final = {"path": "copy-1/answers", "topic": "public/default/pulsar-sent-again"}
_SINK: Final = {"kind": "spark_files", "path": "output", "format": "jsonl"}
SAMPLES: Final = (
    Sample(
        "consumer's reads", "read", {"kind": "verifiable_consumer", "path": "*.log"}, _consumer, ("offset",)
    ),
    Sample(
        "consumer's reads without summaries",
        *("delivered", {"kind": "verifiable_consumer", "path": "*.log"}),
        *(lambda folder: _consumer(folder, has_summaries=False), ("offset",)),
    ),
    Sample(
        "consumer's commits",
        *("committed", {"kind": "verifiable_consumer", "path": "*.log"}, _consumer, ("committed_offset",)),
    ),
    Sample(
        "producer's sends",
        "produced",
        {"kind": "verifiable_producer", "path": "*.log"},
        _producer,
        ("sequence",),
    ),
    Sample(
        "Flink's checkpoints",
        *("committed", {"kind": "flink_checkpoints", "path": "checkpoints"}),
        *(_copied(_SYSTEMS / "flink/evidence", "checkpoints"), _POSITION),
        unseen=("_metadata",),
    ),
    Sample(
        "a journal of ActiveMQ as log",
        *("log", _JOURNAL, _copied(_SYSTEMS / "activemq/evidence", "kahadb"), ("offset", "message_id")),
        columns={"message_id": "properties['order_id']"},
        has_sums=True,
    ),
    Sample(
        "a journal of ActiveMQ as acknowledgements",
        *("committed", _JOURNAL, _copied(_SYSTEMS / "activemq/evidence", "kahadb"), _POSITION),
        contract=_QUEUE,
        has_sums=True,
    ),
    Sample(
        "Pulsar's entries",
        *("log", {"kind": "pulsar", **_PULSAR}, _copied(_SYSTEMS / "pulsar/evidence", "copy-1")),
        ("offset",),
        columns=_ID,
        damaged="copy-1/answers",
    ),
    Sample(
        "Pulsar's cursor",
        *("committed", {"kind": "pulsar_cursor", "subscription": "loader", **_PULSAR}),
        *(_copied(_SYSTEMS / "pulsar/evidence", "copy-1"), _POSITION),
        damaged="copy-1/answers",
        unseen=("internalStats",),
    ),
    Sample(
        "a checkpoint of Spark",
        *("committed", {"kind": "spark_checkpoint", "path": "checkpoint"}),
        *(
            _copied(_SYSTEMS / "spark_structured_streaming/evidence", "checkpoint"),
            ("partition", "committed_offset"),
        ),
        unseen=("commits/1",),
    ),
    Sample(
        "a manifest of Spark",
        *("delivered", _SINK, _copied(_SYSTEMS / "spark_structured_streaming/evidence", "output")),
        ("message_id",),
        damaged="output/_spark_metadata",
        unseen=("_spark_metadata/1",),
    ),
    Sample(
        "ZooKeeper's log of Trident",
        *("committed", {"kind": "trident", "path": "zookeeper/version-2", "stream": "storm-trident-plain"}),
        *(_copied(_SYSTEMS / "storm_trident/evidence", "zookeeper"), _POSITION),
        has_sums=True,
    ),
    Sample(
        "Connect's positions",
        *("committed", {"kind": "connect_offsets", "path": "connect.offsets", "connector": "src"}),
        *(_worker, ("topic", "committed_offset")),
    ),
    Sample(
        "a share group's state",
        *(
            "committed",
            {
                "kind": "kafka_share_group",
                "path": "broker",
                "group": "share-before",
                "topic": "share-before-in",
                "partitions": 1,
            },
        ),
        *(_copied(_SYSTEMS / "kafka_share_group/evidence", "broker"), _POSITION),
        contract={**_QUEUE, "group": "share-before"},
        damaged="broker/__share_group_state-0",
        has_sums=True,
        unseen=(".log",),
    ),
    Sample(
        "a dump of a log",
        *("log", {"kind": "kafka_dump_log", "path": "payments-0.dump.txt", "cleanup_policy": "delete"}),
        *(_copied(_TEXTS, "payments-0.dump.txt"), ("offset",)),
        has_unseen_end=True,
    ),
    Sample(
        "a table of a group",
        *("committed", {"kind": "kafka_consumer_groups", "path": "describe.txt"}),
        *(_copied(_TEXTS, "describe.txt"), ("partition",)),
        contract={"group": "payments-loader"},
        has_unseen_end=True,
    ),
    Sample(
        "an export of a group",
        *("committed", {"kind": "kafka_consumer_groups", "path": "export.csv"}),
        *(_copied(_TEXTS, "export.csv"), ("partition",)),
        contract={"group": "payments-loader"},
        has_unseen_end=True,
    ),
    Sample(
        "printed commits",
        *(
            "committed",
            {
                "kind": "kafka_offsets",
                "path": "consumer_offsets.formatted.txt",
                "format": "formatter",
                "group": "payments-loader",
            },
        ),
        *(_copied(_TEXTS, "consumer_offsets.formatted.txt"), ("partition", "committed_offset")),
        contract={"group": "payments-loader"},
        has_unseen_end=True,
    ),
)
