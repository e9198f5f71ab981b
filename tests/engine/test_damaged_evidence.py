"""Evidence of other systems, damaged by chance: every row is there, or something says that one may not be.

A changed byte may make another value of a value, where the format has no checksum; it never takes a row away. How many
cases a sample gets `TIEOUT_FUZZ_CASES` says; a failure names its damage.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from itertools import chain, islice
from pathlib import Path
from random import Random
from typing import Final

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.damages import SAMPLES, Damage, Rows, Sample, damages_of, done

from tieout.engine.evidence import LedgerCoverage
from tieout.errors import TieoutError

_CASES: Final = int(os.environ.get("TIEOUT_FUZZ_CASES", "3"))
"""How many damages each sample gets, and as many of whole files; a read takes a tenth of a second to two."""
_SECONDS: Final = 30.0
"""Far longer than any of them takes: a read that does not end is found, and a busy machine is none."""
_WHOLE_FILES: Final = 3


@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_no_damage_takes_a_row_away_without_a_word(
    spark: SparkSession, tmp_path: Path, sample: Sample
) -> None:
    """The rows are all there, or a fault, a shorter coverage or an explained error says what is not."""
    sample.write(tmp_path)
    whole, covered = sample.read(spark, tmp_path)
    assert whole
    assert covered.is_sound, covered.notes

    reported: Counter[str] = Counter()
    for damage in _damages(sample, tmp_path):
        before = damage.file.read_bytes()
        began = time.monotonic()
        done(damage)
        outcome = _outcome(sample, spark, tmp_path, whole, covered, damage)
        damage.file.write_bytes(before)
        assert time.monotonic() - began < _SECONDS, str(damage)
        reported[outcome] += 1

    assert reported["told"], reported


def _damages(sample: Sample, folder: Path) -> list[Damage]:
    """Return what is tried: each file deleted, emptied and full of zeros, and damages within files by turns."""
    files = sample.files(folder)
    assert files
    streams = [
        damages_of(file, file.read_bytes(), Random(f"{sample}{place}"))  # noqa: S311 - repeatable, not secret
        for place, file in enumerate(files)
    ]
    of_files = list(chain.from_iterable(islice(stream, _WHOLE_FILES) for stream in streams))
    within = [
        damage
        for some in zip(*(islice(stream, _CASES) for stream in streams), strict=False)
        for damage in some
    ]
    chance = Random(str(sample))  # noqa: S311 - repeatable, not secret
    return [*_some(of_files, chance), *_some(within, chance)]


def _some(damages: list[Damage], chance: Random) -> list[Damage]:
    return damages if len(damages) <= _CASES else chance.sample(damages, _CASES)


def _outcome(
    sample: Sample, spark: SparkSession, folder: Path, whole: Rows, covered: LedgerCoverage, damage: Damage
) -> str:
    try:
        rows, coverage = sample.read(spark, folder)
    except TieoutError:
        return "told"
    except Exception as error:
        raise AssertionError(f"{damage}: {type(error).__name__}: {error}") from error
    bounds = (coverage.complete_until, coverage.covers_from)
    if not coverage.is_sound or bounds != (covered.complete_until, covered.covers_from):
        return "told"
    if sample.is_unseen(damage):
        return "unseen"
    gone = whole - rows
    assert not gone or not sample.has_sums, f"{damage}: {list(gone)[:3]} are gone: {coverage.notes}"
    assert rows.total() >= whole.total(), f"{damage}: {list(gone)[:3]} are gone: {coverage.notes}"
    return "changed" if gone else "whole"
