"""A value beyond its column's type is its row's fault in every reader: counted, named with its place."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg2
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import NOW, WINDOW, contract_of, faults_of, jsonl
from tests.kafka_batches import batch, record

from tieout.engine.evidence import Evidence
from tieout.engine.limits import EARLIEST_MILLIS, LARGEST, LATEST_MILLIS
from tieout.engine.reading import read_evidence
from tieout.engine.reconciling import reconcile
from tieout.model import Ledger

_GOOD_MS = 1_795_000_000_000
_LAST = 2**63 - 1
_SEGMENT = "00000000000000000000.log"


_DAY = WINDOW.widened(timedelta(0), timedelta(hours=23))
"""In a shorter window a date is no time."""


def _read(spark: SparkSession, folder: Path, ledger: str, spec: dict[str, Any]) -> Evidence:
    return read_evidence(spark, contract_of(folder, {ledger: spec}), _DAY, NOW)[Ledger(ledger)]


def _check(found: Evidence, rows: int, expected: str, unparsed: int = 1) -> None:
    assert (found.coverage.rows, found.coverage.unparsed) == (rows, unparsed)
    assert not found.coverage.is_within_tolerance
    assert any(note.startswith(expected) for note in found.coverage.notes)


_NUMBERS = [str(_LAST), str(-_LAST - 1), "99999999999999999999", "1" * 60, "1e300"]
_TIMES = [
    str(_LAST),
    str(-_LAST - 1),
    str(_LAST // 1000),
    "99999999999999999999",
    '"0000-01-01T00:00:00Z"',
    '"9999-12-31T23:59:59-18:00"',
    '"0001-01-01T00:00:00+18:00"',
]


def test_of_json_lines(spark: SparkSession, tmp_path: Path) -> None:
    """Numbers beyond a column's type, and times out of range or on the wrong side of the calendar."""
    good = {"message_id": "a", "producer_id": "p", "topic": "t", "partition": 0, "offset": 7, "sequence": 1}
    values = {
        "offset": _NUMBERS,
        "sequence": _NUMBERS[:3],
        "partition": ["2147483648", *_NUMBERS[2:]],
        "attempted_at": _TIMES,
    }
    columns = {
        json.dumps({**good, column: "?"}).replace('"?"', value): column
        for column, each in values.items()
        for value in each
    }
    lines = [json.dumps({**good, "attempted_at": "2026-11-20T10:00:00Z"}), *columns]
    (tmp_path / "p.jsonl").write_text("\n".join(lines) + "\n")

    spec: dict[str, Any] = {"source": jsonl("p.jsonl"), "coverage": {"sequences": "gapless"}}
    found = _read(spark, tmp_path, "produced", spec)
    faults = {text: fault for _, text, fault in faults_of(spark, tmp_path, "produced", _DAY, **spec)}

    _check(found, 1, "p.jsonl:2: offset: expected", unparsed=len(columns))
    assert {text: faults.get(text, "").partition(" expected")[0] for text in columns} == {
        text: f"{column}:" for text, column in columns.items()
    }


def test_of_csv(spark: SparkSession, tmp_path: Path) -> None:
    """The same as text."""
    good, bad = [f"a,7,{_GOOD_MS}"], [f"b,{number},{_GOOD_MS}" for number in _NUMBERS]
    bad += [f"b,7,{time.strip(chr(34))}" for time in _TIMES]
    (tmp_path / "p.csv").write_text("\n".join(["message_id,offset,attempted_at", *good, *bad]) + "\n")

    found = _read(
        spark, tmp_path, "produced", {"source": {"kind": "files", "format": "csv", "path": "p.csv"}}
    )

    _check(found, 1, "p.csv:3: offset: expected", unparsed=len(bad))


_TIMES_OF_PARQUET = {
    "with a zone": pa.array([_GOOD_MS * 1000, _LAST], pa.timestamp("us", "UTC")),
    "without a zone": pa.array([_GOOD_MS * 1000, -_LAST], pa.timestamp("us")),
    "date": pa.array([20_000, 2**31 - 1], pa.date32()),
    "milliseconds": pa.array([_GOOD_MS, _LAST], pa.int64()),
}


