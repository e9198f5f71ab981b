"""A window that is prematched has the statement that the rules put to every row give it.

Mostly the rules are put to the rows without Spark: of some windows Spark itself judges every row, as a run does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.engine.histories import GRACE_END, WINDOW, Said
from tests.judging.kernel import arrow_of, kernel_lines

from tieout.contracts import Contract, load_contract
from tieout.engine import reconciling
from tieout.engine.reconciling import Reconciliation, reconcile, reconciled
from tieout.engine.scope import Scope
from tieout.engine.session import explained_spark_errors, set_to, suited_to
from tieout.engine.staging import break_lines
from tieout.errors import ExecutorLostError
from tieout.model import Ledger, Window

Rows = dict[Ledger, list[dict[str, Any]]]
Found = tuple[dict[str, Any], list[dict[str, Any]]]
"""A statement and the lines of its breaks."""
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


def _quick(
    spark: SparkSession,
    contract: Contract,
    window: Window = WINDOW,
    now: datetime = GRACE_END,
    *,
    match: str = "auto",
    is_compiled: bool = False,
) -> tuple[Reconciliation, list[str]]:
    """Return what is found with prematch, or as `match` says, and what prematch left out, as it told it.

    Compiled, as a large window's plans are, are those of the history that stands for all the others.
    """
    steps: list[str] = []
    with pytest.MonkeyPatch.context() as patch, set_to(spark, {} if is_compiled else INTERPRETED):
        patch.setattr("tieout.engine.prematch.prematching.SMALL_BYTES", 0)
        patch.setattr("tieout.engine.reading.SMALL_BYTES", 0)
        one = contract.model_copy(update={"match": match})
        found = reconcile(spark, one, window, run_id="r", now=now, progress=steps.append)
    return found, [step for step in steps if step.startswith("leaving out")]


def _lines(found: Reconciliation) -> Found:
    return found.statement, [*break_lines(found.breaks)]


def _by_the_rules(contract: Contract, rows: Rows) -> Found:
    """Return what the rules find, put to every row."""
    statement, breaks = kernel_lines(Said(contract, rows, WINDOW, GRACE_END))
    return statement | {"run_id": "r", "generated_at": GRACE_END.isoformat().replace("+00:00", "Z")}, breaks


def _without_reading(found: Found) -> Found:
    """Return what was found, without what a ledger's coverage says of its files."""
    statement, breaks = found
    coverage = {
        ledger: one | dict.fromkeys(("digests", "notes", "stated_by"))
        for ledger, one in statement["coverage"].items()
    }
    return statement | {"coverage": coverage}, breaks


def _contract(folder: Path, text: str) -> Contract:
    (folder / "contract.yml").write_text(text.format(match="auto"))
    return load_contract(folder / "contract.yml")


@dataclass(frozen=True)
class Prematched:
    """What is found of a window with prematch, what that left out, and the scope that was judged."""

    contract: Contract
    found: Reconciliation
    left: list[str]
    scope: Scope


@pytest.fixture(scope="module")
def with_breaks(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Prematched:
    """A window with breaks beside a log."""
    folder = tmp_path_factory.mktemp("with_breaks")
    _write(folder, _messages(is_clean=False, has_log=True))
    contract = _contract(folder, CONTRACT + LOG)
    scopes: list[Scope] = []

    def noted(scope: Scope, **labels: Any) -> Reconciliation:
        scopes.append(scope)
        return reconciled(scope, **labels)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reconciling, "reconciled", noted)
        found, left = _quick(spark, contract, is_compiled=True)
    return Prematched(contract, found, left, scopes[0])


@pytest.mark.parametrize("has_log", [False, True], ids=["without a log", "with a log"])
@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "with breaks"])
def test_a_prematched_window_has_the_same_statement(
    spark: SparkSession,
    tmp_path: Path,
    with_breaks: Prematched,
    is_clean: bool,
    has_log: bool,
) -> None:
    """All but percentiles and maximum of the latency, which come from a sample: breaks and proof as well."""
    if has_log and not is_clean:
        found, left = with_breaks.found, with_breaks.left
        every, _ = _quick(spark, with_breaks.contract, match="full", is_compiled=True)
        assert found.breaks.rows().dtypes == every.breaks.rows().dtypes
        quick, full = _lines(found), _lines(every)
    else:
        rows = _messages(is_clean=is_clean, has_log=has_log)
        _write(tmp_path, rows)
        contract = _contract(tmp_path, CONTRACT + LOG * has_log)
        found, left = _quick(spark, contract)
        assert found.breaks.rows().schema == found.breaks.schema
        quick, full = _without_reading(_lines(found)), _without_reading(_by_the_rules(contract, rows))

    latency, exact = quick[0]["latency"], full[0]["latency"]
    assert latency.keys() == exact.keys() | {"sample"}
    assert quick[0] | {"latency": None} == full[0] | {"latency": None}
    assert full[0]["verdict"] == ("KEPT" if is_clean else "BROKEN")
    assert 0 < latency["sample"] < latency["count"] == exact["count"] == (300 if is_clean else 298)
    assert latency["mean_s"] == exact["mean_s"]
    assert quick[1] == full[1]
    remaining = {(True, False): 0, (True, True): 68, (False, False): 28, (False, True): 96}[is_clean, has_log]
    assert left == [f"leaving out all but {remaining} rows, which are judged"]
    balances = [row["offsets"] for row in full[0]["partitions"]]
    assert [row and row["delivered"] for row in balances] == (
        [150 if is_clean else 148, 150] if has_log else [None] * 2
    )


