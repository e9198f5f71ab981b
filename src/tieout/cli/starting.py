"""The command `init`: a first contract, written from a look at files, tables and topics."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tieout.cli.java import require_java
from tieout.contracts import load_contract
from tieout.contracts.drafting import Draft, draft
from tieout.contracts.guessing import LedgerSample
from tieout.engine.sampling import needs_spark, sample
from tieout.errors import ContractError, UsageError
from tieout.model import Guarantee, Ledger


def drafted(
    pipeline: str,
    guarantee: Guarantee,
    group: str | None,
    sources: Mapping[Ledger, str],
    folder: Path,
) -> Draft:
    """Return a contract over the sources that has been loaded once, so that it is known to be valid.

    Args:
        pipeline: Its name.
        guarantee: What is promised.
        group: The group, or None where the evidence may name it.
        sources: Per ledger a file, folder, pattern, `jdbc:CONNECTION:TABLE`, `kafka:CONNECTION:TOPIC` or
            `pulsar:CONNECTION:TOPIC`.
        folder: Where the contract will lie; relative paths are told from there.

    Raises:
        UsageError: where a ledger that every contract needs is not given, or the pipeline's name is none.
        SourceError: where a source cannot be looked at.
        JavaError: where a topic, or a table of Delta or Iceberg, is to be looked at, and Java is missing or too old.
    """
    if Ledger.PRODUCED not in sources or not {Ledger.DELIVERED, Ledger.READ} & set(sources):
        raise UsageError("expected --produced and one of --delivered and --read: every contract needs them")
    if any(needs_spark(text) for text in sources.values()):
        require_java()
    samples = {
        ledger: _placed(sample(text, f"--{ledger.value.replace('_', '-')}", ledger), folder)
        for ledger, text in sources.items()
    }
    made = draft(pipeline, guarantee, group, samples)
    with tempfile.TemporaryDirectory(prefix="tieout-init-") as scratch:
        file = Path(scratch) / "contract.yml"
        file.write_text(made.text, encoding="utf-8")
        try:
            load_contract(file)
        except ContractError as error:
            raise UsageError(f"PIPELINE {pipeline}: {error.reason}") from error
    return made


def write_new(text: str, file: Path) -> None:
    """Write the contract to a file that must not be there yet.

    Raises:
        UsageError: where it is there: somebody may have corrected it.
        OSError: where it cannot be written.
    """
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError as error:
        raise UsageError(
            f"--output {file}: it exists, and is not overwritten; choose another name"
        ) from error


def _placed(found: LedgerSample, folder: Path) -> LedgerSample:
    """Return the sample with its path as a contract in the folder names it."""
    if found.form in ("jdbc", "kafka") or Path(found.path).is_absolute():
        return found
    return replace(found, path=os.path.relpath(found.path, folder))