def _check_each_column_has_one_fault(
    spark: SparkSession,
    folder: Path,
    ledger: str,
    values: dict[str, pa.Array],
    columns: dict[str, str],
    named: Sequence[str] = (),
) -> None:
    """Of each column the first value is good, and each has a row with its second one, which is not.

    Faults name the columns, or those in `named`.
    """
    count = len(values)
    table = {
        name: each.take(pa.array([0, *(1 if place == row else None for row in range(count))]))
        for place, (name, each) in enumerate(values.items())
    }
    ids = [str(number) for number in range(count + 1)]
    pq.write_table(pa.table({"message_id": ids, **table}), folder / "p.parquet")
    spec = {"source": {"kind": "files", "format": "parquet", "path": "p.parquet"}, "columns": columns}

    found = _read(spark, folder, ledger, spec)
    faults = [fault for _, _, fault in faults_of(spark, folder, ledger, _DAY, **spec)]

    _check(found, 1, "p.parquet: ", unparsed=count)
    assert sorted(fault.partition(":")[0] for fault in faults) == sorted(named or values), faults


def test_of_parquet(spark: SparkSession, tmp_path: Path) -> None:
    """Numbers and times of every type that Parquet has for them."""
    numbers_and_time = {
        "offset": pa.array([7, _LAST], pa.int64()),
        "generation": pa.array([7, 2**64 - 1], pa.uint64()),
        "delivery_sequence": pa.array([7.0, 1e300], pa.float64()),
        "processed_at": _TIMES_OF_PARQUET["with a zone"],
    }
    times = {
        "attempted_at": _TIMES_OF_PARQUET["date"],
        "completed_at": _TIMES_OF_PARQUET["without a zone"],
        "record_timestamp": _TIMES_OF_PARQUET["milliseconds"],
    }
    _check_each_column_has_one_fault(spark, tmp_path, "delivered", numbers_and_time, {})
    _check_each_column_has_one_fault(spark, tmp_path, "produced", times, {})


