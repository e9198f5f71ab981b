"""Java is started for little evidence where all of it is in small files of this machine, else for much."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tieout.cli import spark as under_test
from tieout.contracts import load_contract
from tieout.model import SMALL_BYTES

CONTRACT = """\
version: 1
pipeline: orders
guarantee: at_least_once
group: loader
ledgers:
  produced: {{source: {{kind: files, format: jsonl, path: 'sent/*.jsonl'}}}}
  delivered: {{source: {delivered}}}
"""
FOLDER = "{kind: files, format: csv, path: out}"


@pytest.mark.parametrize(
    ("delivered", "sent", "arrived", "size"),
    [
        (FOLDER, 20, 10, 30),
        (FOLDER, 11, SMALL_BYTES, SMALL_BYTES + 11),
        ("{kind: files, format: csv, path: nowhere}", 10, 10, 10),
        ("{kind: files, format: csv, path: 's3a://bucket/out'}", 10, 10, None),
        ("{kind: jdbc, connection: warehouse, table: orders}", 10, 10, None),
    ],
    ids=["files", "a large folder", "no file", "on another machine", "in a database"],
)
def test_java_is_started_for_as_much_as_there_is(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    delivered: str,
    sent: int,
    arrived: int,
    size: int | None,
) -> None:
    """Files count with all that lies in their folders; of what is not on this machine nobody knows how much it is."""
    for place, length in (("sent/a.jsonl", sent), ("out/day/a.csv", arrived)):
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).touch()
        os.truncate(tmp_path / place, length)
    (tmp_path / "orders.yml").write_text(CONTRACT.format(delivered=delivered), encoding="utf-8")

    monkeypatch.setattr("tieout.settings.cache_folder", lambda: tmp_path / "cache")
    started: list[Any] = []

    def session(*_: Any, **said: Any) -> SimpleNamespace:
        assert os.environ["SPARK_DRIVER_MEMORY"] == "3g"
        started.append(said["evidence_bytes"])
        return SimpleNamespace(stop=lambda: None, sparkContext=SimpleNamespace(_accumulatorServer=None))

    monkeypatch.setattr(under_test, "local_session", session)
    monkeypatch.setattr("tieout.settings.driver_memory", lambda: "3g")

    with under_test._session(load_contract(tmp_path / "orders.yml"), lambda _: None):
        assert started == [size]
