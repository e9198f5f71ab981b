"""Rows of the examples' evidence that are gone never make BROKEN into KEPT where anything is left that misses them.

Read by the readers that the contracts name, and for one recording by those of CSV and Parquet. Rows that nobody misses
are an output's second ones and a group's commits (interpretation 132): without them the evidence is that of another
history, and the statement names whose word calls the ledger complete.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tieout.contracts import load_contract
from tieout.engine.reconciling import reconcile
from tieout.model import Window
from tieout.verdicts import judge

EXAMPLES: Final = Path(__file__).resolve().parents[2] / "examples"
TRIES_ALL: Final = "TIEOUT_FUZZ_CASES" in os.environ
"""`make fuzz` tries every part of every example, `make test` one in `_EVERY`."""
_EVERY: Final = 80
_TEXTS: Final = (".jsonl", ".json", ".csv")
_MISSED_BY_NOBODY: Final = re.compile(r"(committed|orders_commits|ranges|consumer_offsets)\.")
"""Files of a group's positions: nothing else names a commit."""
_OUTPUT: Final = re.compile(r"(delivered|entries|plain|enriched|routed|table)\.|output/|files/|delivered/")


@dataclass(frozen=True)
class Removal:
    """Some rows of one file of an example's evidence, by their places in the file."""

    contract: str
    form: str
    file: str
    kind: str
    places: frozenset[int]

    def __str__(self) -> str:
        return f"{self.contract} {self.form} {self.file}: {self.kind}"


def _contracts() -> Iterator[str]:
    """Yield the contracts of examples whose first judgement is BROKEN."""
    for truth in sorted(EXAMPLES.glob("*/truth.json")):
        judged = json.loads(truth.read_text())["stages"][0]["contracts"]
        yield from (
            f"{truth.parent.name}/{name}" for name, one in judged.items() if one["verdict"] == "BROKEN"
        )
    for truth in sorted(EXAMPLES.glob("systems/*/truth.json")):
        judged = json.loads(truth.read_text())["contracts"]
        yield from (
            f"systems/{truth.parent.name}/{name}"
            for name, one in judged.items()
            if one["verdict"] == "BROKEN"
        )
    for hop in json.loads((EXAMPLES / "chains/three_hops/truth.json").read_text())["hops"]:
        yield f"chains/three_hops/{hop['pipeline']}.yml"


def _window(contract: str) -> Window:
    truth = json.loads((EXAMPLES / contract).with_name("truth.json").read_text())
    bounds = (
        truth["contracts"][Path(contract).name]["window"]
        if "contracts" in truth
        else [truth["window"]["start"], truth["window"]["end"]]
    )
    start, end = (datetime.fromisoformat(one) for one in bounds)
    return Window(start, end)


def _files(contract: str) -> Iterator[Path]:
    """Yield the files with rows that the contract reads."""
    evidence = (EXAMPLES / contract).parent / "evidence"
    text = (EXAMPLES / contract).read_text()
    for file in sorted(path for path in evidence.rglob("*") if path.suffix in _TEXTS):
        name = str(file.relative_to(evidence.parent))
        read = name in text or f"{Path(name).parent}/*" in text or f"path: {Path(name).parent}," in text
        if read and "_spark_metadata" not in name:
            yield file


def _rows(file: Path) -> tuple[str, list[str]]:
    """Return the header of a file, empty where its kind has none, and its other lines."""
    lines = file.read_text().splitlines(keepends=True)
    return (lines[0], lines[1:]) if file.suffix == ".csv" else ("", lines)


def _values(file: Path) -> list[Mapping[str, Any]]:
    header, lines = _rows(file)
    if header:
        names = header.strip().split(",")
        return [dict(zip(names, line.strip().split(","), strict=True)) for line in lines]
    return [json.loads(line) for line in lines]


