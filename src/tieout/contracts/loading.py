"""Loading contracts from files, with errors that say file, line, field, what was expected and found."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError

from tieout.contracts.contract import Contract
from tieout.contracts.document import read_document
from tieout.contracts.explaining import problems_of
from tieout.errors import ContractError

SUFFIXES: Final = (".yml", ".yaml")
Loaded = TypeVar("Loaded", bound=BaseModel)


def load_contract(path: Path | str) -> Contract:
    """Return the contract in the file; its relative paths start at the file's folder.

    Raises:
        ContractError: where the file cannot be read or holds no valid contract. It names the first problem's
            line; the others follow in its reason, a line each.
    """
    file = Path(path)
    return load_model(file, Contract).located_in(file.absolute().parent)


def load_model(file: Path, model: type[Loaded]) -> Loaded:
    """Return the value of the model that the YAML file holds; other files are read as contracts are.

    Raises:
        ContractError: where the file cannot be read or holds no such value, as `load_contract` says.
    """
    document = read_document(file)
    try:
        return model.model_validate_json(json.dumps(document.value), strict=True)
    except ValidationError as error:
        problems = problems_of(error, document.value, model)
        lines = [(document.line_of(problem.path), problem) for problem in problems]
        lines.sort(key=lambda item: item[0] or 0)
        first, *others = [
            f"{'.'.join(map(str, path))}: {reason}" if path else reason for _, (path, reason) in lines
        ]
        rest = [f"\n{file}:{line}: {text}" for (line, _), text in zip(lines[1:], others, strict=True)]
        raise ContractError(str(file), lines[0][0], "".join([first, *rest])) from error


def load_contracts(*folders: Path | str) -> tuple[tuple[Contract, ...], tuple[ContractError, ...]]:
    """Return the valid contracts of the folders' `.yml` and `.yaml` files, and one error for each other file.

    Files that name the same pipeline are all errors: nobody can say which of them is meant. A folder that
    cannot be read is one error. Contracts are ordered by file name.
    """
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
                # Whatever one file does to its readers, it does not take the other contracts away.
                reason = f"no contract can be read from it: {type(error).__name__}"
                errors.append(ContractError(str(file), None, reason))
    unique, clashes = _unique(loaded)
    return unique, (*errors, *clashes)


def _is_contract(file: Path) -> bool:
    return file.suffix in SUFFIXES and not file.name.startswith(".") and not file.is_dir()


def _unique(
    loaded: list[tuple[Path, Contract]],
) -> tuple[tuple[Contract, ...], tuple[ContractError, ...]]:
    """Return the contracts whose pipeline is theirs alone, and errors for the others."""
    files: defaultdict[str, list[Path]] = defaultdict(list)
    for file, contract in loaded:
        files[contract.pipeline].append(file)
    unique = tuple(contract for _, contract in loaded if len(files[contract.pipeline]) == 1)
    clashes = tuple(
        _clash(file, pipeline, [other for other in claimants if other != file])
        for pipeline, claimants in files.items()
        for file in claimants
        if len(claimants) > 1
    )
    return unique, clashes


def _clash(file: Path, pipeline: str, others: list[Path]) -> ContractError:
    line = read_document(file).line_of(("pipeline",))
    also = ", ".join(map(str, others))
    return ContractError(
        str(file), line, f"pipeline: {pipeline} is also the name of {also}; names are unique"
    )
