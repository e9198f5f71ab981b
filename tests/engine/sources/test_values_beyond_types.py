"""A value beyond its column's type is its row's fault in every reader: counted, named with its place."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg2
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import NOW, WINDOW, contract_of, jsonl
from tests.kafka_batches import batch, record

from tieout.engine.evidence import Evidence
from tieout.engine.limits import EARLIEST_MILLIS, LARGEST, LATEST_MILLIS
from tieout.engine.reading import read_evidence
from tieout.engine.reconciling import reconcile
from tieout.model import Ledger

_GOOD_MS = 1_795_000_000_000
_LAST = 2**63 - 1
_SEGMENT = "00000000000000000000.log"


def _read(spark: SparkSession, folder: Path, ledger: str, spec: dict[str, Any]) -> Evidence:
    day = WINDOW.widened(timedelta(0), timedelta(hours=23))  # in a shorter one a date is no time
    return read_evidence(spark, contract_of(folder, {ledger: spec}), day, NOW)[Ledger(ledger)]


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


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("offset", _NUMBERS),
        ("sequence", _NUMBERS[:3]),
        ("partition", ["2147483648", *_NUMBERS[2:]]),
        ("attempted_at", _TIMES),
    ],
)
def test_of_json_lines(spark: SparkSession, tmp_path: Path, column: str, values: list[str]) -> None:
    """Numbers that no column holds, with which nothing can be computed, and times outside of the calendar."""
    good = {"message_id": "a", "producer_id": "p", "topic": "t", "partition": 0, "offset": 7, "sequence": 1}
    lines = [json.dumps({**good, "attempted_at": "2026-11-20T10:00:00Z"})]
    lines += [json.dumps({**good, column: "?"}).replace('"?"', value) for value in values]
    (tmp_path / "p.jsonl").write_text("\n".join(lines) + "\n")

    spec = {"source": jsonl("p.jsonl"), "coverage": {"sequences": "gapless"}}
    found = _read(spark, tmp_path, "produced", spec)

    _check(found, 1, f"p.jsonl:2: {column}: expected", unparsed=len(values))


def test_of_csv(spark: SparkSession, tmp_path: Path) -> None:
    """The same as text."""
    good, bad = [f"a,7,{_GOOD_MS}"], [f"b,{number},{_GOOD_MS}" for number in _NUMBERS]
    bad += [f"b,7,{time.strip(chr(34))}" for time in _TIMES]
    (tmp_path / "p.csv").write_text("\n".join(["message_id,offset,attempted_at", *good, *bad]) + "\n")

    found = _read(
        spark, tmp_path, "produced", {"source": {"kind": "files", "format": "csv", "path": "p.csv"}}
    )

    _check(found, 1, "p.csv:3: offset: expected", unparsed=len(bad))


_PARQUET = {
    "offset": [
        pa.array([7, _LAST], pa.int64()),
        pa.array([7, 2**64 - 1], pa.uint64()),
        pa.array([7.0, 1e300], pa.float64()),
    ],
    "attempted_at": [
        pa.array([_GOOD_MS * 1000, _LAST], pa.timestamp("us", "UTC")),
        pa.array([_GOOD_MS * 1000, -_LAST], pa.timestamp("us")),
        pa.array([20_000, 2**31 - 1], pa.date32()),
        pa.array([_GOOD_MS, _LAST], pa.int64()),
    ],
}


@pytest.mark.parametrize(
    ("column", "values"), [(name, values) for name, each in _PARQUET.items() for values in each], ids=str
)
def test_of_parquet(spark: SparkSession, tmp_path: Path, column: str, values: pa.Array) -> None:
    """Numbers and times of every type that Parquet has for them."""
    pq.write_table(pa.table({"message_id": ["a", "b"], column: values}), tmp_path / "p.parquet")
    source = {"kind": "files", "format": "parquet", "path": "p.parquet"}

    found = _read(spark, tmp_path, "produced", {"source": source})

    _check(found, 1, f"p.parquet: {column}: expected")


@pytest.mark.parametrize(
    ("values", "expression"),
    [
        (_PARQUET["attempted_at"][0], "v + interval 1 day"),
        (_PARQUET["attempted_at"][2], "cast(v as timestamp)"),
        (_PARQUET["attempted_at"][3], "timestamp_millis(v)"),
        (_PARQUET["attempted_at"][3], "timestamp_seconds(v)"),
        (_PARQUET["attempted_at"][3], "timestamp_micros(v)"),
    ],
    ids=str,
)
def test_of_expressions(spark: SparkSession, tmp_path: Path, values: pa.Array, expression: str) -> None:
    """What a contract computes from a value that is none is no reason to blame the contract."""
    divided = values
    if pa.types.is_integer(values.type) and "millis" not in expression:
        divided = pa.array(
            [values[0].as_py() // 1000, _LAST if "seconds" in expression else -_LAST - 1], pa.int64()
        )
    pq.write_table(pa.table({"message_id": ["a", "b"], "v": divided}), tmp_path / "p.parquet")
    source = {"kind": "files", "format": "parquet", "path": "p.parquet"}

    found = _read(spark, tmp_path, "produced", {"source": source, "columns": {"attempted_at": expression}})

    _check(found, 1, "p.parquet: ")


def test_of_parquet_nanoseconds(spark: SparkSession, tmp_path: Path) -> None:
    """The lowest number of nanoseconds is the year 1677, and no reason to stop."""
    times = pa.array([_GOOD_MS * 10**6, -(2**63) + 1, 2**63 - 1], pa.timestamp("ns", "UTC"))
    pq.write_table(pa.table({"message_id": ["a", "b", "c"], "attempted_at": times}), tmp_path / "p.parquet")

    found = _read(
        spark, tmp_path, "produced", {"source": {"kind": "files", "format": "parquet", "path": "p.parquet"}}
    )

    assert (found.coverage.rows, found.coverage.unparsed) == (3, 0)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("bigint", str(_LAST)),
        ("numeric", "1" * 60),
        ("timestamptz", "'infinity'"),
        ("timestamptz", "'294276-01-01'"),
        ("timestamp", "'4713-01-01 BC'"),
        ("date", "'5874897-12-31'"),
    ],
)
def test_of_tables(
    spark: SparkSession,
    tmp_path: Path,
    postgres_url: str,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    value: str,
) -> None:
    """What PostgreSQL holds and Spark does not, or only just."""
    column = "offset" if kind in ("bigint", "numeric") else "attempted_at"
    good = "7" if column == "offset" else "'2026-11-20'"
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", postgres_url)
    server = psycopg2.connect(postgres_url)
    server.autocommit = True
    with server.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS beyond")
        cursor.execute(f'CREATE TABLE beyond (message_id text, "{column}" {kind})')
        cursor.execute(f"INSERT INTO beyond VALUES ('a', {good}), ('b', {value})")  # noqa: S608 - of this test
    server.close()
    spec = {"source": {"kind": "jdbc", "connection": "warehouse", "table": "beyond"}}

    found = _read(spark, tmp_path, "produced", spec)

    _check(found, 1, f"{column}: ")


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


@pytest.mark.parametrize(
    "bad",
    [
        _events("tool_data", sent=str(_LAST), acked=str(_LAST), target_throughput="-1"),
        _events("tool_data", sent="9" * 20, acked="9" * 20),
        _events(
            "producer_send_success",
            key="null",
            value='"' + "9" * 18 + '"',
            topic='"t"',
            partition="0",
            offset="1",
        ),
    ],
    ids=["largest", "beyond it", "value"],
)
def test_of_totals_of_verifiable_producers(spark: SparkSession, tmp_path: Path, bad: str) -> None:
    """A tool that says it sent all that can be counted is not believed."""
    good = _events("producer_send_success", key="null", value='"0"', topic='"t"', partition="0", offset="0")
    (tmp_path / "p.jsonl").write_text(f"{good}\n{bad}\n")

    found = _read(spark, tmp_path, "produced", {"source": {"kind": "verifiable_producer", "path": "p.jsonl"}})

    assert found.coverage.rows <= 2
    assert not found.coverage.is_within_tolerance


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