def _parts(rows: list[Mapping[str, Any]]) -> Iterator[tuple[str, set[int]]]:
    """Yield parts of a file's rows: of a producer, session, partition or consumer; stretches, single rows."""
    for column in ("producer_id", "producer_session", "partition", "consumer_id"):
        values = sorted({str(row[column]) for row in rows if row.get(column) is not None})
        for value in values if len(values) < 5 else values[:2]:
            yield f"{column} {value}", {n for n, row in enumerate(rows) if str(row.get(column)) == value}
    count = len(rows)
    yield "head", set(range(count // 3))
    yield "middle", set(range(count // 3, count * 2 // 3))
    yield "tail", set(range(count * 2 // 3, count))
    yield "the last one", {count - 1}
    yield "one of the middle", {count // 2}
    yield "every third one", set(range(0, count, 3))
    yield "all", set(range(count))


def _removals(contract: str, form: str) -> Iterator[Removal]:
    for file in _files(contract):
        name = str(file.relative_to((EXAMPLES / contract).parent))
        seen = set()
        for kind, places in _parts(_values(file)):
            if places and frozenset(places) not in seen:
                seen.add(frozenset(places))
                yield Removal(contract, form, name, kind, frozenset(places))


def _as_parquet(file: Path) -> None:
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [row.get(name) for row in rows] for name in names}
    pq.write_table(pa.table(columns), file.with_suffix(".parquet"))
    file.unlink()


def _as_csv(file: Path) -> None:
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [",".join(names)] + [
        ",".join("" if row.get(name) is None else str(row[name]) for name in names) for row in rows
    ]
    file.with_suffix(".csv").write_text("\n".join(lines) + "\n")
    file.unlink()


_FORMS: Final[Mapping[str, Callable[[Path], None]]] = {"parquet": _as_parquet, "csv": _as_csv}
"""What rewrites a file of JSON lines that the contract reads as another format."""
_CONVERTED: Final = "commit_before_process/contract.yml"


def _all() -> list[Removal]:
    found = [one for contract in _contracts() for one in _removals(contract, "as recorded")]
    return found + [one for form in _FORMS for one in _removals(_CONVERTED, form)]


ALL: Final = _all()
TRIED: Final = ALL if TRIES_ALL else ALL[::_EVERY]


def test_there_is_something_to_remove() -> None:
    """Every kind of file, of many examples."""
    assert len({one.contract for one in ALL}) >= 10
    assert len(ALL) > 200
    assert {Path(one.file).suffix for one in ALL} >= {".jsonl", ".csv"}


def removed(one: Removal, folder: Path) -> Path:
    """Return the contract of a copy of the example without the rows, in the removal's form."""
    source = (EXAMPLES / one.contract).parent
    copy = folder / source.name
    shutil.copytree(source, copy)
    header, lines = _rows(copy / one.file)
    left = [line for place, line in enumerate(lines) if place not in one.places]
    (copy / one.file).write_text(header + "".join(left))
    contract = copy / Path(one.contract).name
    if one.form in _FORMS:
        # A Parquet file says which columns it has also where it has no row.
        for file in [*(copy / "evidence").rglob("*.jsonl")]:
            if file.stat().st_size:
                _FORMS[one.form](file)
            else:
                file.unlink()
        text = contract.read_text().replace("format: jsonl", f"format: {one.form}")
        contract.write_text(text.replace(".jsonl", f".{one.form}"))
    return contract


def verdict_of(spark: SparkSession, contract: Path, original: str) -> tuple[str, dict[str, Any]]:
    """Return the engine's verdict on the example's window, and the statement."""
    loaded = load_contract(contract)
    found = reconcile(spark, loaded, _window(original), run_id="deleted", now=datetime.now(UTC)).statement
    return str(judge(loaded, found).verdict), found


@cache
def is_missed(one: Removal) -> bool:
    """Return whether anything that is left says that the rows were there."""
    if _MISSED_BY_NOBODY.search(one.file):
        return False
    if not _OUTPUT.search(one.file):
        return True
    rows = _values(EXAMPLES.joinpath(one.contract).parent / one.file)
    keys = [row.get("message_id") or row.get("order_id") or json.dumps(row) for row in rows]
    left = {key for place, key in enumerate(keys) if place not in one.places}
    return any(keys[place] not in left for place in one.places)


@pytest.mark.parametrize("one", TRIED, ids=str)
def test_rows_that_are_gone_and_missed_are_not_kept(
    spark: SparkSession, tmp_path: Path, one: Removal
) -> None:
    """BROKEN stays BROKEN or becomes UNKNOWN, unless nothing that is left says that the rows were there."""
    verdict, found = verdict_of(spark, removed(one, tmp_path), one.contract)

    assert verdict != "KEPT" or not is_missed(one), found["coverage"]


def test_second_rows_of_an_output_are_missed_by_nobody(spark: SparkSession, tmp_path: Path) -> None:
    """Without duplicates it is the evidence of a kept promise; whose word calls it complete, the statement says."""
    contract, file = "process_before_commit/contract.yml", "evidence/delivered.jsonl"
    ids = [row["message_id"] for row in _values(EXAMPLES / "process_before_commit" / file)]
    second = frozenset(place for place, name in enumerate(ids) if name in ids[:place])
    one = Removal(contract, "as recorded", file, "second rows", second)
    assert second
    assert not is_missed(one)

    verdict, found = verdict_of(spark, removed(one, tmp_path), contract)

    assert verdict == "KEPT"
    assert found["coverage"]["delivered"]["stated_by"] == "watermark file evidence/extracted_at.txt"
