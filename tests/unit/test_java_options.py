"""Which of Java's compilers and collectors a Spark on this machine uses."""

from __future__ import annotations

import pytest

from tieout.java_options import QUICK_BYTES, java_options_for
from tieout.model import SMALL_BYTES

_QUICK = "-XX:MetaspaceSize=256m -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=128m"


@pytest.mark.parametrize(
    ("evidence_bytes", "options"),
    [
        (SMALL_BYTES, f"-XX:+UseSerialGC {_QUICK}"),
        (SMALL_BYTES + 1, f"-XX:+UseParallelGC {_QUICK}"),
        (None, f"-XX:+UseParallelGC {_QUICK}"),
        (QUICK_BYTES + 1, "-XX:+UseParallelGC -XX:MetaspaceSize=256m"),
    ],
)
def test_java_compiles_quickly_unless_the_evidence_is_known_to_be_large(
    evidence_bytes: int | None, options: str
) -> None:
    """Evidence of a database or a cluster has no known size: most windows are small, but not all."""
    assert java_options_for(evidence_bytes) == options
