"""Judges the recordings in `examples/` with today's engine, from copies of their evidence."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession
from tests.snapshots.drawing import Recording

from tieout.contracts import load_contract
from tieout.engine.reconciling import reconcile
from tieout.engine.staging import break_lines

READ_AT: Final = datetime(2026, 12, 1, tzinfo=UTC)
"""When recordings are read, and their files were last written."""


def judge_recordings(spark: SparkSession, found: Sequence[Recording]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield of each recording its place and its statement with its `breaks`, without where the copy lay."""
    for place, recording in enumerate(found):
        with tempfile.TemporaryDirectory() as folder:
            copy = _copied(recording, Path(folder) / "copy")
            contract = load_contract(copy / recording.contract)
            one = reconcile(spark, contract, recording.window, run_id="snapshot", now=READ_AT)
            whole = one.statement | {"breaks": list(break_lines(one.breaks))}
            yield place, json.loads(json.dumps(whole).replace(f"{copy}/", ""))


def _copied(recording: Recording, copy: Path) -> Path:
    shutil.copytree(recording.folder, copy)
    for overlay in recording.overlays:
        shutil.copytree(copy / overlay, copy / "evidence", dirs_exist_ok=True)
    for file in copy.rglob("*"):
        os.utime(file, (READ_AT.timestamp(), READ_AT.timestamp()))
    return copy
