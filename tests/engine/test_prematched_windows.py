"""A window that is prematched has the statement that the rules put to every row give it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.engine.histories import GRACE_END, WINDOW

from tieout.contracts import Contract, load_contract
from tieout.engine.reconciling import Reconciliation, reconcile
from tieout.engine.session import set_to
from tieout.engine.staging import break_lines
from tieout.model import Window

SENT = ("produced", "delivered")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CONTRACT = """\
version: 1
pipeline: prematched
guarantee: exactly_once
group: loader
match: {match}
ledgers:
  produced: {{source: {{kind: files, format: parquet, path: produced}}, coverage: declared}}
  delivered: {{source: {{kind: files, format: parquet, path: delivered}}, coverage: declared}}
"""


LOG = "  log: {{source: {{kind: files, format: parquet, path: log}}, coverage: declared}}\n"
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Spark compiles none of its plans: a plan finds the same rows, and of few of them in half the time."""


def _both_ways(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    contract: Contract,
    window: Window = WINDOW,
    now: datetime = GRACE_END,
    *,
    is_compiled: bool = False,
) -> tuple[Reconciliation, Reconciliation, list[str]]:
    """Return what is found with prematch and without, and what the former left out, as it told it.

    Compiled, as a large window's plans are, are those of the histories that stand for all the others.
    """
    monkeypatch.setattr("tieout.engine.prematch.prematching.SMALL_BYTES", 0)
    monkeypatch.setattr("tieout.engine.reading.SMALL_BYTES", 0)
    found: list[Reconciliation] = []
    steps: list[str] = []
    for match in ("auto", "full"):
        one = contract.model_copy(update={"match": match})
        with set_to(spark, {} if is_compiled else INTERPRETED):
            judged = reconcile(spark, one, window, run_id="r", now=now, progress=steps.append)
        found.append(replace(judged, statement=dict(judged.statement)))
    return found[0], found[1], [step for step in steps if step.startswith("leaving out")]


def _contract(folder: Path, text: str) -> Contract:
    (folder / "contract.yml").write_text(text.format(match="auto"))
    return load_contract(folder / "contract.yml")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("has_log", [False, True], ids=["without a log", "with a log"])
@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "with breaks"])
def test_a_prematched_window_has_the_same_statement(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_clean: bool, has_log: bool
) -> None:
    """All but percentiles and maximum of the latency, which come from a sample: breaks and proof as well."""
    _write(spark, tmp_path, is_clean=is_clean, has_log=has_log)

    contract = _contract(tmp_path, CONTRACT + LOG * has_log)
    is_compiled = has_log and not is_clean
    quick, full, left = _both_ways(spark, monkeypatch, contract, is_compiled=is_compiled)

    latency, exact = quick.statement.pop("latency"), full.statement.pop("latency")
    assert latency.keys() == exact.keys() | {"sample"}
    assert quick.statement == full.statement
    assert full.statement["verdict"] == ("KEPT" if is_clean else "BROKEN")
    assert 0 < latency["sample"] < latency["count"] == exact["count"] == (300 if is_clean else 298)
    assert latency["mean_s"] == exact["mean_s"]
    assert quick.breaks.rows().dtypes == full.breaks.rows().dtypes
    assert [*break_lines(quick.breaks)] == [*break_lines(full.breaks)]
    rows = {(True, False): 0, (True, True): 68, (False, False): 28, (False, True): 96}[is_clean, has_log]
    assert left == [f"leaving out all but {rows} rows, which are judged"]
    balances = [row["offsets"] for row in full.statement["partitions"]]
    assert [row and row["delivered"] for row in balances] == (
        [150 if is_clean else 148, 150] if has_log else [None] * 2
    )


