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
    """Return a draft contract over the sources, which has been loaded once to prove that it is valid.

    Args:
        pipeline: Its name.
        guarantee: What is promised.
        group: The group, or None if the evidence may name it.
        sources: Per ledger a file, folder, pattern, `jdbc:CONNECTION:TABLE`, `kafka:CONNECTION:TOPIC` or
            `pulsar:CONNECTION:TOPIC`.
        folder: The contract's folder; relative paths are relative to it.

    Raises:
        UsageError: if a ledger that every contract needs is not given, or the pipeline's name is not valid.
        SourceError: if a source cannot be read.
        JavaError: if a topic, or a table of Delta or Iceberg, is to be read, and Java is missing or too old.
    """
    if Ledger.PRODUCED not in sources or not {Ledger.DELIVERED, Ledger.READ} & set(sources):
        raise UsageError("expected --produced and one of --delivered and --read: every contract needs them")
    if any(needs_spark(text) for text in sources.values()):
        require_java()
    samples = {
        ledger: _placed(sample(text, f"--{ledger.value.replace('_', '-')}", ledger), folder)
        for ledger, text in sources.items()
    }
    result = draft(pipeline, guarantee, group, samples)
    with tempfile.TemporaryDirectory(prefix="tieout-init-") as scratch:
        file = Path(scratch) / "contract.yml"
        file.write_text(result.text, encoding="utf-8")
        try:
            load_contract(file)
        except ContractError as error:
            raise UsageError(f"PIPELINE {pipeline}: {error.reason}") from error
    return result


def write_new(text: str, file: Path) -> None:
    """Write the contract to a new file.

    Raises:
        UsageError: if the file exists: somebody may have edited it.
        OSError: if it cannot be written.
    """
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError as error:
        raise UsageError(
            f"--output {file}: it exists, and is not overwritten; choose another name"
        ) from error


def _placed(source: LedgerSample, folder: Path) -> LedgerSample:
    """Return the sample with its path relative to the contract's folder."""
    if source.form in ("jdbc", "kafka") or Path(source.path).is_absolute():
        return source
    return replace(source, path=os.path.relpath(source.path, folder))
