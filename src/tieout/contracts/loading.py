"""Loads contracts from files, with errors that name the file, line, field, and what was expected and found."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError

from tieout.contracts.chains import cycle_of
from tieout.contracts.contract import Contract
from tieout.contracts.document import read_document, shortened
from tieout.contracts.explaining import problems_of
from tieout.contracts.rules import did_you_mean
from tieout.errors import ContractError

SUFFIXES: Final = (".yml", ".yaml")
_LONGEST_PLACE: Final = 200
Loaded = TypeVar("Loaded", bound=BaseModel)


def load_contract(path: Path | str) -> Contract:
    """Return the contract in the file; its relative paths start at the file's folder.

    Raises:
        ContractError: if the file cannot be read or holds no valid contract. It names the first problem's
            line; the other problems follow in its reason, one per line.
    """
    file = Path(path)
    return load_model(file, Contract).located_in(file.absolute().parent)


def load_model(file: Path, model: type[Loaded]) -> Loaded:
    """Return the model's value in a YAML file, read in the same way as a contract.

    Raises:
        ContractError: if the file cannot be read or holds no such value, as for `load_contract`.
    """
    document = read_document(file)
    try:
        return model.model_validate_json(json.dumps(document.value), strict=True)
    except ValidationError as error:
        problems = problems_of(error, document.value, model)
        lines = [(document.line_of(problem.path), problem) for problem in problems]
        lines.sort(key=lambda item: item[0] or 0)
        first, *other_texts = [
            f"{shortened('.'.join(map(str, path)), _LONGEST_PLACE)}: {reason}" if path else reason
            for _, (path, reason) in lines
        ]
        other_errors = [
            f"\n{ContractError(str(file), line, text)}"
            for (line, _), text in zip(lines[1:], other_texts, strict=True)
        ]
        raise ContractError(str(file), lines[0][0], "".join([first, *other_errors])) from error


def load_contracts(*folders: Path | str) -> tuple[tuple[Contract, ...], tuple[ContractError, ...]]:
    """Return the valid contracts of the folders' `.yml` and `.yaml` files, and one error for each other file.

    Files with the same pipeline are all errors: the right one is not known. So are files whose `after` forms a cycle.
    A folder that cannot be read is one error. Contracts are ordered by file name.
    """
    loaded, errors = _loaded(folders)
    unique, clashes = _unique(loaded)
    straight, cycles = _without_cycles(unique)
    return tuple(contract for _, contract in straight), (*errors, *clashes, *cycles)


def unknown_predecessors(paths: Iterable[Path]) -> tuple[ContractError, ...]:
    """Return an error for each contract of the files and folders whose `after` names a pipeline that none of them has.

    For a file, the other contracts of its folder count too. A deployment may keep a predecessor elsewhere, so this is
    only reported by a check; loading does not refuse such a contract.
    """
    locations = tuple(paths)
    checked, _ = _loaded(path for path in locations if path.is_dir())
    for path in locations:
        if not path.is_dir():
            try:
                checked.append((path, load_contract(path)))
            except ContractError:
                continue
    in_folders, _ = _loaded(
        dict.fromkeys(path if path.is_dir() else path.absolute().parent for path in locations)
    )
    pipelines = dict.fromkeys(contract.pipeline for _, contract in [*in_folders, *checked])
    return tuple(
        _unknown(file, contract.after.pipeline, pipelines)
        for file, contract in checked
        if contract.after is not None and contract.after.pipeline not in pipelines
    )


def _unknown(file: Path, pipeline: str, pipelines: Iterable[str]) -> ContractError:
    line = read_document(file).line_of(("after",))
    suggestion = did_you_mean(pipeline, pipelines)
    return ContractError(str(file), line, f"after: no contract here has the pipeline {pipeline}{suggestion}")


def _loaded(folders: Iterable[Path | str]) -> tuple[list[tuple[Path, Contract]], list[ContractError]]:
    """Return the folders' files with their contracts, and an error for each file without a valid one."""
    loaded: list[tuple[Path, Contract]] = []
    errors: list[ContractError] = []
    for folder in map(Path, folders):
        try:
            files = sorted(file for file in folder.iterdir() if _is_contract(file))
        except OSError as error:
            errors.append(
                ContractError(str(folder), None, f"the contracts' folder cannot be read: {error.strerror}")
            )
            continue
        for file in files:
            try:
                loaded.append((file, load_contract(file)))
            except ContractError as error:
                errors.append(error)
            except Exception as error:
                # No error in one file may keep the other contracts from loading.
                reason = f"no contract can be read from it: {type(error).__name__}"
                errors.append(ContractError(str(file), None, reason))
    return loaded, errors


def _is_contract(file: Path) -> bool:
    return file.suffix in SUFFIXES and not file.name.startswith(".") and not file.is_dir()


def _unique(
    loaded: list[tuple[Path, Contract]],
) -> tuple[list[tuple[Path, Contract]], tuple[ContractError, ...]]:
    """Return the contracts whose pipeline is unique, and errors for the others."""
    files: defaultdict[str, list[Path]] = defaultdict(list)
    for file, contract in loaded:
        files[contract.pipeline].append(file)
    unique = [(file, contract) for file, contract in loaded if len(files[contract.pipeline]) == 1]
    clashes = tuple(
        _clash(file, pipeline, [other for other in claimants if other != file])
        for pipeline, claimants in files.items()
        for file in claimants
        if len(claimants) > 1
    )
    return unique, clashes


def predecessor_of(contract: Contract) -> str | None:
    """Return the pipeline of the previous hop, or None for a first hop."""
    return None if contract.after is None else contract.after.pipeline


def _without_cycles(
    loaded: list[tuple[Path, Contract]],
) -> tuple[list[tuple[Path, Contract]], tuple[ContractError, ...]]:
    """Return the contracts that are not part of a cycle, and errors for the others."""
    predecessors = {contract.pipeline: predecessor_of(contract) for _, contract in loaded}
    cycles = {name: cycle for name in predecessors if (cycle := cycle_of(name, predecessors))}
    errors = tuple(
        ContractError(
            str(file),
            read_document(file).line_of(("after",)),
            f"after: expected a chain with a first hop, found the cycle {' after '.join(cycles[contract.pipeline])}",
        )
        for file, contract in loaded
        if contract.pipeline in cycles
    )
    return [(file, contract) for file, contract in loaded if contract.pipeline not in cycles], errors


def _clash(file: Path, pipeline: str, others: list[Path]) -> ContractError:
    line = read_document(file).line_of(("pipeline",))
    also = ", ".join(map(str, others))
    return ContractError(
        str(file), line, f"pipeline: {pipeline} is also the name of {also}; names are unique"
    )