@pytest.mark.timeout(600)
def test_what_is_left_of_it_is_judged_alike_in_several_buckets(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is told of clean messages goes to the bucket of their partition."""
    _write(spark, tmp_path, is_clean=False, has_log=True)
    monkeypatch.setattr("tieout.engine.prematch.prematching.SMALL_BYTES", 0)
    monkeypatch.setattr("tieout.engine.reading.SMALL_BYTES", 0)
    contract = _contract(tmp_path, CONTRACT + LOG)
    with set_to(spark, INTERPRETED):
        one = reconcile(spark, contract, WINDOW, run_id="r", now=GRACE_END)
        monkeypatch.setattr("tieout.engine.judging.task.BYTES_OF_ROW", 1 << 28)
        several = reconcile(spark, contract, WINDOW, run_id="r", now=GRACE_END)

        assert several.breaks.buckets == 2
        assert several.statement == one.statement
        assert [*break_lines(several.breaks)] == [*break_lines(one.breaks)]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("is_clean", "has_log", "delayed", "classes", "left"),
    [
        (True, False, (), {"DELIVERED"}, 0),
        (True, True, (), {"DELIVERED"}, 68),
        (False, True, ("m240",), {"DELIVERED", "LOST", "CORRUPTED_VALUE", "REORDER_OUTPUT"}, 96),
        (True, False, ("m200",), {"DELIVERED", "REORDER_OUTPUT"}, 0),
    ],
    ids=["clean", "clean beside a log", "with breaks", "in another order"],
)
def test_an_output_without_positions_is_prematched_as_well(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_clean: bool,
    has_log: bool,
    delayed: tuple[str, ...],
    classes: set[str],
    left: int,
) -> None:
    """It is held against the sends id by id, so that the latencies are all known, the greatest too."""
    _write(spark, tmp_path, is_clean=is_clean, has_log=has_log)
    seen_at = F.col("processed_at")
    at = F.when(F.col("message_id").isin(*delayed), F.timestamp_add("SECOND", F.lit(60), seen_at))
    named = spark.read.parquet(str(tmp_path / "delivered")).withColumn(
        "processed_at", F.coalesce(at, seen_at)
    )
    named.select("message_id", "payload_hash", "processed_at").write.parquet(str(tmp_path / "named"))
    key = F.concat(F.lit("k"), "partition")
    keyed = spark.read.parquet(str(tmp_path / "produced")).withColumn("key_hash", key)
    keyed.write.parquet(str(tmp_path / "keyed"))
    text = CONTRACT.replace("path: delivered", "path: named").replace("path: produced", "path: keyed")

    quick, full, reported = _both_ways(
        spark, monkeypatch, _contract(tmp_path, f"ordering: key\n{text}{LOG * has_log}")
    )

    assert quick.statement == full.statement
    assert [*break_lines(quick.breaks)] == [*break_lines(full.breaks)]
    assert set(full.statement["classes"]) == classes
    assert reported == [f"leaving out all but {left} rows, which are judged"]


def test_an_error_while_comparing_is_reported(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file with a spoilt page ends the comparison; that is a step of its own, and then every row is matched.

    The page's header is whole: a page without one is a fault of the file before anything is compared.
    """
    _write(spark, tmp_path, is_clean=True, has_log=False)
    part = max((tmp_path / "delivered").glob("*.parquet"), key=lambda path: path.stat().st_size)
    ids = pq.read_metadata(part).row_group(0).column(0)
    end = ids.data_page_offset + ids.total_compressed_size
    spoilt = bytearray(part.read_bytes())
    spoilt[end - 100 : end] = b"\xff" * 100
    part.write_bytes(spoilt)
    part.with_name(f".{part.name}.crc").unlink(missing_ok=True)
    monkeypatch.setattr("tieout.engine.prematch.prematching.SMALL_BYTES", 0)
    monkeypatch.setattr("tieout.engine.reading.SMALL_BYTES", 0)
    steps: list[str] = []

    found = reconcile(
        spark, _contract(tmp_path, CONTRACT), WINDOW, run_id="r", now=GRACE_END, progress=steps.append
    )

    reported = [step for step in steps if step.startswith("the comparison failed (")]
    assert len(reported) == 1, steps
    assert reported[0].endswith("): judging every row instead")
    assert found.statement["verdict"] != "KEPT"


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("shows_positions", "delayed", "has_numbers", "verdict"),
    [
        (True, None, True, "KEPT"),
        (False, 200, False, "UNKNOWN"),
        (True, 200, True, "BROKEN"),
        (False, 200, True, "BROKEN"),
    ],
    ids=["in order", "by id without numbers", "in another order", "by id in another order"],
)
def test_keys_in_two_partitions_are_left_to_the_rules(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    shows_positions: bool,
    delayed: int | None,
    has_numbers: bool,
    verdict: str,
) -> None:
    """No first level sees their order: what lies in one partition is as it was there, and both are clean."""
    _write(spark, tmp_path, is_clean=True)
    keyed = spark.read.parquet(str(tmp_path / "produced")).withColumn("key_hash", F.lit("k"))
    number = F.substring("message_id", 2, 9).cast("bigint")
    keyed.withColumn("sequence", F.when(F.lit(has_numbers), number)).write.parquet(str(tmp_path / "keyed"))
    at = F.timestamp_add(
        "SECOND", F.when(number.eqNullSafe(F.lit(delayed)), F.lit(13)).otherwise(0), F.col("processed_at")
    )
    seen = spark.read.parquet(str(tmp_path / "delivered")).withColumns(
        {"processed_at": at, "key_hash": F.lit("k")}
    )
    shown = seen if shows_positions else seen.select("message_id", "payload_hash", "processed_at")
    shown.write.parquet(str(tmp_path / "named"))
    text = CONTRACT.replace("path: delivered", "path: named").replace("path: produced", "path: keyed")

    quick, full, left = _both_ways(spark, monkeypatch, _contract(tmp_path, f"ordering: key\n{text}"))

    assert quick.statement == full.statement
    assert [*break_lines(quick.breaks)] == [*break_lines(full.breaks)]
    assert full.statement["verdict"] == verdict
    assert full.statement["flags"] == ({"REORDER_OUTPUT": 1} if verdict == "BROKEN" else {})
    assert full.statement["undecided"] == ({"REORDER_OUTPUT": 1} if verdict == "UNKNOWN" else {})
    assert len(full.statement["limits"]) == (verdict == "UNKNOWN")
    assert left == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("shows_positions", [True, False], ids=["by position", "by id"])
