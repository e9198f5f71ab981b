"""The bench as a user starts it, on a window so small that only its answers matter."""

from __future__ import annotations

import subprocess
import sys

import pytest
from scripts import bootstrap


@pytest.mark.timeout(1_000)
def test_a_join_finds_the_breaks_that_tieout_finds() -> None:
    """All messages broken, and one that ends its partition lost, which is overdue to Tieout and missing to a join."""
    words = ["--sizes", "0.002", "--rates", "1", "--repeats", "1", "--only", "join", "tieout", "--no-report"]
    ran = subprocess.run(
        [sys.executable, "-m", "tools.bench", *words],
        cwd=bootstrap.ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=800,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count("'lost': 4") == 2, ran.stdout
