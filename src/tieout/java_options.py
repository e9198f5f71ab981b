"""Java's options for a Spark on this machine, by how much evidence it reads.

How they were chosen: docs/decisions/small-windows-run-without-code-generation.md.
"""

from __future__ import annotations

from typing import Final

from tieout.model import SMALL_BYTES

QUICK_BYTES: Final = 8 * SMALL_BYTES
"""Up to so much evidence, Java's optimising compiler costs a run more processor time than its code saves."""
QUICK_COMPILER: Final = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=128m"
"""The options for Java's quick compiler (C1) alone, and for a cache of its code that Spark's does not fill.

By default the cache has 48 MB then: many windows fill it, and Java sweeps it and compiles again and again.
"""
METASPACE: Final = "-XX:MetaspaceSize=256m"
"""So much memory Spark's classes take; by default they cause a full collection at 21 MB and at each step from there."""


def suits_quick_compiler(evidence_bytes: int | None) -> bool:
    """Return whether the quick compiler suits a run: its evidence is small, or of unknown size, as most windows are."""
    return evidence_bytes is None or evidence_bytes <= QUICK_BYTES


def java_options_for(evidence_bytes: int | None) -> str:
    """Return the options for a session that reads this many bytes, None if that is not known.

    Little evidence makes little garbage, which one thread collects with the least work. For more, the collector with
    the highest throughput is used: pauses do not matter here. Source: "Available Collectors" in Java's tuning guide.
    """
    is_small = evidence_bytes is not None and evidence_bytes <= SMALL_BYTES
    collector = "-XX:+UseSerialGC" if is_small else "-XX:+UseParallelGC"
    options = f"{collector} {METASPACE}"
    return f"{options} {QUICK_COMPILER}" if suits_quick_compiler(evidence_bytes) else options