def test_what_came_furthest_before_a_topic_was_made_again_passed_nothing_since(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shows_positions: bool
) -> None:
    """The first messages, which are clean, lie at higher positions than all later ones; the output ends too early."""
    _write(spark, tmp_path, is_clean=True)
    number = F.substring("message_id", 2, 9).cast("bigint")
    above = F.col("offset") + F.when(number < 60, F.lit(1 << 20)).otherwise(0)
    again = {
        ledger: spark.read.parquet(str(tmp_path / ledger)).withColumn("offset", above) for ledger in SENT
    }
    again["produced"].write.parquet(str(tmp_path / "sent"))
    shown = again["delivered"].filter(number < 290)
    named = shown if shows_positions else shown.select("message_id", "payload_hash", "processed_at")
    named.write.parquet(str(tmp_path / "named"))
    text = CONTRACT.replace("path: delivered", "path: named").replace("path: produced", "path: sent")

    quick, full, left = _both_ways(spark, monkeypatch, _contract(tmp_path, text))

    assert quick.statement | {"latency": None} == full.statement | {"latency": None}
    assert [*break_lines(quick.breaks)] == [*break_lines(full.breaks)] != []
    assert full.statement["verdict"] == "PENDING"
    assert len(left) == 1


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "column", ["'compact' AS cleanup_policy", "190L AS last_stable_offset", "string(offset % 2) AS topic_id"]
)
def test_a_log_that_does_not_last_is_matched_whole(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str
) -> None:
    """Where records may be gone, not yet be given to readers, or be another topic's, a position proves too little."""
    _write(spark, tmp_path, is_clean=False, has_log=True, column=column)

    quick, full, left = _both_ways(spark, monkeypatch, _contract(tmp_path, CONTRACT + LOG))

    assert quick.statement == full.statement
    assert left == []


