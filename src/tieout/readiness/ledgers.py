"""Every ledger of a contract looked at: its watermark file, its files, its table, its topic."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

from tieout.contracts import Contract, CoverageSpec, LedgerSpec
from tieout.contracts.times import format_time, parse_time
from tieout.encodings import opened
from tieout.model import Ledger, Window
from tieout.readiness.files import missing_input
from tieout.readiness.pulsar import pulsar_lag
from tieout.readiness.tables import table_lag
from tieout.readiness.topics import topic_lag

_WATERMARK_CHARACTERS: Final = 200


def incomplete_ledgers(contract: Contract, window: Window) -> tuple[str, ...]:
    """Return, for each ledger that cannot cover the window yet, its name and why; nothing where none is known to.

    Raises nothing for a source that is described wrongly: the job that reads it says what is wrong with it.
    """
    found = (
        (ledger, next(_reasons(spec, contract.base_dir, ledger, contract.needed_until(ledger, window)), None))
        for ledger, spec in contract.ledgers.items()
    )
    return tuple(f"{ledger}: {reason}" for ledger, reason in found if reason is not None)


def _reasons(spec: LedgerSpec, base_dir: Path, ledger: Ledger, needed: datetime) -> Iterator[str]:
    """Yield why the ledger cannot reach as far as needed, the cheapest look first."""
    coverage = spec.coverage if isinstance(spec.coverage, CoverageSpec) else CoverageSpec()
    if coverage.watermark_file is not None:
        yield from _watermark_lag(base_dir / coverage.watermark_file, coverage.watermark_file, needed)
    yield from missing_input(spec.source, base_dir)
    yield from table_lag(spec, coverage, f"ledgers.{ledger}.source", needed)
    yield from topic_lag(spec, ledger, needed)
    yield from pulsar_lag(spec, ledger)


def _watermark_lag(path: Path, name: str, needed: datetime) -> Iterator[str]:
    try:
        with opened(path) as file:
            until = parse_time(file.read(_WATERMARK_CHARACTERS).strip())
    except OSError as error:
        yield f"the watermark file {name} cannot be read: {error.strerror}"
    except ValueError:
        yield f"the watermark file {name} holds no time such as 2026-11-20T10:00:00Z"
    else:
        if until < needed:
            yield f"complete until {format_time(until)} as {name} says, but {format_time(needed)} is needed"
