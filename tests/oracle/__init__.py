"""An independent check of the engine: the taxonomy in plain Python, slow and obvious."""

from __future__ import annotations

from tests.oracle.history import OracleCoverage
from tests.oracle.judging import ALL_CLASSES, FIRST_CLASSES, judge_history

__all__ = ["ALL_CLASSES", "FIRST_CLASSES", "OracleCoverage", "judge_history"]
