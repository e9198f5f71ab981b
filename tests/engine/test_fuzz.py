"""Files of a broken window, changed by chance, in one session: a statement or a named error, and never KEPT.

`TIEOUT_FUZZ_CASES` says how many cases there are, twenty for each that runs here; a failure names its own.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.fuzz.changing import CASES, changed_bytes

from tieout.contracts import load_contract
from tieout.engine.reconciling import reconcile
from tieout.errors import TieoutError
from tieout.model import Verdict, Window
from tieout.verdicts import judge

_START: Final = datetime(2026, 11, 20, 10, tzinfo=UTC)
_WINDOW: Final = Window(_START, _START + timedelta(hours=1))
_LOST: Final = (2, 5, 8)
_CASES: Final = max(3, CASES // 20)
_CONTRACT: Final = """\
version: 1
pipeline: orders
guarantee: at_least_once
group: loader
grace: 10m
ledgers:
  produced:
    source: {kind: files, format: jsonl, path: sent.jsonl}
    coverage: {complete_until: "'2026-11-20T12:00:00Z'", producers: [a], sequences: gapless}
  log:
    source: {kind: files, format: parquet, path: log.parquet}
    coverage: {complete_until: "'2026-11-20T12:00:00Z'"}
  delivered:
    source: {kind: files, format: csv, path: out.csv}
    coverage: {complete_until: "'2026-11-20T12:00:00Z'"}
"""


@pytest.mark.timeout(3_600)
def test_what_is_broken_is_never_kept_by_chance(spark: SparkSession, tmp_path: Path) -> None:
    """Three messages are lost; whatever happens to the bytes of one file, nobody is told that they arrived."""
    (tmp_path / "contract.yml").write_text(_CONTRACT)
    _write(tmp_path)
    whole = {name: (tmp_path / name).read_bytes() for name in ("sent.jsonl", "log.parquet", "out.csv")}
    assert _outcome(spark, tmp_path) == "BROKEN"

    reported: Counter[str] = Counter()
    for seed in range(_CASES):
        chance = Random(seed)  # noqa: S311 - repeatable, not secret
        name = sorted(whole)[seed % len(whole)]
        (tmp_path / name).write_bytes(changed_bytes(whole[name], chance))
        outcome = _outcome(spark, tmp_path, f"case {seed}, {name}")
        (tmp_path / name).write_bytes(whole[name])
        assert outcome != "KEPT", (seed, name)
        reported[outcome] += 1

    assert sum(reported.values()) == _CASES


def _write(folder: Path) -> None:
    sent, records, output = [], [], ["message_id,payload_hash,topic,partition,offset,processed_at"]
    for number in range(10):
        at = (_START + timedelta(minutes=number)).isoformat()
        place: dict[str, Any] = {"message_id": f"m{number}", "payload_hash": f"h{number}", "topic": "orders"}
        place |= {"partition": 0, "offset": number}
        session = {"producer_id": "a", "producer_session": "s", "sequence": number}
        sent.append(session | place | {"attempted_at": at, "completed_at": at, "outcome": "acked"})
        records.append(place | {"record_timestamp": at, "log_start_offset": 0, "end_offset": 10})
        if number not in _LOST:
            output.append(f"m{number},h{number},orders,0,{number},{at}")
    (folder / "sent.jsonl").write_text("".join(json.dumps(row) + "\n" for row in sent))
    pq.write_table(pa.Table.from_pylist(records), folder / "log.parquet")
    (folder / "out.csv").write_text("\n".join(output) + "\n")


def _outcome(spark: SparkSession, folder: Path, case: str = "the whole") -> str:
    contract = load_contract(folder / "contract.yml")
    try:
        found = reconcile(spark, contract, _WINDOW, run_id="fuzz", now=_START + timedelta(hours=3))
    except TieoutError as error:
        return type(error).__name__
    except Exception as error:
        raise AssertionError(f"{case}: {type(error).__name__}: {error}") from error
    return Verdict(judge(contract, found.statement).verdict).value