def test_what_is_left_of_it_is_judged_alike_in_several_buckets(
    spark: SparkSession,
    with_breaks: Prematched,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is told of clean messages goes to the bucket of their partition."""
    one, scope = with_breaks.found, with_breaks.scope
    assert scope.clean is not None
    monkeypatch.setattr("tieout.engine.judging.task.BYTES_OF_ROW", 1 << 28)

    with set_to(spark, INTERPRETED), suited_to(spark, is_small=not scope.is_large, rows=scope.row_count):
        several = reconciled(scope, run_id="r", now=GRACE_END)
        assert (one.breaks.buckets, several.breaks.buckets) == (1, 2)
        assert _lines(several) == _lines(one)


@pytest.mark.parametrize(
    ("is_clean", "has_log", "delayed", "classes", "left"),
    [
        (True, False, None, {"DELIVERED"}, 0),
        (True, True, None, {"DELIVERED"}, 68),
        (False, True, "m240", {"DELIVERED", "LOST", "CORRUPTED_VALUE", "REORDER_OUTPUT"}, 96),
        (True, False, "m200", {"DELIVERED", "REORDER_OUTPUT"}, 0),
    ],
    ids=["clean", "clean beside a log", "with breaks", "in another order"],
)
def test_an_output_without_positions_is_prematched_as_well(
    spark: SparkSession,
    tmp_path: Path,
    is_clean: bool,
    has_log: bool,
    delayed: str | None,
    classes: set[str],
    left: int,
) -> None:
    """It is held against the sends id by id, so that the latencies are all known, the greatest too."""
    rows = _messages(is_clean=is_clean, has_log=has_log)
    rows[Ledger.PRODUCED] = [row | {"key_hash": f"k{row['partition']}"} for row in rows[Ledger.PRODUCED]]
    rows[Ledger.DELIVERED] = _by_id(_delayed(rows[Ledger.DELIVERED], delayed, timedelta(seconds=60)))
    _write(tmp_path, rows)
    contract = _contract(tmp_path, f"ordering: key\n{CONTRACT}{LOG * has_log}")

    quick, reported = _quick(spark, contract)

    full = _by_the_rules(contract, rows)
    assert _without_reading(_lines(quick)) == _without_reading(full)
    assert set(full[0]["classes"]) == classes
    assert reported == [f"leaving out all but {left} rows, which are judged"]


def test_an_error_while_comparing_is_reported(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file with a spoilt page ends the comparison; that is a step of its own, and then every row is matched.

    The page's header is whole: a page without one is a fault of the file before anything is compared.
    """
    _write(tmp_path, _messages(is_clean=True))
    part = max((tmp_path / "delivered").glob("*.parquet"), key=lambda path: path.stat().st_size)
    ids = pq.read_metadata(part).row_group(0).column(0)
    end = ids.data_page_offset + ids.total_compressed_size
    spoilt = bytearray(part.read_bytes())
    spoilt[end - 100 : end] = b"\xff" * 100
    part.write_bytes(spoilt)
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


def test_a_comparison_whose_rows_were_lost_is_no_verdict(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kept rows end with their executor: the job fails and is tried again, instead of judging every row of a window."""
    _write(tmp_path, _messages(is_clean=False))
    monkeypatch.setattr("tieout.engine.prematch.prematching.SMALL_BYTES", 0)
    monkeypatch.setattr("tieout.engine.reading.SMALL_BYTES", 0)
    contract = _contract(tmp_path, CONTRACT)
    java: Any = spark.sparkContext._jsc
    steps: list[str] = []

    def lose_kept_rows(step: str) -> None:
        steps.append(step)
        if step.startswith("looking"):
            for kept in java.getPersistentRDDs().values():
                kept.unpersist(True)

    with pytest.raises(ExecutorLostError, match="can be run again"), explained_spark_errors():
        reconcile(spark, contract, WINDOW, run_id="r", now=GRACE_END, progress=lose_kept_rows)

    assert steps[-1].startswith("looking"), steps


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
    shows_positions: bool,
    delayed: int | None,
    has_numbers: bool,
    verdict: str,
) -> None:
    """No first level sees their order: what lies in one partition is as it was there, and both are clean."""
    rows = _messages(is_clean=True)
    rows[Ledger.PRODUCED] = [
        row | {"key_hash": "k", "sequence": number if has_numbers else None}
        for number, row in enumerate(rows[Ledger.PRODUCED])
    ]
    seen = _delayed(rows[Ledger.DELIVERED], f"m{delayed}", timedelta(seconds=13))
    rows[Ledger.DELIVERED] = [row | {"key_hash": "k"} for row in seen] if shows_positions else _by_id(seen)
    _write(tmp_path, rows)
    contract = _contract(tmp_path, f"ordering: key\n{CONTRACT}")

    quick, left = _quick(spark, contract)

    full = _by_the_rules(contract, rows)
    assert _without_reading(_lines(quick)) == _without_reading(full)
    assert full[0]["verdict"] == verdict
    assert full[0]["flags"] == ({"REORDER_OUTPUT": 1} if verdict == "BROKEN" else {})
    assert full[0]["undecided"] == ({"REORDER_OUTPUT": 1} if verdict == "UNKNOWN" else {})
    assert len(full[0]["limits"]) == (verdict == "UNKNOWN")
    assert left == []


@pytest.mark.parametrize("shows_positions", [True, False], ids=["by position", "by id"])
def test_what_came_furthest_before_a_topic_was_made_again_passed_nothing_since(
    spark: SparkSession, tmp_path: Path, shows_positions: bool
) -> None:
    """The first messages, which are clean, lie at higher positions than all later ones; the output ends too early."""
    rows = {
        ledger: [
            row | {"offset": row["offset"] + (1 << 20) * (number < 60)} for number, row in enumerate(found)
        ]
        for ledger, found in _messages(is_clean=True).items()
    }
    shown = rows[Ledger.DELIVERED][:290]
    rows[Ledger.DELIVERED] = shown if shows_positions else _by_id(shown)
    _write(tmp_path, rows)
    contract = _contract(tmp_path, CONTRACT)

    found, left = _quick(spark, contract)

    quick, full = _without_reading(_lines(found)), _without_reading(_by_the_rules(contract, rows))
    assert quick[0] | {"latency": None} == full[0] | {"latency": None}
    assert quick[1] == full[1] != []
    assert full[0]["verdict"] == "PENDING"
    assert len(left) == 1


@pytest.mark.parametrize(
    "column",
    [
        lambda _offset: {"cleanup_policy": "compact"},
        lambda _offset: {"last_stable_offset": 190},
        lambda offset: {"topic_id": str(offset % 2)},
    ],
    ids=["compacted", "not stable", "of two topics"],
)
def test_a_log_that_does_not_last_is_matched_whole(
    spark: SparkSession, tmp_path: Path, column: Callable[[int], dict[str, Any]]
) -> None:
    """Where records may be gone, not yet be given to readers, or be another topic's, a position proves too little."""
    rows = _messages(is_clean=False, has_log=True)
    rows[Ledger.LOG] = [
        {name: value for name, value in row.items() if name != "topic_id"} | column(row["offset"])
        for row in rows[Ledger.LOG]
    ]
    _write(tmp_path, rows)
    contract = _contract(tmp_path, CONTRACT + LOG)

    quick, left = _quick(spark, contract)

    if "topic_id" in rows[Ledger.LOG][0]:  # it is Spark that tells topics of one name apart
        assert _lines(quick) == _lines(_quick(spark, contract, match="full")[0])
    else:
        assert _without_reading(_lines(quick)) == _without_reading(_by_the_rules(contract, rows))
    assert left == []


def test_a_recorded_window_has_the_same_statement(spark: SparkSession) -> None:
    """Kafka's own log, the offsets of a group that crashed, and what it lost: most is clean, and nothing differs."""
    contract = load_contract(EXAMPLES / "commit_before_process" / "contract.yml")
    window = Window(
        datetime.fromisoformat("2026-11-21T13:08:00+00:00"),
        datetime.fromisoformat("2026-11-21T13:10:00+00:00"),
    )

    found, left = _quick(spark, contract, window, window.end)

    quick, full = _lines(found), _lines(_quick(spark, contract, window, window.end, match="full")[0])
    assert quick[0] | {"latency": None} == full[0] | {"latency": None}
    assert quick[1] == full[1] != []
    assert len(left) == 1


def test_commits_that_are_many_are_judged_too(spark: SparkSession, tmp_path: Path) -> None:
    """Also beside an output that is kept; and the mean of the latency is rounded as that of all messages is."""
    at = [WINDOW.start + timedelta(minutes=n) for n in range(4)]
    same = [{"message_id": f"m{n}", "topic": "orders", "partition": 0, "offset": n} for n in range(2)]
    seen = [row | {"processed_at": at[0] + timedelta(microseconds=n)} for n, row in enumerate(same)]
    rows = {
        Ledger.PRODUCED: [row | {"attempted_at": at[0], "outcome": "acked"} for row in same],
        Ledger.DELIVERED: seen,
        Ledger.COMMITTED: [
            {"topic": "orders", "partition": 0, "committed_offset": offset, "committed_at": at[n]}
            for n, offset in enumerate((1, 2, 1, 2))
        ],
    }
    _write(tmp_path, {ledger: found for ledger, found in rows.items() if ledger is not Ledger.DELIVERED})
    lines = [json.dumps(row, default=datetime.isoformat) for row in seen]
    (tmp_path / "delivered.jsonl").write_text("\n".join(lines))
    text = CONTRACT.replace("parquet, path: delivered", "jsonl, path: delivered.jsonl")

    quick, _left = _quick(spark, _contract(tmp_path, text + LOG.replace("log", "committed")))

    full, _ = _by_the_rules(_contract(tmp_path, text + LOG.replace("log", "committed")), rows)
    assert quick.statement["flags"] == full["flags"] == {"COMMIT_REGRESSION": 1}
    assert quick.statement["checks"] == full["checks"]
    assert [*quick.statement["coverage"]] == [*full["coverage"]]
    assert quick.statement["latency"]["mean_s"] == full["latency"]["mean_s"]


def _messages(*, is_clean: bool, has_log: bool = False) -> Rows:
    """Return 400 messages, one in twelve seconds, so that some lie outside the window, and buckets on its edges.

    Unless it is clean two are lost, side by side, one is changed and one sent again at another position. A log has no
    holes.
    """
    apart = 1 if has_log else 16
    produced, delivered = [], []
    for number in range(400):
        sent_at = WINDOW.start + timedelta(seconds=12 * (number - 50), milliseconds=7)
        same = _placed(number, number // 2 * apart)
        produced.append({**same, "attempted_at": sent_at, "outcome": "acked"})
        delivered.append({**same, "processed_at": sent_at + timedelta(milliseconds=100 + number % 7)})
    if not is_clean:
        again = _placed(30, 200 if has_log else 150 * 16 + 1)
        produced.append(produced[300] | again)
        delivered.append(delivered[300] | again)
        delivered[200] |= {"payload_hash": "other"}
        del delivered[102], delivered[100]
    found = {Ledger.PRODUCED: produced, Ledger.DELIVERED: delivered}
    return found | ({Ledger.LOG: [_logged(row, is_clean) for row in produced]} if has_log else {})


def _placed(number: int, offset: int) -> dict[str, Any]:
    return {
        "message_id": f"m{number}",
        "topic": "orders",
        "partition": number % 2,
        "offset": offset,
        "payload_hash": f"h{number}",
    }


def _logged(sent: Mapping[str, Any], is_clean: bool) -> dict[str, Any]:
    same = {name: sent[name] for name in sent if name not in ("attempted_at", "outcome")}
    return {
        **same,
        "record_timestamp": sent["attempted_at"],
        "log_start_offset": 0,
        "end_offset": 201 if sent["partition"] == 0 and not is_clean else 200,
        "broker_producer_id": sent["offset"] % 3,
        "leader_epoch": 0,
        "observed_at": GRACE_END,
        "topic_id": "T",
    }


def _delayed(seen: list[dict[str, Any]], message_id: str | None, by: timedelta) -> list[dict[str, Any]]:
    """Return the effects, that of one message so much later."""
    return [
        row | {"processed_at": row["processed_at"] + by * (row["message_id"] == message_id)} for row in seen
    ]


def _by_id(seen: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the effects without their positions."""
    return [{name: row[name] for name in ("message_id", "payload_hash", "processed_at")} for row in seen]


def _write(folder: Path, rows: Rows) -> None:
    """Write each ledger's rows as two files of Parquet."""
    for ledger, found in rows.items():
        known = arrow_of(ledger, found).select([*found[0]])
        zoned = [
            field.with_type(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(field.type) else field
            for field in known.schema
        ]
        table, half = known.cast(pa.schema(zoned)), len(found) // 2
        (folder / ledger.value).mkdir()
        for place, part in enumerate((table[:half], table[half:])):
            pq.write_table(part, folder / ledger.value / f"{place}.parquet", use_dictionary=False)