def test_of_expressions(spark: SparkSession, tmp_path: Path) -> None:
    """What a contract computes from a value that is none is no reason to blame the contract."""
    times = {
        "a": _TIMES_OF_PARQUET["with a zone"],
        "b": _TIMES_OF_PARQUET["date"],
        "c": _TIMES_OF_PARQUET["milliseconds"],
    }
    units = {
        "d": pa.array([_GOOD_MS // 1000, _LAST], pa.int64()),
        "e": pa.array([_GOOD_MS // 1000, -_LAST - 1], pa.int64()),
    }
    of_times = {
        "attempted_at": "a + interval 1 day",
        "completed_at": "cast(b as timestamp)",
        "record_timestamp": "timestamp_millis(c)",
    }
    of_units = {"attempted_at": "timestamp_seconds(d)", "completed_at": "timestamp_micros(e)"}
    _check_each_column_has_one_fault(
        spark, tmp_path, "produced", times, of_times, ["a", "b", "record_timestamp"]
    )
    _check_each_column_has_one_fault(spark, tmp_path, "produced", units, of_units, list(of_units))


def test_of_parquet_nanoseconds(spark: SparkSession, tmp_path: Path) -> None:
    """The lowest number of nanoseconds is the year 1677, and no reason to stop."""
    times = pa.array([_GOOD_MS * 10**6, -(2**63) + 1, 2**63 - 1], pa.timestamp("ns", "UTC"))
    pq.write_table(pa.table({"message_id": ["a", "b", "c"], "attempted_at": times}), tmp_path / "p.parquet")

    found = _read(
        spark, tmp_path, "produced", {"source": {"kind": "files", "format": "parquet", "path": "p.parquet"}}
    )

    assert (found.coverage.rows, found.coverage.unparsed) == (3, 0)


def test_of_tables(
    spark: SparkSession, tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What PostgreSQL holds and Spark does not, or only just."""
    columns = {
        "offset": ("bigint", "7", [str(_LAST)]),
        "sequence": ("numeric", "7", ["1" * 60]),
        "attempted_at": ("date", "'2026-11-20'", ["'5874897-12-31'"]),
        "completed_at": ("timestamptz", "'2026-11-20'", ["'infinity'", "'294276-01-01'"]),
        "record_timestamp": ("timestamp", "'2026-11-20'", ["'4713-01-01 BC'"]),
    }
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", postgres_url)
    server = psycopg2.connect(postgres_url)
    server.autocommit = True
    with server.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS beyond")
        types = ", ".join(f'"{name}" {kind}' for name, (kind, _, _) in columns.items())
        cursor.execute(f"CREATE TABLE beyond (message_id text, {types})")
        goods = ", ".join(good for _, good, _ in columns.values())
        cursor.execute(f"INSERT INTO beyond VALUES ('a', {goods})")  # noqa: S608 - of this test
        for name, (_, _, values) in columns.items():
            for value in values:
                cursor.execute(f"INSERT INTO beyond (message_id, \"{name}\") VALUES ('b', {value})")  # noqa: S608
    server.close()
    spec: dict[str, Any] = {"source": {"kind": "jdbc", "connection": "warehouse", "table": "beyond"}}

    found = _read(spark, tmp_path, "produced", spec)
    faults = [fault for _, _, fault in faults_of(spark, tmp_path, "produced", _DAY, **spec)]

    _check(found, 1, "", unparsed=6)
    assert Counter(fault.partition(":")[0] for fault in faults) == {
        name: len(values) for name, (_, _, values) in columns.items()
    }


def _segment(folder: Path, *batches: bytes, name: str = "t-0") -> dict[str, Any]:
    (folder / "log" / name).mkdir(parents=True)
    (folder / "log" / name / _SEGMENT).write_bytes(b"".join(batches))
    return {"kind": "kafka_segments", "path": "log", "topic": "t"}


def test_of_segments(spark: SparkSession, tmp_path: Path) -> None:
    """A producer stamps as it likes: its records are unreadable, and those beside them are read."""
    bad = [
        batch([record(b"b")], base_offset=1, first_ms=_LAST),
        batch([record(b"b", delta_ms=2**62)], base_offset=2),
        batch([record(b"b", delta_ms=2**70)], base_offset=3),
        batch([record(b"b")], base_offset=4, first_ms=-(2**63)),
        batch([record(b"b")], base_offset=5, first_ms=253402300800000),
        batch([record(b"b")], base_offset=6, latest_ms=_LAST, attributes=0x08),
        batch([record(b"b", delta=2**62)], base_offset=7),
        batch([record(b"b", delta=-1)], base_offset=8),
        batch([record(b"b"), record(b"c")], base_offset=9),
    ]
    source = _segment(tmp_path, batch([record(b"a")]), *bad, batch([record(b"c")], base_offset=11))

    found = _read(spark, tmp_path, "log", {"source": source})

    expected = f"log/t-0/{_SEGMENT}: offset 1: record_timestamp: expected a time of the years 1 to 9999, found {_LAST}"
    _check(found, 2, expected, unparsed=len(bad) + 1)


def test_of_batches(spark: SparkSession, tmp_path: Path) -> None:
    """A batch that no broker can have written is lost evidence with its place, whatever is tolerated."""
    bad = [
        batch([record(b"b")], base_offset=_LAST),
        batch([record(b"b")], base_offset=_LAST - 1, last_delta=5),
        batch([record(b"b")], base_offset=-5),
    ]
    spec = {"source": _segment(tmp_path, batch([record(b"a")]), *bad), "tolerance": {"unparsed_ratio": 0.9}}

    found = _read(spark, tmp_path, "log", spec)

    _check(found, 1, f"t-0: {_SEGMENT}: the batch at byte", unparsed=3)


def test_of_names_of_segments(spark: SparkSession, tmp_path: Path) -> None:
    """A segment is named by an offset, a folder by a partition, and a checkpoint has offsets."""
    source = _segment(tmp_path, batch([record(b"a")]))
    (tmp_path / "log" / "t-0" / f"{'9' * 20}.log").write_bytes(b"")
    (tmp_path / "log" / "t-99999999999999999999").mkdir()
    (tmp_path / "log" / "log-start-offset-checkpoint").write_text(f"0\n1\nt 0 {'9' * 30}\n")

    found = _read(spark, tmp_path, "log", {"source": source})

    assert found.coverage.rows == 1
    assert not found.coverage.is_within_tolerance
    notes = " | ".join(found.coverage.notes)
    assert f"{'9' * 20}.log" in notes
    assert "t-99999999999999999999" in notes
    assert "log-start-offset-checkpoint: expected a topic, a partition and an offset" in notes


_BATCH = (
    "baseOffset: {0} lastOffset: {0} count: 1 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 "
    "partitionLeaderEpoch: 3 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty position: 0 "
    "CreateTime: 5 size: 90 magic: 2 compresscodec: none crc: 1 isvalid: true"
)
_RECORD = "| offset: {0} CreateTime: 5 keySize: -1 valueSize: 1 sequence: -1 headerKeys: [] payload: a"


def test_of_dumps(spark: SparkSession, tmp_path: Path) -> None:
    """Any number of a dump may be one that no log has."""
    dump = ["Dumping /data/t-0/00000000000000000000.log", _BATCH.format(0), _RECORD.format(0)]
    dump += [_BATCH.format(1), _RECORD.format(1).replace("CreateTime: 5", f"CreateTime: {_LAST // 10}")]
    dump += [_BATCH.format(2).replace("lastOffset: 2", f"lastOffset: {'9' * 5000}"), _RECORD.format(2)]
    dump += [_BATCH.format(3).replace("LeaderEpoch: 3", "LeaderEpoch: 99999999999"), _RECORD.format(3)]
    dump += [f"Dumping /data/t-{'9' * 20}/00000000000000000000.log", _BATCH.format(0), _RECORD.format(0)]
    (tmp_path / "dump.txt").write_text("\n".join(dump) + "\n")

    found = _read(spark, tmp_path, "log", {"source": {"kind": "kafka_dump_log", "path": "dump.txt"}})

    _check(found, 1, "dump.txt:5: record_timestamp: expected a time of the years 1 to 9999", unparsed=6)
    assert any(note.startswith("dump.txt: batches below no line `Dumping") for note in found.coverage.notes)


def test_of_printed_commits(spark: SparkSession, tmp_path: Path) -> None:
    """What the console consumer prints of `__consumer_offsets`."""

    def document(**changed: str) -> str:
        reported = {
            "partition": "0",
            "offset": "5",
            "leaderEpoch": "0",
            "commitTimestamp": str(_GOOD_MS),
            **changed,
        }
        return (
            '{{"key":{{"type":1,"data":{{"group":"loader","topic":"t","partition":{partition}}}}},'
            '"value":{{"version":4,"data":{{"offset":{offset},"leaderEpoch":{leaderEpoch},"metadata":"",'
            '"commitTimestamp":{commitTimestamp}}}}}}}'.format(**reported)
        )

    numbers, fields = (str(_LAST), "9" * 20), ("offset", "commitTimestamp", "leaderEpoch", "partition")
    bad = [document(**{name: number}) for name in fields for number in numbers]
    (tmp_path / "offsets.txt").write_text("\n".join([document(), *bad]) + "\n")
    source = {"kind": "kafka_offsets", "path": "offsets.txt", "format": "formatter", "group": "loader"}

    found = _read(spark, tmp_path, "committed", {"source": source})

    _check(found, 1, "offsets.txt:2: committed_offset: expected", unparsed=len(bad))


def test_of_tables_of_groups(spark: SparkSession, tmp_path: Path) -> None:
    """What the tool prints of a group."""
    lines = ["GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID"]
    lines += ["loader t 0 5 9 4 - - -"]
    for number in ("9" * 19, "9" * 20, "9" * 5000):
        lines += [f"loader t {number} 5 9 4 - - -", f"loader t 1 {number} 9 4 - - -"]
    (tmp_path / "group.txt").write_text("\n".join(lines) + "\n")
    source = {"kind": "kafka_consumer_groups", "path": "group.txt", "group": "loader"}

    found = _read(spark, tmp_path, "committed", {"source": source})

    _check(found, 1, "group.txt:3: ", unparsed=6)


def _events(name: str, **fields: str) -> str:
    reported = {"timestamp": str(_GOOD_MS), "name": f'"{name}"', **fields}
    return "{" + ",".join(f'"{key}":{value}' for key, value in reported.items()) + "}"


def test_of_totals_of_verifiable_producers(spark: SparkSession, tmp_path: Path) -> None:
    """A tool that says it sent all that can be counted is not believed."""
    place = {"key": "null", "topic": '"t"', "partition": "0"}
    good = _events("producer_send_success", **place, value='"0"', offset="0")
    bad = {
        "largest": _events("tool_data", sent=str(_LAST), acked=str(_LAST), target_throughput="-1"),
        "beyond": _events("tool_data", sent="9" * 20, acked="9" * 20),
        "value": _events("producer_send_success", **place, value='"' + "9" * 18 + '"', offset="1"),
    }
    for name, line in bad.items():
        (tmp_path / f"{name}.jsonl").write_text(f"{good}\n{line}\n")

    found = _read(spark, tmp_path, "produced", {"source": {"kind": "verifiable_producer", "path": "*.jsonl"}})

    assert found.coverage.rows <= 2 * len(bad)
    assert not found.coverage.is_within_tolerance
    reason = "values; not the output of a verifiable producer"
    named = [note.split(".jsonl: gaps of ")[0] for note in found.coverage.notes if note.endswith(reason)]
    assert named == sorted(bad)


@pytest.mark.parametrize(
    ("ledger", "bad"),
    [
        ("delivered", _events("records_consumed", count=str(_LAST), partitions=f'[{{"count":{_LAST}}}]')),
        (
            "delivered",
            _events("record_data", key="null", value='"1"', topic='"t"', partition="0", offset="9" * 20),
        ),
        (
            "committed",
            _events(
                "offsets_committed",
                success="true",
                offsets=f'[{{"topic":"t","partition":0,"offset":{_LAST}}}]',
            ),
        ),
    ],
)
def test_of_verifiable_consumers(spark: SparkSession, tmp_path: Path, ledger: str, bad: str) -> None:
    """Nor one that consumed, or committed, so much, twice."""
    good = _events("record_data", key="null", value='"0"', topic='"t"', partition="0", offset="0")
    (tmp_path / "c.jsonl").write_text(f"{good}\n{bad}\n{bad}\n")

    found = _read(spark, tmp_path, ledger, {"source": {"kind": "verifiable_consumer", "path": "c.jsonl"}})

    assert found.coverage.unparsed >= 1
    assert not found.coverage.is_within_tolerance


def test_of_what_is_just_allowed(spark: SparkSession, tmp_path: Path) -> None:
    """A whole run goes through the largest numbers and the outermost times that a row may have."""
    edges = [
        (LARGEST, LATEST_MILLIS),
        (-LARGEST, EARLIEST_MILLIS),
        (LARGEST - 1, LATEST_MILLIS - 1),
        (5, _GOOD_MS),
    ]
    rows = [
        {"message_id": f"m{n}", "topic": "t", "partition": 0, "offset": offset, "sequence": offset}
        | {"producer_id": "p", "producer_session": "s"}
        | dict.fromkeys(("attempted_at", "completed_at", "processed_at", "record_timestamp"), millis)
        for n, (offset, millis) in enumerate(edges)
    ]
    ledgers = {}
    for ledger in ("produced", "log", "delivered"):
        (tmp_path / f"{ledger}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        ledgers[ledger] = {"source": jsonl(f"{ledger}.jsonl"), "coverage": "declared"}
    committed = {"consumer_group": "loader", "topic": "t", "partition": 0, "committed_offset": LARGEST}
    (tmp_path / "committed.jsonl").write_text(json.dumps({**committed, "committed_at": LATEST_MILLIS}) + "\n")
    ledgers["committed"] = {"source": jsonl("committed.jsonl"), "coverage": "declared"}

    found = reconcile(spark, contract_of(tmp_path, ledgers), WINDOW, run_id="edges", now=NOW)

    assert {reported["unparsed"] for reported in found.statement["coverage"].values()} == {0}
