"""Which of Java's compilers and collectors a Spark on this machine uses."""

from __future__ import annotations

import pytest

from tieout.java_options import QUICK_BYTES, QUICK_COMPILER, java_options_for
from tieout.model import SMALL_BYTES

METASPACE = "-XX:MetaspaceSize=256m"


@pytest.mark.parametrize(
    ("evidence_bytes", "options"),
    [
        (SMALL_BYTES, f"-XX:+UseSerialGC {METASPACE} {QUICK_COMPILER}"),
        (SMALL_BYTES + 1, f"-XX:+UseParallelGC {METASPACE} {QUICK_COMPILER}"),
        (None, f"-XX:+UseParallelGC {METASPACE} {QUICK_COMPILER}"),
        (QUICK_BYTES + 1, f"-XX:+UseParallelGC {METASPACE}"),
    ],
)
def test_java_compiles_quickly_unless_the_evidence_is_known_to_be_large(
    evidence_bytes: int | None, options: str
) -> None:
    """Evidence of a database or a cluster has no known size: most windows are small, but not all."""
    assert java_options_for(evidence_bytes) == options