@pytest.mark.timeout(600)
def test_a_recorded_window_has_the_same_statement(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka's own log, the offsets of a group that crashed, and what it lost: most is clean, and nothing differs."""
    example = EXAMPLES / "commit_before_process"
    window = Window(
        datetime.fromisoformat("2026-11-21T13:08:00+00:00"),
        datetime.fromisoformat("2026-11-21T13:10:00+00:00"),
    )

    quick, full, left = _both_ways(
        spark, monkeypatch, load_contract(example / "contract.yml"), window, window.end
    )

    assert quick.statement | {"latency": None} == full.statement | {"latency": None}
    assert [*break_lines(quick.breaks)] == [*break_lines(full.breaks)] != []
    assert len(left) == 1


@pytest.mark.timeout(600)
def test_commits_that_are_many_are_judged_too(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also beside an output that is kept; and the mean of the latency is rounded as that of all messages is."""
    at = [WINDOW.start + timedelta(minutes=n) for n in range(4)]
    same = [(f"m{n}", "orders", 0, n) for n in range(2)]
    columns = "message_id string, topic string, partition int, offset bigint"
    for ledger, names, rows in (
        ("produced", f"{columns}, attempted_at timestamp, outcome string", [(*one, at[0], "acked") for one in same]),
        ("delivered", f"{columns}, processed_at timestamp", [
            (*one, at[0] + timedelta(microseconds=n)) for n, one in enumerate(same)
        ]),
        ("committed", "topic string, partition int, committed_offset bigint, committed_at timestamp", [
            ("orders", 0, offset, at[n]) for n, offset in enumerate((1, 2, 1, 2))
        ]),
    ):  # fmt: skip
        written = spark.createDataFrame(rows, names).coalesce(1).write
        (written.json if ledger == "delivered" else written.parquet)(str(tmp_path / ledger))
    committed = "  committed: {source: {kind: files, format: parquet, path: committed}, coverage: declared}\n"
    text = (CONTRACT + committed.replace("{", "{{").replace("}", "}}")).replace(
        "parquet, path: delivered", "jsonl, path: delivered"
    )

    quick, full, _left = _both_ways(spark, monkeypatch, _contract(tmp_path, text))

    assert quick.statement["flags"] == full.statement["flags"] == {"COMMIT_REGRESSION": 1}
    assert quick.statement["checks"] == full.statement["checks"]
    assert [*quick.statement["coverage"]] == [*full.statement["coverage"]]
    assert quick.statement["latency"]["mean_s"] == full.statement["latency"]["mean_s"]


def _write(
    spark: SparkSession,
    folder: Path,
    *,
    is_clean: bool,
    has_log: bool = False,
    column: str = "'T' AS topic_id",
) -> None:
    """Write 400 messages, one in twelve seconds, so that some lie outside the window, and buckets on its edges.

    Unless it is clean two are lost, side by side, one is changed and one sent again at another position. A log, with
    one more `column`, has no holes.
    """
    columns = "message_id string, topic string, partition int, offset bigint, payload_hash string"
    apart = 1 if has_log else 16
    produced, delivered = [], []
    for number in range(400):
        sent_at = WINDOW.start + timedelta(seconds=12 * (number - 50), milliseconds=7)
        same = (f"m{number}", "orders", number % 2, number // 2 * apart, f"h{number}")
        produced.append((*same, sent_at, "acked"))
        delivered.append((*same, _seen(sent_at, number)))
    if not is_clean:
        again = ("m30", "orders", 0, 200 if has_log else 150 * 16 + 1, "h30")
        produced.append((*again, produced[300][5], "acked"))
        delivered.append((*again, delivered[300][5]))
        delivered[200] = (*delivered[200][:4], "other", delivered[200][5])
        del delivered[102], delivered[100]
    spark.createDataFrame(produced, f"{columns}, attempted_at timestamp, outcome string").write.parquet(
        str(folder / "produced")
    )
    spark.createDataFrame(delivered, f"{columns}, processed_at timestamp").write.parquet(
        str(folder / "delivered")
    )
    if has_log:
        log = spark.createDataFrame([row[:6] for row in produced], f"{columns}, record_timestamp timestamp")
        bounds = (
            "0L AS log_start_offset",
            f"IF(partition = 0 AND {not is_clean}, 201L, 200L) AS end_offset",
        )
        writer = (
            "offset % 3 AS broker_producer_id",
            "0 AS leader_epoch",
            f"timestamp'{GRACE_END}' AS observed_at",
        )
        log.selectExpr("*", *bounds, *writer, column).write.parquet(str(folder / "log"))


def _seen(sent_at: datetime, number: int) -> datetime:
    return sent_at + timedelta(milliseconds=100 + number % 7)
