"""The DAGs to create: one for each contract, and one for each contract file that cannot be used.

An exception while a DAG file is read makes all of its DAGs disappear, so nothing raised by one contract gets
out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tieout.contracts import Contract, load_contract, load_contracts
from tieout.contracts.loading import SUFFIXES
from tieout.errors import ContractError, UsageError
from tieout.regular_files import read_bytes

ERROR_PREFIX = "contract_error__"


def entries(folders: Iterable[Path], only: str | None = None) -> Iterator[Contract | ContractError]:
    """Yield a contract or an error for every file; with `only`, no more than that DAG needs.

    Args:
        folders: The folders that hold contracts.
        only: The DAG that the running task belongs to: each task reads the DAG file again at its start, and
        needs
            only its own.
    """
    known = tuple(folders)
    if only is not None and not only.startswith(ERROR_PREFIX):
        yield from _contracts_named(known, only)
        return
    contracts, errors = load_contracts(*known)
    yield from contracts
    yield from errors


def error_dag_id(error: ContractError) -> str:
    """Return the name of the DAG that shows an error: readable, and unique to the file.

    >>> error_dag_id(ContractError("/etc/tieout/orders.yml", 3, "…"))[:30]
    'contract_error__tieout__orders'
    """
    path = Path(error.file).absolute()
    readable = re.sub(r"[^A-Za-z0-9_.-]", "_", f"{path.parent.name}__{path.stem}")
    return f"{ERROR_PREFIX}{readable[:100]}__{hashlib.sha256(str(path).encode()).hexdigest()[:6]}"


def _contracts_named(folders: tuple[Path, ...], pipeline: str) -> Iterator[Contract]:
    """Yield the contract of `pipeline`, loading only files that contain the name."""
    for folder in folders:
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if path.suffix not in SUFFIXES or pipeline not in _text(path):
                continue
            try:
                contract = load_contract(path)
            except ContractError:
                continue
            if contract.pipeline == pipeline:
                yield contract
                return


def _text(path: Path) -> str:
    try:
        return read_bytes(path).decode(errors="replace")
    except OSError:
        return ""


def contract_of(folders: Iterable[Path], pipeline: str) -> Contract:
    """Return a pipeline's contract.

    Raises:
        UsageError: where none of the folders has it, or it cannot be used.
    """
    known = tuple(folders)
    found = next((entry for entry in entries(known, only=pipeline) if isinstance(entry, Contract)), None)
    if found is None:
        raise UsageError(
            f"pipeline {pipeline}: expected its contract in {', '.join(map(str, known))}, found none that can be used"
        )
    return found
